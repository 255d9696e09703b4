//! Weight layouts and the packers: pure data movement, into memory the caller lends.
//!
//! The code generator packs a filter once, before the instruction set is known; kernels that read
//! weights in file order pack one panel at a time into their workspace with the same functions. That
//! both go through here is what makes the two agree to the last bit.

mod panel_f32;

pub use panel_f32::{
    pack_conv2d_f32, pack_depthwise_conv2d_f32, pack_panel_f32, packed_conv2d_f32_len,
    packed_depthwise_conv2d_f32_len,
};

/// Output channels of one panel. Every vector width divides it; a kernel may walk a panel in halves or
/// several panels at once.
pub const PANEL: usize = 16;

/// How the weights of one filter lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackLayout {
    /// As in the file: `[out, kernel_h, kernel_w, in]`, `[channels, kernel_h, kernel_w]` or `[out, in]`.
    File,
    /// Convolution, float: `[⌈out / 16⌉][kernel_h · kernel_w · in][16]`, zeros where `out` ends.
    PanelF32,
    /// Depthwise, float: `[kernel_h · kernel_w][channels · multiplier]`.
    TapsF32,
}
