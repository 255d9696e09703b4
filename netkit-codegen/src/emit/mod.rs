//! A compiled program as Rust: the public type, and everything else in one `const _` block beside it.
//!
//! What is printed contains no `unsafe`, names nothing but `netkit::private` and its own items, and holds no float
//! literal: parameters are bit patterns, weights are parts of the included file or byte-string literals. Every
//! decision that depends on the target is left to the target's compiler.
//!
//! Names in it mean the same whatever the type and the things around it are called ([`Emit::items`]). A method is called
//! on what its receiver is, a reference where it takes one, for else a user's trait for all types would come first.

mod batch;
mod forward;
mod layout;
mod model;
mod names;
mod needs;
mod operator;
mod quantized;
mod room;
mod weights;

use crate::input::{Convolution, Input};
use crate::source::ModelPath;
use forward::StepCode;
use needs::Tensors;
use netkit_core::op::Op;
use netkit_core::pack;
use netkit_core::plan::CACHE_LINE;
use netkit_core::program::{Program, Step};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

/// Everything that generated code binds with `let` and as a parameter.
const BINDINGS: [&str; 17] = [
    "arena",
    "count",
    "dense",
    "file",
    "input",
    "kernels",
    "observe",
    "output",
    "quantized",
    "room",
    "sample",
    "scratch",
    "x0",
    "x1",
    "x2",
    "x3",
    "y",
];

/// What the parts of the expansion are made from.
pub(crate) struct Emit<'e, 'a, 's> {
    /// The path by which the code reaches netkit.
    krate: &'e TokenStream,
    input: &'e Input,
    path: &'e ModelPath,
    /// The generated type.
    name: &'e Ident,
    program: &'e Program<'a, 's>,
    /// Where in the arena a float input of an int8 model is quantized to, if there is room.
    input_room: Option<usize>,
    /// Bytes of the arena in front of scratch: activations and what of the input has room behind them.
    activation_bytes: usize,
}

impl<'e, 'a, 's> Emit<'e, 'a, 's> {
    /// Prepares to print a program.
    pub(crate) fn new(
        krate: &'e TokenStream,
        input: &'e Input,
        path: &'e ModelPath,
        name: &'e Ident,
        program: &'e Program<'a, 's>,
    ) -> Self {
        let plan = program.plan();
        let one = plan.arena_bytes().next_multiple_of(CACHE_LINE);
        let input_room = program.graph().inputs().first().filter(|_| program.is_quantized());
        let input_room =
            input_room.and_then(|id| room::for_input(plan, &plan.slots()[id.index()], one));
        let emit = Self { krate, input, path, name, program, input_room, activation_bytes: one };
        match input.batch {
            Some(batch) => emit.for_batches_of(batch),
            None => emit,
        }
    }

    /// Whether a step is a convolution that is computed in Winograd's form, where kernels read packed filters. One that
    /// computes a pool too is not.
    fn is_winograd(&self, step: &Step<'_, '_>) -> bool {
        let asked = matches!(self.input.convolution, Some((Convolution::Winograd, _)));
        match &step.node.op {
            Op::Conv2d { conv, pool: None, .. } => {
                asked && !step.is_quantized() && pack::winograd_pays(conv)
            }
            _ => false,
        }
    }

    /// The whole expansion.
    pub(crate) fn items(&self) -> TokenStream {
        let Self { krate, input, .. } = self;
        let conditions = &input.conditions;
        let allowances = self.allowances();
        let structure = self.structure();
        let mut tensors = Tensors::new();
        let steps: Vec<StepCode> =
            self.program.steps().map(|step| self.step(&step, &mut tensors)).collect();
        let tensors = self.tensors(&tensors);
        let constants = steps.iter().map(|step| &step.items);
        let implementations = self.implementations(&steps);
        let (name, inner) = (self.name, self.inner_name());
        let bindings = BINDINGS.map(|name| format_ident!("{name}"));
        // Two blocks: in the outer one the type gets the name that the inner one knows it by, where `nk` may hide its own.
        // A binding whose name is that of a constant around it would be that constant; functions it may hide.
        quote! {
            #structure

            #(#conditions)*
            #allowances
            const _: () = {
                type #inner = #name;
                const _: () = {
                    #[allow(unused_imports)]
                    use #krate::private::{self as nk, #(binding as #bindings),*};
                    #tensors
                    #(#constants)*
                    #implementations
                };
            };
        }
    }
}

impl Emit<'_, '_, '_> {
    /// What the type is called in its implementations. Longer than its name, so neither that nor `nk`.
    fn inner_name(&self) -> Ident {
        format_ident!("Model{}", self.name)
    }

    /// Lints that the generated items would set off in the user's crate.
    fn allowances(&self) -> Option<TokenStream> {
        self.input.is_deprecated.then(|| quote!(#[allow(deprecated)]))
    }
}

/// A number without a suffix.
pub(crate) fn number(value: usize) -> Literal {
    Literal::usize_unsuffixed(value)
}

/// A float by its bits, so that no value loses anything on the way through text.
pub(crate) fn float(value: f32) -> TokenStream {
    let bits = Literal::u32_unsuffixed(value.to_bits());
    quote!(nk::f32::from_bits(#bits))
}
