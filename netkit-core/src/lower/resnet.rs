//! ResNet basic block (section 7.10).

use crate::format::ResNetBasicBlock;
use crate::graph::ValueId;
use crate::op::Activation;

use super::{ConvSpec, Flow, Lowering, square};

impl Lowering<'_, '_, '_> {
    pub(super) fn basic_block(&mut self, layer: &ResNetBasicBlock) -> Flow {
        self.channels("in_channels", layer.in_channels, 4)?;
        self.at_least_one("out_channels", layer.out_channels, 8)?;
        let (input, co) = (self.value, layer.out_channels);
        let stride = u32::from(layer.stride);
        // The catalog has conv1, bn1, conv2, bn2, shortcut, shortcut_bn. The shortcut runs first, so
        // that its sum with conv2 fuses into conv2.
        let first = self.record.first_pair;
        let shortcut = if layer.has_identity_shortcut() {
            input
        } else {
            self.seek(first + 4);
            let point = super::Geometry { stride, ..super::POINT };
            let dims = &[co, 1, 1, layer.in_channels];
            let value = self.conv(
                input,
                ConvSpec {
                    window: point,
                    out_channels: co,
                    dims,
                    activation: Activation::None,
                    part: "shortcut",
                },
            )?;
            self.batch_norm(value, "shortcut_bn")?
        };
        self.seek(first);
        let value = self.conv3x3(input, co, stride, "conv1")?;
        let value = self.batch_norm(value, "bn1")?;
        let value = self.activate(value, Activation::Relu)?;
        let value = self.conv3x3(value, co, 1, "conv2")?;
        let value = self.batch_norm(value, "bn2")?;
        let value = self.add_float(value, shortcut)?;
        let value = self.activate(value, Activation::Relu)?;
        self.seek(first + self.record.pair_count);
        self.advance(value);
        Ok(())
    }

    /// A 3×3 convolution with padding 1.
    pub(super) fn conv3x3(
        &mut self,
        input: ValueId,
        out_channels: u32,
        stride: u32,
        part: &'static str,
    ) -> Flow<ValueId> {
        let in_channels = self.map(input).2 as u32;
        self.conv(
            input,
            ConvSpec {
                window: square(3, stride, 1),
                out_channels,
                dims: &[out_channels, 3, 3, in_channels],
                activation: Activation::None,
                part,
            },
        )
    }
}
