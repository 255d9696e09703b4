//! Engines whose models are part of the program, and the table of all engines.

#[cfg(feature = "microflow")]
pub mod microflow;
pub mod netkit;

#[cfg(feature = "burn")]
use netkit_peers::engines::burn;
#[cfg(feature = "embedded-nn")]
use netkit_peers::engines::embedded_nn;
#[cfg(feature = "rten")]
use netkit_peers::engines::rten;
#[cfg(feature = "tract")]
use netkit_peers::engines::tract;
use netkit_peers::engines::{
    Engine, NETKIT, NETKIT_RUNTIME, ONNX_RUNTIME, ONNX_RUNTIME_EXACT, litert, onnxruntime,
};

/// netkit first, then the engines that were built in, in the order of the table's columns.
pub const ENGINES: &[Engine] = &[
    Engine { name: NETKIT, open: netkit::open_macro },
    Engine { name: NETKIT_RUNTIME, open: netkit::open_runtime },
    Engine { name: ONNX_RUNTIME, open: onnxruntime::open },
    Engine { name: ONNX_RUNTIME_EXACT, open: onnxruntime::open_exact },
    Engine { name: "LiteRT", open: litert::open },
    #[cfg(feature = "tract")]
    Engine { name: "tract", open: tract::open },
    #[cfg(feature = "rten")]
    Engine { name: "rten", open: rten::open },
    #[cfg(feature = "burn")]
    Engine { name: "burn", open: burn::open },
    #[cfg(feature = "microflow")]
    Engine { name: "microflow", open: microflow::open },
    #[cfg(feature = "embedded-nn")]
    Engine { name: "embedded-nn", open: embedded_nn::open },
];
