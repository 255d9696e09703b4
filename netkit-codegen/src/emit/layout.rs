//! Views into the arena, and who else lends a step its memory.

use super::{Emit, number};
use netkit_core::plan::Placement;
use netkit_core::program::Operand;
use netkit_core::tensor::DType;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The memory of one step: the names by which the call gets at it, and the statement that makes them.
pub(super) struct Memory {
    /// What is read, in the operator's order.
    pub(super) inputs: Vec<TokenStream>,
    /// What is written.
    pub(super) output: TokenStream,
    /// Takes the views, where there are any.
    pub(super) views: TokenStream,
}

/// A stretch of the arena as a type.
pub(super) fn region(element: TokenStream, offset: usize, len: TokenStream) -> TokenStream {
    let offset = number(offset);
    quote!(nk::Region<#element, #offset, #len>)
}

fn element(dtype: DType) -> TokenStream {
    match dtype {
        DType::F32 => quote!(nk::f32),
        DType::I8 => quote!(nk::i8),
        DType::I32 => quote!(nk::i32),
    }
}

impl Emit<'_, '_, '_> {
    /// The stretch that a value takes, if it is in the arena: of a batch, its values of all samples behind each other.
    fn in_arena(&self, operand: &Operand<'_>) -> Option<TokenStream> {
        match operand.placement {
            Placement::Arena { offset } => {
                let len = number(operand.value.shape.elements() * self.samples());
                let offset = offset * self.samples();
                Some(region(element(operand.value.dtype), offset, quote!(#len)))
            }
            Placement::Input | Placement::Output => None,
        }
    }

    /// Lays out a step's inputs and output, and as much scratch behind the activations as the constant `scratch`
    /// says.
    pub(super) fn memory<'s>(
        &self,
        inputs: impl Iterator<Item = Operand<'s>>,
        output: Operand<'_>,
        scratch: Option<&TokenStream>,
    ) -> Memory {
        let (mut names, mut read, mut read_names) = (Vec::new(), Vec::new(), Vec::new());
        for (index, operand) in inputs.enumerate() {
            let name = format_ident!("x{index}");
            match (self.in_arena(&operand), self.input_room) {
                (Some(region), _) => {
                    names.push(quote!(#name));
                    read.push(region);
                    read_names.push(name);
                }
                // The caller's, unless the input was quantized into the arena.
                (None, Some(offset)) => {
                    names.push(quote!(input.unwrap_or(#name)));
                    let len = number(operand.value.shape.elements() * self.samples());
                    read.push(region(element(operand.value.dtype), offset, quote!(#len)));
                    read_names.push(name);
                }
                (None, None) => names.push(quote!(input)),
            }
        }
        let (mut write, mut write_names) = (Vec::new(), Vec::new());
        let output = match self.in_arena(&output) {
            Some(region) => {
                write.push(region);
                write_names.push(quote!(y));
                quote!(y)
            }
            None => quote!(output),
        };
        if let Some(len) = scratch {
            write.push(region(quote!(nk::u8), self.activation_bytes, len.clone()));
            write_names.push(quote!(scratch));
        }
        let views = if read.is_empty() && write.is_empty() {
            TokenStream::new()
        } else {
            quote! {
                let ((#(#read_names,)*), (#(#write_names,)*)) =
                    arena.views::<(#(#read,)*), (#(#write,)*)>();
            }
        };
        Memory { inputs: names, output, views }
    }
}
