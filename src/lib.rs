//! Neural networks that become part of a program when it is compiled.
//!
//! A trained network lies beside the sources as a `.nk` file. [`model!`] reads it while the crate compiles, checks its
//! structure and that every number in it is finite, plans its memory, and expands to a type:
//!
//! ```
//! // The file becomes a type, its weights become constants.
//! netkit::model!(pub Digits = "models/mnist_cnn.nk");
//!
//! // Sizes are constants, so budgets are compile errors.
//! const _: () = assert!(Digits::ARENA_BYTES <= 128 * 1024);
//!
//! let mut digits = Digits::new_boxed();
//! let image = [0.0; Digits::INPUT_LEN]; // 28×28×1
//! let scores: [f32; 10] = digits.forward(&image);
//! assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-5);
//! ```
//!
//! A file that breaks a rule of the format, or that asks for something this version cannot do, is a compile error at the path,
//! with the layer, the byte and what helps. An input of the wrong length is a type error. What is left for run time is
//! arithmetic: `forward` does not allocate, parse, copy weights, repack them or panic.
//!
//! # Memory
//!
//! - **Weights** are constants in read-only memory, once, in the layout that the target's kernels read.
//! - **Activations** and kernels' scratch share one arena inside the type, [`Model::ARENA_BYTES`] long to the byte. It is
//!   all zeros at first: a `static` network takes no flash, and [`new_boxed`](model!#the-type) never puts it on the stack.
//! - **Input and output** are the caller's. The first operator reads the input where it lies, the last one writes the
//!   output where it is wanted.
//!
//! # Two ways to run a file
//!
//! [`model!`] compiles it in. [`runtime::Network`] loads it from a buffer, from flash or from a mapped file, into a
//! caller's [arena](arena::Bump). Both share parser, checks, planner and kernels, and give the same bits.
//!
//! # float32 and int8
//!
//! A quantized model ([`QuantizedModel`]) computes in int8 throughout, to the last bit as TensorFlow Lite Micro does, on
//! every target. Its type has `forward_i8` beside `forward`, which quantizes and dequantizes at the edges.
//!
//! # Targets and features
//!
//! Every little-endian target, with or without an operating system; generated code is `no_std`, needs no heap and holds
//! no `unsafe`. On x86-64 with `std` the instruction set (SSE2 to AVX-512 VNNI) is chosen at run time.
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `std` | yes | detection of instruction sets at run time; implies `alloc` |
//! | `alloc` | yes | `new_boxed`, heap-backed arenas, `Network::arena_bytes` |
//! | `mmap` | no | `runtime::Network::open`: model files mapped into memory |
//! | `parallel` | no | large convolutions, and large dense layers of a batch, on the threads of rayon's pool, the same bits; each thread of the pool allocates scratch once |
//! | `portable` | no | on x86-64: the kernels without vector instructions of our own (`NETKIT_ISA=scalar`), which other targets have anyway and no machine needs |
//! | `defmt` | no | `defmt::Format` for errors |
//! | `dsp` | no | on ARMv8-M Mainline: kernels for the DSP extension (Cortex-M33, M35P) |
//! | `mve` | no | on ARMv8.1-M Mainline: kernels for Helium's vectors (Cortex-M52, M55, M85) |
//! | `cmsis-nn` | no | int8 layers on your own build of Arm's CMSIS-NN, with the same bits |
#![no_std]
// Where it may be: the modules below that allow it, and no other.
#![deny(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(target_endian = "big")]
compile_error!(
    "netkit reads weights where they lie, as little-endian numbers, so big-endian targets are not supported"
);

#[allow(unsafe_code)]
pub mod aligned;
#[allow(unsafe_code)]
pub mod arena;
mod batch;
#[cfg(feature = "alloc")]
#[allow(unsafe_code)]
mod boxed;
mod edges;
pub mod error;
#[cfg(feature = "mmap")]
#[allow(unsafe_code)]
mod mmap;
mod model;
#[doc(hidden)]
pub mod private;
pub mod runtime;
mod self_test;

pub use model::{BatchModel, Layer, Model, QuantizedModel, Step};
pub use netkit_core::quant::Quant;
pub use self_test::{Mismatch, SelfTest, SelfTestError};

/// Embeds a model into the program: reads a `.nk` file at compile time and declares a type for it.
///
/// ```text
/// netkit::model!([attributes] [visibility] [Name =] "path" [, option = value]* [,])
/// ```
///
/// - **The path** is relative to the folder of the invoking package's `Cargo.toml`, wherever the macro stands.
///   `$OUT_DIR/…` names a file that the package's build script makes. Absolute paths are refused: they hold on one
///   machine only. When the file changes, the crate is compiled again.
/// - **The name** is that of the file in UpperCamelCase unless another is given: `"models/mnist_cnn.nk"` declares
///   `MnistCnn`. It may be any name that a type may have, a raw one (`r#type`) too, whatever else is in scope.
/// - **Attributes** and documentation go on the type, `cfg` (in `cfg_attr` too) on all that is generated.
///
/// ```
/// netkit::model!("models/mnist_mlp.nk");
/// netkit::model!(
///     /// Reads a digit from 28×28 pixels.
///     #[derive(Debug)]
///     pub(crate) Digits = "models/mnist_cnn_int8.nk"
/// );
///
/// assert_eq!(MnistMlp::INPUT_SHAPE, [1, 784]);
/// let mut digits = Digits::new_boxed();
/// let scores = digits.forward_i8(&[Digits::INPUT_QUANT.quantize(0.0); Digits::INPUT_LEN]);
/// assert_eq!(scores.len(), Digits::OUTPUT_LEN);
/// ```
///
/// # Options
///
/// | option | value | |
/// |---|---|---|
/// | `convolution` | `direct` | every convolution as the sum of products it is defined to be: the default |
/// | | `winograd` | float32 models: 3×3 convolutions with stride 1 in Winograd's form F(2×2, 3×3), where that takes less time |
/// | `batch` | 1 to 65535 | memory and functions to compute as many inputs at once, for throughput |
///
/// ```
/// netkit::model!(Digits = "models/mnist_cnn.nk", convolution = winograd);
/// ```
///
/// **Winograd's form** needs 4 products for an output where the sum has 9. It is taken where about 32 channels or more meet on
/// both sides, on maps of 7×7 and more, unless a maximum pool follows, which is computed with its convolution; there it takes
/// a half to nine tenths of the time. What it costs:
///
/// - *Accuracy.* The error of an output is bounded by the largest input of its neighbourhood instead of by its own sum
///   ([the bound](netkit_kernels::Kernels::conv2d_winograd_f32)): where outputs are small beside their neighbours they may lose
///   digits. On ordinary numbers it is no larger than the default's: over a whole ResNet-18, 5.6e-7 against 7.2e-7.
/// - *NaN and ∞* in an input may reach every output of the 2×2 tiles that read it, not only those whose window holds it.
/// - *Memory.* 16 weights are kept for 9, which the macro computes (`WEIGHT_BYTES` stays what the file has); scratch is some
///   hundred KiB, shared by all such layers.
///
/// Answers differ from those of [`runtime::Network`], which always computes directly: transforming the weights at every
/// inference would cost more than it saves. Where kernels read filters in file order (microcontrollers) the option changes
/// nothing.
///
/// **A batch** gains where a model's time goes into reading the weights of dense layers, which all inputs of a batch share: a
/// multilayer perceptron takes a third to two thirds of the time for each input. Convolutions are computed input by input, and
/// gain nothing, as nothing does on kernels without vectors, those of microcontrollers among them: there a batch costs memory
/// only. The arena has activations for all inputs of a batch; whatever the number, the outputs are the same bits as one by one.
/// `forward_batch` takes and returns arrays of a whole batch; where the stack is small, or batches are not always whole, there
/// is `forward_batch_into`.
///
/// ```
/// netkit::model!(Digits = "models/mnist_mlp.nk", batch = 8);
///
/// let mut digits = Digits::new_boxed();
/// let images = [[0.5; Digits::INPUT_LEN]; Digits::BATCH];
/// let scores = digits.forward_batch(&images);
/// assert_eq!(scores[3], digits.forward(&images[3]));
/// ```
///
/// # The type
///
/// | | |
/// |---|---|
/// | `const fn new() -> Self` | all zeros; also [`Default`]. `static` networks lie in `.bss` |
/// | `fn new_boxed() -> Box<Self>` | on the heap, never on the stack; with the feature `alloc` |
/// | `fn forward(&mut self, &[f32; N]) -> [f32; M]` | one inference; an int8 model quantizes and dequantizes at its edges |
/// | `fn forward_into(&mut self, &[f32; N], &mut [f32; M])` | the same into the caller's memory, for outputs too large for the stack |
/// | `fn forward_i8(&mut self, &[i8; N]) -> [i8; M]`, `forward_i8_into` | int8 models: without a float in between |
/// | `fn forward_batch(&mut self, &[[f32; N]; B]) -> [[f32; M]; B]`, `forward_i8_batch` | with the option `batch`: a whole batch |
/// | `fn forward_batch_into(&mut self, &[[f32; N]], &mut [[f32; M]])`, `forward_i8_batch_into` | any number, `BATCH` at once |
/// | `fn forward_observed`, `forward_i8_observed` | [the same](Model::forward_observed), telling a closure about each step before it is made |
/// | `fn self_test(&mut self) -> Result<SelfTest, SelfTestError>` | replays the [test cases](SelfTest) in the file, which take space only in programs that call this |
/// | `NAME`, `INPUT_SHAPE`, `OUTPUT_SHAPE`, `INPUT_LEN`, `OUTPUT_LEN` | what goes in and comes out: flat arrays, the last dimension running fastest, maps as height, width, channels |
/// | `ARENA_BYTES`, `SCRATCH_BYTES`, `WEIGHT_BYTES`, `MACS`, `LAYERS` | what it costs |
/// | `INPUT_QUANT`, `OUTPUT_QUANT` | int8 models: scales and zero points |
///
/// It is `Send` and `Sync` and implements [`Model`], [`QuantizedModel`] where the file is int8, and [`BatchModel`] with the
/// option `batch`.
///
/// # Errors
///
/// Everything that is wrong with the file is reported at once, each as a compile error at the path:
///
/// ```compile_fail
/// netkit::model!(Digits = "models/mnist_cn.nk"); // did you mean "models/mnist_cnn.nk"?
/// ```
#[macro_export]
macro_rules! model {
    ($($invocation:tt)*) => {
        $crate::private::model! { [$crate] $($invocation)* }
    };
}

/// The bytes of a model file, aligned to a cache line, for [`runtime::Network::load`]. The path is
/// relative to the package's manifest; a file that the build script makes is
/// `include_model!(concat!(env!("OUT_DIR"), "/digits.nk"))`.
///
/// ```
/// static MODEL: &[u8] = netkit::include_model!("models/mnist_mlp.nk");
/// assert_eq!(MODEL[..4], *b"NKIT");
/// ```
///
/// # Errors
///
/// A file that cannot be read is a compile error. What is in it is not looked at: a damaged file is refused when it is
/// loaded. Use [`model!`] to have it checked when the program is compiled.
///
/// ```compile_fail
/// static MODEL: &[u8] = netkit::include_model!("models/mnist_mlq.nk"); // no such file
/// ```
#[macro_export]
macro_rules! include_model {
    ($path:literal) => {
        $crate::include_model! {
            $crate::private::concat!($crate::private::env!("CARGO_MANIFEST_DIR"), "/", $path)
        }
    };
    ($path:expr) => {{
        const FILE: &[$crate::private::u8] = $crate::private::include_bytes!($path);
        static ALIGNED: $crate::aligned::Aligned<$crate::aligned::Align64, { FILE.len() }> =
            $crate::aligned::Aligned::part_of(FILE, 0);
        $crate::aligned::Aligned::as_bytes(&ALIGNED).as_slice()
    }};
}

#[doc(hidden)]
pub use netkit_macros::model as __model;

/// Keeps generated items that need a heap where this crate has one.
#[cfg(feature = "alloc")]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_alloc {
    ($($items:tt)*) => { $($items)* };
}

/// Drops generated items that need a heap where this crate has none.
#[cfg(not(feature = "alloc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __if_alloc {
    ($($items:tt)*) => {};
}

/// The README's code is compiled with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
