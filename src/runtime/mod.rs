//! The runtime loader: runs a `.nk` file from a buffer, from flash or from a mapped file, without
//! compiling it in.
//!
//! Weights stay where they lie, in the file's own order; nothing is copied out of the file and nothing in it is
//! modified. All else comes from the caller's [`Bump`] at load, so [`Network::forward`] allocates
//! nothing.
//!
//! The plan and the kernels are the macro's: the same file gives the same bits either way, for int8
//! everywhere and for float32 on one instruction set. The macro's [options](crate::model!#options) have no counterpart here.

mod cases;
mod load;
mod step;

pub use cases::CaseReport;

// For the command line.
#[doc(hidden)]
pub use load::scratch_bytes;
pub use netkit_core::program::Step;

use netkit_core::program::Program;
use netkit_core::quant::Quant;
use netkit_kernels::Kernels;

use crate::arena::Bump;
use crate::error::{LoadError, RunError};

use load::Bound;
use step::Element;

/// A loaded model.
///
/// ```
/// use netkit::{arena::Bump, runtime::Network};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let bytes = netkit::include_model!("models/mnist_mlp.nk");
/// let arena = Bump::heap(64 * 1024)?;
/// let mut network = Network::load(bytes, &arena)?;
/// let (image, mut scores) = ([0.0; 784], [0.0; 10]);
/// network.forward(&image, &mut scores)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Network<'a> {
    program: Program<'a, 'a>,
    steps: &'a [Bound<'a>],
    /// Activations, then scratch.
    memory: &'a mut [u8],
    workspace_bytes: usize,
    /// int8 input and output of a quantized model that is run on floats.
    edges: (&'a mut [i8], &'a mut [i8]),
    kernels: Kernels,
    #[cfg(feature = "mmap")]
    _mapping: Option<crate::mmap::Mapping>,
}

/// Values of a tensor as an observer sees them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Elements<'t> {
    /// float32.
    F32(&'t [f32]),
    /// int8.
    I8(&'t [i8]),
}

/// Watches a network run step by step: to measure, to compare, to print.
///
/// ```
/// use netkit::runtime::{Elements, Observer, Step};
///
/// /// The largest magnitude that each step produces.
/// struct Peaks(Vec<f32>);
///
/// impl Observer for Peaks {
///     fn after(&mut self, _step: &Step<'_, '_>, output: Elements<'_>) {
///         self.0.push(match output {
///             Elements::F32(values) => values.iter().fold(0.0, |peak, x| peak.max(x.abs())),
///             Elements::I8(values) => values.iter().fold(0.0, |peak, &q| peak.max(f32::from(q).abs())),
///             _ => 0.0,
///         });
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use netkit::{arena::Bump, runtime::Network};
/// # let bytes = netkit::include_model!("models/mnist_mlp.nk");
/// # let arena = Bump::heap(64 * 1024)?;
/// # let mut network = Network::load(bytes, &arena)?;
/// # let (image, mut scores) = ([0.0; 784], [0.0; 10]);
/// let mut peaks = Peaks(Vec::new());
/// network.forward_observed(&image, &mut scores, &mut peaks)?;
/// assert_eq!(peaks.0.len(), 3);
/// # Ok(())
/// # }
/// ```
pub trait Observer {
    /// Before a step runs.
    fn before(&mut self, _step: &Step<'_, '_>) {}

    /// After a step has run, with what it produced.
    fn after(&mut self, _step: &Step<'_, '_>, _output: Elements<'_>) {}
}

/// Watches nothing, and compiles to nothing.
impl Observer for () {}

impl<'a> Network<'a> {
    /// Loads a model from memory: a buffer, a `static`, a flash address. What it needs besides its
    /// weights is taken from `arena`.
    ///
    /// # Errors
    ///
    /// When the bytes are no valid model (the first broken rule is named, with layer and offset), when
    /// their tensors are not aligned to 4 bytes, or when the arena is too small. What the arena had given by
    /// then stays taken until its next reset.
    pub fn load(bytes: &'a [u8], arena: &'a Bump<'_>) -> Result<Self, LoadError> {
        load::load(bytes, arena)
    }

    /// Bytes of an arena in which this model loads, wherever the arena begins: at most 63 more than it takes. What
    /// [`load`](Self::load) takes depends on the target, so this is to be asked on the same.
    ///
    /// ```
    /// # use netkit::{arena::Bump, runtime::Network};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bytes = netkit::include_model!("models/mnist_mlp.nk");
    /// let arena = Bump::heap(Network::arena_bytes(bytes)?)?;
    /// let network = Network::load(bytes, &arena)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the bytes are no valid model.
    #[cfg(feature = "alloc")]
    pub fn arena_bytes(bytes: &[u8]) -> Result<usize, LoadError> {
        load::arena_bytes(bytes)
    }

    /// Maps a file into memory (private, read-only) and loads the model from it; with the feature `mmap`. The file must
    /// not be truncated while the network lives.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load), and when the file cannot be opened or mapped.
    #[cfg(feature = "mmap")]
    pub fn open(path: impl AsRef<std::path::Path>, arena: &'a Bump<'_>) -> Result<Self, LoadError> {
        let mapping = crate::mmap::Mapping::open(path.as_ref())?;
        crate::mmap::load_mapped(mapping, arena)
    }

    /// The same network on the kernels of another instruction set: for tests and benches.
    #[must_use]
    pub fn with_kernels(mut self, kernels: Kernels) -> Self {
        self.kernels = kernels;
        self
    }

    /// The instruction set of the kernels in use.
    #[must_use]
    pub const fn isa(&self) -> netkit_kernels::Isa {
        self.kernels.isa()
    }

    /// One inference on float32 values; maps are NHWC. An int8 model quantizes `input` and dequantizes its
    /// output, as section 8.9 of the format says.
    ///
    /// # Errors
    ///
    /// When a length is not the model's. Nothing is computed then.
    pub fn forward(&mut self, input: &[f32], output: &mut [f32]) -> Result<(), RunError> {
        self.forward_observed(input, output, &mut ())
    }

    /// [`forward`](Self::forward), watched.
    ///
    /// # Errors
    ///
    /// Those of [`forward`](Self::forward).
    pub fn forward_observed(
        &mut self,
        input: &[f32],
        output: &mut [f32],
        observer: &mut impl Observer,
    ) -> Result<(), RunError> {
        self.check_lengths(input.len(), output.len())?;
        let (Some(input_quant), Some(output_quant)) = (self.input_quant(), self.output_quant())
        else {
            self.run(input, output, observer);
            return Ok(());
        };
        let (quantized, raw) = core::mem::take(&mut self.edges);
        for (q, &real) in quantized.iter_mut().zip(input) {
            *q = input_quant.quantize(real);
        }
        self.run::<i8>(quantized, raw, observer);
        for (real, &q) in output.iter_mut().zip(raw.iter()) {
            *real = output_quant.dequantize(q);
        }
        self.edges = (quantized, raw);
        Ok(())
    }

    /// One inference on the int8 values of a quantized model.
    ///
    /// # Errors
    ///
    /// When the model is not quantized or a length is not the model's. Nothing is computed then.
    pub fn forward_i8(&mut self, input: &[i8], output: &mut [i8]) -> Result<(), RunError> {
        self.forward_i8_observed(input, output, &mut ())
    }

    /// [`forward_i8`](Self::forward_i8), watched.
    ///
    /// # Errors
    ///
    /// Those of [`forward_i8`](Self::forward_i8).
    pub fn forward_i8_observed(
        &mut self,
        input: &[i8],
        output: &mut [i8],
        observer: &mut impl Observer,
    ) -> Result<(), RunError> {
        if !self.is_quantized() {
            return Err(RunError::NotQuantized);
        }
        self.check_lengths(input.len(), output.len())?;
        self.run(input, output, observer);
        Ok(())
    }

    /// Makes the network the owner of the mapping it was loaded from.
    #[cfg(feature = "mmap")]
    pub(crate) fn keep(&mut self, mapping: crate::mmap::Mapping) {
        self._mapping = Some(mapping);
    }

    fn check_lengths(&self, input: usize, output: usize) -> Result<(), RunError> {
        if input != self.input_len() {
            return Err(RunError::InputLength { expected: self.input_len(), found: input });
        }
        if output != self.output_len() {
            return Err(RunError::OutputLength { expected: self.output_len(), found: output });
        }
        Ok(())
    }

    fn run<T: Element>(&mut self, input: &[T], output: &mut [T], observer: &mut impl Observer) {
        let activations = self.memory.len() - self.workspace_bytes;
        let Some((activations, scratch)) = self.memory.split_at_mut_checked(activations) else {
            return;
        };
        for (step, bound) in self.program.steps().zip(self.steps) {
            observer.before(&step);
            let produced =
                step::run(self.kernels, &step, bound, input, output, activations, scratch);
            observer.after(&step, produced);
        }
    }

    /// The checked and planned network, with its graph, plan and layers. It borrows from the network, not
    /// from the file: a mapped file goes when the network does.
    #[must_use]
    pub const fn program(&self) -> &Program<'_, '_> {
        &self.program
    }

    /// The input's dimensions, outermost first: `[rows, features]` or `[height, width, channels]`.
    #[must_use]
    pub fn input_shape(&self) -> &[u32] {
        self.program.file().header().input_dims()
    }

    /// The output's dimensions, outermost first.
    #[must_use]
    pub fn output_shape(&self) -> netkit_core::tensor::Shape {
        self.program.output_shape()
    }

    /// Elements of the input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.program.input().shape.elements()
    }

    /// Elements of the output.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.program.output().shape.elements()
    }

    /// Whether the model computes in int8.
    #[must_use]
    pub const fn is_quantized(&self) -> bool {
        self.program.is_quantized()
    }

    /// Scale and zero point of the int8 input; `None` for a float model.
    #[must_use]
    pub fn input_quant(&self) -> Option<Quant> {
        self.is_quantized().then(|| self.program.input().quant)
    }

    /// Scale and zero point of the int8 output; `None` for a float model.
    #[must_use]
    pub fn output_quant(&self) -> Option<Quant> {
        self.is_quantized().then(|| self.program.output().quant)
    }

    /// Bytes of the arena that hold activations.
    #[must_use]
    pub const fn activation_bytes(&self) -> usize {
        self.memory.len() - self.workspace_bytes
    }

    /// Bytes of the arena that kernels use as scratch.
    #[must_use]
    pub const fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }
}
