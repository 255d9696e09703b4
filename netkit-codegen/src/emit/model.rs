//! The public type: its structure, constants and functions.

use super::forward::StepCode;
use super::{Emit, number};
use netkit_core::op::Op;
use netkit_core::plan::CACHE_LINE;
use netkit_core::tensor::Shape;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

impl Emit<'_, '_, '_> {
    /// The type, which stands outside the `const _` block.
    pub(super) fn structure(&self) -> TokenStream {
        let Self { krate, input, name, .. } = self;
        let (attributes, visibility) = (&input.attributes, &input.visibility);
        let doc = self.documentation();
        let allowances = self.allowances();
        quote! {
            #(#attributes)*
            #allowances
            #[doc = #doc]
            #visibility struct #name {
                arena: #krate::private::Arena<{ #name::ARENA_BYTES }>,
            }
        }
    }

    fn documentation(&self) -> String {
        let program = self.program;
        let kind = if program.is_quantized() { "int8" } else { "float32" };
        format!(
            "A neural network compiled from `{}`: {} to {} in {kind}, {} layers, {} \
             multiply-accumulate operations.",
            self.path,
            program.input().shape,
            program.output_shape(),
            program.layers().len(),
            program.macs(),
        )
    }

    /// Everything that is implemented for the type.
    pub(super) fn implementations(&self, steps: &[StepCode]) -> TokenStream {
        let name = self.inner_name();
        let constants = self.constants(steps);
        let functions = self.functions(steps);
        let traits = self.traits();
        let run = match self.input.batch {
            Some(_) => Some(self.run_batch(steps)),
            None => self.program.is_quantized().then(|| self.run(steps)),
        };
        quote! {
            #run

            impl #name {
                #constants
                #functions
            }
            #traits
        }
    }

    fn constants(&self, steps: &[StepCode]) -> TokenStream {
        let program = self.program;
        let model = self.path.stem();
        let input_shape = shape(&program.input().shape);
        let output_shape = shape(&program.output_shape());
        let input_len = number(program.input().shape.elements());
        let output_len = number(program.output().shape.elements());
        let activations = number(self.activation_bytes);
        let scratch = steps.iter().filter_map(|step| step.scratch.as_ref());
        let weight_bytes: u64 = program.layers().iter().map(|layer| layer.weight_bytes).sum();
        let weight_bytes = Literal::u64_unsuffixed(weight_bytes);
        let macs = Literal::u64_unsuffixed(program.macs());
        let layers = program.layers().iter().map(|layer| {
            let name = layer.kind.to_string();
            let (input, output) = (shape(&layer.input), shape(&layer.output));
            let macs = Literal::u64_unsuffixed(layer.macs);
            let bytes = Literal::u64_unsuffixed(layer.weight_bytes);
            quote!(nk::Layer::new(#name, #input, #output, #macs, #bytes))
        });
        let cache_line = number(CACHE_LINE);
        let batch = self.input.batch.map(|batch| {
            let batch = number(batch);
            quote! {
                /// Inputs that are computed at once.
                pub const BATCH: nk::usize = #batch;
            }
        });
        quote! {
            /// Name of the model's file, without folder and extension.
            pub const NAME: &'static nk::str = #model;
            /// Shape of the input, outermost dimension first.
            pub const INPUT_SHAPE: &'static [nk::usize] = #input_shape;
            /// Shape of the output, outermost dimension first.
            pub const OUTPUT_SHAPE: &'static [nk::usize] = #output_shape;
            /// Number of input values.
            pub const INPUT_LEN: nk::usize = #input_len;
            /// Number of output values.
            pub const OUTPUT_LEN: nk::usize = #output_len;
            /// Bytes of memory the network computes in, kernels' scratch included: the size of this type.
            pub const ARENA_BYTES: nk::usize =
                (#activations + Self::SCRATCH_BYTES).next_multiple_of(#cache_line);
            /// Bytes of the arena that kernels use as scratch on the target being compiled.
            pub const SCRATCH_BYTES: nk::usize = nk::largest(&[#(#scratch),*]);
            /// Bytes of weights and biases in the model file.
            pub const WEIGHT_BYTES: nk::usize = #weight_bytes;
            /// Multiply-accumulate operations of one inference.
            pub const MACS: nk::u64 = #macs;
            /// The model's layers in order.
            pub const LAYERS: &'static [nk::Layer] = &[#(#layers),*];
            #batch
        }
    }

    fn functions(&self, steps: &[StepCode]) -> TokenStream {
        let self_test = self.self_test();
        let forward =
            if self.program.is_quantized() { self.forward_i8() } else { self.forward_f32(steps) };
        let batches = self.input.batch.map(|batch| self.forward_batch(batch));
        quote! {
            /// A network whose memory is all zeros, so that a `static` one takes no flash.
            #[must_use]
            pub const fn new() -> Self {
                Self { arena: nk::Arena::ZERO }
            }

            nk::if_alloc! {
                /// A network on the heap; its memory is never on the stack.
                #[must_use]
                pub fn new_boxed() -> nk::Box<Self> {
                    nk::boxed()
                }
            }

            #forward
            #batches
            #self_test
        }
    }

    fn forward_f32(&self, steps: &[StepCode]) -> TokenStream {
        let input_len = number(self.program.input().shape.elements());
        let output_len = number(self.program.output().shape.elements());
        let body = match self.input.batch {
            Some(_) => quote!(run(&mut self.arena, input, output, 1, observe);),
            None => {
                let steps = self.body(steps);
                quote! {
                    let Self { arena } = self;
                    #steps
                }
            }
        };
        let mutable = self.input.batch.is_none().then(|| quote!(mut));
        quote! {
            /// Computes the output for an input, both flat with the last dimension running fastest.
            #[must_use]
            pub fn forward(&mut self, input: &[nk::f32; #input_len]) -> [nk::f32; #output_len] {
                let mut output = [0.0; #output_len];
                self.forward_into(input, &mut output);
                output
            }

            /// Computes the output for an input, both flat with the last dimension running fastest.
            pub fn forward_into(
                &mut self,
                input: &[nk::f32; #input_len],
                output: &mut [nk::f32; #output_len],
            ) {
                self.forward_observed(input, output, |_| ());
            }

            /// Computes the output for an input, and tells `observe` before each step which one it is.
            pub fn forward_observed(
                &mut self,
                input: &[nk::f32; #input_len],
                output: &mut [nk::f32; #output_len],
                #mutable observe: impl nk::FnMut(nk::Step),
            ) {
                #body
            }
        }
    }

    /// The steps of the program on `input`, `output` and the arena.
    pub(super) fn body(&self, steps: &[StepCode]) -> TokenStream {
        let statements = steps.iter().map(|step| &step.statements);
        let uses_kernels = self.program.steps().any(|step| {
            !matches!(step.node.op, Op::Copy { .. } | Op::Concat(_) | Op::Upsample2x(_))
        });
        let kernels = uses_kernels.then(|| quote!(let kernels = nk::Kernels::native();));
        quote! {
            #kernels
            #(#statements)*
        }
    }

    fn self_test(&self) -> TokenStream {
        let body = match self.cases() {
            Some(cases) => {
                let quantized = self.program.is_quantized();
                let run = if quantized { quote!(self_test_s8) } else { quote!(self_test_f32) };
                quote! {
                    #cases
                    nk::#run(self, (&CASES.0).as_bytes())
                }
            }
            None => quote!(nk::NO_CASES),
        };
        quote! {
            /// Runs the test cases embedded in the model's file. They take space only in programs that call this.
            ///
            /// # Errors
            ///
            /// The first case whose output is not as it expects.
            pub fn self_test(&mut self) -> nk::Result<nk::SelfTest, nk::SelfTestError> {
                #body
            }
        }
    }

    fn traits(&self) -> TokenStream {
        let name = self.inner_name();
        let input_len = number(self.program.input().shape.elements());
        let output_len = number(self.program.output().shape.elements());
        let quantized = self.program.is_quantized().then(|| self.quantized_trait());
        let batched = self.input.batch.map(|_| self.batch_trait());
        quote! {
            impl nk::Model for #name {
                type Input = [nk::f32; #input_len];
                type Output = [nk::f32; #output_len];

                const NAME: &'static nk::str = Self::NAME;
                const INPUT_SHAPE: &'static [nk::usize] = Self::INPUT_SHAPE;
                const OUTPUT_SHAPE: &'static [nk::usize] = Self::OUTPUT_SHAPE;
                const INPUT_LEN: nk::usize = Self::INPUT_LEN;
                const OUTPUT_LEN: nk::usize = Self::OUTPUT_LEN;
                const ARENA_BYTES: nk::usize = Self::ARENA_BYTES;
                const SCRATCH_BYTES: nk::usize = Self::SCRATCH_BYTES;
                const WEIGHT_BYTES: nk::usize = Self::WEIGHT_BYTES;
                const MACS: nk::u64 = Self::MACS;
                const LAYERS: &'static [nk::Layer] = Self::LAYERS;

                fn forward(&mut self, input: &Self::Input) -> Self::Output {
                    self.forward(input)
                }

                fn forward_into(&mut self, input: &Self::Input, output: &mut Self::Output) {
                    self.forward_into(input, output);
                }

                fn forward_observed(
                    &mut self,
                    input: &Self::Input,
                    output: &mut Self::Output,
                    observe: impl nk::FnMut(nk::Step),
                ) {
                    self.forward_observed(input, output, observe);
                }

                fn self_test(&mut self) -> nk::Result<nk::SelfTest, nk::SelfTestError> {
                    self.self_test()
                }
            }

            #quantized
            #batched

            impl nk::Default for #name {
                fn default() -> Self {
                    Self::new()
                }
            }

            nk::if_alloc! {
                impl nk::Zero for #name {
                    const ZERO: Self = Self::new();
                }
            }
        }
    }
}

/// `&[28, 28, 1]`.
fn shape(shape: &Shape) -> TokenStream {
    let dims = shape.dims().iter().map(|&dim| Literal::u32_unsuffixed(dim));
    quote!(&[#(#dims),*])
}
