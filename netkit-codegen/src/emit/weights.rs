//! Weights as statics.
//!
//! A tensor wanted as it lies in the file is a part of the included file, copied by the compiler into a static of its
//! own: no tokens, and what nobody reads stays out of the binary. A tensor that must be computed first
//! (packed, folded) is one byte-string literal, whatever its size: of all ways to bring bytes into a program
//! only these two cost the compiler next to nothing per byte. Where kernels of one target want
//! panels and those of another file order, both are printed and `nk::layout!` keeps one.

use super::{Emit, number};
use netkit_core::graph::{Constant, Weights, fold_bias};
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

/// A static that holds a tensor as it lies in the file.
pub(super) fn part(name: &Ident, constant: &Constant) -> TokenStream {
    part_at(name, constant.offset as usize, constant.len_bytes())
}

/// A static that holds a stretch of the file.
pub(super) fn part_at(name: &Ident, start: usize, bytes: usize) -> TokenStream {
    let aligned = aligned(bytes);
    let start = number(start);
    quote!(static #name: #aligned = nk::Aligned::part_of(FILE, #start);)
}

/// A static that holds computed bytes.
pub(super) fn literal(name: &Ident, bytes: &[u8]) -> TokenStream {
    let aligned = aligned(bytes.len());
    let literal = Literal::byte_string(bytes);
    quote!(static #name: #aligned = nk::Aligned::copy_of(#literal);)
}

/// The little-endian bytes of floats.
pub(super) fn float_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

impl Emit<'_, '_, '_> {
    /// A float tensor of the file.
    pub(super) fn floats(&self, constant: &Constant) -> Vec<f32> {
        let (chunks, _) = constant.bytes(self.program.source()).as_chunks();
        chunks.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect()
    }

    /// An int8 tensor of the file.
    pub(super) fn integers(&self, constant: &Constant) -> Vec<i8> {
        constant.bytes(self.program.source()).iter().map(|&byte| byte as i8).collect()
    }

    /// The test cases of the file, as a static called `CASES`.
    pub(super) fn cases(&self) -> Option<TokenStream> {
        let file = self.program.file();
        file.tolerance()?;
        let start = file.biases_offset() + file.header().biases_bytes as usize;
        Some(part_at(&format_ident!("CASES"), start, file.as_bytes().len() - start))
    }

    /// The bias of a float operator: of the file, or with the batch norm folded in.
    pub(super) fn bias(&self, name: &Ident, weights: &Weights) -> TokenStream {
        let Some(fold) = &weights.fold else { return part(name, &weights.bias) };
        let biases = self.floats(&weights.bias);
        let scales = self.floats(&fold.scale);
        let shifts = self.floats(&fold.shift);
        let folded: Vec<f32> = biases
            .iter()
            .zip(scales)
            .zip(shifts)
            .map(|((&bias, scale), shift)| fold_bias(bias, scale, shift))
            .collect();
        literal(name, &float_bytes(&folded))
    }
}
