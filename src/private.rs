//! What generated code names, and nothing else: not part of the public interface.
//!
//! Everything comes through here, down to the primitive types, so that a crate may call its own things `core`, `Result`
//! or `f32` and the generated code still means what it says.

pub use core::primitive::{f32, i8, str, u8, u64, usize};
pub use core::{
    compile_error, concat,
    default::Default,
    env, include_bytes,
    option::Option::{None, Some},
    result::Result,
};

pub use crate::aligned::{Align16, Align64, Aligned};
pub use crate::arena::{Arena, Region};
#[cfg(feature = "alloc")]
pub use crate::boxed::{Zero, boxed};
pub use crate::model::{Layer, Model, QuantizedModel};
pub use crate::self_test::{
    NONE as NO_CASES, SelfTest, SelfTestError, float as self_test_float,
    quantized as self_test_quantized,
};
pub use crate::{__if_alloc as if_alloc, __model as model};
#[cfg(feature = "alloc")]
pub use alloc::boxed::Box;
pub use netkit_core::op::*;
pub use netkit_core::quant::*;
