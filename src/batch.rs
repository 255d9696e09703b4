//! Several inputs at once: what generated code with the option `batch` does beside its steps.

use crate::model::Step;

/// The values of one sample of several that lie behind each other.
#[inline(always)]
#[must_use]
pub fn sample<T>(values: &[T], index: usize, len: usize) -> &[T] {
    let start = index.saturating_mul(len);
    values.get(start..).and_then(|rest| rest.get(..len)).unwrap_or(&[])
}

/// [`sample`], to be written.
#[inline(always)]
#[must_use]
pub fn sample_mut<T>(values: &mut [T], index: usize, len: usize) -> &mut [T] {
    let start = index.saturating_mul(len);
    values.get_mut(start..).and_then(|rest| rest.get_mut(..len)).unwrap_or(&mut [])
}

/// An observer that looks away. One function, so that the code of a batch is there once.
pub fn unobserved(_: Step) {}

/// Calls `compute` for at most `BATCH` inputs and outputs at a time, flat and with their number, until one of both is at its
/// end.
#[inline(always)]
pub fn in_batches<T, const BATCH: usize, const INPUT: usize, const OUTPUT: usize>(
    input: &[[T; INPUT]],
    output: &mut [[T; OUTPUT]],
    mut compute: impl FnMut(&[T], &mut [T], usize),
) {
    const { assert!(BATCH > 0, "a batch of nothing") };
    for (input, output) in input.chunks(BATCH).zip(output.chunks_mut(BATCH)) {
        let count = input.len().min(output.len());
        if let (Some(input), Some(output)) = (input.get(..count), output.get_mut(..count)) {
            compute(input.as_flattened(), output.as_flattened_mut(), count);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    #[test]
    fn samples_lie_behind_each_other() {
        let mut values = [0, 1, 2, 3, 4, 5, 6];
        assert_eq!(sample(&values, 0, 3), [0, 1, 2]);
        assert_eq!(sample(&values, 1, 3), [3, 4, 5]);
        // Not all of it is there, or no index says where.
        assert_eq!(sample(&values, 2, 3), [0; 0]);
        assert_eq!(sample(&values, usize::MAX, 3), [0; 0]);
        sample_mut(&mut values, 1, 3).fill(9);
        assert_eq!(values, [0, 1, 2, 9, 9, 9, 6]);
        assert_eq!(sample_mut(&mut values, usize::MAX, 3), [0; 0]);
    }

    #[test]
    fn the_last_batch_is_what_is_left_of_both() {
        let batches = |inputs: usize, outputs: usize| {
            let input: Vec<[usize; 2]> = (0..inputs).map(|i| [i, i]).collect();
            let mut output = std::vec![[usize::MAX; 1]; outputs];
            let mut counts = Vec::new();
            in_batches::<_, 3, 2, 1>(&input, &mut output, |input, output, count| {
                assert_eq!((input.len(), output.len()), (2 * count, count));
                for (pair, to) in input.as_chunks::<2>().0.iter().zip(output) {
                    *to = pair[0];
                }
                counts.push(count);
            });
            let both = inputs.min(outputs);
            let expected = (0..outputs).map(|i| [if i < both { i } else { usize::MAX }]);
            assert!(output.into_iter().eq(expected));
            counts
        };
        assert_eq!(batches(7, 7), [3, 3, 1]);
        assert_eq!(batches(7, 5), [3, 2]);
        assert_eq!(batches(4, 9), [3, 1]);
        assert_eq!(batches(3, 3), [3]);
        assert_eq!(batches(0, 3), [0; 0]);
    }
}
