//! Cases: inputs with the outputs that the source gives for them, kept in the model file.

use crate::conversion::Conversion;
use netkit_core::format::{CaseData, MAX_CASE_VALUES, MAX_CASES, OwnedCase};
use std::fmt;

/// Why a case cannot be embedded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaseError {
    /// The file has all the cases it can hold.
    Full,
    /// The input or output has more values than a case can hold.
    TooLarge {
        /// How many it has.
        values: usize,
    },
    /// There are not as many values as the model has.
    Length,
    /// A value is infinite or no number.
    NotFinite,
    /// The source gives another class than the label says, so the case could never pass.
    Misclassified {
        /// The class that the source gives.
        found: usize,
    },
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "a model file holds at most {MAX_CASES} cases"),
            Self::TooLarge { values } => write!(
                f,
                "a case holds at most {MAX_CASE_VALUES} values, and the model's input or output has \
                 {values}"
            ),
            Self::Length => f.write_str("not as many values as the model has"),
            Self::NotFinite => f.write_str("a value is infinite or no number"),
            Self::Misclassified { found } => write!(f, "the model says class {found}"),
        }
    }
}

impl std::error::Error for CaseError {}

impl Conversion {
    /// Embeds a case. `input` and `expected` are in the source's order; what the source gives is rounded
    /// to float32. A case without a name of its own is best called by its place in the data.
    ///
    /// # Errors
    /// [`CaseError`]; the model is then unchanged.
    pub fn add_case(
        &mut self,
        name: String,
        label: Option<u32>,
        input: &[f32],
        expected: &[f64],
    ) -> Result<(), CaseError> {
        if self.model.cases.len() >= MAX_CASES as usize {
            return Err(CaseError::Full);
        }
        let values = input.len().max(expected.len());
        if values > MAX_CASE_VALUES as usize {
            return Err(CaseError::TooLarge { values });
        }
        let expected: Vec<f32> = expected.iter().map(|&value| value as f32).collect();
        let input = self.input.to_netkit_order(input).ok_or(CaseError::Length)?;
        let expected = self.output.to_netkit_order(&expected).ok_or(CaseError::Length)?;
        if input.iter().chain(&expected).any(|value| !value.is_finite()) {
            return Err(CaseError::NotFinite);
        }
        if let Some(label) = label {
            let found = class(&expected);
            if found != label as usize {
                return Err(CaseError::Misclassified { found });
            }
        }
        let input = CaseData::F32(input);
        self.model.cases.push(OwnedCase { name, label, input, expected });
        Ok(())
    }
}

/// The first of the largest outputs.
fn class(outputs: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in outputs.iter().enumerate() {
        if *value > outputs[best] {
            best = index;
        }
    }
    best
}
