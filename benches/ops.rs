//! Every operator on every instruction set of this machine, through the doors of the kernels crate.
//!
//! ```sh
//! cargo bench --bench ops                  # all
//! cargo bench --bench ops -- conv2d_f32    # one operator
//! cargo bench --bench ops -- /avx2         # one instruction set
//! ```
//!
//! Names are `operator/shape/form/instruction set`; throughput is in multiply-accumulates, or in elements where an operator
//! has none. `scalar` is the portable twin of the others. Weights come packed, as the macro gives them, and in file order, as
//! the runtime reads them.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use netkit_core::op::{
    Activation, Conv2d, Dense, DepthwiseConv2d, Padding, PerChannel, Pool2d, Window,
};
use netkit_core::pack;
use netkit_core::quant::{AddStage, Multiplier, OutputStage, Quant, SoftmaxStage};
use netkit_kernels::{Filter, FilterForm, FilterS8, Kernels, workspace};

/// Values between −1 and 1, neither equal nor denormal.
fn floats(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37) % 113) as f32 / 56.0 - 1.0).collect()
}

fn bytes(len: usize) -> Vec<i8> {
    (0..len).map(|i| ((i * 37) % 251) as u8 as i8).collect()
}

/// Scratch on a cache line.
struct Scratch {
    memory: Vec<u8>,
    len: usize,
}

impl Scratch {
    fn of(len: usize) -> Self {
        Self { memory: vec![0; len + workspace::ALIGNMENT], len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(workspace::ALIGNMENT);
        &mut self.memory[start..start + self.len]
    }
}

/// Measures `work` on each instruction set; `units` are what one call does.
fn each(c: &mut Criterion, name: &str, units: u64, mut work: impl FnMut(Kernels)) {
    for kernels in Kernels::all() {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(units));
        group.bench_function(kernels.isa().name(), |b| b.iter(|| work(kernels)));
        group.finish();
    }
}

fn window(size: usize, kernel: u32, stride: u32, pad: u32) -> Window {
    Window::new((size, size), (kernel, kernel), stride, Padding::symmetric(pad, pad))
        .expect("the window fits the map")
}

/// `24×24×32→64 k3s1`: output channels where they differ.
fn shape(window: &Window, channels: usize, out: Option<usize>) -> String {
    let to = out.map_or(String::new(), |out| format!("→{out}"));
    let (h, w, k, s) = (window.in_h, window.in_w, window.kernel_h, window.stride_h);
    format!("{h}×{w}×{channels}{to} k{k}s{s}")
}

/// First layers, 3×3, 1×1: (size, kernel, stride, padding, channels in, channels out).
const CONVOLUTIONS: [(usize, u32, u32, u32, usize, usize); 7] = [
    (28, 3, 1, 0, 1, 32),
    (224, 3, 2, 1, 3, 32),
    (13, 3, 1, 0, 32, 64),
    (14, 3, 1, 1, 64, 64),
    (7, 3, 1, 1, 512, 512),
    (28, 1, 1, 0, 32, 96),
    (7, 1, 1, 0, 384, 96),
];

fn convolutions(c: &mut Criterion) {
    for (size, kernel, stride, pad, in_channels, out_channels) in CONVOLUTIONS {
        let conv = Conv2d { window: window(size, kernel, stride, pad), in_channels, out_channels };
        conv2d_f32(c, &conv);
        if pack::winograd_pays(&conv) {
            conv2d_winograd_f32(c, &conv);
        }
        conv2d_s8(c, &conv);
    }
}

fn conv2d_f32(c: &mut Criterion, conv: &Conv2d) {
    let w = &conv.window;
    let depth = w.taps() * conv.in_channels;
    let macs = (w.out_pixels() * depth * conv.out_channels) as u64;
    let values = floats(depth * conv.out_channels);
    let mut packed = vec![0.0; pack::packed_conv2d_f32_len(conv)];
    pack::pack_conv2d_f32(conv, &values, None, &mut packed).expect("lengths fit");
    let input = floats(w.in_h * w.in_w * conv.in_channels);
    let bias = floats(conv.out_channels);
    let mut output = vec![0.0; w.out_pixels() * conv.out_channels];
    let forms = [
        ("packed", Filter::Packed(&packed), FilterForm::Packed),
        ("file", Filter::File { values: &values, scale: None }, FilterForm::File),
    ];
    for (form, filter, kind) in forms {
        let mut scratch = Scratch::of(workspace::conv2d_f32(conv, kind));
        let name =
            format!("conv2d_f32/{}/{form}", shape(w, conv.in_channels, Some(conv.out_channels)));
        each(c, &name, macs, |kernels| {
            let (rows, scratch) = (0..w.out_h, scratch.bytes());
            let activation = Activation::Relu;
            kernels.conv2d_f32(
                conv,
                &input,
                filter,
                &bias,
                None,
                activation,
                rows,
                &mut output,
                scratch,
            );
        });
    }
}

/// The same convolutions in Winograd's form, where they have one; throughput in those of the plain sum.
fn conv2d_winograd_f32(c: &mut Criterion, conv: &Conv2d) {
    let w = &conv.window;
    let depth = w.taps() * conv.in_channels;
    let macs = (w.out_pixels() * depth * conv.out_channels) as u64;
    let values = floats(depth * conv.out_channels);
    let mut packed = vec![0.0; pack::packed_conv2d_winograd_f32_len(conv)];
    pack::pack_conv2d_winograd_f32(conv, &values, None, &mut packed).expect("lengths fit");
    let input = floats(w.in_h * w.in_w * conv.in_channels);
    let bias = floats(conv.out_channels);
    let mut output = vec![0.0; w.out_pixels() * conv.out_channels];
    let mut scratch = Scratch::of(workspace::conv2d_winograd_f32(conv));
    let name =
        format!("conv2d_winograd_f32/{}", shape(w, conv.in_channels, Some(conv.out_channels)));
    each(c, &name, macs, |kernels| {
        let (rows, scratch) = (0..w.out_h, scratch.bytes());
        let activation = Activation::Relu;
        kernels.conv2d_winograd_f32(
            conv,
            &input,
            &packed,
            &bias,
            None,
            activation,
            rows,
            &mut output,
            scratch,
        );
    });
}

/// Factors as trained layers have them.
const MULTIPLIER: Multiplier = Multiplier { multiplier: 1 << 30, shift: -8 };
const STAGE: OutputStage = OutputStage { zero_point: -3, low: -128, high: 127 };

fn conv2d_s8(c: &mut Criterion, conv: &Conv2d) {
    let w = &conv.window;
    let depth = w.taps() * conv.in_channels;
    let macs = (w.out_pixels() * depth * conv.out_channels) as u64;
    let values = bytes(depth * conv.out_channels);
    let mut packed = vec![0; pack::packed_conv2d_s8_len(conv)];
    pack::pack_conv2d_s8(conv, &values, &mut packed).expect("lengths fit");
    let input = bytes(w.in_h * w.in_w * conv.in_channels);
    let bias = vec![100; conv.out_channels];
    let multipliers = vec![MULTIPLIER; conv.out_channels];
    let mut output = vec![0; w.out_pixels() * conv.out_channels];
    let forms = [("packed", FilterS8::Packed(&packed)), ("file", FilterS8::File(&values))];
    for (form, filter) in forms {
        let mut scratch = Scratch::of(workspace::conv2d_s8(conv, filter.form()));
        let name =
            format!("conv2d_s8/{}/{form}", shape(w, conv.in_channels, Some(conv.out_channels)));
        each(c, &name, macs, |kernels| {
            let (rows, scratch) = (0..w.out_h, scratch.bytes());
            kernels.conv2d_s8(
                conv,
                &input,
                5,
                filter,
                &bias,
                &multipliers,
                STAGE,
                rows,
                &mut output,
                scratch,
            );
        });
    }
}

/// (size, kernel, stride, padding, channels)
const DEPTHWISE: [(usize, u32, u32, u32, usize); 4] =
    [(26, 3, 1, 1, 32), (13, 3, 1, 0, 64), (14, 5, 2, 2, 192), (7, 5, 1, 2, 512)];

fn depthwise(c: &mut Criterion) {
    for (size, kernel, stride, pad, channels) in DEPTHWISE {
        let window = window(size, kernel, stride, pad);
        let conv = DepthwiseConv2d { window, channels, multiplier: 1 };
        depthwise_f32(c, &conv);
        depthwise_s8(c, &conv);
    }
}

fn depthwise_f32(c: &mut Criterion, conv: &DepthwiseConv2d) {
    let w = &conv.window;
    let macs = (w.out_pixels() * w.taps() * conv.channels) as u64;
    let values = floats(w.taps() * conv.channels);
    let mut packed = vec![0.0; pack::packed_depthwise_conv2d_f32_len(conv)];
    pack::pack_depthwise_conv2d_f32(w.taps(), 0..conv.channels, &values, None, &mut packed)
        .expect("lengths fit");
    let input = floats(w.in_h * w.in_w * conv.channels);
    let bias = floats(conv.channels);
    let mut output = vec![0.0; w.out_pixels() * conv.channels];
    let forms = [
        ("packed", Filter::Packed(&packed), FilterForm::Packed),
        ("file", Filter::File { values: &values, scale: None }, FilterForm::File),
    ];
    for (form, filter, kind) in forms {
        let mut scratch = Scratch::of(workspace::depthwise_conv2d_f32(conv, kind));
        let name = format!("depthwise_conv2d_f32/{}/{form}", shape(w, conv.channels, None));
        each(c, &name, macs, |kernels| {
            let (rows, scratch) = (0..w.out_h, scratch.bytes());
            let activation = Activation::Relu;
            kernels.depthwise_conv2d_f32(
                conv,
                &input,
                filter,
                &bias,
                activation,
                rows,
                &mut output,
                scratch,
            );
        });
    }
}

fn depthwise_s8(c: &mut Criterion, conv: &DepthwiseConv2d) {
    let w = &conv.window;
    let macs = (w.out_pixels() * w.taps() * conv.channels) as u64;
    let values = bytes(w.taps() * conv.channels);
    let mut packed = vec![0; pack::packed_depthwise_conv2d_s8_len(conv)];
    pack::pack_depthwise_conv2d_s8(conv, &values, &mut packed).expect("lengths fit");
    let input = bytes(w.in_h * w.in_w * conv.channels);
    let bias = vec![100; conv.channels];
    let multipliers = vec![MULTIPLIER; conv.channels];
    let mut output = vec![0; w.out_pixels() * conv.channels];
    let forms = [("packed", FilterS8::Packed(&packed)), ("file", FilterS8::File(&values))];
    for (form, filter) in forms {
        let mut scratch = Scratch::of(workspace::depthwise_conv2d_s8(conv, filter.form()));
        let name = format!("depthwise_conv2d_s8/{}/{form}", shape(w, conv.channels, None));
        each(c, &name, macs, |kernels| {
            let (rows, scratch) = (0..w.out_h, scratch.bytes());
            kernels.depthwise_conv2d_s8(
                conv,
                &input,
                5,
                filter,
                &bias,
                &multipliers,
                STAGE,
                rows,
                &mut output,
                scratch,
            );
        });
    }
}

fn dense(c: &mut Criterion) {
    for (rows, in_features, out_features) in
        [(1, 784, 128), (1, 1600, 128), (1, 128, 10), (1, 1280, 1000), (8, 784, 128)]
    {
        let dense = Dense { rows, in_features, out_features };
        let macs = (rows * in_features * out_features) as u64;
        let name = format!("{rows}×{in_features}→{out_features}");
        dense_f32(c, &dense, macs, &name);
        dense_s8(c, &dense, macs, &name);
    }
}

fn dense_f32(c: &mut Criterion, dense: &Dense, macs: u64, name: &str) {
    let values = floats(dense.in_features * dense.out_features);
    let filter = Filter::File { values: &values, scale: None };
    let input = floats(dense.rows * dense.in_features);
    let bias = floats(dense.out_features);
    let mut output = vec![0.0; dense.rows * dense.out_features];
    each(c, &format!("dense_f32/{name}/file"), macs, |kernels| {
        kernels.dense_f32(dense, &input, filter, &bias, Activation::Relu, &mut output);
    });
}

fn dense_s8(c: &mut Criterion, dense: &Dense, macs: u64, name: &str) {
    let values = bytes(dense.in_features * dense.out_features);
    let mut packed = vec![0; pack::packed_dense_s8_len(dense)];
    pack::pack_dense_s8(dense, &values, &mut packed).expect("lengths fit");
    let input = bytes(dense.rows * dense.in_features);
    let bias = vec![100; dense.out_features];
    let multipliers = vec![MULTIPLIER; dense.out_features];
    let mut output = vec![0; dense.rows * dense.out_features];
    let forms = [("packed", FilterS8::Packed(&packed)), ("file", FilterS8::File(&values))];
    for (form, filter) in forms {
        let mut scratch = Scratch::of(workspace::dense_s8(dense, filter.form()));
        each(c, &format!("dense_s8/{name}/{form}"), macs, |kernels| {
            let scratch = scratch.bytes();
            kernels.dense_s8(
                dense,
                &input,
                5,
                filter,
                &bias,
                &multipliers,
                STAGE,
                &mut output,
                scratch,
            );
        });
    }
}

fn pools(c: &mut Criterion) {
    for (size, kernel, stride, pad, channels) in
        [(26, 2, 2, 0, 32), (112, 3, 2, 1, 64), (7, 7, 1, 0, 960)]
    {
        let pool = Pool2d { window: window(size, kernel, stride, pad), channels };
        let w = &pool.window;
        let (inputs, outputs) = (w.in_h * w.in_w * channels, w.out_pixels() * channels);
        let taps = (outputs * w.taps()) as u64;
        let shape = shape(w, channels, None);
        let (input, mut output) = (floats(inputs), vec![0.0; outputs]);
        each(c, &format!("max_pool2d_f32/{shape}"), taps, |kernels| {
            kernels.max_pool2d_f32(&pool, &input, 0..w.out_h, &mut output);
        });
        each(c, &format!("average_pool2d_f32/{shape}"), taps, |kernels| {
            kernels.average_pool2d_f32(&pool, &input, 0..w.out_h, &mut output);
        });
        let (input, mut output) = (bytes(inputs), vec![0; outputs]);
        each(c, &format!("max_pool2d_s8/{shape}"), taps, |kernels| {
            kernels.max_pool2d_s8(&pool, &input, 0..w.out_h, &mut output);
        });
        each(c, &format!("average_pool2d_s8/{shape}"), taps, |kernels| {
            kernels.average_pool2d_s8(&pool, &input, 0..w.out_h, &mut output);
        });
    }
}

fn elementwise(c: &mut Criterion) {
    const LEN: usize = 14 * 14 * 64;
    let (a, b, mut output) = (floats(LEN), floats(LEN), vec![0.0; LEN]);
    let activations = [
        ("relu", Activation::Relu),
        ("relu6", Activation::Relu6),
        ("leaky_relu", Activation::LeakyRelu(0.1)),
        ("sigmoid", Activation::Sigmoid),
        ("tanh", Activation::Tanh),
        ("silu", Activation::Silu),
        ("gelu", Activation::Gelu),
    ];
    for (name, activation) in activations {
        each(c, &format!("activation_f32/{name} {LEN}"), LEN as u64, |kernels| {
            kernels.activation_f32(activation, &a, &mut output);
        });
    }
    each(c, &format!("add_f32/{LEN}"), LEN as u64, |kernels| {
        kernels.add_f32(&a, &b, Activation::Relu, &mut output);
    });
    let (a, b, mut output) = (bytes(LEN), bytes(LEN), vec![0; LEN]);
    let quant = |scale| Quant { scale, zero_point: 2 };
    let stage = AddStage::new(quant(0.02), quant(0.03), quant(0.04), Activation::Relu)
        .expect("ReLU has an int8 form");
    each(c, &format!("add_s8/{LEN}"), LEN as u64, |kernels| {
        kernels.add_s8(&stage, &a, &b, &mut output);
    });
}

fn softmax(c: &mut Criterion) {
    let stage = SoftmaxStage::new(0.1);
    for len in [10, 1000] {
        let (input, mut output) = (floats(len), vec![0.0; len]);
        each(c, &format!("softmax_f32/{len}"), len as u64, |kernels| {
            kernels.softmax_f32(&input, &mut output);
        });
        let (input, mut output) = (bytes(len), vec![0; len]);
        each(c, &format!("softmax_s8/{len}"), len as u64, |kernels| {
            kernels.softmax_s8(&stage, &input, &mut output);
        });
    }
}

fn norms(c: &mut Criterion) {
    let shape = PerChannel { pixels: 64, channels: 40 };
    let len = shape.pixels * shape.channels;
    let name = format!("{}×{}", shape.pixels, shape.channels);
    let (input, mut output) = (floats(len), vec![0.0; len]);
    let (scale, shift) = (floats(shape.channels), floats(shape.channels));
    let mut scratch = Scratch::of(workspace::global_response_norm_f32(&shape));
    each(c, &format!("batch_norm_f32/{name}"), len as u64, |kernels| {
        kernels.batch_norm_f32(&shape, &input, &scale, &shift, Activation::Relu, &mut output);
    });
    each(c, &format!("layer_norm_f32/{name}"), len as u64, |kernels| {
        kernels.layer_norm_f32(&shape, 1e-6, &input, &scale, &shift, &mut output);
    });
    each(c, &format!("global_response_norm_f32/{name}"), len as u64, |kernels| {
        let scratch = scratch.bytes();
        kernels.global_response_norm_f32(
            &shape,
            1e-6,
            &input,
            &scale,
            &shift,
            &mut output,
            scratch,
        );
    });
}

criterion_group! {
    name = benches;
    // Some five hundred measurements: short ones.
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(100))
        .measurement_time(std::time::Duration::from_millis(300))
        .sample_size(20);
    targets = convolutions, depthwise, dense, pools, elementwise, softmax, norms
}
criterion_main!(benches);
