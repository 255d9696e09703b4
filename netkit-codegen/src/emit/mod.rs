use crate::input::Input;
use crate::source::ModelPath;
use netkit_core::format::NkFile;
use proc_macro2::{Ident, TokenStream};

pub(crate) fn model(
    _krate: &TokenStream,
    _input: &Input,
    _path: &ModelPath,
    _name: &Ident,
    _file: &NkFile<'_>,
) -> TokenStream {
    TokenStream::new()
}
