//! Replaying the test cases of a model's file, and judging the answers (sections 9.2 and 9.3 of the format).

use crate::aligned::{as_f32_array, as_i8_array};
use crate::model::{Model, QuantizedModel};
use core::fmt;
use netkit_core::format::{CaseInput, TestCase, TestCases};

/// Every test case passed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SelfTest {
    /// How many there were; 0 where the file has none.
    pub cases: usize,
    /// The largest absolute deviation of an output value from what its case expects. Informative for int8 models,
    /// whose cases hold real numbers from before the last rounding.
    pub max_deviation: f32,
}

/// A test case failed.
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SelfTestError {
    /// Its place among the cases, counted from 0.
    pub case: usize,
    /// What it is called.
    pub name: &'static str,
    /// How it failed.
    pub mismatch: Mismatch,
}

/// How an output differs from what its test case expects.
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// An output value is further from the expected one than the file's tolerance.
    Value {
        /// Which one.
        index: usize,
        /// What the model computed.
        actual: f32,
        /// What the case expects.
        expected: f32,
        /// How far they may be apart.
        tolerance: f32,
    },
    /// The largest output is another one than it must be.
    Class {
        /// The first largest output.
        actual: usize,
        /// The one it must be.
        expected: usize,
    },
    /// The case has another number of values than the model. No file that `model!` accepts holds such a case,
    /// so with [`check_case`](crate::runtime::Network::check_case) it is the output given that has another length.
    Size,
}

impl fmt::Display for SelfTestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "test case {} ({:?}): {}", self.case, self.name, self.mismatch)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Value { index, actual, expected, tolerance } => {
                write!(f, "output {index} is {actual}, expected {expected} within {tolerance}")
            }
            Self::Class { actual, expected } => {
                write!(f, "the largest output is {actual}, expected {expected}")
            }
            Self::Size => f.write_str("the case does not fit the model"),
        }
    }
}

impl core::error::Error for SelfTestError {}
impl core::error::Error for Mismatch {}
crate::error::debug_is_display!(SelfTestError, Mismatch);

/// Judges the output of a float model; the largest deviation if it passes.
pub(crate) fn judge_f32(
    case: &TestCase<'_>,
    actual: &[f32],
    tolerance: f32,
) -> Result<f32, Mismatch> {
    if actual.len() != case.expected.len() {
        return Err(Mismatch::Size);
    }
    let mut largest = 0f32;
    for (index, (&actual, expected)) in actual.iter().zip(case.expected).enumerate() {
        let deviation = (actual - expected).abs();
        if deviation.is_nan() || deviation > tolerance {
            return Err(Mismatch::Value { index, actual, expected, tolerance });
        }
        largest = largest.max(deviation);
    }
    let class = largest_index(actual.iter().copied());
    match case.label {
        Some(label) if label as usize != class => {
            Err(Mismatch::Class { actual: class, expected: label as usize })
        }
        _ => Ok(largest),
    }
}

/// Judges the output of an int8 model by its class; the largest deviation if it passes.
pub(crate) fn judge_i8(
    case: &TestCase<'_>,
    actual: &[i8],
    dequantize: impl Fn(i8) -> f32,
) -> Result<f32, Mismatch> {
    if actual.len() != case.expected.len() {
        return Err(Mismatch::Size);
    }
    let class = largest_index(actual.iter().copied());
    let expected = match case.label {
        Some(label) => label as usize,
        None => largest_index(case.expected.iter()),
    };
    if class != expected {
        return Err(Mismatch::Class { actual: class, expected });
    }
    let deviations =
        actual.iter().zip(case.expected).map(|(&q, real)| (dequantize(q) - real).abs());
    Ok(deviations.fold(0.0, f32::max))
}

/// Where the largest value stands; the first of several.
fn largest_index<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> usize {
    let mut largest: Option<(usize, T)> = None;
    for (index, value) in values.enumerate() {
        if largest.is_none_or(|(_, most)| value > most) {
            largest = Some((index, value));
        }
    }
    largest.map_or(0, |(index, _)| index)
}

/// Replays the cases of a TCAS section on a float model.
pub fn self_test_f32<M, const INPUT: usize, const OUTPUT: usize>(
    model: &mut M,
    section: &'static [u8],
) -> Result<SelfTest, SelfTestError>
where
    M: Model<Input = [f32; INPUT], Output = [f32; OUTPUT]>,
{
    replay(section, false, |case, tolerance| {
        // The values of a float model's cases lie on boundaries of 4 bytes: nothing is copied.
        let CaseInput::F32(input) = case.input else { return Err(Mismatch::Size) };
        let input: &[f32; INPUT] = as_f32_array(input.as_bytes()).ok_or(Mismatch::Size)?;
        let mut output = [0.0; OUTPUT];
        model.forward_into(input, &mut output);
        judge_f32(case, &output, tolerance)
    })
}

/// Replays the cases of a TCAS section on an int8 model.
pub fn self_test_s8<M, const INPUT: usize, const OUTPUT: usize>(
    model: &mut M,
    section: &'static [u8],
) -> Result<SelfTest, SelfTestError>
where
    M: QuantizedModel<QuantizedInput = [i8; INPUT], QuantizedOutput = [i8; OUTPUT]>,
{
    replay(section, true, |case, _| {
        let CaseInput::I8(input) = case.input else { return Err(Mismatch::Size) };
        let input: &[i8; INPUT] = as_i8_array(input.as_bytes()).ok_or(Mismatch::Size)?;
        let mut output = [0; OUTPUT];
        model.forward_i8_into(input, &mut output);
        judge_i8(case, &output, |q| M::OUTPUT_QUANT.dequantize(q))
    })
}

/// No section, no cases.
pub const NO_CASES: Result<SelfTest, SelfTestError> = Ok(SelfTest { cases: 0, max_deviation: 0.0 });

fn replay(
    section: &'static [u8],
    int8: bool,
    mut judge: impl FnMut(&TestCase<'static>, f32) -> Result<f32, Mismatch>,
) -> Result<SelfTest, SelfTestError> {
    let Some((cases, tolerance)) = TestCases::of_section(section, int8) else { return NO_CASES };
    let mut passed = SelfTest { cases: 0, max_deviation: 0.0 };
    for case in cases {
        match judge(&case, tolerance) {
            Ok(deviation) => passed.max_deviation = passed.max_deviation.max(deviation),
            Err(mismatch) => {
                return Err(SelfTestError { case: passed.cases, name: case.name, mismatch });
            }
        }
        passed.cases += 1;
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netkit_core::bytes::Packed;

    static EXPECTED: [u8; 12] = {
        let [a, b, c] = [0.25f32.to_le_bytes(), 1f32.to_le_bytes(), 1f32.to_le_bytes()];
        [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3]]
    };

    fn case(label: Option<u32>) -> TestCase<'static> {
        TestCase {
            index: 0,
            offset: 0,
            name: "case",
            label,
            label_offset: 0,
            input: CaseInput::I8(Packed::new(&[])),
            input_offset: 0,
            expected: Packed::new(&EXPECTED),
            expected_offset: 0,
        }
    }

    #[test]
    fn floats_pass_within_the_tolerance_and_with_the_right_class() {
        let judge = |label, actual: [f32; 3]| judge_f32(&case(label), &actual, 0.5);
        assert_eq!(judge(None, [0.25, 1.5, 0.75]), Ok(0.5));
        assert_eq!(judge(Some(1), [0.25, 1.0, 1.0]), Ok(0.0));
        assert_eq!(
            judge(Some(2), [0.25, 1.0, 1.0]),
            Err(Mismatch::Class { actual: 1, expected: 2 })
        );
        assert!(matches!(judge(None, [0.25, 1.0, 1.625]), Err(Mismatch::Value { index: 2, .. })));
        assert!(matches!(judge(None, [f32::NAN, 1.0, 1.0]), Err(Mismatch::Value { index: 0, .. })));
        assert_eq!(judge_f32(&case(None), &[0.25, 1.0], 0.5), Err(Mismatch::Size));
    }

    #[test]
    fn integers_pass_by_class() {
        let judge =
            |label, actual: [i8; 3]| judge_i8(&case(label), &actual, |q| f32::from(q) / 4.0);
        assert_eq!(judge(None, [1, 4, 4]), Ok(0.0));
        assert_eq!(judge(None, [-128, 127, 126]), Ok(32.25));
        assert_eq!(judge(None, [1, 3, 4]), Err(Mismatch::Class { actual: 2, expected: 1 }));
        assert_eq!(judge(Some(2), [1, 3, 4]), Ok(0.25));
    }
}
