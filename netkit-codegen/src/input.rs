//! The macro's grammar, with the spans of what the user wrote.
//!
//! `[attributes] [visibility] [Name =] "path" [, option = value]* [,]`
//!
//! Options: `convolution = direct` or `convolution = winograd`, and `batch = 8` or another number.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, LitInt, LitStr, Meta, Token, Visibility};

/// What stands between the parentheses of `netkit::model!(…)`.
#[derive(Debug)]
pub struct Input {
    /// Outer attributes, for the generated type.
    pub attributes: Vec<TokenStream>,
    /// Those of them that decide whether it exists (`cfg`): they go on every generated item.
    pub conditions: Vec<TokenStream>,
    /// Whether they deprecate the type, which the code that implements it names all the same.
    pub is_deprecated: bool,
    /// Visibility of the generated type.
    pub visibility: TokenStream,
    /// Name of the generated type, if given.
    pub name: Option<Ident>,
    /// The path as written.
    pub path: String,
    /// Where the path stands.
    pub path_span: Span,
    /// How float convolutions are computed, and where that was said; the first of [`Convolution::ALL`] where it was not.
    pub convolution: Option<(Convolution, Span)>,
    /// How many inputs are computed at once, at least 1, where that was said.
    pub batch: Option<usize>,
}

/// Values of the option `convolution`: how float convolutions are computed that can be computed in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convolution {
    /// As the sum of products that it is defined to be.
    Direct,
    /// 3×3 ones in Winograd's form, where that takes less time: fewer products, a weaker error bound, more bytes of weights.
    Winograd,
}

impl Convolution {
    /// Every value, the default first.
    pub const ALL: [Self; 2] = [Self::Direct, Self::Winograd];

    /// As the user writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Winograd => "winograd",
        }
    }
}

/// The names of the options.
const CONVOLUTION: &str = "convolution";
const BATCH: &str = "batch";

/// What may stand for an option, in a message.
const CONVOLUTIONS: &str = "`convolution = direct` (the default) or `convolution = winograd`";
const BATCHES: &str = "`batch = 8` or another number of inputs, from 1 to 65535";

/// An invocation that does not follow the grammar.
#[derive(Debug)]
pub struct Malformed {
    /// What is wrong and where.
    pub error: syn::Error,
    /// The type it would have declared, if that much could be read.
    pub declared: Option<(TokenStream, Ident)>,
}

impl Input {
    /// Reads an invocation.
    pub fn parse(tokens: TokenStream) -> Result<Self, Malformed> {
        let mut declared = None;
        let parser = |input: ParseStream<'_>| Self::read(input, &mut declared);
        parser.parse2(tokens).map_err(|error| Malformed { error, declared })
    }

    fn read(
        input: ParseStream<'_>,
        declared: &mut Option<(TokenStream, Ident)>,
    ) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse::<Visibility>()?.into_token_stream();
        let name = if input.peek(syn::Ident) && !input.peek2(Token![!]) {
            let name: Ident = input.parse()?;
            *declared = Some((visibility.clone(), name.clone()));
            if !input.peek(Token![=]) {
                return Err(input.error(format!(
                    "expected `=` and the path of a model: `{name} = \"models/….nk\"`"
                )));
            }
            input.parse::<Token![=]>()?;
            Some(name)
        } else {
            refuse_what_is_no_name(input)?;
            None
        };
        let path = path_literal(input)?;
        let mut options = Options::default();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if !input.is_empty() {
                options.read(input)?;
            }
        }
        let conditions = attributes.iter().filter_map(|attribute| condition(&attribute.meta));
        Ok(Self {
            conditions: conditions.map(|condition| quote!(#[#condition])).collect(),
            is_deprecated: attributes.iter().any(|a| mentions_deprecation(&a.meta)),
            attributes: attributes.iter().map(ToTokens::to_token_stream).collect(),
            visibility,
            name,
            path: path.value(),
            path_span: path.span(),
            convolution: options.convolution,
            batch: options.batch,
        })
    }

    /// The name of the generated type: as given, or the file's in UpperCamelCase. `None` where that is
    /// not an identifier.
    pub fn type_name(&self, stem: &str) -> Option<Ident> {
        match &self.name {
            Some(name) => Some(name.clone()),
            None => identifier(&upper_camel_case(stem), self.path_span),
        }
    }
}

/// The part of an attribute that decides whether an item exists: `cfg(…)`, or what of `cfg_attr(…, …)` is such a part.
fn condition(meta: &Meta) -> Option<TokenStream> {
    if meta.path().is_ident("cfg") {
        return Some(meta.to_token_stream());
    }
    let (predicate, conditional) = cfg_attr(meta)?;
    let conditions: Vec<TokenStream> = conditional.iter().filter_map(condition).collect();
    (!conditions.is_empty()).then(|| quote!(cfg_attr(#predicate, #(#conditions),*)))
}

/// Whether an attribute deprecates, perhaps under a condition.
fn mentions_deprecation(meta: &Meta) -> bool {
    meta.path().is_ident("deprecated")
        || cfg_attr(meta).is_some_and(|(_, metas)| metas.iter().any(mentions_deprecation))
}

/// The predicate of `cfg_attr` and the attributes that depend on it.
fn cfg_attr(meta: &Meta) -> Option<(Meta, Vec<Meta>)> {
    let list = meta.require_list().ok().filter(|list| list.path.is_ident("cfg_attr"))?;
    let metas = Punctuated::<Meta, Token![,]>::parse_terminated;
    let mut metas = list.parse_args_with(metas).ok()?.into_iter();
    Some((metas.next()?, metas.collect()))
}

/// Refuses what stands in a name's place and cannot be one, such as a keyword.
fn refuse_what_is_no_name(input: ParseStream<'_>) -> syn::Result<()> {
    if !input.peek2(Token![=]) {
        return Ok(());
    }
    let span = input.span();
    let token: TokenTree = input.parse()?;
    let text = token.to_string();
    let raw = match (&token, &*text) {
        (TokenTree::Ident(_), "self" | "Self" | "super" | "crate" | "_") => String::new(),
        (TokenTree::Ident(_), keyword) => format!("`r#{keyword}`, or "),
        _ => String::new(),
    };
    let message = format!(
        "`{text}` cannot be the name of a type\n\
         hint: write {raw}another: `Digits = \"models/….nk\"`"
    );
    Err(syn::Error::new(span, message))
}

/// The options that were said so far.
#[derive(Default)]
struct Options {
    convolution: Option<(Convolution, Span)>,
    batch: Option<usize>,
}

impl Options {
    /// Reads `option = value`.
    fn read(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let option: Ident = input.parse()?;
        let (is_said, values) = match option.to_string().as_str() {
            CONVOLUTION => (self.convolution.is_some(), CONVOLUTIONS),
            BATCH => (self.batch.is_some(), BATCHES),
            _ => {
                let message = format!(
                    "there is no option `{option}`\nhint: there are {CONVOLUTIONS}, and {BATCHES}"
                );
                return Err(syn::Error::new(option.span(), message));
            }
        };
        if is_said {
            let message = format!("`{option}` is said twice: keep one");
            return Err(syn::Error::new(option.span(), message));
        }
        let equals = input.parse::<Option<Token![=]>>()?;
        // The end of an invocation has no place of its own.
        let span = if input.is_empty() { option.span() } else { input.span() };
        let value = equals.and_then(|_| input.parse::<TokenTree>().ok());
        let is_known = value.is_some_and(|value| self.set(&option, &value, span));
        if is_known { Ok(()) } else { Err(syn::Error::new(span, format!("expected {values}"))) }
    }

    /// Keeps the value of an option; whether it is one that the option may have.
    fn set(&mut self, option: &Ident, value: &TokenTree, span: Span) -> bool {
        if option == BATCH {
            self.batch = batch(value);
            return self.batch.is_some();
        }
        let found = Convolution::ALL
            .into_iter()
            .find(|known| matches!(value, TokenTree::Ident(value) if value == known.name()));
        self.convolution = found.map(|found| (found, span));
        found.is_some()
    }
}

/// A number of inputs, perhaps in the invisible group of another macro's `$batch:literal`.
fn batch(value: &TokenTree) -> Option<usize> {
    let number = syn::parse2::<LitInt>(value.to_token_stream()).ok()?;
    let number = number.base10_parse::<u16>().ok().filter(|&number| number > 0)?;
    Some(number.into())
}

fn path_literal(input: ParseStream<'_>) -> syn::Result<LitStr> {
    const EXPECTED: &str =
        "expected the path of a model file in quotes, relative to the package's Cargo.toml";
    if input.is_empty() {
        return Err(input.error(EXPECTED));
    }
    let span = input.span();
    // `concat!(env!("OUT_DIR"), …)` and the like, which only the compiler expands.
    let is_macro = input.peek(syn::Ident) && input.peek2(Token![!]);
    match input.parse::<syn::Lit>() {
        // The compiler leaves it to macros to refuse `"a.nk"suffix`.
        Ok(syn::Lit::Str(path)) if path.suffix().is_empty() => Ok(path),
        _ if is_macro => Err(syn::Error::new(
            span,
            format!(
                "{EXPECTED}\n\
                 hint: for a file that the build script makes, write \"$OUT_DIR/….nk\""
            ),
        )),
        Ok(_) | Err(_) => Err(syn::Error::new(span, EXPECTED)),
    }
}

/// `mnist_cnn-int8` → `MnistCnnInt8`.
fn upper_camel_case(stem: &str) -> String {
    let mut name = String::new();
    let mut word_start = true;
    for c in stem.chars() {
        if !c.is_alphanumeric() {
            word_start = true;
        } else if word_start {
            name.extend(c.to_uppercase());
            word_start = false;
        } else {
            name.push(c);
        }
    }
    name
}

fn identifier(text: &str, span: Span) -> Option<Ident> {
    let mut ident = syn::parse_str::<Ident>(text).ok()?;
    ident.set_span(span);
    Some(ident)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn parse(tokens: TokenStream) -> Result<Input, String> {
        Input::parse(tokens).map_err(|malformed| malformed.error.to_string())
    }

    #[test]
    fn everything_but_the_path_may_be_left_out() {
        let input = parse(quote!("models/mnist_cnn.nk")).unwrap();
        assert_eq!(input.type_name("mnist_cnn").unwrap(), "MnistCnn");
        assert!(input.visibility.is_empty());

        let input = parse(quote! {
            /// Digits.
            #[derive(Debug)]
            #[cfg(all())]
            pub(crate) Digits = r"models/mnist_cnn.nk",
        })
        .unwrap();
        assert_eq!(input.type_name("mnist_cnn").unwrap(), "Digits");
        assert_eq!(input.visibility.to_string(), "pub (crate)");
        assert_eq!(input.attributes.len(), 3);
        assert_eq!(input.conditions.len(), 1);
    }

    #[test]
    fn options_follow_the_path() {
        let convolution = |tokens| {
            let input = parse(tokens).unwrap();
            input.convolution.map(|(convolution, _)| convolution)
        };
        assert_eq!(convolution(quote!("a.nk")), None);
        assert_eq!(convolution(quote!("a.nk",)), None);
        for known in Convolution::ALL {
            let value = Ident::new(known.name(), Span::call_site());
            assert_eq!(convolution(quote!("a.nk", convolution = #value)), Some(known));
            assert_eq!(convolution(quote!(A = "a.nk", convolution = #value,)), Some(known));
        }
    }

    #[test]
    fn a_batch_is_a_number() {
        let batch = |tokens| parse(tokens).unwrap().batch;
        assert_eq!(batch(quote!("a.nk")), None);
        assert_eq!(batch(quote!("a.nk", batch = 8)), Some(8));
        assert_eq!(batch(quote!("a.nk", batch = 1_000usize,)), Some(1000));
        assert_eq!(batch(quote!("a.nk", batch = 65535, convolution = direct)), Some(65535));
        let mut group = proc_macro2::Group::new(proc_macro2::Delimiter::None, quote!(3));
        group.set_span(Span::call_site());
        assert_eq!(batch(quote!("a.nk", batch = #group)), Some(3));
    }

    /// Whatever leaves the type out leaves out all that belongs to it.
    #[test]
    fn conditions_are_found_in_every_attribute() {
        let input = parse(quote! {
            #[cfg(feature = "a")]
            #[cfg_attr(feature = "b", derive(Debug), cfg(feature = "c"), cfg_attr(d, cfg(e), inline))]
            #[cfg_attr(f, derive(Clone))]
            #[cfg_attr(docsrs, doc(cfg(g)))]
            A = "a.nk"
        })
        .unwrap();
        let conditions: Vec<String> = input.conditions.iter().map(ToString::to_string).collect();
        let expected = [
            quote!(#[cfg(feature = "a")]),
            quote!(#[cfg_attr(feature = "b", cfg(feature = "c"), cfg_attr(d, cfg(e)))]),
        ];
        assert_eq!(conditions, expected.map(|tokens| tokens.to_string()));
        assert!(!input.is_deprecated);
        assert!(
            parse(quote!(
                #[cfg_attr(a, deprecated = "b")]
                A = "a.nk"
            ))
            .unwrap()
            .is_deprecated
        );
    }

    /// A literal that went through another macro's `$path:expr` arrives in an invisible group.
    #[test]
    fn a_path_may_come_from_another_macro() {
        let literal = quote!("a.nk");
        let mut group = proc_macro2::Group::new(proc_macro2::Delimiter::None, literal);
        group.set_span(Span::call_site());
        assert_eq!(parse(quote!(A = #group)).unwrap().path, "a.nk");
    }

    #[test]
    fn names_follow_from_files() {
        for (stem, name) in [
            ("mnist_cnn", Some("MnistCnn")),
            ("kws-small.v2", Some("KwsSmallV2")),
            ("ÄRGER über", Some("ÄRGERÜber")),
            ("3d", None),
            ("", None),
            ("...", None),
            ("self", None),
        ] {
            let input = parse(quote!("x.nk")).unwrap();
            assert_eq!(input.type_name(stem).map(|name| name.to_string()).as_deref(), name);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (tokens, message) in [
            (quote!(), "expected the path of a model file in quotes"),
            (quote!(pub), "expected the path of a model file in quotes"),
            ("\"a.nk\"suffix".parse().unwrap(), "expected the path of a model file in quotes"),
            (quote!(b"a.nk"), "expected the path of a model file in quotes"),
            (quote!(Self = "a.nk"), "`Self` cannot be the name of a type\nhint: write another: `D"),
            (quote!(pub crate = "a.nk"), "`crate` cannot be the name of a type"),
            (quote!(_ = "a.nk"), "`_` cannot be the name of a type"),
            (quote!(async = "a.nk"), "hint: write `r#async`, or another: `Digits = "),
            (quote!(3d = "a.nk"), "`3d` cannot be the name of a type\nhint: write another"),
            (quote!("a" = "a.nk"), "`\"a\"` cannot be the name of a type"),
            (quote!(Digits "a.nk"), "expected `=` and the path of a model"),
            (quote!(Digits = concat!("a", ".nk")), "expected the path of a model file in quotes"),
            (quote!(Digits = concat!(env!("OUT_DIR"), "/a.nk")), "write \"$OUT_DIR/….nk\""),
            (quote!(include_str!("a")), "write \"$OUT_DIR/….nk\""),
            (quote!("a.nk" "b.nk"), "expected `,`"),
            (
                quote!("a.nk", fast = true),
                "there is no option `fast`\nhint: there are `convolution",
            ),
            (quote!("a.nk", convolution), "expected `convolution = direct` (the default) or"),
            (quote!("a.nk", convolution = fast), "(the default) or `convolution = winograd`"),
            (quote!("a.nk", convolution = "winograd"), "expected `convolution = direct`"),
            (quote!("a.nk", convolution =), "expected `convolution = direct`"),
            (quote!("a.nk", convolution = direct convolution = direct), "expected `,`"),
            (quote!("a.nk", convolution = direct, convolution = winograd), "said twice"),
            (quote!("a.nk", batch), "expected `batch = 8` or another number of inputs, from 1 to"),
            (quote!("a.nk", batch = 0), "expected `batch = 8` or another number"),
            (quote!("a.nk", batch = 65536), "expected `batch = 8` or another number"),
            (quote!("a.nk", batch = -1), "expected `batch = 8` or another number"),
            (quote!("a.nk", batch = 2.0), "expected `batch = 8` or another number"),
            (quote!("a.nk", batch = "8"), "expected `batch = 8` or another number"),
            (quote!("a.nk", batch = N), "expected `batch = 8` or another number"),
            (quote!("a.nk", batch = 2, batch = 2), "`batch` is said twice"),
        ] {
            let error = parse(tokens.clone()).unwrap_err();
            assert!(error.contains(message), "{tokens}: {error}");
        }
    }

    /// With the name known, the rest of the crate can go on compiling.
    #[test]
    fn the_declared_name_survives_a_mistake() {
        let malformed = Input::parse(quote!(pub Digits = 3)).unwrap_err();
        assert_eq!(malformed.declared.unwrap().1, "Digits");
        assert!(Input::parse(quote!(pub 3)).unwrap_err().declared.is_none());
    }
}
