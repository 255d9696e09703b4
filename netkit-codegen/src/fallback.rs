//! What stands in the place of a model's type when there is no model: something that makes no second error.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote_spanned};

/// A type called `name` with every method, constant and trait that anybody asks of it.
///
/// The shapes of a model that could not be read are not known, so no honest signature of `forward` can be given.
/// Instead the name stands for a type with a constant that itself fails to compile: to the compiler a type that
/// refers to a reported error is an unknown one, about which it asks nothing further. So `error`, the
/// first of the model's errors, goes into that constant, and uses of the type stay silent. The type is local to
/// the crate, so that the user may implement traits for it.
pub(crate) fn items(
    conditions: &[TokenStream],
    visibility: &TokenStream,
    name: &Ident,
    error: TokenStream,
) -> TokenStream {
    let broken = format_ident!("NetkitStandsFor{name}", span = name.span());
    let doc = format!("Stands for `{name}`, whose model has errors.");
    // On the name's line, as the real type would be.
    let span = name.span();
    quote_spanned! {span=>
        #(#conditions)*
        #[doc = #doc]
        #visibility struct #broken<const ERROR: usize>;
        #(#conditions)*
        #[doc = #doc]
        #visibility type #name = #broken<{ #error }>;
    }
}
