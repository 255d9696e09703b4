//! The option `batch`: several inputs, called samples here, computed at once.
//!
//! Every value of the plan becomes as many of itself, behind each other, and every step is made for all samples before the
//! next one: dense layers in one call, as rows that share their weights, everything else sample by sample. How many there
//! are, at most the number said, is known at run time.

use super::forward::StepCode;
use super::layout::{Memory, region};
use super::names::Names;
use super::{Emit, number};
use netkit_core::op::Op;
use netkit_core::plan::CACHE_LINE;
use netkit_core::program::Step;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

impl Emit<'_, '_, '_> {
    /// The same with memory for as many samples.
    pub(super) fn for_batches_of(self, samples: usize) -> Self {
        let activation_bytes = self.activation_bytes * samples;
        if !self.program.is_quantized() {
            return Self { activation_bytes, ..self };
        }
        let input = self.program.input();
        // The quantized inputs of float ones may be more than the stack holds.
        let (input_room, activation_bytes) = match self.input_room {
            Some(offset) => (offset * samples, activation_bytes),
            None => {
                let end = activation_bytes + input.bytes() * samples;
                (activation_bytes, end.next_multiple_of(CACHE_LINE))
            }
        };
        Self { input_room: Some(input_room), activation_bytes, ..self }
    }

    /// Samples that there is memory for: 1 where there is no batch.
    pub(super) fn samples(&self) -> usize {
        self.input.batch.unwrap_or(1)
    }

    /// The attributes of a dense layer of all of a batch's samples, where there are batches.
    pub(super) fn dense_of_all(&self, operator: &Ident) -> Option<TokenStream> {
        let batch = number(self.input.batch?);
        Some(dense_of(&quote!(#batch), operator))
    }

    /// The argument that says how many samples there are, where [`run`](Self::run_batch) takes one.
    pub(super) fn one_sample(&self) -> Option<TokenStream> {
        self.input.batch.map(|_| quote!(1,))
    }

    /// A step for as many samples as `count` says.
    pub(super) fn for_each_sample(
        &self,
        step: &Step<'_, '_>,
        names: &Names,
        memory: &Memory,
    ) -> TokenStream {
        let is_dense = matches!(step.node.op, Op::Dense { .. });
        // Where the sample lies in a value of so many elements, and how long it is: all of them are one to a dense layer.
        let place = |elements: usize| {
            let len = number(elements);
            if is_dense { quote!(0, count * #len) } else { quote!(sample, #len) }
        };
        let names_of_inputs: Vec<Ident> =
            (0..memory.inputs.len()).map(|index| format_ident!("x{index}")).collect();
        let inputs = step.inputs().zip(&memory.inputs).zip(&names_of_inputs);
        let inputs = inputs.map(|((operand, all), name)| {
            let place = place(operand.value.shape.elements());
            quote!(let #name = nk::sample(#all, #place);)
        });
        let (all, place) = (&memory.output, place(step.output().value.shape.elements()));
        let views = quote!(#(#inputs)* let y = nk::sample_mut(#all, #place););
        let memory = Memory {
            inputs: names_of_inputs.iter().map(|name| quote!(#name)).collect(),
            output: quote!(y),
            views: TokenStream::new(),
        };
        if !is_dense {
            let call = self.call(step, names, &memory);
            return quote!(for sample in 0..count { #views #call; });
        }
        let rows = dense_of(&quote!(count), &names.operator);
        let dense = Names { operator: format_ident!("dense"), ..names.clone() };
        let call = self.call(step, &dense, &memory);
        quote!({ let dense = #rows; #views #call; })
    }

    /// The function that every way into the model ends in.
    pub(super) fn run_batch(&self, steps: &[StepCode]) -> TokenStream {
        let name = self.inner_name();
        let body = self.body(steps);
        let (element, input) = if self.program.is_quantized() {
            (quote!(nk::i8), self.quantized_input())
        } else {
            (quote!(nk::f32), quote!(&[nk::f32]))
        };
        quote! {
            fn run(
                arena: &mut nk::Arena<{ #name::ARENA_BYTES }>,
                input: #input,
                output: &mut [#element],
                count: nk::usize,
                mut observe: impl nk::FnMut(nk::Step),
            ) {
                #body
            }
        }
    }

    /// What computes several samples at once.
    pub(super) fn forward_batch(&self, batch: usize) -> TokenStream {
        let batch = number(batch);
        let floats = quote!(nk::f32);
        if !self.program.is_quantized() {
            let zero = quote!(0.0);
            let run = quote!(run(arena, input, output, count, nk::unobserved));
            return self.ways_in(&batch, &floats, &zero, "forward_batch", &run);
        }
        let (bytes, zero) = (quote!(nk::i8), quote!(0));
        let (input, through_floats) = self.batch_through_floats();
        let run = quote!(run(arena, #input, output, count, nk::unobserved));
        let quantized = self.ways_in(&batch, &bytes, &zero, "forward_i8_batch", &run);
        let zero = quote!(0.0);
        let real = self.ways_in(&batch, &floats, &zero, "forward_batch", &through_floats);
        quote!(#quantized #real)
    }

    /// How `run` is given quantized inputs, and how it is used for float ones.
    fn batch_through_floats(&self) -> (TokenStream, TokenStream) {
        let offset = self.input_room.expect("an int8 model for batches has room for its inputs");
        let len = number(self.program.input().shape.elements() * self.samples());
        let room = region(quote!(nk::i8), offset, quote!(#len));
        let run = quote!({
            let ((), (room,)) = arena.views::<(), (#room,)>();
            nk::quantize(Self::INPUT_QUANT, input, room);
            run(arena, nk::None, nk::first_bytes_of(output), count, nk::unobserved);
            nk::dequantize_all_in_place(Self::OUTPUT_QUANT, output);
        });
        (quote!(nk::Some(input)), run)
    }

    /// A function that returns the outputs and one that takes their place, of arrays of `element`.
    fn ways_in(
        &self,
        batch: &Literal,
        element: &TokenStream,
        zero: &TokenStream,
        name: &str,
        run: &TokenStream,
    ) -> TokenStream {
        let (name, name_into) = (format_ident!("{name}"), format_ident!("{name}_into"));
        let input_len = number(self.program.input().shape.elements());
        let output_len = number(self.program.output().shape.elements());
        quote! {
            /// Computes the outputs for a batch of inputs: the same bits as one by one, in less time where dense layers take
            /// much of it.
            #[must_use]
            pub fn #name(
                &mut self,
                input: &[[#element; #input_len]; #batch],
            ) -> [[#element; #output_len]; #batch] {
                let mut output = [[#zero; #output_len]; #batch];
                self.#name_into(input, &mut output);
                output
            }

            /// Computes the output for each input, any number of them, `BATCH` at once; of inputs and outputs, as many as
            /// there are of both.
            pub fn #name_into(
                &mut self,
                input: &[[#element; #input_len]],
                output: &mut [[#element; #output_len]],
            ) {
                let Self { arena } = self;
                nk::in_batches::<_, #batch, #input_len, #output_len>(
                    input,
                    output,
                    |input, output, count| #run,
                );
            }
        }
    }

    pub(super) fn batch_trait(&self) -> TokenStream {
        let name = self.inner_name();
        quote! {
            impl nk::BatchModel for #name {
                const BATCH: nk::usize = Self::BATCH;

                fn forward_batch_into(
                    &mut self,
                    input: &[<Self as nk::Model>::Input],
                    output: &mut [<Self as nk::Model>::Output],
                ) {
                    self.forward_batch_into(input, output);
                }
            }
        }
    }
}

/// The attributes of a dense layer of so many samples.
fn dense_of(samples: &TokenStream, operator: &Ident) -> TokenStream {
    quote!(nk::Dense { rows: #samples * #operator.rows, ..#operator })
}
