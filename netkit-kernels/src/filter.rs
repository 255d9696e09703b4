//! A filter as a door receives it.

/// The weights of a convolution or dense layer, float.
#[derive(Clone, Copy, Debug)]
pub enum Filter<'a> {
    /// In the file's own order: convolution `[out, kernel_h, kernel_w, in]`, depthwise
    /// `[channels · multiplier, kernel_h, kernel_w]`, dense `[out, in]`.
    File {
        /// The weights where they lie.
        values: &'a [f32],
        /// One factor for each output channel: that of a batch norm folded into this operator. The
        /// kernel computes with `w · scale` rounded to `f32`, as if the weights had been folded
        /// beforehand; the bias arrives folded.
        scale: Option<&'a [f32]>,
    },
    /// Packed beforehand by [`netkit_core::pack`]: convolutions as
    /// [`PanelF32`](netkit_core::pack::PackLayout::PanelF32), depthwise ones as
    /// [`TapsF32`](netkit_core::pack::PackLayout::TapsF32), dense layers in file order.
    ///
    /// Not on microcontrollers, whose kernels read file order: there the code for it would only take flash.
    #[cfg(not(netkit_micro))]
    Packed(&'a [f32]),
}

/// Which variant of [`Filter`] (or its int8 counterpart) a workspace is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterForm {
    /// [`Filter::File`].
    File,
    /// [`Filter::Packed`].
    Packed,
}

impl Filter<'_> {
    /// Which variant this is.
    #[must_use]
    pub const fn form(&self) -> FilterForm {
        match self {
            Self::File { .. } => FilterForm::File,
            #[cfg(not(netkit_micro))]
            Self::Packed(_) => FilterForm::Packed,
        }
    }
}
