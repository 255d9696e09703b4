//! Which taps of a window lie inside the map.

use core::ops::Range;

/// The taps `i` in `0..kernel` for which `output · stride − pad + i · dilation` lies in `0..input`.
#[inline(always)]
pub(crate) fn taps_inside(
    output: usize,
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pad: usize,
) -> Range<usize> {
    let start = output * stride;
    let dilation = dilation.max(1);
    // The divisions are by the dilation, which is 1 in all but imported models.
    let divide = |x: usize| if dilation == 1 { x } else { x.div_ceil(dilation) };
    let first = divide(pad.saturating_sub(start)).min(kernel);
    let last = divide((input + pad).saturating_sub(start)).min(kernel);
    first..last.max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_agree_with_the_definition() {
        for input in 1..6 {
            for kernel in 1..6 {
                for (stride, dilation) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 3)] {
                    for pad in 0..8 {
                        for output in 0..8 {
                            let taps = taps_inside(output, input, kernel, stride, dilation, pad);
                            for i in 0..kernel {
                                let position =
                                    (output * stride + i * dilation) as isize - pad as isize;
                                let inside = (0..input as isize).contains(&position);
                                assert_eq!(inside, taps.contains(&i));
                            }
                        }
                    }
                }
            }
        }
    }
}
