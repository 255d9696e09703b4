//! What a step needs besides its inputs: attributes, tensors, scratch.

use super::names::Names;
use super::weights::{self, Parts};
use super::{Emit, operator};
use netkit_core::graph::Weights;
use netkit_core::op::Op;
use netkit_core::pack;
use netkit_core::program::Step;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Everything that the steps of a program read and that lies in statics.
///
/// Where kernels of one target want a filter in panels and those of another in file order, both forms are printed and
/// `nk::layout!` (`nk::layout_s8!`) keeps one.
pub(super) struct Tensors {
    /// Parts of the file that every target reads.
    pub(super) shared: Parts,
    /// Parts of the file that only targets read whose kernels want filters in file order.
    pub(super) in_file_order: Parts,
    /// Constants of filters in panels.
    pub(super) panels: TokenStream,
    /// Constants of filters in file order.
    pub(super) file: TokenStream,
}

impl Tensors {
    pub(super) fn new() -> Self {
        Self {
            shared: Parts::new("TENSORS"),
            in_file_order: Parts::new("FILTERS"),
            panels: TokenStream::new(),
            file: TokenStream::new(),
        }
    }
}

impl Emit<'_, '_, '_> {
    /// The statics, and the filters that depend on the target.
    pub(super) fn tensors(&self, tensors: &Tensors) -> TokenStream {
        let Tensors { shared, in_file_order, panels, file } = tensors;
        let filters = self.parts(in_file_order);
        let shared = self.parts(shared).unwrap_or_else(|| self.mention());
        let layout = if self.program.is_quantized() { quote!(layout_s8) } else { quote!(layout) };
        let by_layout = (!panels.is_empty()).then(|| {
            quote! {
                nk::#layout! {
                    panels { #panels }
                    file { #filters #file }
                }
            }
        });
        quote!(#shared #by_layout)
    }
}

/// Constants of one step.
#[derive(Default)]
pub(super) struct Needs {
    /// Type and value of its attributes.
    pub(super) attributes: Option<(TokenStream, TokenStream)>,
    /// Constants that are its tensors.
    pub(super) constants: TokenStream,
    /// Bytes of scratch, an expression that the target's compiler evaluates.
    pub(super) scratch: Option<TokenStream>,
}

impl Emit<'_, '_, '_> {
    pub(super) fn needs(&self, step: &Step<'_, '_>, names: &Names, tensors: &mut Tensors) -> Needs {
        if step.is_quantized() {
            self.needs_s8(step, names, tensors)
        } else {
            self.needs_f32(step, names, tensors)
        }
    }

    fn needs_f32(&self, step: &Step<'_, '_>, names: &Names, tensors: &mut Tensors) -> Needs {
        let Names { operator, weights, bias, .. } = names;
        let attributes = attributes(&step.node.op);
        let Some(constants) = &step.node.weights else {
            return Needs { attributes, ..Needs::default() };
        };
        let biases = self.bias(constants, &mut tensors.shared);
        let scratch = match &step.node.op {
            Op::Conv2d { conv, .. } if self.is_winograd(step) => {
                let mut packed = vec![0.0; pack::packed_conv2d_winograd_f32_len(conv)];
                let (values, scale) = self.filter_and_scale(constants);
                pack::pack_conv2d_winograd_f32(conv, &values, scale.as_deref(), &mut packed)
                    .expect("checked graphs have filters of the right size");
                let panels = weights::literal(&weights::float_bytes(&packed));
                let filter = &names.filter;
                tensors.panels.extend(quote!(const #filter: &[nk::f32] = #panels.as_f32();));
                let in_file_order = file_filter(names, constants, &mut tensors.in_file_order);
                tensors.file.extend(in_file_order);
                let directly = self.workspace(step, names);
                Some(quote!(nk::layout! {
                    panels { nk::workspace::conv2d_winograd_f32(&#operator) }
                    file { #directly }
                }))
            }
            Op::Conv2d { conv, .. } => {
                let mut packed = vec![0.0; pack::packed_conv2d_f32_len(conv)];
                let (values, scale) = self.filter_and_scale(constants);
                pack::pack_conv2d_f32(conv, &values, scale.as_deref(), &mut packed)
                    .expect("checked graphs have filters of the right size");
                filter_forms(names, constants, &packed, tensors);
                Some(self.workspace(step, names))
            }
            Op::DepthwiseConv2d { conv, .. } => {
                let mut packed = vec![0.0; pack::packed_depthwise_conv2d_f32_len(conv)];
                let (values, scale) = self.filter_and_scale(constants);
                let (taps, channels) = (conv.window.taps(), 0..conv.channels * conv.multiplier);
                let scale = scale.as_deref();
                pack::pack_depthwise_conv2d_f32(taps, channels, &values, scale, &mut packed)
                    .expect("checked graphs have filters of the right size");
                filter_forms(names, constants, &packed, tensors);
                Some(self.workspace(step, names))
            }
            Op::Dense { .. } => {
                let in_file_order = file_filter(names, constants, &mut tensors.shared);
                let constants = quote! {
                    #in_file_order
                    const #bias: &[nk::f32] = #biases;
                };
                return Needs { attributes, constants, scratch: None };
            }
            op => {
                let values = tensors.shared.tensor(&constants.filter);
                let constants = quote! {
                    const #weights: &[nk::f32] = #values;
                    const #bias: &[nk::f32] = #biases;
                };
                let scratch = matches!(op, Op::GlobalResponseNorm { .. })
                    .then(|| quote!(nk::workspace::global_response_norm_f32(&#operator)));
                return Needs { attributes, constants, scratch };
            }
        };
        Needs { attributes, constants: quote!(const #bias: &[nk::f32] = #biases;), scratch }
    }

    /// Bytes of scratch of a step that has a filter in either form, as the target's compiler evaluates it.
    pub(super) fn workspace(&self, step: &Step<'_, '_>, names: &Names) -> TokenStream {
        let Names { operator, pool, filter, .. } = names;
        let dtype = if step.is_quantized() { "s8" } else { "f32" };
        let door = format_ident!("{}_{dtype}", step.node.op.name());
        let pool = step.pool().map(|_| quote!(&#pool,));
        let one = quote!(nk::workspace::#door(&#operator, #pool (&#filter).form()));
        match (&step.node.op, self.dense_of_all(operator)) {
            // A backend may take few rows and not many, and want scratch of its own for them.
            (Op::Dense { .. }, Some(all)) => {
                quote!(nk::largest(&[#one, nk::workspace::#door(&#all, (&#filter).form())]))
            }
            _ => one,
        }
    }

    /// The filter as it is in the file, and the factors of a folded batch norm.
    fn filter_and_scale(&self, constants: &Weights) -> (Vec<f32>, Option<Vec<f32>>) {
        let scale = constants.fold.map(|fold| self.floats(&fold.scale));
        (self.floats(&constants.filter), scale)
    }
}

/// A float filter in both forms.
fn filter_forms(names: &Names, constants: &Weights, packed: &[f32], tensors: &mut Tensors) {
    let Names { filter, .. } = names;
    let panels = weights::literal(&weights::float_bytes(packed));
    tensors.panels.extend(quote! {
        const #filter: nk::Filter<'static> = nk::Filter::Packed(#panels.as_f32());
    });
    tensors.file.extend(file_filter(names, constants, &mut tensors.in_file_order));
}

/// A float filter in file order, with the factors of a folded batch norm.
fn file_filter(names: &Names, constants: &Weights, parts: &mut Parts) -> TokenStream {
    let Names { filter, .. } = names;
    let values = parts.tensor(&constants.filter);
    let scale = match &constants.fold {
        Some(fold) => {
            let factors = parts.tensor(&fold.scale);
            quote!(nk::Some(#factors))
        }
        None => quote!(nk::None),
    };
    quote! {
        const #filter: nk::Filter<'static> = nk::Filter::File { values: #values, scale: #scale };
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
