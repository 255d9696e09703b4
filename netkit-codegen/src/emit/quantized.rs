//! What is different in int8 models: the calls and their constants, and the two ways in, quantized and float.

use super::forward::{StepCode, move_data, rows};
use super::layout::{Memory, region};
use super::names::Names;
use super::needs::{Needs, Tensors, attributes};
use super::{Emit, float, number, weights};
use netkit_core::graph::Weights;
use netkit_core::op::{Dense, Op};
use netkit_core::pack;
use netkit_core::program::Step;
use netkit_core::quant::{AddStage, Multiplier, OutputStage, Quant, SoftmaxStage};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

impl Emit<'_, '_, '_> {
    pub(super) fn needs_s8(
        &self,
        step: &Step<'_, '_>,
        names: &Names,
        tensors: &mut Tensors,
    ) -> Needs {
        let Names { filter, bias, multipliers, .. } = names;
        let op = &step.node.op;
        let needs = Needs { attributes: attributes(op), ..Needs::default() };
        let Some(constants) = &step.node.weights else { return needs };
        let values = self.integers(&constants.filter);
        let packed = match op {
            Op::Conv2d { conv, .. } => {
                let mut packed = vec![0; pack::packed_conv2d_s8_len(conv)];
                let done = pack::pack_conv2d_s8(conv, &values, &mut packed);
                done.map(|()| packed)
            }
            Op::DepthwiseConv2d { conv, .. } => {
                let mut packed = vec![0; pack::packed_depthwise_conv2d_s8_len(conv)];
                let done = pack::pack_depthwise_conv2d_s8(conv, &values, &mut packed);
                done.map(|()| packed)
            }
            Op::Dense { dense, .. } => {
                let mut packed = vec![0; pack::packed_dense_s8_len(dense)];
                let done = pack::pack_dense_s8(dense, &values, &mut packed);
                done.map(|()| packed)
            }
            // Nothing else has weights in an int8 model.
            _ => return needs,
        };
        let packed = packed.expect("checked graphs have filters of the right size");
        filter_forms(filter, constants, &packed, tensors);
        let biases = tensors.shared.tensor(&constants.bias);
        let factors: Vec<u8> = (0..constants.bias.elements as usize)
            .flat_map(|channel| multiplier_bytes(self.program.multiplier(step.node, channel)))
            .collect();
        let factors = weights::literal(&factors);
        let row_sums = match op {
            Op::Dense { dense, .. } => Some(self.row_sums(step, dense, constants, &values, names)),
            _ => None,
        };
        Needs {
            constants: quote! {
                const #bias: &[nk::i32] = #biases;
                const #multipliers: &[nk::Multiplier] = #factors.as_multipliers();
                #row_sums
            },
            scratch: Some(self.workspace(step, names)),
            ..needs
        }
    }

    /// The row sums of a dense layer, a table where kernels read them.
    fn row_sums(
        &self,
        step: &Step<'_, '_>,
        dense: &Dense,
        constants: &Weights,
        values: &[i8],
        names: &Names,
    ) -> TokenStream {
        let Names { row_sums, .. } = names;
        let (bias, _) = constants.bias.bytes(self.program.source()).as_chunks();
        let bias: Vec<i32> = bias.iter().map(|&chunk| i32::from_le_bytes(chunk)).collect();
        let mut sums = vec![0; bias.len()];
        let zero_point = step.input().value.quant.zero_point;
        pack::row_sums(dense, values, &bias, zero_point, &mut sums)
            .expect("checked graphs have filters of the right size");
        let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let table = weights::literal(&bytes);
        quote! {
            nk::row_sums! {
                kept { const #row_sums: &[nk::i32] = #table.as_i32(); }
                left { const #row_sums: &[nk::i32] = &[]; }
            }
        }
    }

    /// The function that both ways into an int8 model end in.
    pub(super) fn run(&self, steps: &[StepCode]) -> TokenStream {
        let name = self.inner_name();
        let body = self.body(steps);
        let input = self.quantized_input();
        quote! {
            fn run(
                arena: &mut nk::Arena<{ #name::ARENA_BYTES }>,
                input: #input,
                output: &mut [nk::i8],
                mut observe: impl nk::FnMut(nk::Step),
            ) {
                #body
            }
        }
    }

    /// The type of what the first steps read: nothing where they find it in the arena.
    pub(super) fn quantized_input(&self) -> TokenStream {
        match self.input_room {
            Some(_) => quote!(nk::Option<&[nk::i8]>),
            None => quote!(&[nk::i8]),
        }
    }

    /// Both ways into an int8 model.
    pub(super) fn forward_i8(&self) -> TokenStream {
        let input_len = number(self.program.input().shape.elements());
        let output_len = number(self.program.output().shape.elements());
        let input_quant = quant(self.program.input().quant);
        let output_quant = quant(self.program.output().quant);
        let direct = match self.input_room {
            Some(_) => quote!(nk::Some(input)),
            None => quote!(input),
        };
        let through_floats = self.through_floats();
        let one = self.one_sample();
        quote! {
            /// How the input's values map to real numbers.
            pub const INPUT_QUANT: nk::Quant = #input_quant;
            /// How the output's values map to real numbers.
            pub const OUTPUT_QUANT: nk::Quant = #output_quant;

            /// Computes the output for an input, both flat with the last dimension running fastest.
            #[must_use]
            pub fn forward_i8(&mut self, input: &[nk::i8; #input_len]) -> [nk::i8; #output_len] {
                let mut output = [0; #output_len];
                self.forward_i8_into(input, &mut output);
                output
            }

            /// Computes the output for an input, both flat with the last dimension running fastest.
            pub fn forward_i8_into(
                &mut self,
                input: &[nk::i8; #input_len],
                output: &mut [nk::i8; #output_len],
            ) {
                self.forward_i8_observed(input, output, |_| ());
            }

            /// Computes the output for an input, and tells `observe` before each step which one it is.
            pub fn forward_i8_observed(
                &mut self,
                input: &[nk::i8; #input_len],
                output: &mut [nk::i8; #output_len],
                observe: impl nk::FnMut(nk::Step),
            ) {
                run(&mut self.arena, #direct, output, #one observe);
            }

            /// Computes the output for an input of real numbers, which is quantized on the way in as the output is
            /// dequantized on the way out.
            #[must_use]
            pub fn forward(&mut self, input: &[nk::f32; #input_len]) -> [nk::f32; #output_len] {
                let mut output = [0.0; #output_len];
                self.forward_into(input, &mut output);
                output
            }

            /// Computes the output for an input of real numbers, which is quantized on the way in as the output is
            /// dequantized on the way out.
            pub fn forward_into(
                &mut self,
                input: &[nk::f32; #input_len],
                output: &mut [nk::f32; #output_len],
            ) {
                self.forward_observed(input, output, |_| ());
            }

            /// Computes the output for an input of real numbers as `forward_into` does, and tells `observe` before each
            /// step which one it is.
            pub fn forward_observed(
                &mut self,
                input: &[nk::f32; #input_len],
                output: &mut [nk::f32; #output_len],
                observe: impl nk::FnMut(nk::Step),
            ) {
                #through_floats
                nk::dequantize_in_place(Self::OUTPUT_QUANT, output);
            }
        }
    }

    /// Quantizes the input into the arena where it has room, or onto the stack, and computes the quantized output in
    /// the memory of the float one.
    fn through_floats(&self) -> TokenStream {
        let len = number(self.program.input().shape.elements());
        let one = self.one_sample();
        match self.input_room {
            Some(offset) => {
                let room = region(quote!(nk::i8), offset, quote!(#len));
                quote! {
                    let Self { arena } = self;
                    let ((), (room,)) = arena.views::<(), (#room,)>();
                    nk::quantize(Self::INPUT_QUANT, input, room);
                    run(arena, nk::None, nk::first_bytes(output), #one observe);
                }
            }
            // Never with the option `batch`, which makes room.
            None => quote! {
                let mut quantized = [0; #len];
                nk::quantize(Self::INPUT_QUANT, input, &mut quantized);
                run(&mut self.arena, &quantized, nk::first_bytes(output), observe);
            },
        }
    }

    pub(super) fn quantized_trait(&self) -> TokenStream {
        let name = self.inner_name();
        let input_len = number(self.program.input().shape.elements());
        let output_len = number(self.program.output().shape.elements());
        quote! {
            impl nk::QuantizedModel for #name {
                type QuantizedInput = [nk::i8; #input_len];
                type QuantizedOutput = [nk::i8; #output_len];

                const INPUT_QUANT: nk::Quant = Self::INPUT_QUANT;
                const OUTPUT_QUANT: nk::Quant = Self::OUTPUT_QUANT;

                fn forward_i8(&mut self, input: &Self::QuantizedInput) -> Self::QuantizedOutput {
                    self.forward_i8(input)
                }

                fn forward_i8_into(
                    &mut self,
                    input: &Self::QuantizedInput,
                    output: &mut Self::QuantizedOutput,
                ) {
                    self.forward_i8_into(input, output);
                }

                fn forward_i8_observed(
                    &mut self,
                    input: &Self::QuantizedInput,
                    output: &mut Self::QuantizedOutput,
                    observe: impl nk::FnMut(nk::Step),
                ) {
                    self.forward_i8_observed(input, output, observe);
                }
            }
        }
    }
}

pub(super) fn call_s8(step: &Step<'_, '_>, names: &Names, memory: &Memory) -> TokenStream {
    let Names { operator, pool, filter, bias, multipliers, row_sums, .. } = names;
    let Memory { inputs, output: y, .. } = memory;
    let x = &inputs[0];
    let zero_point = Literal::i32_unsuffixed(step.input().value.quant.zero_point);
    // `None` belongs to activations that checked int8 graphs do not hold.
    let stage = step.output_stage().map(output_stage);
    match &step.node.op {
        Op::Conv2d { pool: Some(of), .. } => {
            let rows = rows(of.window.out_h);
            quote!(kernels.conv2d_max_pool2d_s8(
                &#operator, &#pool, #x, #zero_point, #filter, #bias, #multipliers,
                #stage, #rows, #y, scratch
            ))
        }
        Op::Conv2d { conv, pool: None, .. } => {
            let rows = rows(conv.window.out_h);
            quote!(kernels.conv2d_s8(
                &#operator, #x, #zero_point, #filter, #bias, #multipliers,
                #stage, #rows, #y, scratch
            ))
        }
        Op::DepthwiseConv2d { pool: Some(of), .. } => {
            let rows = rows(of.window.out_h);
            quote!(kernels.depthwise_conv2d_max_pool2d_s8(
                &#operator, &#pool, #x, #zero_point, #filter, #bias, #multipliers,
                #stage, #rows, #y, scratch
            ))
        }
        Op::DepthwiseConv2d { conv, pool: None, .. } => {
            let rows = rows(conv.window.out_h);
            quote!(kernels.depthwise_conv2d_s8(
                &#operator, #x, #zero_point, #filter, #bias, #multipliers,
                #stage, #rows, #y, scratch
            ))
        }
        Op::Dense { .. } => quote!(kernels.dense_s8_with_row_sums(
            &#operator, #x, #zero_point, #filter, #bias, #row_sums, #multipliers,
            #stage, #y, scratch
        )),
        Op::MaxPool2d(pool) => {
            let rows = rows(pool.window.out_h);
            quote!(kernels.max_pool2d_s8(&#operator, #x, #rows, #y))
        }
        Op::AveragePool2d(pool) => {
            let rows = rows(pool.window.out_h);
            quote!(kernels.average_pool2d_s8(&#operator, #x, #rows, #y))
        }
        Op::Add { .. } => {
            let stage = step.add_stage().map(add_stage);
            let addend = &inputs[1];
            quote!(kernels.add_s8(&#stage, #x, #addend, #y))
        }
        Op::Softmax { .. } => {
            let stage = softmax_stage(step.softmax_stage());
            quote!(kernels.softmax_s8(&#stage, #x, #y))
        }
        Op::Upsample2x(_) | Op::Concat(_) | Op::Copy { .. } => move_data(step, names, memory),
        Op::BatchNorm(..)
        | Op::LayerNorm { .. }
        | Op::GlobalResponseNorm { .. }
        | Op::Activation { .. } => unreachable!("checked int8 graphs hold no such operator"),
    }
}

/// An int8 filter in both forms.
fn filter_forms(filter: &Ident, constants: &Weights, packed: &[i8], tensors: &mut Tensors) {
    let bytes: Vec<u8> = packed.iter().map(|&weight| weight as u8).collect();
    let panels = weights::literal(&bytes);
    let in_file_order = tensors.in_file_order.tensor(&constants.filter);
    tensors.panels.extend(quote! {
        const #filter: nk::FilterS8<'static> = nk::FilterS8::Packed(#panels.as_i8());
    });
    tensors.file.extend(quote! {
        const #filter: nk::FilterS8<'static> = nk::FilterS8::File(#in_file_order);
    });
}

/// A factor as `Aligned::as_multipliers` reads it.
fn multiplier_bytes(factor: Multiplier) -> [u8; 8] {
    let [a, b, c, d] = factor.multiplier.to_le_bytes();
    let [e, f, g, h] = factor.shift.to_le_bytes();
    [a, b, c, d, e, f, g, h]
}

fn quant(quant: Quant) -> TokenStream {
    let scale = float(quant.scale);
    let zero_point = Literal::i32_unsuffixed(quant.zero_point);
    quote!(nk::Quant { scale: #scale, zero_point: #zero_point })
}

fn multiplier(factor: Multiplier) -> TokenStream {
    let multiplier = Literal::i32_unsuffixed(factor.multiplier);
    let shift = Literal::i32_unsuffixed(factor.shift);
    quote!(nk::Multiplier { multiplier: #multiplier, shift: #shift })
}

fn output_stage(stage: OutputStage) -> TokenStream {
    let zero_point = Literal::i32_unsuffixed(stage.zero_point);
    let low = Literal::i8_unsuffixed(stage.low);
    let high = Literal::i8_unsuffixed(stage.high);
    quote!(nk::OutputStage { zero_point: #zero_point, low: #low, high: #high })
}

fn add_stage(stage: AddStage) -> TokenStream {
    let zero_points = stage.input_zero_points.map(Literal::i32_unsuffixed);
    let inputs = stage.input_multipliers.map(multiplier);
    let sum = multiplier(stage.output_multiplier);
    let output = output_stage(stage.output);
    quote!(nk::AddStage {
        input_zero_points: [#(#zero_points),*],
        input_multipliers: [#(#inputs),*],
        output_multiplier: #sum,
        output: #output,
    })
}

fn softmax_stage(stage: SoftmaxStage) -> TokenStream {
    let factor = multiplier(stage.multiplier);
    let min_difference = Literal::i32_unsuffixed(stage.min_difference);
    quote!(nk::SoftmaxStage { multiplier: #factor, min_difference: #min_difference })
}
