//! Code generation behind `netkit::model!`: an ordinary library, so that it is tested and used without the compiler.
//!
//! [`expand`] reads the macro's [`Input`], fetches the model through a [`Source`], compiles it with `netkit-core`
//! and prints the resulting program as Rust. Whatever goes wrong on the way becomes compiler errors at the path
//! literal, beside a type that keeps the rest of the crate compiling.
#![forbid(unsafe_code)]

mod emit;
mod fallback;
mod input;
mod report;
mod source;

pub use input::{Convolution, Input, Malformed};
pub use report::{Reason, Refusal};
pub use source::{Base, Disk, Memory, ModelPath, PathError, ReadError, Source, nearest};

use emit::Emit;
use netkit_core::diag::Diagnostics;
use netkit_core::format::NkFile;
use netkit_core::program::{OwnedStorage, compile};
use proc_macro2::{Ident, TokenStream};
use report::{Declared, Report};

/// What a model macro expands to: the type, or errors and a stand-in for it.
///
/// `krate` is the path by which the code reaches the `netkit` crate (the macro passes `$crate`, so that renaming and
/// re-exporting work), `invocation` what stands between the parentheses.
#[must_use]
pub fn expand(krate: &TokenStream, invocation: TokenStream, source: &dyn Source) -> TokenStream {
    let mut declared = None;
    match items(krate, invocation, source, &mut declared) {
        Ok(tokens) => tokens,
        Err(report) => report.into_tokens(krate, declared.as_ref()),
    }
}

/// [`expand`] for who writes the code to a file: where it would be errors, there is none.
///
/// # Errors
///
/// When the invocation or its model is refused.
pub fn try_expand(
    krate: &TokenStream,
    invocation: TokenStream,
    source: &dyn Source,
) -> Result<TokenStream, Refusal> {
    items(krate, invocation, source, &mut None).map_err(Report::into_refusal)
}

/// `declared` is filled in as soon as it is known, also where the rest fails.
fn items(
    krate: &TokenStream,
    invocation: TokenStream,
    source: &dyn Source,
    declared: &mut Option<Declared>,
) -> Result<TokenStream, Report> {
    let input = Input::parse(invocation).map_err(|malformed| {
        *declared = malformed.declared.map(|(visibility, name)| Declared {
            conditions: Vec::new(),
            visibility,
            name,
        });
        Report::of(&malformed.error, malformed.error.span())
    })?;
    let mut name = input.name.clone();
    expand_input(krate, &input, source, &mut name).inspect_err(|_| {
        *declared = name.map(|name| Declared {
            conditions: input.conditions.clone(),
            visibility: input.visibility.clone(),
            name,
        });
    })
}

/// `name` is filled in as soon as it is known, also where the rest fails.
fn expand_input(
    krate: &TokenStream,
    input: &Input,
    source: &dyn Source,
    name: &mut Option<Ident>,
) -> Result<TokenStream, Report> {
    let span = input.path_span;
    let path = ModelPath::parse(&input.path)
        .map_err(|error| Report::of(format!("{:?}: {error}", input.path), span))?;
    let Some(type_name) = input.type_name(path.stem()) else {
        let message =
            format!("the file's name makes no type name\nhint: write one: `Name = \"{path}\"`");
        return Err(Report::of_file(&path, message, span).because(Reason::NoTypeName));
    };
    *name = Some(type_name.clone());
    let bytes = source.read(&path).map_err(|error| Report::of_file(&path, error, span))?;
    let mut sink = Diagnostics::new();
    let file = NkFile::parse(&bytes, &mut sink);
    let mut storage = file.as_ref().map(OwnedStorage::of);
    let program = file
        .as_ref()
        .zip(storage.as_mut())
        .and_then(|(file, storage)| compile(file, storage.lend(), &mut sink));
    let Some(program) = program else {
        return Err(Report::of_model(&path, sink.as_slice(), span));
    };
    if let Some((Convolution::Winograd, span)) = input.convolution
        && program.is_quantized()
    {
        let message = "`convolution = winograd` is for float32 models, and this one is int8: leave the option out";
        return Err(Report::of_file(&path, message, span).because(Reason::WinogradOfInt8));
    }
    let emit = Emit::new(krate, input, &path, &type_name, &program);
    Ok(emit.items())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn what_would_be_errors_is_a_refusal() {
        let refused = |file: &str, invocation| {
            let source = Memory::with(file, b"NKIT");
            try_expand(&quote!(::netkit), invocation, &source).unwrap_err()
        };
        let refusal = refused("123.nk", quote!("123.nk"));
        assert_eq!(refusal.reason, Reason::NoTypeName);
        assert!(refusal.messages[0].starts_with("123.nk: the file's name makes no type name"));
        let refusal = refused("a.nk", quote!("a.nk"));
        assert_eq!((refusal.reason, refusal.messages.len()), (Reason::Other, 1));
        assert!(refusal.messages[0].contains("[NK0103]"), "{refusal:?}");
        let refusal = refused("a.nk", quote!(A = ));
        assert!(refusal.messages[0].contains("expected the path"), "{refusal:?}");
    }
}
