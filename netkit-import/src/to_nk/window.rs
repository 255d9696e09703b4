//! Windows as the records of a `.nk` file hold them.

use crate::graph::Window;
use crate::obstacle::Refusal;
use netkit_core::format::Geometry;
use netkit_core::tensor::Shape;

/// The window as a record holds it. `encoder` writes its bytes, if it can.
///
/// Where a record cannot hold the padding as it is, another that gives the same windows may do: what
/// lies behind the last window is never read, so the end padding is free within a stride.
pub(super) fn encode<T>(
    window: &Window,
    input: Shape,
    pool: bool,
    encoder: impl Fn(&Geometry) -> Option<T>,
) -> Result<(Geometry, T), Vec<Refusal>> {
    let Some((height, width, _)) = input.as_map() else {
        return Err(vec![Refusal::new("its input is no map")]);
    };
    let mut refusals = Vec::new();
    let (h, w) = (window.dilation.0, window.dilation.1);
    if (h != 1 && window.kernel.0 > 1) || (w != 1 && window.kernel.1 > 1) {
        let reason = format!("a dilation of {h}×{w}; a .nk file holds windows without dilation");
        refusals.push(Refusal::new(reason).help("train with dilation 1"));
    }
    // Where there is only one window along an axis, it never steps.
    let stride = match (window.stride, window.output) {
        ((h, w), _) if h == w => Some(h),
        ((_, w), (1, _)) => Some(w),
        ((h, _), (_, 1)) => Some(h),
        ((h, w), _) => {
            let reason =
                format!("strides of {h} and {w}; in a .nk file both axes have the same stride");
            refusals.push(Refusal::new(reason).help("train with the same stride on both axes"));
            None
        }
    };
    let (Some(stride), true) = (stride, refusals.is_empty()) else {
        return Err(refusals);
    };
    let padding = window.padding;
    let rows = end_paddings(
        (height, window.kernel.0, stride, window.output.0),
        (padding.top, padding.bottom),
        pool,
    );
    let columns = end_paddings(
        (width, window.kernel.1, stride, window.output.1),
        (padding.left, padding.right),
        pool,
    );
    for &bottom in &rows {
        for &right in &columns {
            let geometry = Geometry {
                kernel_h: window.kernel.0,
                kernel_w: window.kernel.1,
                stride,
                top: padding.top,
                left: padding.left,
                bottom,
                right,
            };
            if let Some(record) = encoder(&geometry) {
                return Ok((geometry, record));
            }
        }
    }
    let (kernel_h, kernel_w) = window.kernel;
    let reason = if rows.is_empty() || columns.is_empty() {
        "in a .nk file the padding at the start of an axis is at most 255, and that at the end as much \
         or up to 15 more"
    } else {
        "no record of a .nk file says this"
    };
    Err(vec![
        Refusal::new(format!(
            "a {kernel_h}×{kernel_w} window with padding top {}, left {}, bottom {}, right {}; {reason}",
            padding.top, padding.left, padding.bottom, padding.right
        ))
        .help("train with the same padding on both sides"),
    ])
}

/// The end paddings that a record can hold and that give the same windows, the source's own first.
fn end_paddings(
    (input, kernel, stride, output): (usize, u32, u32, u32),
    (start, end): (u32, u32),
    pool: bool,
) -> Vec<u32> {
    let [input, kernel, stride, output, start, end] =
        [input as i64, kernel.into(), stride.into(), output.into(), start.into(), end.into()];
    // output = ⌊(input + start + e − kernel) / stride⌋ + 1 for e from `least` on, stride many.
    let least = (output - 1) * stride + kernel - input - start;
    let last = least + stride - 1;
    let fits = |e: &i64| {
        (least..=last).contains(e)
            && (start..=start + 15).contains(e)
            && start <= 255
            && (!pool || *e < kernel)
    };
    let own = [end].into_iter().filter(fits);
    let others = (start..=start + 15).filter(|e| *e != end).filter(fits);
    own.chain(others).filter_map(|e| u32::try_from(e).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netkit_core::op::output_size;

    #[test]
    fn every_padding_that_is_offered_gives_the_same_windows() {
        let mut changed = 0;
        for input in 1..9usize {
            for kernel in 1..5u32 {
                for stride in 1..4 {
                    for start in 0..kernel {
                        for end in 0..6 {
                            let Some(output) =
                                output_size(input as u32, kernel, stride, start, end)
                            else {
                                continue;
                            };
                            let axis = (input, kernel, stride, output);
                            for other in end_paddings(axis, (start, end), false) {
                                let size = output_size(input as u32, kernel, stride, start, other);
                                assert_eq!(size, Some(output));
                                assert!((start..=start + 15).contains(&other));
                                changed += u32::from(other != end);
                            }
                            // The file's own padding is taken wherever a record can hold it.
                            if (start..=start + 15).contains(&end) {
                                assert_eq!(end_paddings(axis, (start, end), false)[0], end);
                            }
                        }
                    }
                }
            }
        }
        assert!(changed > 100, "{changed}");
    }
}
