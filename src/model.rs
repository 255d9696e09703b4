//! What every compiled network has in common.

use crate::self_test::{SelfTest, SelfTestError};
use netkit_core::quant::Quant;

/// A network compiled by [`model!`](crate::model), for code that takes any.
///
/// The generated type has the same constants and functions itself, so the trait is only needed in generic code.
///
/// ```
/// use netkit::Model;
///
/// /// How many inputs of each kind a model gets right.
/// fn correct<M: Model>(model: &mut M, inputs: &[M::Input], labels: &[usize]) -> usize {
///     inputs.iter().zip(labels).filter(|&(input, &label)| {
///         let output = model.forward(input);
///         let scores = output.as_ref();
///         scores.iter().all(|&score| score <= scores[label])
///     }).count()
/// }
/// ```
pub trait Model {
    /// The input: `[f32; INPUT_LEN]`.
    type Input: AsRef<[f32]>;
    /// The output: `[f32; OUTPUT_LEN]`.
    type Output: AsRef<[f32]> + AsMut<[f32]>;

    /// Name of the model's file, without folder and extension.
    const NAME: &'static str;
    /// Shape of the input, outermost dimension first: height, width and channels of a map, rows and features of an
    /// MLP's input.
    const INPUT_SHAPE: &'static [usize];
    /// Shape of the output, outermost dimension first.
    const OUTPUT_SHAPE: &'static [usize];
    /// Number of input values.
    const INPUT_LEN: usize;
    /// Number of output values.
    const OUTPUT_LEN: usize;
    /// Bytes of memory the network computes in, kernels' scratch included: the size of the type.
    const ARENA_BYTES: usize;
    /// Bytes of the arena that kernels use as scratch on the target being compiled.
    const SCRATCH_BYTES: usize;
    /// Bytes of weights and biases in the model file.
    const WEIGHT_BYTES: usize;
    /// Multiply-accumulate operations of one inference.
    const MACS: u64;
    /// The model's layers in order.
    const LAYERS: &'static [Layer];

    /// Computes the output for an input. The output is returned by value: prefer
    /// [`forward_into`](Self::forward_into) where it is large and the stack small.
    ///
    /// NaN and infinities are computed with like any number, and may end in an ordinary answer: a rectifier makes 0 of NaN. Look
    /// at inputs first where they may hold such values.
    fn forward(&mut self, input: &Self::Input) -> Self::Output;

    /// Computes the output for an input.
    fn forward_into(&mut self, input: &Self::Input, output: &mut Self::Output);

    /// Computes the output for an input, and tells `observe` before each step which one it is: with a clock in hand,
    /// what every layer costs on the machine at hand.
    ///
    /// ```
    /// # netkit::model!(Digits = "models/mnist_mlp.nk");
    /// use std::time::Instant;
    ///
    /// let mut digits = Digits::new_boxed();
    /// let mut begun = Vec::new();
    /// let mut scores = [0.0; Digits::OUTPUT_LEN];
    /// digits.forward_observed(&[0.5; Digits::INPUT_LEN], &mut scores, |step| begun.push((step, Instant::now())));
    /// let end = Instant::now();
    /// for (index, (step, begin)) in begun.iter().enumerate() {
    ///     let next = begun.get(index + 1).map_or(end, |&(_, next)| next);
    ///     println!("{} of layer {}: {:?}", step.operator, step.layer, next - *begin);
    /// }
    /// assert_eq!(begun.last().unwrap().0.operator, "softmax");
    /// ```
    fn forward_observed(
        &mut self,
        input: &Self::Input,
        output: &mut Self::Output,
        observe: impl FnMut(Step),
    );

    /// Runs the [test cases](SelfTest) embedded in the model's file, all of them if they pass.
    ///
    /// # Errors
    ///
    /// The first case whose output is not as it expects, and [how it differs](crate::Mismatch).
    fn self_test(&mut self) -> Result<SelfTest, SelfTestError>;
}

/// A network that computes in int8.
pub trait QuantizedModel: Model {
    /// The quantized input: `[i8; INPUT_LEN]`.
    type QuantizedInput: AsRef<[i8]>;
    /// The quantized output: `[i8; OUTPUT_LEN]`.
    type QuantizedOutput: AsRef<[i8]> + AsMut<[i8]>;

    /// How the input's values map to real numbers.
    const INPUT_QUANT: Quant;
    /// How the output's values map to real numbers.
    const OUTPUT_QUANT: Quant;

    /// Computes the output for an input, without a float in between.
    fn forward_i8(&mut self, input: &Self::QuantizedInput) -> Self::QuantizedOutput;

    /// Computes the output for an input, without a float in between.
    fn forward_i8_into(&mut self, input: &Self::QuantizedInput, output: &mut Self::QuantizedOutput);

    /// Computes the output for an input, and tells `observe` before each step which one it is, as
    /// [`forward_observed`](Model::forward_observed) does.
    fn forward_i8_observed(
        &mut self,
        input: &Self::QuantizedInput,
        output: &mut Self::QuantizedOutput,
        observe: impl FnMut(Step),
    );
}

/// A network compiled with the option `batch`, for code that takes any.
///
/// ```
/// use netkit::BatchModel;
///
/// netkit::model!(Digits = "models/mnist_mlp.nk", batch = 16);
///
/// fn scores<M: BatchModel>(model: &mut M, images: &[M::Input], scores: &mut [M::Output]) {
///     model.forward_batch_into(images, scores);
/// }
///
/// let images = vec![[0.5; Digits::INPUT_LEN]; 100];
/// let mut of_all = vec![[0.0; Digits::OUTPUT_LEN]; images.len()];
/// scores(&mut *Digits::new_boxed(), &images, &mut of_all);
/// assert_eq!(of_all[99], Digits::new().forward(&images[99]));
/// ```
pub trait BatchModel: Model {
    /// Inputs that are computed at once.
    const BATCH: usize;

    /// Computes the output for each input, any number of them, [`BATCH`](Self::BATCH) at once: the same bits as one by one.
    /// Of inputs and outputs, as many as there are of both; the other outputs are left alone.
    fn forward_batch_into(&mut self, input: &[Self::Input], output: &mut [Self::Output]);
}

/// A step of a network, one operator: what [`Model::forward_observed`] is about to compute.
///
/// A plain layer is one step, with an activation that cannot be fused two; a fused layer of the format, a ResNet block
/// say, is several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Its place in the order of execution, from 0.
    pub index: usize,
    /// The place in [`Model::LAYERS`] of the layer it belongs to.
    pub layer: usize,
    /// The operator: `conv2d`, `dense`, `softmax`.
    pub operator: &'static str,
    /// Which part of a fused layer it is; empty for plain ones.
    pub part: &'static str,
}

impl Step {
    /// For generated code.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn new(
        index: usize,
        layer: usize,
        operator: &'static str,
        part: &'static str,
    ) -> Self {
        Self { index, layer, operator, part }
    }
}

/// What is known of one layer of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layer {
    /// Its kind, in the words of the format: `conv2d`, `dense`, `resnet_basic_block`.
    pub name: &'static str,
    /// Shape of what it reads, outermost dimension first.
    pub input_shape: &'static [usize],
    /// Shape of what it produces, outermost dimension first.
    pub output_shape: &'static [usize],
    /// Multiply-accumulate operations of one inference.
    pub macs: u64,
    /// Bytes of its weights and biases in the model file.
    pub weight_bytes: usize,
}

impl Layer {
    /// For generated code.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        name: &'static str,
        input_shape: &'static [usize],
        output_shape: &'static [usize],
        macs: u64,
        weight_bytes: usize,
    ) -> Self {
        Self { name, input_shape, output_shape, macs, weight_bytes }
    }
}
