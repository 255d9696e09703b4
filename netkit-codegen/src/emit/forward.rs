//! One call for each step of the program: the same match that the runtime makes.

use super::layout::Memory;
use super::names::Names;
use super::needs::Tensors;
use super::quantized::call_s8;
use super::{Emit, float, number, operator};
use netkit_core::op::Op;
use netkit_core::program::Step;
use proc_macro2::TokenStream;
use quote::quote;

/// What a step is printed as.
pub(super) struct StepCode {
    /// Constants and statics.
    pub(super) items: TokenStream,
    /// The statements that make the step.
    pub(super) statements: TokenStream,
    /// The constant that says how many bytes of scratch it needs, if it may need any.
    pub(super) scratch: Option<TokenStream>,
}

impl Emit<'_, '_, '_> {
    /// Prints one step.
    pub(super) fn step(&self, step: &Step<'_, '_>, tensors: &mut Tensors) -> StepCode {
        let names = Names::of(step.index);
        let needs = self.needs(step, &names, tensors);
        let Names { operator, pool, scratch, .. } = &names;
        let attributes =
            needs.attributes.map(|(kind, value)| quote!(const #operator: nk::#kind = #value;));
        let pool = step
            .pool()
            .map(operator::pool2d)
            .map(|value| quote!(const #pool: nk::Pool2d = #value;));
        let constants = needs.constants;
        let bytes = needs.scratch.map(|bytes| quote!(const #scratch: nk::usize = #bytes;));
        let scratch = bytes.is_some().then(|| quote!(#scratch));
        let memory = self.memory(step.inputs(), step.output(), scratch.as_ref());
        let views = &memory.views;
        let call = match self.input.batch {
            Some(_) => self.for_each_sample(step, &names, &memory),
            None => {
                let call = self.call(step, &names, &memory);
                quote!(#call;)
            }
        };
        let observation = observation(step);
        StepCode {
            items: quote!(#attributes #pool #constants #bytes),
            statements: quote!(#observation #views #call),
            scratch,
        }
    }

    /// The call that makes a step.
    pub(super) fn call(&self, step: &Step<'_, '_>, names: &Names, memory: &Memory) -> TokenStream {
        if step.is_quantized() {
            return call_s8(step, names, memory);
        }
        let call = call_f32(step, names, memory);
        if !self.is_winograd(step) {
            return call;
        }
        let winograd = call_winograd(step, names, memory);
        quote!(nk::layout! { panels { #winograd } file { #call } })
    }
}

/// Tells the observer which step comes.
fn observation(step: &Step<'_, '_>) -> TokenStream {
    let (index, layer) = (number(step.index), number(step.node.layer.into()));
    let (operator, part) = (step.node.op.name(), step.node.part);
    quote!(observe(nk::Step::new(#index, #layer, #operator, #part));)
}

/// A convolution in Winograd's form.
fn call_winograd(step: &Step<'_, '_>, names: &Names, memory: &Memory) -> TokenStream {
    let Names { operator, filter, bias, .. } = names;
    let Memory { inputs, output: y, .. } = memory;
    let x = &inputs[0];
    let activation = operator::activation(step.activation());
    let Op::Conv2d { conv, residual, .. } = &step.node.op else { unreachable!() };
    let (rows, residual) = (rows(conv.window.out_h), addend(*residual, inputs));
    quote!(kernels.conv2d_winograd_f32(
        &#operator, #x, #filter, #bias, #residual, #activation, #rows, #y, scratch
    ))
}

/// The second input, if there is one to add.
fn addend(residual: bool, inputs: &[TokenStream]) -> TokenStream {
    if !residual {
        return quote!(nk::None);
    }
    let addend = &inputs[1];
    quote!(nk::Some(#addend))
}

fn call_f32(step: &Step<'_, '_>, names: &Names, memory: &Memory) -> TokenStream {
    let Names { operator, pool, filter, weights, bias, .. } = names;
    let Memory { inputs, output: y, .. } = memory;
    let x = &inputs[0];
    let activation = operator::activation(step.activation());
    match &step.node.op {
        Op::Conv2d { pool: Some(of), .. } => {
            let rows = rows(of.window.out_h);
            quote!(kernels.conv2d_max_pool2d_f32(
                &#operator, &#pool, #x, #filter, #bias, #activation, #rows, #y, scratch
            ))
        }
        Op::Conv2d { conv, residual, pool: None, .. } => {
            let rows = rows(conv.window.out_h);
            let residual = addend(*residual, inputs);
            quote!(kernels.conv2d_f32(
                &#operator, #x, #filter, #bias, #residual, #activation, #rows, #y, scratch
            ))
        }
        Op::DepthwiseConv2d { pool: Some(of), .. } => {
            let rows = rows(of.window.out_h);
            quote!(kernels.depthwise_conv2d_max_pool2d_f32(
                &#operator, &#pool, #x, #filter, #bias, #activation, #rows, #y, scratch
            ))
        }
        Op::DepthwiseConv2d { conv, pool: None, .. } => {
            let rows = rows(conv.window.out_h);
            quote!(kernels.depthwise_conv2d_f32(
                &#operator, #x, #filter, #bias, #activation, #rows, #y, scratch
            ))
        }
        Op::Dense { .. } => {
            quote!(kernels.dense_f32(&#operator, #x, #filter, #bias, #activation, #y))
        }
        Op::MaxPool2d(pool) => {
            let rows = rows(pool.window.out_h);
            quote!(kernels.max_pool2d_f32(&#operator, #x, #rows, #y))
        }
        Op::AveragePool2d(pool) => {
            let rows = rows(pool.window.out_h);
            quote!(kernels.average_pool2d_f32(&#operator, #x, #rows, #y))
        }
        Op::BatchNorm(..) => quote!(kernels.batch_norm_f32(
            &#operator, #x, #weights, #bias, #activation, #y
        )),
        Op::LayerNorm { epsilon, .. } => {
            let epsilon = float(*epsilon);
            quote!(kernels.layer_norm_f32(
                &#operator, #epsilon, #x, #weights, #bias, #y
            ))
        }
        Op::GlobalResponseNorm { epsilon, .. } => {
            let epsilon = float(*epsilon);
            quote!(kernels.global_response_norm_f32(
                &#operator, #epsilon, #x, #weights, #bias, #y, scratch
            ))
        }
        Op::Softmax { .. } => quote!(kernels.softmax_f32(#x, #y)),
        Op::Activation { .. } => quote!(kernels.activation_f32(#activation, #x, #y)),
        Op::Add { .. } => {
            let addend = &inputs[1];
            quote!(kernels.add_f32(#x, #addend, #activation, #y))
        }
        Op::Upsample2x(_) | Op::Concat(_) | Op::Copy { .. } => move_data(step, names, memory),
    }
}

/// Operators that are the same for every element type.
pub(super) fn move_data(step: &Step<'_, '_>, names: &Names, memory: &Memory) -> TokenStream {
    let Names { operator, .. } = names;
    let Memory { inputs, output: y, .. } = memory;
    let x = &inputs[0];
    match &step.node.op {
        Op::Upsample2x(upsample) => {
            let rows = rows(2 * upsample.in_h);
            quote!(nk::upsample2x(&#operator, #x, #rows, #y))
        }
        Op::Concat(_) => quote!(nk::concat_tensors(&#operator, &[#(#inputs),*], #y)),
        _ => quote!(nk::copy(#x, #y)),
    }
}

pub(super) fn rows(height: usize) -> TokenStream {
    let height = number(height);
    quote!(0..#height)
}
