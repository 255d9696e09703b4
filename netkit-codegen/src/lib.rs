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
pub use source::{Base, Disk, Memory, ModelPath, PathError, ReadError, Source};

use emit::Emit;
use netkit_core::diag::Diagnostics;
use netkit_core::format::NkFile;
use netkit_core::program::{OwnedStorage, compile};
use proc_macro2::{Ident, TokenStream};
use report::Report;

/// What a model macro expands to: the type, or errors and a stand-in for it.
///
/// `krate` is the path by which the code reaches the `netkit` crate (the macro passes `$crate`, so that renaming and
/// re-exporting work), `invocation` what stands between the parentheses.
#[must_use]
pub fn expand(krate: &TokenStream, invocation: TokenStream, source: &dyn Source) -> TokenStream {
    let input = match Input::parse(invocation) {
        Ok(input) => input,
        Err(malformed) => {
            let report = Report::of(&malformed.error, malformed.error.span());
            let declared = malformed.declared.as_ref();
            return report.into_tokens(krate, declared.map(|(v, name)| (&[][..], v, name)));
        }
    };
    let mut name = input.name.clone();
    match expand_input(krate, &input, source, &mut name) {
        Ok(tokens) => tokens,
        Err(report) => {
            let declared =
                name.as_ref().map(|name| (&input.conditions[..], &input.visibility, name));
            report.into_tokens(krate, declared)
        }
    }
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
        return Err(Report::of_file(
            &path,
            format_args!(
                "the file's name makes no type name\nhint: write one: `Name = \"{path}\"`"
            ),
            span,
        ));
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
        return Err(Report::of_file(&path, message, span));
    }
    let emit = Emit::new(krate, input, &path, &type_name, &program);
    Ok(emit.items())
}
