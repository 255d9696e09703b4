//! Weight layouts and the packers: pure data movement, into memory the caller lends.
//!
//! The code generator packs a filter once, before the instruction set is known. Kernels that are given
//! weights in file order make the same panels, one at a time in their workspace, by shuffles of vectors;
//! that these hold the same values is what makes the two agree to the last bit.

mod panel_f32;
mod panel_i8;
mod row_sums;
mod winograd_f32;

pub use panel_f32::{
    pack_conv2d_f32, pack_depthwise_conv2d_f32, pack_panel_f32, packed_conv2d_f32_len,
    packed_depthwise_conv2d_f32_len,
};
pub use panel_i8::{
    GROUP, GROUP_BYTES, RowGroups, Runs, pack_conv2d_s8, pack_dense_s8, pack_depthwise_conv2d_s8,
    pack_depthwise_panel_s8, pack_panel_s8, packed_conv2d_s8_len, packed_dense_s8_len,
    packed_depthwise_conv2d_s8_len,
};
pub use row_sums::row_sums;
pub use winograd_f32::{
    WINOGRAD_POSITIONS, WINOGRAD_TILE, has_winograd_form, pack_conv2d_winograd_f32,
    packed_conv2d_winograd_f32_len, winograd_pays,
};

/// Output channels of one panel. Every vector width divides it; a kernel may walk a panel in halves or
/// several panels at once.
pub const PANEL: usize = 16;

/// How the weights of one filter lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackLayout {
    /// As in the file: `[out, kernel_h, kernel_w, in]`, `[channels, kernel_h, kernel_w]` or `[out, in]`.
    File,
    /// Convolution, float: `[⌈out / 16⌉][kernel_h · kernel_w · in][16]`, zeros where `out` ends; as in the file where the
    /// window is the whole map.
    PanelF32,
    /// Depthwise, float: `[kernel_h · kernel_w][channels · multiplier]`.
    TapsF32,
    /// Convolution and dense, int8: panels of 16 channels, taps in fours along [`Runs`], sums in front.
    PanelS8,
    /// Depthwise, int8: panels of 16 channels, taps in fours down [`RowGroups`], sums in front.
    RowGroupsS8,
}
