//! What generated code names, and nothing else: not part of the public interface.
//!
//! Everything comes through here, down to the primitive types, so that a crate may call its own things `core`, `Result`
//! or `f32` and the generated code still means what it says.

pub use core::primitive::{f32, i8, i32, str, u8, u64, usize};
pub use core::{
    compile_error, concat,
    default::Default,
    env, include_bytes,
    ops::FnMut,
    option::Option::{self, None, Some},
    result::Result,
};

pub use crate::aligned::{Align16, Align64, Aligned};
pub use crate::arena::{Arena, Region};
pub use crate::batch::{in_batches, sample, sample_mut, unobserved};
#[cfg(feature = "alloc")]
pub use crate::boxed::{Zero, boxed};
pub use crate::edges::{
    dequantize_all_in_place, dequantize_in_place, first_bytes, first_bytes_of, quantize,
};
pub use crate::model::{BatchModel, Layer, Model, QuantizedModel, Step};
pub use crate::self_test::{NO_CASES, SelfTest, SelfTestError, self_test_f32, self_test_s8};
pub use crate::{__if_alloc as if_alloc, __model as model};
#[cfg(feature = "alloc")]
pub use alloc::boxed::Box;
pub use netkit_core::op::{
    Activation, Concat, Conv2d, Dense, DepthwiseConv2d, PerChannel, Pool2d, Upsample2x, Window,
};
pub use netkit_core::quant::{AddStage, Multiplier, OutputStage, Quant, SoftmaxStage};
pub use netkit_kernels::{
    Filter, FilterForm, FilterS8, Kernels, concat as concat_tensors, copy, layout, layout_s8,
    row_sums, upsample2x, workspace,
};

/// Generated code imports this under the name of everything that it binds. A pattern that is the name of a constant, a
/// static or a unit structure means that instead of a new binding; one that is the name of a function does not.
pub const fn binding() {}

/// A window from pairs of height and width. Does not compile where the target cannot compute it.
#[must_use]
pub const fn window(
    input: [usize; 2],
    output: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: [usize; 2],
) -> Window {
    let window = Window {
        in_h: input[0],
        in_w: input[1],
        out_h: output[0],
        out_w: output[1],
        kernel_h: kernel[0],
        kernel_w: kernel[1],
        stride_h: stride[0],
        stride_w: stride[1],
        dilation_h: dilation[0],
        dilation_w: dilation[1],
        pad_top: padding[0],
        pad_left: padding[1],
    };
    assert!(window.is_computable(), "the maps of this model are too large for this target");
    window
}

/// The largest of some sizes; 0 of none.
#[must_use]
pub const fn largest(sizes: &[usize]) -> usize {
    let mut largest = 0;
    let mut i = 0;
    while i < sizes.len() {
        if sizes[i] > largest {
            largest = sizes[i];
        }
        i += 1;
    }
    largest
}
