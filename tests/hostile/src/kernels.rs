//! Kernels on any geometry: int8 equal to the reference, float the same from packed weights as from file order,
//! and nothing written outside the output.

use crate::random::Random;
use netkit_core::op::{
    Concat, Conv2d, Dense, DepthwiseConv2d, Padding, PerChannel, Pool2d, Upsample2x, Window,
};
use netkit_core::pack;
use netkit_core::quant::{AddStage, Multiplier, OutputStage, Quant, SoftmaxStage};
use netkit_kernels::reference::{self, LayerS8};
use netkit_kernels::{Filter, FilterForm, FilterS8, Kernels, concat, copy, upsample2x, workspace};

/// A choice of numbers read off the input, and random ones behind its end.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
    random: Random,
}

impl Choices<'_> {
    fn below(&mut self, end: usize) -> usize {
        match self.bytes.next() {
            Some(&byte) => usize::from(byte) % end,
            None => self.random.below(end),
        }
    }

    /// Halves the largest of some factors until their product is small: any one of them may be large, and a case
    /// stays quick. One case in 1024 may have several.
    fn fit<const N: usize>(&mut self, mut factors: [usize; N]) -> [usize; N] {
        let most = if self.random.below(1024) == 0 { 1 << 18 } else { 1 << 10 };
        while factors.iter().product::<usize>() > most {
            let largest = factors.iter_mut().max().expect("there are factors");
            *largest = largest.div_ceil(2);
        }
        factors
    }

    /// Channels and a window over them; `outputs` are computed from every tap.
    fn geometry(&mut self, channels: usize, outputs: usize) -> Option<(Window, usize, usize)> {
        let (in_h, in_w) = (1 + self.below(9), 1 + self.below(20));
        let (kernel_h, kernel_w) = (1 + self.below(6), 1 + self.below(6));
        let (channels, outputs) = (1 + self.below(channels), 1 + self.below(outputs));
        let [in_h, in_w, kernel_h, kernel_w, channels, outputs] =
            self.fit([in_h, in_w, kernel_h, kernel_w, channels, outputs]);
        let window = self.window((in_h, in_w), (kernel_h as u32, kernel_w as u32))?;
        Some((window, channels, outputs))
    }

    fn window(&mut self, input: (usize, usize), kernel: (u32, u32)) -> Option<Window> {
        let stride = 1 + self.below(3) as u32;
        let mut pad = || self.below(4) as u32;
        let padding = Padding { top: pad(), left: pad(), bottom: pad(), right: pad() };
        let mut window = Window::new(input, kernel, stride, padding)?;
        if self.below(8) == 0 {
            // Strides of their own: fewer outputs than there would be are a valid window too.
            window.stride_w = 1 + self.below(3);
            window.out_w = window.out_w.min((window.in_w - 1) / window.stride_w + 1);
        }
        Some(window)
    }

    /// A pool of a convolution's map.
    fn pool(&mut self, of: &Window, channels: usize) -> Option<Pool2d> {
        let kernel = (1 + self.below(4) as u32, 1 + self.below(4) as u32);
        if self.below(2) == 0 {
            let window = Window::new((of.out_h, of.out_w), (2, 2), 2, Padding::default())?;
            return Some(Pool2d { window, channels });
        }
        let window = self.window((of.out_h, of.out_w), kernel)?;
        Some(Pool2d { window, channels })
    }

    fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.random.float()).collect()
    }

    /// Weights: files with others than finite ones are refused, and a padded tap times infinity would be NaN.
    fn weights(&mut self, len: usize) -> Vec<f32> {
        let mut weights = self.floats(len);
        weights.iter_mut().filter(|x| !x.is_finite()).for_each(|x| *x = 1e20);
        weights
    }

    fn bytes(&mut self, len: usize) -> Vec<i8> {
        let extreme = self.below(4);
        let any = |random: &mut Random| random.next() as i8;
        (0..len)
            .map(|_| match extreme {
                0 => self.random.choose(&[-128, 127]),
                1 => -128,
                _ => any(&mut self.random),
            })
            .collect()
    }
}

/// An output between canaries, at any misalignment.
struct Canaries<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
    canary: T,
}

impl<T: Copy + PartialEq> Canaries<T> {
    fn new(len: usize, start: usize, canary: T) -> Self {
        let start = 16 + start;
        Self { memory: vec![canary; len + start + 64], start, len, canary }
    }

    fn get(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }

    fn take(self) -> Vec<T> {
        let outside = |x: &T| *x == self.canary;
        assert!(self.memory[..self.start].iter().all(outside), "written before the start");
        assert!(self.memory[self.start + self.len..].iter().all(outside), "written behind the end");
        self.memory[self.start..self.start + self.len].to_vec()
    }
}

/// Scratch at a multiple of 64, with NaN in it.
struct Scratch(Vec<u8>, usize);

impl Scratch {
    fn new(len: usize) -> Self {
        Self(vec![0xff; len + 64], len)
    }

    fn get(&mut self) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(workspace::ALIGNMENT);
        &mut self.0[start..start + self.1]
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    // One NaN is as good as another.
    values.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
}

/// One operator, on the kernels of one instruction set.
pub(crate) fn run(bytes: &[u8]) -> bool {
    let choices = &mut Choices { bytes: bytes.iter(), random: Random::of(bytes) };
    let isas: Vec<Kernels> = Kernels::all().collect();
    let kernels = isas[choices.below(isas.len())];
    match choices.below(8) {
        0 => conv2d_f32(choices, kernels).is_some(),
        1 => conv2d_s8(choices, kernels).is_some(),
        2 => depthwise_f32(choices, kernels).is_some(),
        3 => depthwise_s8(choices, kernels).is_some(),
        4 => dense_f32(choices, kernels),
        5 => dense_s8(choices, kernels),
        6 => pools(choices, kernels).is_some(),
        _ => {
            elementwise_s8(choices, kernels);
            elementwise_f32(choices, kernels);
            norms(choices, kernels);
            moves(choices);
            true
        }
    }
}

/// A cut of the output rows in two.
fn cut(choices: &mut Choices<'_>, out_h: usize) -> [std::ops::Range<usize>; 2] {
    let at = choices.below(out_h + 1);
    [0..at, at..out_h]
}

fn activation(choices: &mut Choices<'_>) -> netkit_core::op::Activation {
    use netkit_core::op::Activation::{Gelu, LeakyRelu, None, Relu, Relu6, Sigmoid, Silu, Tanh};
    [None, Relu, Relu6, LeakyRelu(0.1), Sigmoid, Tanh, Silu, Gelu][choices.below(8)]
}

fn conv2d_f32(choices: &mut Choices<'_>, kernels: Kernels) -> Option<()> {
    let (window, in_channels, out_channels) = choices.geometry(20, 40)?;
    let conv = Conv2d { window, in_channels, out_channels };
    let input = choices.floats(window.in_pixels() * conv.in_channels);
    let weights = choices.weights(window.taps() * conv.in_channels * conv.out_channels);
    let bias = choices.floats(conv.out_channels);
    let activation = activation(choices);
    let row = window.out_w * conv.out_channels;
    let residual = (choices.below(2) == 1).then(|| choices.floats(window.out_h * row));
    let mut packed = vec![0.0; pack::packed_conv2d_f32_len(&conv)];
    pack::pack_conv2d_f32(&conv, &weights, None, &mut packed)?;
    let rows = cut(choices, window.out_h);
    let offset = choices.below(16);
    let run = |form, filter: Filter<'_>| {
        let mut all = Vec::new();
        for rows in rows.clone() {
            let mut output = Canaries::new(rows.len() * row, offset, 7.5);
            let mut scratch = Scratch::new(workspace::conv2d_f32(&conv, form));
            let residual = residual.as_ref().map(|r| &r[rows.start * row..rows.end * row]);
            kernels.conv2d_f32(
                &conv,
                &input,
                filter,
                &bias,
                residual,
                activation,
                rows,
                output.get(),
                scratch.get(),
            );
            all.extend(output.take());
        }
        bits(&all)
    };
    let file = run(FilterForm::File, Filter::File { values: &weights, scale: None });
    assert_eq!(file, run(FilterForm::Packed, Filter::Packed(&packed)), "{conv:?}");
    if pack::has_winograd_form(&conv) {
        let mut packed = vec![0.0; pack::packed_conv2d_winograd_f32_len(&conv)];
        pack::pack_conv2d_winograd_f32(&conv, &weights, None, &mut packed)?;
        let [whole, above, below] =
            [0..window.out_h, rows[0].clone(), rows[1].clone()].map(|rows| {
                let mut output = Canaries::new(rows.len() * row, offset, 7.5);
                let mut scratch = Scratch::new(workspace::conv2d_winograd_f32(&conv));
                let residual = residual.as_ref().map(|r| &r[rows.start * row..rows.end * row]);
                kernels.conv2d_winograd_f32(
                    &conv,
                    &input,
                    &packed,
                    &bias,
                    residual,
                    activation,
                    rows,
                    output.get(),
                    scratch.get(),
                );
                bits(&output.take())
            });
        assert_eq!(whole, [above, below].concat(), "{conv:?}");
    }
    if residual.is_some() {
        return Some(());
    }
    let pool = choices.pool(&window, conv.out_channels)?;
    let map: Vec<f32> = file.iter().map(|&bits| f32::from_bits(bits)).collect();
    let filter = |form| of_form(form, &weights, &packed);
    pooled(choices, &pool, &map, kernels, |form, rows, output: &mut [f32]| {
        let mut scratch = Scratch::new(workspace::conv2d_max_pool2d_f32(&conv, &pool, form));
        let (filter, scratch) = (filter(form), scratch.get());
        kernels.conv2d_max_pool2d_f32(
            &conv, &pool, &input, filter, &bias, activation, rows, output, scratch,
        );
    });
    Some(())
}

/// The filter in one of its forms.
fn of_form<'a>(form: FilterForm, values: &'a [f32], packed: &'a [f32]) -> Filter<'a> {
    match form {
        FilterForm::File => Filter::File { values, scale: None },
        FilterForm::Packed => Filter::Packed(packed),
    }
}

fn of_form_s8<'a>(form: FilterForm, values: &'a [i8], packed: &'a [i8]) -> FilterS8<'a> {
    match form {
        FilterForm::File => FilterS8::File(values),
        FilterForm::Packed => FilterS8::Packed(packed),
    }
}

/// Values of a pool: how to pool a whole map of them, and their bits.
trait Pooled: Copy + PartialEq {
    const CANARY: Self;
    fn pool(pool: &Pool2d, map: &[Self], output: &mut [Self]);
    fn bits(self) -> u32;
}

impl Pooled for f32 {
    const CANARY: Self = 7.5;
    fn pool(pool: &Pool2d, map: &[f32], output: &mut [f32]) {
        reference::max_pool2d_f32(pool, map, output);
    }
    fn bits(self) -> u32 {
        bits(&[self])[0]
    }
}

impl Pooled for i8 {
    const CANARY: Self = 0x55;
    fn pool(pool: &Pool2d, map: &[i8], output: &mut [i8]) {
        reference::max_pool2d_s8(pool, map, output);
    }
    fn bits(self) -> u32 {
        u32::from(self.cast_unsigned())
    }
}

/// What `door` gives in two cuts of rows, with the filter in either form, is the pool of the whole map.
fn pooled<T: Pooled>(
    choices: &mut Choices<'_>,
    pool: &Pool2d,
    map: &[T],
    kernels: Kernels,
    mut door: impl FnMut(FilterForm, std::ops::Range<usize>, &mut [T]),
) {
    let mut expected = vec![T::CANARY; pool.window.out_pixels() * pool.channels];
    T::pool(pool, map, &mut expected);
    let rows = cut(choices, pool.window.out_h);
    for form in [FilterForm::File, FilterForm::Packed] {
        let mut all = Vec::new();
        for rows in rows.clone() {
            let len = rows.len() * pool.window.out_w * pool.channels;
            let mut output = Canaries::new(len, choices.below(64), T::CANARY);
            door(form, rows, output.get());
            all.extend(output.take());
        }
        let same = all.len() == expected.len()
            && all.iter().zip(&expected).all(|(a, b)| a.bits() == b.bits());
        assert!(same, "{pool:?} {form:?} {}", kernels.isa().name());
    }
}

fn depthwise_f32(choices: &mut Choices<'_>, kernels: Kernels) -> Option<()> {
    let (window, channels, _) = choices.geometry(70, 1)?;
    let multiplier = 1 + choices.below(5) / 3;
    let conv = DepthwiseConv2d { window, channels, multiplier };
    let outputs = channels * multiplier;
    let input = choices.floats(window.in_pixels() * channels);
    let weights = choices.weights(window.taps() * outputs);
    let bias = choices.floats(outputs);
    let activation = activation(choices);
    let mut packed = vec![0.0; pack::packed_depthwise_conv2d_f32_len(&conv)];
    pack::pack_depthwise_conv2d_f32(window.taps(), 0..outputs, &weights, None, &mut packed)?;
    let rows = cut(choices, window.out_h);
    let offset = choices.below(16);
    let run = |form, filter: Filter<'_>| {
        let mut all = Vec::new();
        for rows in rows.clone() {
            let mut output = Canaries::new(rows.len() * window.out_w * outputs, offset, 7.5);
            let mut scratch = Scratch::new(workspace::depthwise_conv2d_f32(&conv, form));
            kernels.depthwise_conv2d_f32(
                &conv,
                &input,
                filter,
                &bias,
                activation,
                rows,
                output.get(),
                scratch.get(),
            );
            all.extend(output.take());
        }
        bits(&all)
    };
    let file = run(FilterForm::File, Filter::File { values: &weights, scale: None });
    assert_eq!(file, run(FilterForm::Packed, Filter::Packed(&packed)), "{conv:?}");
    let pool = choices.pool(&window, outputs)?;
    let map: Vec<f32> = file.iter().map(|&bits| f32::from_bits(bits)).collect();
    let filter = |form| of_form(form, &weights, &packed);
    pooled(choices, &pool, &map, kernels, |form, rows, output: &mut [f32]| {
        let bytes = workspace::depthwise_conv2d_max_pool2d_f32(&conv, &pool, form);
        let mut scratch = Scratch::new(bytes);
        let (filter, scratch) = (filter(form), scratch.get());
        kernels.depthwise_conv2d_max_pool2d_f32(
            &conv, &pool, &input, filter, &bias, activation, rows, output, scratch,
        );
    });
    Some(())
}

fn dense_f32(choices: &mut Choices<'_>, kernels: Kernels) -> bool {
    let sizes = [1 + choices.below(5), 1 + choices.below(200), 1 + choices.below(60)];
    let [rows, in_features, out_features] = choices.fit(sizes);
    let dense = Dense { rows, in_features, out_features };
    let input = choices.floats(dense.rows * dense.in_features);
    let weights = choices.weights(dense.in_features * dense.out_features);
    let bias = choices.floats(dense.out_features);
    let activation = activation(choices);
    let mut run = |filter: Filter<'_>| {
        let mut output = Canaries::new(dense.rows * dense.out_features, choices.below(16), 7.5);
        kernels.dense_f32(&dense, &input, filter, &bias, activation, output.get());
        bits(&output.take())
    };
    let file = run(Filter::File { values: &weights, scale: None });
    assert_eq!(file, run(Filter::Packed(&weights)), "{dense:?}");
    true
}

/// The parameters of an int8 layer.
struct Layer {
    zero_point: i32,
    bias: Vec<i32>,
    multipliers: Vec<Multiplier>,
    stage: OutputStage,
}

impl Layer {
    fn new(choices: &mut Choices<'_>, channels: usize) -> Self {
        let random = &mut choices.random;
        let bias = |random: &mut Random| match random.below(8) {
            0 => random.choose(&[i32::MIN, i32::MAX]),
            _ => random.next() as i32 >> (8 + random.below(20)),
        };
        let multiplier = |random: &mut Random| Multiplier {
            multiplier: random.choose(&[0, 1 << 30, i32::MAX, 0x5a82_799a]),
            shift: random.below(62) as i32 - 31,
        };
        let zero_point = random.below(256) as i32 - 128;
        Self {
            zero_point: random.below(256) as i32 - 128,
            bias: (0..channels).map(|_| bias(random)).collect(),
            multipliers: (0..channels).map(|_| multiplier(random)).collect(),
            stage: OutputStage {
                zero_point,
                low: random.choose(&[-128, zero_point as i8]),
                high: 127,
            },
        }
    }

    fn reference(&self) -> LayerS8<'_> {
        LayerS8 {
            input_zero_point: self.zero_point,
            bias: &self.bias,
            multipliers: &self.multipliers,
            stage: self.stage,
        }
    }
}

fn conv2d_s8(choices: &mut Choices<'_>, kernels: Kernels) -> Option<()> {
    let (window, in_channels, out_channels) = choices.geometry(40, 40)?;
    let conv = Conv2d { window, in_channels, out_channels };
    let input = choices.bytes(window.in_pixels() * conv.in_channels);
    let weights = choices.bytes(window.taps() * conv.in_channels * conv.out_channels);
    let layer = Layer::new(choices, conv.out_channels);
    let mut expected = vec![0; window.out_pixels() * conv.out_channels];
    reference::conv2d_s8(&conv, &input, &weights, layer.reference(), &mut expected);
    let mut packed = vec![0; pack::packed_conv2d_s8_len(&conv)];
    pack::pack_conv2d_s8(&conv, &weights, &mut packed)?;
    let rows = cut(choices, window.out_h);
    for (form, filter) in [
        (FilterForm::File, FilterS8::File(&weights)),
        (FilterForm::Packed, FilterS8::Packed(&packed)),
    ] {
        let mut all = Vec::new();
        for rows in rows.clone() {
            let len = rows.len() * window.out_w * conv.out_channels;
            let mut output = Canaries::new(len, choices.below(64), 0x55);
            let mut scratch = Scratch::new(workspace::conv2d_s8(&conv, form));
            kernels.conv2d_s8(
                &conv,
                &input,
                layer.zero_point,
                filter,
                &layer.bias,
                &layer.multipliers,
                layer.stage,
                rows,
                output.get(),
                scratch.get(),
            );
            all.extend(output.take());
        }
        assert_eq!(all, expected, "{conv:?} {form:?} {}", kernels.isa().name());
    }
    let pool = choices.pool(&window, conv.out_channels)?;
    let filter = |form| of_form_s8(form, &weights, &packed);
    pooled(choices, &pool, &expected, kernels, |form, rows, output: &mut [i8]| {
        let mut scratch = Scratch::new(workspace::conv2d_max_pool2d_s8(&conv, &pool, form));
        kernels.conv2d_max_pool2d_s8(
            &conv,
            &pool,
            &input,
            layer.zero_point,
            filter(form),
            &layer.bias,
            &layer.multipliers,
            layer.stage,
            rows,
            output,
            scratch.get(),
        );
    });
    Some(())
}

fn depthwise_s8(choices: &mut Choices<'_>, kernels: Kernels) -> Option<()> {
    let (window, channels, _) = choices.geometry(70, 1)?;
    let multiplier = 1 + choices.below(5) / 3;
    let conv = DepthwiseConv2d { window, channels, multiplier };
    let outputs = channels * multiplier;
    let input = choices.bytes(window.in_pixels() * channels);
    let weights = choices.bytes(window.taps() * outputs);
    let layer = Layer::new(choices, outputs);
    let mut expected = vec![0; window.out_pixels() * outputs];
    reference::depthwise_conv2d_s8(&conv, &input, &weights, layer.reference(), &mut expected);
    let mut packed = vec![0; pack::packed_depthwise_conv2d_s8_len(&conv)];
    pack::pack_depthwise_conv2d_s8(&conv, &weights, &mut packed)?;
    let rows = cut(choices, window.out_h);
    for (form, filter) in [
        (FilterForm::File, FilterS8::File(&weights)),
        (FilterForm::Packed, FilterS8::Packed(&packed)),
    ] {
        let mut all = Vec::new();
        for rows in rows.clone() {
            let len = rows.len() * window.out_w * outputs;
            let mut output = Canaries::new(len, choices.below(64), 0x55);
            let mut scratch = Scratch::new(workspace::depthwise_conv2d_s8(&conv, form));
            kernels.depthwise_conv2d_s8(
                &conv,
                &input,
                layer.zero_point,
                filter,
                &layer.bias,
                &layer.multipliers,
                layer.stage,
                rows,
                output.get(),
                scratch.get(),
            );
            all.extend(output.take());
        }
        assert_eq!(all, expected, "{conv:?} {form:?} {}", kernels.isa().name());
    }
    let pool = choices.pool(&window, outputs)?;
    let filter = |form| of_form_s8(form, &weights, &packed);
    pooled(choices, &pool, &expected, kernels, |form, rows, output: &mut [i8]| {
        let bytes = workspace::depthwise_conv2d_max_pool2d_s8(&conv, &pool, form);
        let mut scratch = Scratch::new(bytes);
        kernels.depthwise_conv2d_max_pool2d_s8(
            &conv,
            &pool,
            &input,
            layer.zero_point,
            filter(form),
            &layer.bias,
            &layer.multipliers,
            layer.stage,
            rows,
            output,
            scratch.get(),
        );
    });
    Some(())
}

fn dense_s8(choices: &mut Choices<'_>, kernels: Kernels) -> bool {
    let sizes = [1 + choices.below(5), 1 + choices.below(200), 1 + choices.below(60)];
    let [rows, in_features, out_features] = choices.fit(sizes);
    let dense = Dense { rows, in_features, out_features };
    let input = choices.bytes(dense.rows * dense.in_features);
    let weights = choices.bytes(dense.in_features * dense.out_features);
    let layer = Layer::new(choices, dense.out_features);
    let mut expected = vec![0; dense.rows * dense.out_features];
    reference::dense_s8(&dense, &input, &weights, layer.reference(), &mut expected);
    let mut packed = vec![0; pack::packed_dense_s8_len(&dense)];
    assert!(pack::pack_dense_s8(&dense, &weights, &mut packed).is_some());
    for (form, filter) in [
        (FilterForm::File, FilterS8::File(&weights)),
        (FilterForm::Packed, FilterS8::Packed(&packed)),
    ] {
        let mut output = Canaries::new(expected.len(), choices.below(64), 0x55);
        let mut scratch = Scratch::new(workspace::dense_s8(&dense, form));
        kernels.dense_s8(
            &dense,
            &input,
            layer.zero_point,
            filter,
            &layer.bias,
            &layer.multipliers,
            layer.stage,
            output.get(),
            scratch.get(),
        );
        assert_eq!(output.take(), expected, "{dense:?} {form:?} {}", kernels.isa().name());
    }
    true
}

fn pools(choices: &mut Choices<'_>, kernels: Kernels) -> Option<()> {
    let (w, channels, _) = choices.geometry(70, 1)?;
    let pool = Pool2d { window: w, channels };
    let len = w.out_pixels() * pool.channels;
    let input = choices.bytes(w.in_pixels() * pool.channels);
    let mut expected = vec![0; len];
    reference::max_pool2d_s8(&pool, &input, &mut expected);
    let mut output = Canaries::new(len, choices.below(64), 0x55);
    kernels.max_pool2d_s8(&pool, &input, 0..w.out_h, output.get());
    assert_eq!(output.take(), expected, "{pool:?} {}", kernels.isa().name());
    reference::average_pool2d_s8(&pool, &input, &mut expected);
    let mut output = Canaries::new(len, choices.below(64), 0x55);
    kernels.average_pool2d_s8(&pool, &input, 0..w.out_h, output.get());
    assert_eq!(output.take(), expected, "{pool:?} {}", kernels.isa().name());

    let input = choices.floats(w.in_pixels() * pool.channels);
    let mut expected = vec![0.0; len];
    reference::max_pool2d_f32(&pool, &input, &mut expected);
    let mut output = Canaries::new(len, choices.below(16), 7.5);
    kernels.max_pool2d_f32(&pool, &input, 0..w.out_h, output.get());
    assert_eq!(output.take(), expected, "{pool:?} {}", kernels.isa().name());
    let mut output = Canaries::new(len, choices.below(16), 7.5);
    kernels.average_pool2d_f32(&pool, &input, 0..w.out_h, output.get());
    let _ = output.take();
    Some(())
}

fn elementwise_s8(choices: &mut Choices<'_>, kernels: Kernels) {
    let len = 1 + choices.below(200);
    let (left, right) = (choices.bytes(len), choices.bytes(len));
    let mut quant = || Quant {
        scale: choices.random.choose(&[1e-30, 1e-4, 0.02, 1.0, 3e4, 1e30]),
        zero_point: choices.random.below(256) as i32 - 128,
    };
    let (a, b, out) = (quant(), quant(), quant());
    if let Some(stage) = AddStage::new(a, b, out, netkit_core::op::Activation::None) {
        let mut expected = vec![0; len];
        reference::add_s8(&stage, &left, &right, &mut expected);
        let mut output = Canaries::new(len, choices.below(64), 0x55);
        kernels.add_s8(&stage, &left, &right, output.get());
        assert_eq!(output.take(), expected, "{stage:?} {}", kernels.isa().name());
    }
    let stage = SoftmaxStage::new(a.scale);
    let mut expected = vec![0; len];
    reference::softmax_s8(&stage, &left, &mut expected);
    let mut output = Canaries::new(len, choices.below(64), 0x55);
    kernels.softmax_s8(&stage, &left, output.get());
    assert_eq!(output.take(), expected, "{stage:?} {}", kernels.isa().name());
}

/// Float operators are the same wherever input and output lie: what is written at two misalignments has the same bits.
fn anywhere(
    choices: &mut Choices<'_>,
    len: usize,
    kernels: Kernels,
    mut door: impl FnMut(&mut [f32]),
) -> Vec<f32> {
    let [one, other] = [0, 1].map(|_| {
        let mut output = Canaries::new(len, choices.below(16), 7.5);
        door(output.get());
        output.take()
    });
    assert_eq!(bits(&one), bits(&other), "{}", kernels.isa().name());
    one
}

fn elementwise_f32(choices: &mut Choices<'_>, kernels: Kernels) {
    let len = choices.below(200);
    let (a, b, activation) = (choices.floats(len), choices.floats(len), activation(choices));
    let of_one = anywhere(choices, len, kernels, |to| kernels.activation_f32(activation, &a, to));
    let sums = anywhere(choices, len, kernels, |to| kernels.add_f32(&a, &b, activation, to));
    // In pieces it is the same, too.
    let cut = choices.below(len + 1);
    let mut piece = vec![0.0; len - cut];
    kernels.activation_f32(activation, &a[cut..], &mut piece);
    assert_eq!(bits(&piece), bits(&of_one[cut..]), "{activation:?} {}", kernels.isa().name());
    kernels.add_f32(&a[cut..], &b[cut..], activation, &mut piece);
    assert_eq!(bits(&piece), bits(&sums[cut..]), "{activation:?} {}", kernels.isa().name());
}

fn norms(choices: &mut Choices<'_>, kernels: Kernels) {
    let [pixels, channels] = [1 + choices.below(30), 1 + choices.below(60)];
    let shape = PerChannel { pixels, channels };
    let (len, epsilon) = (pixels * channels, 1e-5);
    let (input, gamma) = (choices.floats(len), choices.weights(channels));
    let (beta, activation) = (choices.weights(channels), activation(choices));
    anywhere(choices, len, kernels, |to| {
        kernels.batch_norm_f32(&shape, &input, &gamma, &beta, activation, to);
    });
    let whole = anywhere(choices, len, kernels, |to| {
        kernels.layer_norm_f32(&shape, epsilon, &input, &gamma, &beta, to);
    });
    // A pixel is normalized without a look at the others.
    let last = len - channels;
    let mut alone = vec![0.0; channels];
    let pixel = PerChannel { pixels: 1, channels };
    kernels.layer_norm_f32(&pixel, epsilon, &input[last..], &gamma, &beta, &mut alone);
    assert_eq!(bits(&alone), bits(&whole[last..]), "{shape:?} {}", kernels.isa().name());
    anywhere(choices, len, kernels, |to| {
        let mut scratch = Scratch::new(workspace::global_response_norm_f32(&shape));
        let scratch = scratch.get();
        kernels.global_response_norm_f32(&shape, epsilon, &input, &gamma, &beta, to, scratch);
    });
    anywhere(choices, len, kernels, |to| kernels.softmax_f32(&input, to));
}

fn moves(choices: &mut Choices<'_>) {
    let [in_h, in_w, channels] = [1 + choices.below(5), 1 + choices.below(5), choices.below(9)];
    let upsample = Upsample2x { in_h, in_w, channels };
    let input = choices.bytes(in_h * in_w * channels);
    let mut expected = vec![0; 4 * input.len()];
    reference::upsample2x(&upsample, &input, &mut expected);
    let mut all = Vec::new();
    for rows in cut(choices, 2 * in_h) {
        let mut output = Canaries::new(rows.len() * 2 * in_w * channels, 0, 0x55);
        upsample2x(&upsample, &input, rows, output.get());
        all.extend(output.take());
    }
    assert_eq!(all, expected, "{upsample:?}");

    let outer = 1 + choices.below(5);
    let mut inner = [0; 4];
    let present = 1 + choices.below(4);
    inner[..present].fill_with(|| 1 + choices.below(9));
    let joined = Concat { outer, inner };
    let inputs = inner.map(|inner| choices.bytes(outer * inner));
    let inputs: Vec<&[i8]> = inputs[..present].iter().map(Vec::as_slice).collect();
    let len = outer * inner.iter().sum::<usize>();
    let mut expected = vec![0; len];
    reference::concat(&joined, &inputs, &mut expected);
    let mut output = Canaries::new(len, choices.below(16), 0x55);
    concat(&joined, &inputs, output.get());
    let output = output.take();
    assert_eq!(output, expected, "{joined:?}");
    let mut copied = Canaries::new(len, choices.below(16), 0x55);
    copy(&output, copied.get());
    assert_eq!(copied.take(), output);
}

#[cfg(test)]
#[path = "../../../netkit-kernels/tests/kernels/sound/names.rs"]
mod names;

#[cfg(test)]
mod tests {
    use super::names;
    use std::path::Path;

    /// Called by another door with nothing in one place, and then the same.
    const BY_ANOTHER: [&str; 1] = ["dense_s8_with_row_sums"];

    #[test]
    fn every_door_of_the_kernels_is_called() {
        let calls = include_str!("kernels.rs");
        for name in
            names::names(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../netkit-kernels"))
        {
            let called = calls.contains(&format!("kernels.{name}("))
                || calls.lines().any(|line| line.trim_start().starts_with(&format!("{name}(")));
            assert!(called || BY_ANOTHER.contains(&&*name), "{name} is never called");
        }
    }
}
