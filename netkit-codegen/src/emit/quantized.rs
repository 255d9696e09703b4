//! What int8 models have besides: calls, edges and constants.

use super::Emit;
use super::forward::StepCode;
use super::layout::Memory;
use super::names::Names;
use super::needs::Needs;
use netkit_core::program::Step;
use proc_macro2::TokenStream;

impl Emit<'_, '_, '_> {
    pub(super) fn needs_s8(&self, _step: &Step<'_, '_>, _names: &Names) -> Needs {
        Needs::default()
    }

    pub(super) fn forward_i8(&self, _steps: &[StepCode]) -> TokenStream {
        TokenStream::new()
    }

    pub(super) fn quantized_trait(&self) -> TokenStream {
        TokenStream::new()
    }
}

pub(super) fn call_s8(_step: &Step<'_, '_>, _names: &Names, _memory: &Memory) -> TokenStream {
    TokenStream::new()
}
