//! One module an engine that loads its models from files. Those that compile them in are part of
//! the comparison's own program (`src/compiled/`): a library with a hundred MiB of weights would be
//! linked into every small program here.

use std::path::PathBuf;

use crate::measure::Runner;
use crate::model::{Model, Result};

#[cfg(feature = "burn")]
pub mod burn;
#[cfg(feature = "embedded-nn")]
pub mod embedded_nn;
pub mod litert;
pub mod onnxruntime;
#[cfg(feature = "rten")]
pub mod rten;
#[cfg(feature = "tract")]
pub mod tract;

/// Where the Python side lives.
pub struct Python {
    /// The interpreter of the virtual environment.
    pub interpreter: PathBuf,
    /// `libonnxruntime.so` of the same environment.
    pub onnxruntime: PathBuf,
    /// The folder that holds the `litert_worker.py` script.
    pub scripts: PathBuf,
}

/// `Ok(None)`: the engine cannot express this model, or the model has no file in a form that the
/// engine reads.
pub type Open = fn(&Python, &Model) -> Result<Option<Box<dyn Runner>>>;

pub struct Engine {
    pub name: &'static str,
    pub open: Open,
}

/// The engine whose time every ratio is over.
pub const NETKIT: &str = "netkit";
/// netkit again, the file loaded at run time.
pub const NETKIT_RUNTIME: &str = "netkit runtime";

pub const ONNX_RUNTIME: &str = "ONNX Runtime";
/// The same with its slower int8 arithmetic that never saturates; on machines where that makes a difference.
pub const ONNX_RUNTIME_EXACT: &str = "ONNX Runtime exact";

/// Whether an engine is a peer: ratios to the best peer leave our own out.
pub fn is_peer(name: &str) -> bool {
    name != NETKIT && name != NETKIT_RUNTIME
}
