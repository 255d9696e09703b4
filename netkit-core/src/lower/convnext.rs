//! ConvNeXt V2 block (section 7.11).

use crate::format::ConvNextV2Block;
use crate::graph::{Value, ValueId};
use crate::op::{Activation, Op};

use super::{ConvSpec, Flow, Lowering, POINT, square};

impl Lowering<'_, '_, '_> {
    pub(super) fn convnext_block(&mut self, layer: &ConvNextV2Block) -> Flow {
        self.channels("channels", layer.channels, 4)?;
        let (input, c) = (self.value, layer.channels);
        let hidden = self.times(c, 4, 4)?;
        let value = self.depthwise(input, square(7, 1, 3), Activation::None, "dw")?;
        let value = self.layer_norm(value, layer.eps, "ln")?;
        let value = self.linear(value, &[hidden, c], Activation::Gelu, "pw1")?;
        let shape = self.per_channel(value);
        let weights = self.pair(&[hidden], hidden)?;
        let output = Value::float(self.graph.value(value).shape);
        let op = Op::GlobalResponseNorm { shape, epsilon: layer.eps };
        let pushed = self.graph.push(op, &[value], Some(weights), output, "grn");
        let value = self.stored(pushed)?;
        let value = self.linear(value, &[c, hidden], Activation::None, "pw2")?;
        let value = self.add_float(value, input)?;
        self.advance(value);
        Ok(())
    }
    /// A linear map of each pixel: a 1×1 convolution whose weights the catalog holds as `[out, in]`.
    fn linear(
        &mut self,
        input: ValueId,
        dims: &[u32; 2],
        activation: Activation,
        part: &'static str,
    ) -> Flow<ValueId> {
        let [out_channels, _] = *dims;
        self.conv(input, ConvSpec { window: POINT, out_channels, dims, activation, part })
    }
}
