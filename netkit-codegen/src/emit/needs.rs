//! What a step needs besides its inputs: attributes, tensors, scratch.

use super::names::Names;
use super::{Emit, operator, weights};
use netkit_core::graph::Weights;
use netkit_core::op::Op;
use netkit_core::pack;
use netkit_core::program::Step;
use proc_macro2::TokenStream;
use quote::quote;

/// Parts of the constants of one step.
#[derive(Default)]
pub(super) struct Needs {
    /// Type and value of its attributes.
    pub(super) attributes: Option<(TokenStream, TokenStream)>,
    /// Items that hold its tensors.
    pub(super) tensors: TokenStream,
    /// Bytes of scratch, an expression that the target's compiler evaluates.
    pub(super) scratch: Option<TokenStream>,
}

impl Emit<'_, '_, '_> {
    pub(super) fn needs(&self, step: &Step<'_, '_>, names: &Names) -> Needs {
        if step.is_quantized() { self.needs_s8(step, names) } else { self.needs_f32(step, names) }
    }

    fn needs_f32(&self, step: &Step<'_, '_>, names: &Names) -> Needs {
        let Names { operator, filter, .. } = names;
        let attributes = attributes(&step.node.op);
        let Some(tensors) = &step.node.weights else {
            return Needs { attributes, ..Needs::default() };
        };
        let (tensors, scratch) = match &step.node.op {
            Op::Conv2d { conv, .. } => {
                let mut packed = vec![0.0; pack::packed_conv2d_f32_len(conv)];
                let (values, scale) = self.filter_and_scale(tensors);
                pack::pack_conv2d_f32(conv, &values, scale.as_deref(), &mut packed)
                    .expect("checked graphs have filters of the right size");
                let scratch = quote!(nk::workspace::conv2d_f32(&#operator, #filter.form()));
                (self.packed_filter(names, tensors, &packed), Some(scratch))
            }
            Op::DepthwiseConv2d { conv, .. } => {
                let mut packed = vec![0.0; pack::packed_depthwise_conv2d_f32_len(conv)];
                let (values, scale) = self.filter_and_scale(tensors);
                let channels = 0..conv.channels * conv.multiplier;
                let taps = conv.window.taps();
                pack::pack_depthwise_conv2d_f32(
                    taps,
                    channels,
                    &values,
                    scale.as_deref(),
                    &mut packed,
                )
                .expect("checked graphs have filters of the right size");
                let scratch =
                    quote!(nk::workspace::depthwise_conv2d_f32(&#operator, #filter.form()));
                (self.packed_filter(names, tensors, &packed), Some(scratch))
            }
            Op::Dense { .. } => {
                let in_file_order = file_filter(names, tensors);
                let bias = self.bias(&names.bias, tensors);
                (quote!(#in_file_order #bias), None)
            }
            op => {
                let weights = weights::part(&names.weights, &tensors.filter);
                let bias = weights::part(&names.bias, &tensors.bias);
                let scratch = matches!(op, Op::GlobalResponseNorm { .. })
                    .then(|| quote!(nk::workspace::global_response_norm_f32(&#operator)));
                (quote!(#weights #bias), scratch)
            }
        };
        Needs { attributes, tensors, scratch }
    }

    /// The filter as it is in the file, and the factors of a folded batch norm.
    fn filter_and_scale(&self, tensors: &Weights) -> (Vec<f32>, Option<Vec<f32>>) {
        let scale = tensors.fold.map(|fold| self.floats(&fold.scale));
        (self.floats(&tensors.filter), scale)
    }

    /// A float filter and its bias, the filter in the layout that the target's kernels read.
    fn packed_filter(&self, names: &Names, tensors: &Weights, packed: &[f32]) -> TokenStream {
        let Names { filter, weights, bias, .. } = names;
        let in_panels = weights::literal(weights, &weights::float_bytes(packed));
        let in_file_order = file_filter(names, tensors);
        let bias = self.bias(bias, tensors);
        quote! {
            nk::layout! {
                panels {
                    #in_panels
                    const #filter: nk::Filter<'static> = nk::Filter::Packed(#weights.as_f32());
                }
                file {
                    #in_file_order
                }
            }
            #bias
        }
    }
}

/// A float filter in file order, with the factors of a folded batch norm.
fn file_filter(names: &Names, tensors: &Weights) -> TokenStream {
    let Names { filter, weights, scale, .. } = names;
    let values = weights::part(weights, &tensors.filter);
    let (factors, factors_value) = match &tensors.fold {
        Some(fold) => (weights::part(scale, &fold.scale), quote!(nk::Some(#scale.as_f32()))),
        None => (TokenStream::new(), quote!(nk::None)),
    };
    quote! {
        #values
        #factors
        const #filter: nk::Filter<'static> =
            nk::Filter::File { values: #weights.as_f32(), scale: #factors_value };
    }
}

/// Type and value of an operator's attributes.
pub(super) fn attributes(op: &Op) -> Option<(TokenStream, TokenStream)> {
    Some(match op {
        Op::Dense { dense, .. } => (quote!(Dense), operator::dense(dense)),
        Op::Conv2d { conv, .. } => (quote!(Conv2d), operator::conv2d(conv)),
        Op::DepthwiseConv2d { conv, .. } => {
            (quote!(DepthwiseConv2d), operator::depthwise_conv2d(conv))
        }
        Op::MaxPool2d(pool) | Op::AveragePool2d(pool) => (quote!(Pool2d), operator::pool2d(pool)),
        Op::BatchNorm(shape, _)
        | Op::LayerNorm { shape, .. }
        | Op::GlobalResponseNorm { shape, .. } => {
            (quote!(PerChannel), operator::per_channel(shape))
        }
        Op::Upsample2x(upsample) => (quote!(Upsample2x), operator::upsample2x(upsample)),
        Op::Concat(concat) => (quote!(Concat), operator::concat(concat)),
        Op::Softmax { .. } | Op::Activation { .. } | Op::Add { .. } | Op::Copy { .. } => {
            return None;
        }
    })
}
