//! ONNX's window attributes resolved to numbers.

use super::model::Node;
use crate::graph::Window;
use crate::obstacle::Refusal;
use netkit_core::op::Padding;

/// How an axis is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pads {
    Explicit { start: u64, end: u64 },
    SameUpper,
    SameLower,
}

/// An axis resolved: its padding and the size of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    start: u64,
    end: u64,
    output: u64,
}

/// The window of a convolution or pool over a map of `height × width`.
pub(super) fn resolve(
    node: &Node,
    input: (usize, usize),
    kernel: (usize, usize),
) -> Result<Window, Refusal> {
    let pair = |name: &'static str| -> Result<(u64, u64), Refusal> {
        match node.ints(name)?.unwrap_or(&[]) {
            [] => Ok((1, 1)),
            &[h, w] if h > 0 && w > 0 => Ok((h as u64, w as u64)),
            other => Err(Refusal::new(format!(
                "invalid ONNX: {name} {other:?}, where two positive numbers are expected"
            ))),
        }
    };
    let (stride, dilation) = (pair("strides")?, pair("dilations")?);
    let (pads_h, pads_w) = pads(node)?;
    let ceil = node.int_or("ceil_mode", 0)? != 0;
    let axis = |name, input: usize, kernel: usize, stride, dilation, pads| {
        resolve_axis(input as u64, kernel as u64, stride, dilation, pads, ceil)
            .map_err(|why| Refusal::new(format!("along the {name}, {why}")))
    };
    let h = axis("height", input.0, kernel.0, stride.0, dilation.0, pads_h)?;
    let w = axis("width", input.1, kernel.1, stride.1, dilation.1, pads_w)?;
    let fits = |value: u64| {
        u32::try_from(value).map_err(|_| Refusal::new(format!("{value} is beyond any map")))
    };
    Ok(Window {
        kernel: (fits(kernel.0 as u64)?, fits(kernel.1 as u64)?),
        stride: (fits(stride.0)?, fits(stride.1)?),
        dilation: (fits(dilation.0)?, fits(dilation.1)?),
        padding: Padding {
            top: fits(h.start)?,
            left: fits(w.start)?,
            bottom: fits(h.end)?,
            right: fits(w.end)?,
        },
        output: (fits(h.output)?, fits(w.output)?),
    })
}

fn pads(node: &Node) -> Result<(Pads, Pads), Refusal> {
    let explicit = match node.ints("pads")?.unwrap_or(&[]) {
        [] => [0; 4],
        &[top, left, bottom, right] => [top, left, bottom, right],
        other => {
            return Err(Refusal::new(format!(
                "invalid ONNX: pads {other:?}, where four numbers are expected"
            )));
        }
    };
    let auto = node.string("auto_pad")?.unwrap_or_default();
    match auto.as_str() {
        "" | "NOTSET" => {
            let [top, left, bottom, right] =
                explicit.map(|pad| u32::try_from(pad).ok().map(u64::from));
            match (top, left, bottom, right) {
                (Some(top), Some(left), Some(bottom), Some(right)) => Ok((
                    Pads::Explicit { start: top, end: bottom },
                    Pads::Explicit { start: left, end: right },
                )),
                _ => Err(Refusal::new(format!("padding {explicit:?} would crop the map"))
                    .help("crop the input before it is given to the model")),
            }
        }
        _ if explicit != [0; 4] => {
            Err(Refusal::new(format!("invalid ONNX: both auto_pad {auto} and pads {explicit:?}")))
        }
        "VALID" => {
            let none = Pads::Explicit { start: 0, end: 0 };
            Ok((none, none))
        }
        "SAME_UPPER" => Ok((Pads::SameUpper, Pads::SameUpper)),
        "SAME_LOWER" => Ok((Pads::SameLower, Pads::SameLower)),
        _ => Err(Refusal::new(format!("invalid ONNX: auto_pad {auto}"))),
    }
}

fn resolve_axis(
    input: u64,
    kernel: u64,
    stride: u64,
    dilation: u64,
    pads: Pads,
    ceil: bool,
) -> Result<Axis, String> {
    let overflow = || "the numbers overflow".to_owned();
    // How far a window reaches.
    let extent = kernel
        .checked_sub(1)
        .ok_or("the kernel is empty")?
        .checked_mul(dilation)
        .and_then(|reach| reach.checked_add(1))
        .ok_or_else(overflow)?;
    match pads {
        Pads::SameUpper | Pads::SameLower => {
            let output = input.div_ceil(stride);
            let needed = output
                .checked_sub(1)
                .ok_or("the map is empty")?
                .checked_mul(stride)
                .and_then(|last| last.checked_add(extent))
                .ok_or_else(overflow)?;
            let total = needed.saturating_sub(input);
            let start = if pads == Pads::SameUpper { total / 2 } else { total - total / 2 };
            Ok(Axis { start, end: total - start, output })
        }
        Pads::Explicit { start, end } => {
            let padded = input.checked_add(start).and_then(|sum| sum.checked_add(end));
            let room = padded.ok_or_else(overflow)?.checked_sub(extent).ok_or_else(|| {
                format!(
                    "a window of {extent} does not fit an input of {input} padded by {start} and \
                     {end}"
                )
            })?;
            if !ceil || room.is_multiple_of(stride) {
                return Ok(Axis { start, end, output: room / stride + 1 });
            }
            let mut output = room.div_ceil(stride) + 1;
            // A window that would start in the padding behind the map is left out.
            if (output - 1) * stride >= input + start {
                output -= 1;
            }
            // Where the last window reaches beyond the padding, the rest of it is padding too.
            let reached = (output - 1) * stride + extent;
            let end = end.max(reached.saturating_sub(input + start));
            Ok(Axis { start, end, output })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(input: u64, kernel: u64, stride: u64, pads: Pads) -> (u64, u64, u64) {
        let axis = resolve_axis(input, kernel, stride, 1, pads, false).unwrap();
        (axis.start, axis.end, axis.output)
    }

    #[test]
    fn same_padding_depends_on_the_stride() {
        // input, kernel, stride; start and end padding; output.
        for (input, kernel, stride, start, end, output) in [
            (28, 3, 2, 0, 1, 14),
            (96, 3, 2, 0, 1, 48),
            (49, 10, 2, 4, 5, 25),
            (7, 3, 2, 1, 1, 4),
            (40, 8, 2, 3, 3, 20),
            (5, 4, 1, 1, 2, 5),
            // Nothing to pad: the stride is wider than the kernel.
            (8, 1, 2, 0, 0, 4),
        ] {
            assert_eq!(same(input, kernel, stride, Pads::SameUpper), (start, end, output));
            assert_eq!(same(input, kernel, stride, Pads::SameLower), (end, start, output));
        }
        // The output is ⌈input / stride⌉, not the input.
        assert_eq!(same(7, 3, 2, Pads::SameUpper).2, 4);
        assert_eq!(same(5, 3, 2, Pads::SameUpper).2, 3);
    }

    #[test]
    fn same_padding_counts_the_reach_of_a_dilated_kernel() {
        let axis = resolve_axis(8, 3, 1, 2, Pads::SameUpper, false).unwrap();
        assert_eq!(axis, Axis { start: 2, end: 2, output: 8 });
    }

    /// Pitfall B04: a window of nothing but padding.
    #[test]
    fn b04_ceil_mode_drops_the_window_that_starts_in_the_padding() {
        let pads = Pads::Explicit { start: 2, end: 2 };
        let axis = resolve_axis(9, 4, 4, 1, pads, true).unwrap();
        assert_eq!(axis.output, 3, "the naive formula gives 4");
        // 5 of 2 with stride 2: the third window hangs over by one.
        let none = Pads::Explicit { start: 0, end: 0 };
        assert_eq!(
            resolve_axis(5, 2, 2, 1, none, true).unwrap(),
            Axis { start: 0, end: 1, output: 3 }
        );
        assert_eq!(
            resolve_axis(6, 2, 2, 1, none, true).unwrap(),
            Axis { start: 0, end: 0, output: 3 }
        );
    }

    #[test]
    fn every_output_of_ceil_mode_has_a_real_element() {
        for input in 1..12 {
            for kernel in 1..6 {
                for stride in 1..6 {
                    for start in 0..kernel {
                        for end in 0..kernel {
                            let pads = Pads::Explicit { start, end };
                            let Ok(axis) = resolve_axis(input, kernel, stride, 1, pads, true)
                            else {
                                continue;
                            };
                            for output in 0..axis.output {
                                let first = output * stride;
                                assert!(
                                    first < input + start && first + kernel > start,
                                    "{input} {kernel} {stride} {start} {end}"
                                );
                            }
                            // The plain formula gives the same size with the padding reported.
                            let padded = input + axis.start + axis.end;
                            assert!((padded - kernel) / stride + 1 >= axis.output);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn hostile_numbers_are_errors() {
        let huge = Pads::Explicit { start: u64::MAX, end: 1 };
        assert!(resolve_axis(4, 3, 1, 1, huge, false).is_err());
        assert!(resolve_axis(4, 0, 1, 1, Pads::SameUpper, false).is_err());
        assert!(resolve_axis(4, u64::MAX, 1, u64::MAX, Pads::SameUpper, false).is_err());
        assert!(resolve_axis(0, 3, 1, 1, Pads::SameUpper, false).is_err());
        let none = Pads::Explicit { start: 0, end: 0 };
        assert!(resolve_axis(2, 3, 1, 1, none, true).is_err());
    }
}
