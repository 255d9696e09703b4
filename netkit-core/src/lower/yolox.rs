//! YOLOX decoupled head (section 7.12) and the feature pyramid with three of them (section 7.14).

use crate::diag::{Code, Value as Say};
use crate::format::{YoloxDecoupledHead, YoloxPafpnMultiscale};
use crate::graph::{MAX_INPUTS, Value, ValueId};
use crate::op::{Activation, Concat, Op, Upsample2x};

use super::{Flow, Lowering, square};

/// What the heads of a pyramid have in common.
#[derive(Clone, Copy)]
struct Head {
    hidden: u32,
    classes: u32,
    convs: u8,
}

impl Lowering<'_, '_, '_> {
    pub(super) fn yolox_head_layer(&mut self, layer: &YoloxDecoupledHead) -> Flow {
        self.channels("in_channels", layer.in_channels, 4)?;
        let head =
            Head { hidden: layer.hidden_dim, classes: layer.num_classes, convs: layer.num_convs };
        self.head_fields(&head, 8, 12)?;
        let value = self.yolox_head(self.value, &head)?;
        self.advance(value);
        Ok(())
    }

    fn head_fields(&mut self, head: &Head, hidden_at: u64, classes_at: u64) -> Flow {
        self.at_least_one("num_classes", head.classes, classes_at)?;
        let least = head.classes.max(4);
        if head.hidden < least {
            let diagnostic = self
                .complain(Code::YoloxHidden, "hidden_dim", hidden_at)
                .found(Say::Integer(head.hidden.into()))
                .expected(Say::AtLeast(least.into()));
            return self.fail(diagnostic);
        }
        Ok(())
    }

    /// One head: the catalog holds cls, reg, obj; the output is reg, obj, cls.
    fn yolox_head(&mut self, input: ValueId, head: &Head) -> Flow<ValueId> {
        let stem = self.pointwise(input, head.hidden, Activation::Silu, "stem")?;
        self.graph.pin(stem);
        let mut class_branch = stem;
        for _ in 0..head.convs {
            class_branch = self.conv3x3(class_branch, head.hidden, 1, "cls_conv")?;
            class_branch = self.activate(class_branch, Activation::Silu)?;
        }
        let mut box_branch = stem;
        for _ in 0..head.convs {
            box_branch = self.conv3x3(box_branch, head.hidden, 1, "reg_conv")?;
            box_branch = self.activate(box_branch, Activation::Silu)?;
        }
        let cls = self.pointwise(class_branch, head.classes, Activation::None, "cls_pred")?;
        let reg = self.pointwise(box_branch, 4, Activation::None, "reg_pred")?;
        let obj = self.pointwise(box_branch, 1, Activation::None, "obj_pred")?;
        let (height, width, _) = self.map(input);
        let channels = self.times_plus_five(head.classes)?;
        let shape = self.output_shape(&[height, width, channels])?;
        self.concat(&[reg, obj, cls], height * width, Value::float(shape))
    }

    fn times_plus_five(&mut self, classes: u32) -> Flow<usize> {
        match classes.checked_add(5) {
            Some(channels) => Ok(channels as usize),
            None => {
                let diagnostic = self
                    .complain(Code::SizeOverflow, "num_classes", 12)
                    .found(Say::Integer(classes.into()))
                    .expected(Say::AtMost((u32::MAX - 5).into()));
                self.fail(diagnostic)
            }
        }
    }

    /// Joins values seen as `outer` rows along their last axis.
    fn concat(&mut self, parts: &[ValueId], outer: usize, output: Value) -> Flow<ValueId> {
        let mut inner = [0; MAX_INPUTS];
        for (slot, &part) in inner.iter_mut().zip(parts) {
            *slot = self.graph.value(part).shape.elements() / outer;
        }
        let op = Op::Concat(Concat { outer, inner });
        let pushed = self.graph.push(op, parts, None, output, "concat");
        self.stored(pushed)
    }

    pub(super) fn yolox_pafpn(&mut self, layer: &YoloxPafpnMultiscale) -> Flow {
        self.channels("c5_channels", layer.c5_channels, 12)?;
        let head =
            Head { hidden: layer.hidden_dim, classes: layer.num_classes, convs: layer.num_convs };
        self.head_fields(&head, 16, 20)?;
        let (height, width, _) = self.map(self.value);
        let c5 = self.value;
        let c3 = self.tap(0, [4 * height, 4 * width, layer.c3_channels as usize], 4)?;
        let c4 = self.tap(1, [2 * height, 2 * width, layer.c4_channels as usize], 8)?;

        // The catalog has the lateral convolutions as 3, 4, 5. They run as 5, 4, 3, each after what is
        // added to it, so that the sums fuse.
        let hidden = head.hidden;
        let first = self.record.first_pair;
        self.seek(first + 2);
        let p5 = self.pointwise(c5, hidden, Activation::None, "lat5")?;
        self.graph.pin(p5);
        let up = self.upsample(p5)?;
        self.seek(first + 1);
        let p4 = self.pointwise(c4, hidden, Activation::None, "lat4")?;
        let p4 = self.add_float(p4, up)?;
        self.seek(first + 3);
        let p4 = self.refine(p4, 1, ["td_p4_dw", "td_p4_pw"])?;
        self.graph.pin(p4);
        let up = self.upsample(p4)?;
        self.seek(first);
        let p3 = self.pointwise(c3, hidden, Activation::None, "lat3")?;
        let p3 = self.add_float(p3, up)?;
        self.seek(first + 5);
        let p3 = self.refine(p3, 1, ["td_p3_dw", "td_p3_pw"])?;
        self.graph.pin(p3);
        let n4 = self.refine(p3, 2, ["bu_n4_dw", "bu_n4_pw"])?;
        let n4 = self.add_float(n4, p4)?;
        self.graph.pin(n4);
        let n5 = self.refine(n4, 2, ["bu_n5_dw", "bu_n5_pw"])?;
        let n5 = self.add_float(n5, p5)?;
        let small = self.yolox_head(p3, &head)?;
        let medium = self.yolox_head(n4, &head)?;
        let large = self.yolox_head(n5, &head)?;
        let parts = [small, medium, large];
        let total =
            parts.iter().map(|&part| self.graph.value(part).shape.elements()).sum::<usize>();
        let shape = self.output_shape(&[1, 1, total])?;
        let value = self.concat(&parts, 1, Value::float(shape))?;
        self.advance(value);
        Ok(())
    }

    /// The map kept under a tap, which must have exactly this shape.
    fn tap(&mut self, id: usize, expected: [usize; 3], at: u64) -> Flow<ValueId> {
        const FIELDS: [&str; 2] = ["feature_tap 0", "feature_tap 1"];
        let found = self.taps[id];
        if let Some(value) = found
            && self.map(value) == (expected[0], expected[1], expected[2])
        {
            return Ok(value);
        }
        let said = match found {
            Some(value) => Say::shape(self.graph.value(value).shape.dims()),
            None => Say::Text("missing"),
        };
        let expected = expected.map(|dim| u32::try_from(dim).unwrap_or(u32::MAX));
        let diagnostic =
            self.complain(Code::Taps, FIELDS[id], at).found(said).expected(Say::shape(&expected));
        self.fail(diagnostic)
    }

    fn upsample(&mut self, value: ValueId) -> Flow<ValueId> {
        let (in_h, in_w, channels) = self.map(value);
        let shape = self.output_shape(&[2 * in_h, 2 * in_w, channels])?;
        let op = Op::Upsample2x(Upsample2x { in_h, in_w, channels });
        let pushed = self.graph.push(op, &[value], None, Value::float(shape), "upsample");
        self.stored(pushed)
    }

    /// `SiLU(pw(dw(x)))`: 3×3 depthwise with this stride, then 1×1, no activation between.
    fn refine(&mut self, value: ValueId, stride: u32, parts: [&'static str; 2]) -> Flow<ValueId> {
        let channels = self.map(value).2 as u32;
        let value = self.depthwise(value, square(3, stride, 1), Activation::None, parts[0])?;
        self.pointwise(value, channels, Activation::Silu, parts[1])
    }
}
