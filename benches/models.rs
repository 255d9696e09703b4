//! The digit models, compiled in and loaded, on every instruction set of this machine.
//!
//! ```sh
//! cargo bench --bench models
//! ```

use criterion::{Criterion, criterion_group, criterion_main};
use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit::{Model, QuantizedModel};
use netkit_kernels::Kernels;

netkit::model!(Mlp = "models/mnist_mlp.nk");
netkit::model!(MlpInt8 = "models/mnist_mlp_int8.nk");
netkit::model!(Cnn = "models/mnist_cnn.nk");
netkit::model!(CnnInt8 = "models/mnist_cnn_int8.nk");
netkit::model!(DsCnn = "models/mnist_dscnn.nk");
netkit::model!(DsCnnInt8 = "models/mnist_dscnn_int8.nk");

/// The first test digit.
fn digit() -> [f32; 784] {
    let images = include_bytes!("../models/digits/images.u8");
    core::array::from_fn(|pixel| f32::from(images[pixel]) / 255.0)
}

/// A model as the macro made it, on the kernels that it picks by itself.
fn compiled<M>(c: &mut Criterion, model: &mut M)
where
    M: Model<Input = [f32; 784], Output = [f32; 10]>,
{
    let (input, mut output) = (digit(), [0.0; 10]);
    c.bench_function(&format!("{}/compiled", M::NAME), |b| {
        b.iter(|| model.forward_into(&input, &mut output));
    });
}

/// The same on int8 values.
fn compiled_int8<M>(c: &mut Criterion, model: &mut M)
where
    M: QuantizedModel<QuantizedInput = [i8; 784], QuantizedOutput = [i8; 10]>,
{
    let (input, mut output) = (digit().map(|real| M::INPUT_QUANT.quantize(real)), [0; 10]);
    c.bench_function(&format!("{}/compiled", M::NAME), |b| {
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

fn models(c: &mut Criterion) {
    compiled(c, &mut *Mlp::new_boxed());
    compiled_int8(c, &mut *MlpInt8::new_boxed());
    compiled(c, &mut *Cnn::new_boxed());
    compiled_int8(c, &mut *CnnInt8::new_boxed());
    compiled(c, &mut *DsCnn::new_boxed());
    compiled_int8(c, &mut *DsCnnInt8::new_boxed());
    loaded(c, Mlp::NAME, netkit::include_model!("models/mnist_mlp.nk"));
    loaded(c, MlpInt8::NAME, netkit::include_model!("models/mnist_mlp_int8.nk"));
    loaded(c, Cnn::NAME, netkit::include_model!("models/mnist_cnn.nk"));
    loaded(c, CnnInt8::NAME, netkit::include_model!("models/mnist_cnn_int8.nk"));
    loaded(c, DsCnn::NAME, netkit::include_model!("models/mnist_dscnn.nk"));
    loaded(c, DsCnnInt8::NAME, netkit::include_model!("models/mnist_dscnn_int8.nk"));
}

criterion_group!(benches, models);
criterion_main!(benches);
