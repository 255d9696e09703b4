//! Between real numbers and int8 at the edges of a quantized model (section 8.9 of the format).

use crate::aligned::as_i8_mut;
use netkit_core::quant::Quant;

/// Quantizes as many values as both slices have.
pub fn quantize(quant: Quant, input: &[f32], output: &mut [i8]) {
    for (q, &real) in output.iter_mut().zip(input) {
        *q = quant.quantize(real);
    }
}

/// The front of an array of floats as memory for as many bytes: where the quantized output is computed before
/// [`dequantize_in_place`].
#[must_use]
pub fn first_bytes<const LEN: usize>(output: &mut [f32; LEN]) -> &mut [i8] {
    as_i8_mut(output).split_at_mut(LEN).0
}

/// [`first_bytes`] of any number of floats.
#[must_use]
pub fn first_bytes_of(output: &mut [f32]) -> &mut [i8] {
    let len = output.len();
    as_i8_mut(output).get_mut(..len).unwrap_or(&mut [])
}

/// Dequantizes the first bytes of an array of floats into all of it.
pub fn dequantize_in_place<const LEN: usize>(quant: Quant, output: &mut [f32; LEN]) {
    dequantize_all_in_place(quant, output);
}

/// [`dequantize_in_place`] of any number of floats.
#[inline(always)]
pub fn dequantize_all_in_place(quant: Quant, output: &mut [f32]) {
    // From the end, so that a float overwrites only bytes that have been read: the one it comes from or later ones.
    for index in (0..output.len()).rev() {
        let q = as_i8_mut(output).get(index).copied().unwrap_or_default();
        if let Some(real) = output.get_mut(index) {
            *real = quant.dequantize(q);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_floats_in_place() {
        let quant = Quant { scale: 0.5, zero_point: -1 };
        let mut output = [f32::NAN; 9];
        let bytes = first_bytes(&mut output);
        assert_eq!(bytes.len(), 9);
        quantize(quant, &[-64.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 1000.0], bytes);
        dequantize_in_place(quant, &mut output);
        assert_eq!(output, [-63.5, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 2.0, 64.0]);
    }
}
