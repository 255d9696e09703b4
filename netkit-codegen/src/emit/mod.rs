//! A compiled program as Rust: the public type, and everything else in one `const _` block beside it.
//!
//! What is printed contains no `unsafe`, names nothing but `netkit::private` and its own items, and holds no float
//! literal: parameters are bit patterns, weights are parts of the included file or byte-string literals. Every
//! decision that depends on the target is left to the target's compiler.

mod forward;
mod layout;
mod model;
mod names;
mod needs;
mod operator;
mod quantized;
mod weights;

use crate::input::Input;
use crate::source::ModelPath;
use forward::StepCode;
use netkit_core::plan::CACHE_LINE;
use netkit_core::program::Program;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

/// What the parts of the expansion are made from.
pub(crate) struct Emit<'e, 'a, 's> {
    /// The path by which the code reaches netkit.
    pub(crate) krate: &'e TokenStream,
    pub(crate) input: &'e Input,
    pub(crate) path: &'e ModelPath,
    /// The generated type.
    pub(crate) name: &'e Ident,
    pub(crate) program: &'e Program<'a, 's>,
}

impl Emit<'_, '_, '_> {
    /// The whole expansion.
    pub(crate) fn items(&self) -> TokenStream {
        let Self { krate, input, .. } = self;
        let conditions = &input.conditions;
        let structure = self.structure();
        let file = self.file();
        let steps: Vec<StepCode> = self.program.steps().map(|step| self.step(&step)).collect();
        let constants = steps.iter().map(|step| &step.items);
        let implementations = self.implementations(&steps);
        quote! {
            #structure

            #(#conditions)*
            const _: () = {
                use #krate::private as nk;
                #file
                #(#constants)*
                #implementations
            };
        }
    }

    /// The model file as a constant: what is not copied out of it stays out of the binary, and including it makes the
    /// compiler watch it.
    fn file(&self) -> TokenStream {
        let len = number(self.program.source().len());
        let variable = self.path.base.variable();
        let rest = format!("/{}", self.path.relative);
        quote! {
            const FILE: &[nk::u8; #len] = nk::include_bytes!(nk::concat!(nk::env!(#variable), #rest));
        }
    }

    /// Where scratch begins in the arena: behind the activations, on a cache line.
    pub(crate) fn scratch_offset(&self) -> usize {
        self.program.plan().arena_bytes().next_multiple_of(CACHE_LINE)
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
