//! What is wrong with an invocation or its model, as compiler errors at the path literal.

use crate::fallback;
use crate::source::ModelPath;
use netkit_core::diag::Diagnostic;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

/// The most errors shown for one model. A damaged file can break a rule in every tensor.
const SHOWN: usize = 20;

/// Everything wrong with one invocation.
#[derive(Debug)]
pub(crate) struct Report {
    messages: Vec<String>,
    span: Span,
    reason: Reason,
}

/// The type that an invocation declares.
pub(crate) struct Declared {
    /// Attributes that decide whether it exists.
    pub(crate) conditions: Vec<TokenStream>,
    pub(crate) visibility: TokenStream,
    pub(crate) name: Ident,
}

/// Why there is no code for an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// What kind of refusal it is, for who has other words for its remedy.
    pub reason: Reason,
    /// What the macro says, one or more: a sentence, and lines of help behind it.
    pub messages: Vec<String>,
}

/// Kinds of [`Refusal`] whose remedy is written otherwise where no macro is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The file's name makes no name for a type, and none was given.
    NoTypeName,
    /// `convolution = winograd` of an int8 model.
    WinogradOfInt8,
    /// All else.
    Other,
}

impl Report {
    /// One sentence about the invocation itself.
    pub(crate) fn of(message: impl ToString, span: Span) -> Self {
        Self { messages: vec![message.to_string()], span, reason: Reason::Other }
    }

    /// The same of a kind of its own.
    pub(crate) fn because(self, reason: Reason) -> Self {
        Self { reason, ..self }
    }

    /// One sentence about the file at a path.
    pub(crate) fn of_file(path: &ModelPath, message: impl ToString, span: Span) -> Self {
        Self::of(format!("{path}: {}", message.to_string()), span)
    }

    /// Everything that was found in a file, as one error each.
    pub(crate) fn of_model(path: &ModelPath, diagnostics: &[Diagnostic], span: Span) -> Self {
        let mut messages: Vec<String> =
            diagnostics.iter().take(SHOWN).map(|diagnostic| sentence(path, diagnostic)).collect();
        if diagnostics.len() > SHOWN {
            messages.push(format!("{path}: and {} more errors", diagnostics.len() - SHOWN));
        }
        Self { messages, span, reason: Reason::Other }
    }

    pub(crate) fn into_refusal(self) -> Refusal {
        Refusal { reason: self.reason, messages: self.messages }
    }

    /// The errors as items, with `declared` in the type's place so that nothing else fails to compile.
    pub(crate) fn into_tokens(
        self,
        krate: &TokenStream,
        declared: Option<&Declared>,
    ) -> TokenStream {
        let mut errors = self.messages.iter().map(|message| error(krate, message, self.span));
        let mut tokens = TokenStream::new();
        if let Some(Declared { conditions, visibility, name }) = declared
            && let Some(first) = errors.next()
        {
            tokens.extend(fallback::items(conditions, visibility, name, first));
            // What is left out has no errors.
            tokens.extend(errors.map(|error| quote!(#(#conditions)* #error)));
        } else {
            tokens.extend(errors);
        }
        tokens
    }
}

/// `models/kws.nk: layer 3 (conv2d), byte 0x5c: … [NK0503]` and the hint.
fn sentence(path: &ModelPath, diagnostic: &Diagnostic) -> String {
    let (code, hint) = (diagnostic.code.as_str(), diagnostic.hint());
    format!("{path}: {diagnostic} [{code}]\nhint: {hint}")
}

/// `compile_error!` whose message points at `span`, whatever the crate calls itself.
fn error(krate: &TokenStream, message: &str, span: Span) -> TokenStream {
    let krate = relocate(krate, span);
    quote_spanned!(span=> #krate::private::compile_error! { #message })
}

/// The same tokens, resolved as before, but standing at `span`.
fn relocate(tokens: &TokenStream, span: Span) -> TokenStream {
    tokens
        .to_token_stream()
        .into_iter()
        .map(|mut token: TokenTree| {
            token.set_span(token.span().located_at(span));
            token
        })
        .collect()
}
