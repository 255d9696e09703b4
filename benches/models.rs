//! The digit models, compiled in and loaded, on every instruction set of this machine; and what a call costs beside its
//! arithmetic, by a model of one layer of four features.
//!
//! ```sh
//! cargo bench --bench models                       # all
//! cargo bench --bench models -- mnist_cnn_int8     # one model
//! cargo bench --bench models -- one_layer
//! ```
//!
//! A compiled model takes the best instruction set by itself. So the weaker ones are measured in a process each, started from
//! here with `NETKIT_ISA` set.

use std::hint::black_box;

use criterion::Criterion;
use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit::{BatchModel, Model, QuantizedModel};
use netkit_kernels::Kernels;

netkit::model!(Mlp = "models/mnist_mlp.nk");
netkit::model!(MlpInt8 = "models/mnist_mlp_int8.nk");
netkit::model!(Cnn = "models/mnist_cnn.nk");
netkit::model!(CnnInt8 = "models/mnist_cnn_int8.nk");
netkit::model!(DsCnn = "models/mnist_dscnn.nk");
netkit::model!(DsCnnInt8 = "models/mnist_dscnn_int8.nk");
netkit::model!(OneLayer = "benches/one_layer.nk");
netkit::model!(MlpBatch = "models/mnist_mlp.nk", batch = 16);
netkit::model!(MlpInt8Batch = "models/mnist_mlp_int8.nk", batch = 16);
netkit::model!(CnnBatch = "models/mnist_cnn.nk", batch = 16);
netkit::model!(DsCnnBatch = "models/mnist_dscnn.nk", batch = 16);

/// The first test digit.
fn digit() -> [f32; 784] {
    let images = include_bytes!("../models/digits/images.u8");
    core::array::from_fn(|pixel| f32::from(images[pixel]) / 255.0)
}

fn compiled_id(name: &str) -> String {
    format!("{name}/compiled/{}", Kernels::native().isa().name())
}

/// A model as the macro made it, on the kernels that it picks by itself.
fn compiled<M>(c: &mut Criterion, model: &mut M)
where
    M: Model<Input = [f32; 784], Output = [f32; 10]>,
{
    let (input, mut output) = (digit(), [0.0; 10]);
    c.bench_function(&compiled_id(M::NAME), |b| {
        b.iter(|| model.forward_into(&input, &mut output));
    });
}

/// A whole batch: a time to be shared by [`BATCH`](BatchModel::BATCH) inputs.
fn batch<M>(c: &mut Criterion, model: &mut M)
where
    M: BatchModel<Input = [f32; 784], Output = [f32; 10]>,
{
    let (input, mut output) = (vec![digit(); M::BATCH], vec![[0.0; 10]; M::BATCH]);
    c.bench_function(&format!("{}/batch of {}", compiled_id(M::NAME), M::BATCH), |b| {
        b.iter(|| model.forward_batch_into(&input, &mut output));
    });
}

/// The same on int8 values.
fn compiled_int8<M>(c: &mut Criterion, model: &mut M)
where
    M: QuantizedModel<QuantizedInput = [i8; 784], QuantizedOutput = [i8; 10]>,
{
    let (input, mut output) = (digit().map(|real| M::INPUT_QUANT.quantize(real)), [0; 10]);
    c.bench_function(&compiled_id(M::NAME), |b| {
        b.iter(|| model.forward_i8_into(&input, &mut output));
    });
}

/// The same file, loaded, on each instruction set.
fn loaded(c: &mut Criterion, name: &str, bytes: &[u8]) {
    for kernels in Kernels::all() {
        let arena = Bump::heap(1 << 20).expect("a mebibyte");
        let mut network =
            Network::load(bytes, &arena).expect("a valid model").with_kernels(kernels);
        let id = format!("{name}/loaded/{}", kernels.isa().name());
        if let Some(quant) = network.input_quant() {
            let (input, mut output) = (digit().map(|real| quant.quantize(real)), [0; 10]);
            c.bench_function(&id, |b| b.iter(|| network.forward_i8(&input, &mut output)));
        } else {
            let (input, mut output) = (digit(), [0.0; 10]);
            c.bench_function(&id, |b| b.iter(|| network.forward(&input, &mut output)));
        }
    }
}

/// One layer of 4×4: nearly all of it is what a call costs.
fn one_layer(c: &mut Criterion) {
    let mut model = OneLayer::new();
    let (input, mut output) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
    c.bench_function(&compiled_id(OneLayer::NAME), |b| {
        b.iter(|| model.forward_into(black_box(&input), black_box(&mut output)));
    });
}

fn one_layer_loaded(c: &mut Criterion) {
    let arena = Bump::heap(1 << 16).expect("64 KiB");
    let bytes = netkit::include_model!("benches/one_layer.nk");
    let mut network = Network::load(bytes, &arena).expect("a valid model");
    let (input, mut output) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
    c.bench_function(&format!("{}/loaded/{}", OneLayer::NAME, network.isa().name()), |b| {
        b.iter(|| network.forward(black_box(&input), black_box(&mut output)));
    });
}

fn all_compiled(c: &mut Criterion) {
    one_layer(c);
    compiled(c, &mut *Mlp::new_boxed());
    compiled_int8(c, &mut *MlpInt8::new_boxed());
    compiled(c, &mut *Cnn::new_boxed());
    compiled_int8(c, &mut *CnnInt8::new_boxed());
    compiled(c, &mut *DsCnn::new_boxed());
    compiled_int8(c, &mut *DsCnnInt8::new_boxed());
    batch(c, &mut *MlpBatch::new_boxed());
    batch(c, &mut *MlpInt8Batch::new_boxed());
    batch(c, &mut *CnnBatch::new_boxed());
    batch(c, &mut *DsCnnBatch::new_boxed());
}

fn all_loaded(c: &mut Criterion) {
    one_layer_loaded(c);
    loaded(c, Mlp::NAME, netkit::include_model!("models/mnist_mlp.nk"));
    loaded(c, MlpInt8::NAME, netkit::include_model!("models/mnist_mlp_int8.nk"));
    loaded(c, Cnn::NAME, netkit::include_model!("models/mnist_cnn.nk"));
    loaded(c, CnnInt8::NAME, netkit::include_model!("models/mnist_cnn_int8.nk"));
    loaded(c, DsCnn::NAME, netkit::include_model!("models/mnist_dscnn.nk"));
    loaded(c, DsCnnInt8::NAME, netkit::include_model!("models/mnist_dscnn_int8.nk"));
}

/// Set in the processes that this one starts.
const CHILD: &str = "NETKIT_BENCH_CHILD";

fn main() -> std::io::Result<()> {
    let mut criterion = Criterion::default().configure_from_args();
    all_compiled(&mut criterion);
    if std::env::var_os(CHILD).is_some() {
        return Ok(());
    }
    let best = Kernels::native().isa();
    for isa in Kernels::all().map(Kernels::isa).filter(|&isa| isa != best) {
        let mut child = std::process::Command::new(std::env::current_exe()?);
        child.args(std::env::args_os().skip(1)).env("NETKIT_ISA", isa.name()).env(CHILD, "1");
        child.status()?;
    }
    all_loaded(&mut criterion);
    criterion.final_summary();
    Ok(())
}
