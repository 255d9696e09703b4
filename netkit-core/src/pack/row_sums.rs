//! What a dense layer is given beside its weights where a kernel cannot subtract zero points itself.

use crate::op::Dense;

/// What CMSIS-NN for processors with vectors reads of a dense layer beside its weights, one number a feature: the bias,
/// less the sum of the feature's weights times the input's zero point; modulo 2^32, as sums are. `None` if a length does
/// not fit.
#[must_use]
pub fn row_sums(
    dense: &Dense,
    weights: &[i8],
    bias: &[i32],
    input_zero_point: i32,
    sums: &mut [i32],
) -> Option<()> {
    let Dense { in_features, out_features, .. } = *dense;
    let fits = Some(weights.len()) == in_features.checked_mul(out_features)
        && (bias.len(), sums.len()) == (out_features, out_features);
    if !fits {
        return None;
    }
    for (index, (sum, &bias)) in sums.iter_mut().zip(bias).enumerate() {
        let row = weights.get(index * in_features..)?.get(..in_features)?;
        let total = row.iter().fold(0_i32, |total, &weight| total.wrapping_add(weight.into()));
        *sum = bias.wrapping_sub(total.wrapping_mul(input_zero_point));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zero_point_of_every_weight_is_taken_out() {
        let dense = Dense { rows: 1, in_features: 3, out_features: 2 };
        let (weights, bias) = ([1, -2, 5, 127, 127, -128], [10, i32::MAX]);
        let mut sums = [0; 2];
        row_sums(&dense, &weights, &bias, -3, &mut sums).unwrap();
        assert_eq!(sums, [10 + 3 * 4, i32::MAX.wrapping_add(3 * 126)]);
        assert_eq!(row_sums(&dense, &weights[1..], &bias, -3, &mut sums), None);
        assert_eq!(row_sums(&dense, &weights, &bias[1..], -3, &mut sums), None);
        assert_eq!(row_sums(&dense, &weights, &bias, -3, &mut sums[1..]), None);
    }
}
