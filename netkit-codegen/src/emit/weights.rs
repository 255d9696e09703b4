//! Weights as statics.
//!
//! A tensor wanted as it lies in the file is a part of the included file, copied by the compiler: no tokens, and what
//! nobody reads stays out of the binary. All such tensors are fields of one static, because every mention of the file
//! costs the compiler its whole length, and a constant that holds it would go into the crate's metadata several times
//! over. A tensor that must be computed first (packed, folded) is one byte-string literal, whatever its size: of all
//! ways to bring bytes into a program only these two cost the compiler next to nothing per byte.

use super::{Emit, number};
use netkit_core::graph::{Constant, Weights, fold_bias};
use netkit_core::tensor::DType;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

/// Tensors of at least this many bytes begin on a cache line. Smaller ones would waste more than they gain.
const LARGE: usize = 1024;

fn aligned(bytes: usize) -> TokenStream {
    let len = number(bytes);
    if bytes >= LARGE {
        quote!(nk::Aligned<nk::Align64, #len>)
    } else {
        quote!(nk::Aligned<nk::Align16, #len>)
    }
}

/// Parts of the file that one static holds.
pub(super) struct Parts {
    name: Ident,
    types: Vec<TokenStream>,
    starts: Vec<Literal>,
}

impl Parts {
    /// A static of this name, without any part yet.
    pub(super) fn new(name: &str) -> Self {
        Self { name: format_ident!("{name}"), types: Vec::new(), starts: Vec::new() }
    }

    /// Adds a tensor; the expression that is a slice of its elements.
    pub(super) fn tensor(&mut self, constant: &Constant) -> TokenStream {
        let bytes = self.bytes(constant.offset as usize, constant.len_bytes());
        match constant.dtype {
            DType::F32 => quote!(#bytes.as_f32()),
            DType::I8 => quote!(#bytes.as_i8()),
            DType::I32 => quote!(#bytes.as_i32()),
        }
    }

    /// Adds a stretch of the file; the expression that refers to its aligned bytes.
    pub(super) fn bytes(&mut self, start: usize, bytes: usize) -> TokenStream {
        let (name, index) = (&self.name, number(self.types.len()));
        self.types.push(aligned(bytes));
        self.starts.push(number(start));
        quote!((&#name.#index))
    }
}

/// An expression that is computed bytes in a static of their own.
pub(super) fn literal(bytes: &[u8]) -> TokenStream {
    let aligned = aligned(bytes.len());
    let literal = Literal::byte_string(bytes);
    quote!({
        static BYTES: #aligned = nk::Aligned::copy_of(#literal);
        &BYTES
    })
}

/// The little-endian bytes of floats.
pub(super) fn float_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

impl Emit<'_, '_, '_> {
    /// The included file. What is not copied out of it stays out of the binary, and including it makes the compiler
    /// watch it.
    fn file(&self) -> TokenStream {
        let variable = self.path.base.variable();
        let rest = format!("/{}", self.path.relative);
        quote!(nk::include_bytes!(nk::concat!(nk::env!(#variable), #rest)))
    }

    /// The static that holds parts of the file, if there are any.
    pub(super) fn parts(&self, parts: &Parts) -> Option<TokenStream> {
        let Parts { name, types, starts } = parts;
        let len = number(self.program.source().len());
        let file = self.file();
        (!types.is_empty()).then(|| {
            quote! {
                static #name: (#(#types,)*) = {
                    let file: &[nk::u8; #len] = #file;
                    (#(nk::Aligned::part_of(file, #starts),)*)
                };
            }
        })
    }

    /// A mention of the file, which makes the compiler watch it, where no part of it is needed. In a static, whose
    /// initialiser does not go into the crate's metadata.
    pub(super) fn mention(&self) -> TokenStream {
        let file = self.file();
        quote!(static _FILE_BYTES: nk::usize = <[nk::u8]>::len(#file);)
    }

    /// A float tensor of the file.
    pub(super) fn floats(&self, constant: &Constant) -> Vec<f32> {
        let (chunks, _) = constant.bytes(self.program.source()).as_chunks();
        chunks.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect()
    }

    /// An int8 tensor of the file.
    pub(super) fn integers(&self, constant: &Constant) -> Vec<i8> {
        constant.bytes(self.program.source()).iter().map(|&byte| byte as i8).collect()
    }

    /// The section of the file that holds its test cases, as a static of its own called `CASES`: a program that does
    /// not run them does not hold them.
    pub(super) fn cases(&self) -> Option<TokenStream> {
        let file = self.program.file();
        file.tolerance()?;
        let start = file.biases_offset() + file.header().biases_bytes as usize;
        let mut cases = Parts::new("CASES");
        cases.bytes(start, file.as_bytes().len() - start);
        self.parts(&cases)
    }

    /// The bias of a float operator: of the file, or with the batch norm folded in.
    pub(super) fn bias(&self, weights: &Weights, tensors: &mut Parts) -> TokenStream {
        let Some(fold) = &weights.fold else { return tensors.tensor(&weights.bias) };
        let biases = self.floats(&weights.bias);
        let scales = self.floats(&fold.scale);
        let shifts = self.floats(&fold.shift);
        let folded: Vec<f32> = biases
            .iter()
            .zip(scales)
            .zip(shifts)
            .map(|((&bias, scale), shift)| fold_bias(bias, scale, shift))
            .collect();
        let bytes = literal(&float_bytes(&folded));
        quote!(#bytes.as_f32())
    }
}
