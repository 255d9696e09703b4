//! `netkit::model!` on a file.

use netkit_codegen::{Memory, expand};
use quote::quote;

/// Rust, whatever the file: the model's items, or errors beside a stand-in of the same name.
pub(crate) fn run(bytes: &[u8]) -> bool {
    let source = Memory::with("a.nk", bytes);
    let invocation = match bytes.len() % 2 {
        0 => quote!(pub Model = "a.nk"),
        _ => quote!(pub Model = "a.nk", batch = 65535),
    };
    let tokens = expand(&quote!(::netkit), invocation, &source);
    let text = tokens.to_string();
    assert!(text.contains("Model"), "{text}");
    let parsed = syn::parse2::<syn::File>(tokens);
    assert!(parsed.is_ok(), "no Rust: {text}");
    !text.contains("compile_error")
}
