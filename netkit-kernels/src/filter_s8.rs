//! An int8 filter as a door receives it.

use crate::filter::FilterForm;

/// The weights of an int8 convolution or dense layer.
#[derive(Clone, Copy, Debug)]
pub enum FilterS8<'a> {
    /// In the file's own order: convolution `[out, kernel_h, kernel_w, in]`, depthwise
    /// `[channels · multiplier, kernel_h, kernel_w]`, dense `[out, in]`.
    File(&'a [i8]),
    /// Packed beforehand by [`pack_conv2d_s8`](netkit_core::pack::pack_conv2d_s8),
    /// [`pack_depthwise_conv2d_s8`](netkit_core::pack::pack_depthwise_conv2d_s8) or
    /// [`pack_dense_s8`](netkit_core::pack::pack_dense_s8), for the same operator.
    ///
    /// Not on microcontrollers, whose kernels read file order: there the code for it would only take flash.
    #[cfg(not(netkit_micro))]
    Packed(&'a [i8]),
}

impl FilterS8<'_> {
    /// Which variant this is.
    #[must_use]
    pub const fn form(&self) -> FilterForm {
        match self {
            Self::File(_) => FilterForm::File,
            #[cfg(not(netkit_micro))]
            Self::Packed(_) => FilterForm::Packed,
        }
    }
}
