//! The result against the source: the file is loaded as a program would, run on made-up inputs and on
//! its cases, and compared with what the source computes by the book in double precision.

use anyhow::{Context as _, Result, bail};
use netkit::arena::{ArenaError, Bump};
use netkit::error::LoadErrorKind;
use netkit::runtime::Network;
use netkit_core::format::CaseData;
use netkit_import::{Conversion, onnx};

use crate::model_file::ModelFile;

/// Made-up inputs to compare.
const INPUTS: u32 = 3;
/// Largest difference, as a share of the largest output.
const MOST: f64 = 1e-4;
/// Largest model whose source is evaluated, in multiply-accumulates and what else takes time: a second or so for each
/// input. A pool without weights may take hours.
const MOST_WORK: u64 = 500_000_000;

/// What was compared, in a sentence.
pub(super) fn verify(
    source: &onnx::Model,
    conversion: &Conversion,
    file: &ModelFile,
) -> Result<String> {
    // Before anything is loaded, whose maps may be as large as they like.
    let work = file.with_program(|program| Ok(program.work()))?;
    if work > MOST_WORK && conversion.model.cases.is_empty() {
        return Ok(too_long(work));
    }
    let file = file.bytes();
    let elements: usize = conversion.input.dims().iter().product();
    let arena = arena_for(file)?;
    let mut network = Network::load(file, &arena).context("the result cannot be loaded")?;
    let mut output = vec![0.0; network.output_len()];

    for case in &conversion.model.cases {
        let CaseData::F32(input) = &case.input else { continue };
        network.forward(input, &mut output)?;
        let expected: Vec<f64> = case.expected.iter().map(|&value| value.into()).collect();
        let largest = largest_distance(&output, &expected);
        if largest > conversion.model.tolerance.into() {
            bail!(
                "the case \"{}\" misses its output by {largest:e}, more than the tolerance of {:e}",
                case.name,
                conversion.model.tolerance
            );
        }
    }
    if work > MOST_WORK {
        return Ok(too_long(work));
    }
    let mut largest = 0f64;
    for seed in 1..=INPUTS {
        let input = numbers(elements, seed);
        let expected = source.evaluate(conversion.input.dims(), &input)?;
        let stored = conversion.input.to_netkit_order(&input).context("an input was lost")?;
        network.forward(&stored, &mut output)?;
        let actual = conversion.output.to_source_order(&output).context("an output was lost")?;
        let scale = expected.iter().fold(1.0, |scale: f64, value| scale.max(value.abs()));
        largest = largest.max(largest_distance(&actual, &expected) / scale);
        if largest > MOST {
            bail!(
                "the result computes something else than the source: they differ by {largest:e} of \
                 the largest output; please report this with the model"
            );
        }
    }
    Ok(format!("compared with the source on {INPUTS} inputs: they differ by at most {largest:.1e}"))
}

fn too_long(work: u64) -> String {
    format!(
        "not compared with the source: {work} multiply-accumulates and the like would take long"
    )
}

/// An arena that the model fits, found by trying.
fn arena_for(file: &[u8]) -> Result<Bump<'static>> {
    let mut bytes = 1 << 20;
    loop {
        let arena = Bump::heap(bytes)?;
        match Network::load(file, &arena) {
            Ok(_) => break,
            Err(error) => match error.kind() {
                LoadErrorKind::Arena(ArenaError::Exhausted { requested, .. }) => {
                    bytes = bytes.max(requested).saturating_mul(2);
                }
                _ => return Err(error).context("the result cannot be loaded"),
            },
        }
    }
    Ok(Bump::heap(bytes)?)
}

/// The largest distance between two values; infinite where one is no number.
fn largest_distance(actual: &[f32], expected: &[f64]) -> f64 {
    let distance = |(actual, expected): (&f32, &f64)| {
        let distance = (f64::from(*actual) - expected).abs();
        if distance.is_nan() { f64::INFINITY } else { distance }
    };
    actual.iter().zip(expected).map(distance).fold(0.0, f64::max)
}

/// Numbers between −1 and 1, the same in every run.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::{largest_distance, numbers};

    #[test]
    fn what_is_no_number_is_far_from_everything() {
        assert_eq!(largest_distance(&[1.0, 0.5], &[1.0, 0.25]), 0.25);
        assert_eq!(largest_distance(&[1.0, f32::NAN], &[1.0, 0.25]), f64::INFINITY);
        assert_eq!(largest_distance(&[0.0], &[f64::NAN]), f64::INFINITY);
    }

    #[test]
    fn made_up_numbers_fill_the_range() {
        let values = numbers(1000, 1);
        assert!(values.iter().all(|value| (-1.0..=1.0).contains(value)));
        assert!(
            values.iter().any(|value| *value < -0.9) && values.iter().any(|value| *value > 0.9)
        );
    }
}
