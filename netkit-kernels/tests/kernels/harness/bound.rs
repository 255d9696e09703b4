//! Comparison with the reference, within a bound for each element.

/// Each element's magnitude, to compute `Σ|w·x|` with the reference.
pub(crate) fn absolute(values: &[f32]) -> Vec<f32> {
    values.iter().map(|x| x.abs()).collect()
}

/// `roundings · 2^−24 · magnitude`, times the steepest slope of an activation (gelu's, 1.13), plus the
/// errors of the activation itself and of the reference's last rounding.
pub(crate) fn sum_bound(roundings: usize, magnitude: f32, result: f32) -> f32 {
    let unit = f32::EPSILON / 2.0;
    1.13 * roundings as f32 * unit * magnitude + 16.0 * unit * result.abs() + 1e-37
}

/// Fails where an element is further from the reference than its bound, or is NaN.
#[track_caller]
pub(crate) fn assert_within(
    actual: &[f32],
    expected: &[f32],
    bound: impl Fn(usize) -> f32,
    what: impl Fn() -> String,
) {
    assert_eq!(actual.len(), expected.len());
    for (i, (&actual, &expected)) in actual.iter().zip(expected).enumerate() {
        let error = (actual - expected).abs();
        let bound = bound(i);
        assert!(
            error <= bound,
            "{}: element {i} is {actual}, expected {expected}: off by {error:e} of {bound:e}",
            what()
        );
    }
}
