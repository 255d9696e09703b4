//! The procedural macro behind `netkit::model!`: tokens in, tokens out, all logic in `netkit-codegen`.
#![forbid(unsafe_code)]

use netkit_codegen::Disk;
use proc_macro::TokenStream;
use proc_macro2::{TokenStream as TokenStream2, TokenTree};

/// Called by `netkit::model!` with the path to `netkit` in brackets before the user's tokens.
#[proc_macro]
pub fn model(tokens: TokenStream) -> TokenStream {
    let mut tokens = TokenStream2::from(tokens).into_iter();
    let krate = match tokens.next() {
        Some(TokenTree::Group(group)) => group.stream(),
        _ => TokenStream2::new(),
    };
    netkit_codegen::expand(&krate, tokens.collect(), &Disk::from_environment()).into()
}
