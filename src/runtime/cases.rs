//! What a loaded model is checked against: its own test cases, and the type it replaces.

use netkit_core::format::{CaseInput, TestCase};

use super::Network;
use crate::error::SignatureError;
use crate::model::{Model, QuantizedModel};
use crate::self_test::{Mismatch, judge_f32, judge_i8};

/// How a test case went.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CaseReport<'n> {
    /// What the case is called.
    pub name: &'n str,
    /// The largest absolute deviation of an output from the expected one, if the case passed; how it failed
    /// otherwise. Informative for int8 models, whose cases hold real numbers from before the last rounding.
    pub verdict: Result<f32, Mismatch>,
}

impl Network<'_> {
    /// Number of test cases in the file.
    #[must_use]
    pub fn case_count(&self) -> usize {
        self.program.file().cases().len()
    }

    /// Runs one test case of the file and judges the answer as sections 9.2 and 9.3 of the format say;
    /// `None` beyond the last. `output` receives the answer in real numbers; where it is not as long
    /// as the model's, nothing runs and the verdict is [`Mismatch::Size`].
    ///
    /// ```
    /// # use netkit::{arena::Bump, runtime::Network};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bytes = netkit::include_model!("models/mnist_mlp.nk");
    /// # let arena = Bump::heap(64 * 1024)?;
    /// let mut network = Network::load(bytes, &arena)?;
    /// let mut scores = [0.0; 10];
    /// for index in 0..network.case_count() {
    ///     let report = network.check_case(index, &mut scores).unwrap();
    ///     assert!(report.verdict.is_ok(), "{report:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_case(&mut self, index: usize, output: &mut [f32]) -> Option<CaseReport<'_>> {
        let file = *self.program.file();
        let case = file.cases().nth(index)?;
        let verdict = match case.input {
            CaseInput::F32(input) => self.check_float_case(&case, input.as_bytes(), output),
            CaseInput::I8(input) => self.check_int8_case(&case, input.as_bytes(), output),
        };
        Some(CaseReport { name: case.name, verdict })
    }

    fn check_float_case(
        &mut self,
        case: &TestCase<'_>,
        input: &[u8],
        output: &mut [f32],
    ) -> Result<f32, Mismatch> {
        // A float model's case lies at a multiple of 4 in its file.
        let input = bytemuck::try_cast_slice(input).map_err(|_| Mismatch::Size)?;
        self.forward(input, output).map_err(|_| Mismatch::Size)?;
        judge_f32(case, output, self.program.file().tolerance().unwrap_or(0.0))
    }

    fn check_int8_case(
        &mut self,
        case: &TestCase<'_>,
        input: &[u8],
        output: &mut [f32],
    ) -> Result<f32, Mismatch> {
        let quant = self.output_quant().ok_or(Mismatch::Size)?;
        if output.len() != self.output_len() {
            return Err(Mismatch::Size);
        }
        let (staging, raw) = core::mem::take(&mut self.edges);
        let ran = self.forward_i8(bytemuck::cast_slice(input), raw);
        let judged = match ran {
            Ok(()) => judge_i8(case, raw, |q| quant.dequantize(q)),
            Err(_) => Err(Mismatch::Size),
        };
        for (real, &q) in output.iter_mut().zip(raw.iter()) {
            *real = quant.dequantize(q);
        }
        self.edges = (staging, raw);
        judged
    }

    /// Whether this network can stand in for the compiled type `T`: the same input and output shapes. An update
    /// over the air of the wrong shape is refused here.
    ///
    /// # Errors
    ///
    /// Which of the two differs.
    pub fn expect_signature<T: Model>(&self) -> Result<(), SignatureError> {
        let same = |found: &[u32], expected: &[usize]| {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(&found, &dim)| found as usize == dim)
        };
        if !same(self.input_shape(), T::INPUT_SHAPE) {
            return Err(SignatureError::Input);
        }
        if !same(self.output_shape().dims(), T::OUTPUT_SHAPE) {
            return Err(SignatureError::Output);
        }
        Ok(())
    }

    /// [`expect_signature`](Self::expect_signature) for code that passes int8 values: scales and zero points must
    /// be the same too.
    ///
    /// # Errors
    ///
    /// What differs.
    pub fn expect_quantized_signature<T: QuantizedModel>(&self) -> Result<(), SignatureError> {
        self.expect_signature::<T>()?;
        let (Some(input), Some(output)) = (self.input_quant(), self.output_quant()) else {
            return Err(SignatureError::ElementType);
        };
        if input != T::INPUT_QUANT {
            return Err(SignatureError::InputQuantization);
        }
        if output != T::OUTPUT_QUANT {
            return Err(SignatureError::OutputQuantization);
        }
        Ok(())
    }
}
