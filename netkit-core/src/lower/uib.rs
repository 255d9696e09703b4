//! MobileNetV4 universal inverted bottleneck (section 7.9), float and int8.

use crate::diag::{Code, Value as Say};
use crate::format::MobileNetV4Uib;
use crate::graph::{Value, ValueId};
use crate::op::{Activation, Op};

use super::{Flow, Lowering, square};

/// `make_divisible` of section 7.9: the expanded channel count, a multiple of 8, in f32 arithmetic.
fn make_divisible(v: f32) -> u32 {
    // `as` truncates toward zero and saturates.
    let rounded = ((v + 4.0) as u32 / 8) * 8;
    let expanded = rounded.max(8);
    if expanded < (0.9 * v) as u32 { expanded.saturating_add(8) } else { expanded }
}

impl Lowering<'_, '_, '_> {
    pub(super) fn inverted_bottleneck(&mut self, layer: &MobileNetV4Uib) -> Flow {
        self.bottleneck_fields(layer)?;
        let input = self.value;
        let (start, middle) = (u32::from(layer.start_dw_kernel), u32::from(layer.middle_dw_kernel));
        let stride = u32::from(layer.stride);
        let downsample_in_middle = layer.middle_dw_downsample != 0;
        let expanded = make_divisible(layer.in_channels as f32 * layer.expand_ratio);
        if start > 0 && expanded < layer.in_channels {
            let diagnostic = self
                .complain(Code::UibExpand, "expanded channels", 16)
                .found(Say::Integer(expanded.into()))
                .expected(Say::AtLeast(layer.in_channels.into()));
            self.report(diagnostic)?;
        }

        let mut value = input;
        if start > 0 {
            let stride = if downsample_in_middle && middle > 0 { 1 } else { stride };
            let window = square(start, stride, (start - 1) / 2);
            value = self.depthwise(value, window, Activation::None, "start_dw")?;
            value = self.float_batch_norm(value, "start_bn")?;
        }
        value = self.pointwise(value, expanded, Activation::None, "expand")?;
        value = self.float_batch_norm(value, "expand_bn")?;
        value = self.activate(value, Activation::Relu)?;
        if middle > 0 {
            let stride = if downsample_in_middle { stride } else { 1 };
            let window = square(middle, stride, (middle - 1) / 2);
            value = self.depthwise(value, window, Activation::None, "middle_dw")?;
            value = self.float_batch_norm(value, "middle_bn")?;
            value = self.activate(value, Activation::Relu)?;
        }
        value = self.pointwise(value, layer.out_channels, Activation::None, "proj")?;
        value = self.float_batch_norm(value, "proj_bn")?;
        if layer.stride == 1 && layer.in_channels == layer.out_channels {
            value = self.residual(value, input)?;
        }
        self.advance(value);
        Ok(())
    }

    fn bottleneck_fields(&mut self, layer: &MobileNetV4Uib) -> Flow {
        self.channels("in_channels", layer.in_channels, 4)?;
        self.at_least_one("out_channels", layer.out_channels, 8)?;
        for (field, kernel, at) in [
            ("start_dw_kernel", layer.start_dw_kernel, 12),
            ("middle_dw_kernel", layer.middle_dw_kernel, 13),
        ] {
            if kernel > 0 && kernel % 2 == 0 {
                let diagnostic = self
                    .complain(Code::Uib, field, at)
                    .found(Say::Integer(kernel.into()))
                    .expected(Say::Text("0 or an odd number"));
                return self.fail(diagnostic);
            }
        }
        if layer.middle_dw_downsample > 1 {
            let diagnostic = self
                .complain(Code::Uib, "middle_dw_downsample", 15)
                .found(Say::Integer(layer.middle_dw_downsample.into()))
                .expected(Say::Between(0, 1));
            self.report(diagnostic)?;
        }
        let applied = layer.start_dw_kernel > 0
            || (layer.middle_dw_kernel > 0 && layer.middle_dw_downsample != 0);
        if layer.stride == 0 || (layer.stride > 1 && !applied) {
            let expected =
                if layer.stride == 0 { "at least 1" } else { "1, as no depthwise applies it" };
            let diagnostic = self
                .complain(Code::Uib, "stride", 14)
                .found(Say::Integer(layer.stride.into()))
                .expected(Say::Text(expected));
            return self.fail(diagnostic);
        }
        Ok(())
    }

    /// A field that counts channels must not be 0.
    pub(super) fn at_least_one(&mut self, field: &'static str, count: u32, at: u64) -> Flow {
        if count > 0 {
            return Ok(());
        }
        let diagnostic = self
            .complain(Code::NoOutputs, field, at)
            .found(Say::Integer(0))
            .expected(Say::AtLeast(1));
        self.fail(diagnostic)
    }

    /// The batch norms of a bottleneck are only in float files: int8 ones have them folded.
    fn float_batch_norm(&mut self, value: ValueId, part: &'static str) -> Flow<ValueId> {
        if self.quantized { Ok(value) } else { self.batch_norm(value, part) }
    }

    /// The sum with the block's input; in int8 in the quantization of the projection (section 8.7).
    fn residual(&mut self, value: ValueId, input: ValueId) -> Flow<ValueId> {
        if !self.quantized {
            return self.add_float(value, input);
        }
        let known = *self.graph.value(value);
        let output = Value::quantized(known.shape, known.quant);
        let op = Op::Add { len: known.shape.elements(), activation: Activation::None };
        let pushed = self.graph.push(op, &[value, input], None, output, "add");
        self.stored(pushed)
    }
}

#[cfg(test)]
mod tests {
    use super::make_divisible;

    #[test]
    fn expanded_channels_of_section_12() {
        for (v, expected) in [
            (8.0, 8),
            (9.0, 8),
            (11.9, 16),
            (12.0, 16),
            (13.0, 16),
            (24.0, 24),
            (36.3, 40),
            (384.0, 384),
            (4.5, 8),
            (23.6, 24),
            (29.0, 32),
        ] {
            assert_eq!(make_divisible(v), expected, "{v}");
        }
    }

    #[test]
    fn absurd_ratios_saturate() {
        assert!(make_divisible(f32::MAX) >= u32::MAX - 16);
    }
}
