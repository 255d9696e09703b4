//! Engines whose models are part of the program, and the table of all engines.

pub mod microflow;
pub mod netkit;

use netkit_peers::engines::{
    Engine, NETKIT, NETKIT_RUNTIME, burn, embedded_nn, litert, onnxruntime, rten, tract,
};

/// netkit first, then the engines in the order of the table's columns.
pub const ENGINES: &[Engine] = &[
    Engine { name: NETKIT, open: netkit::open_macro },
    Engine { name: NETKIT_RUNTIME, open: netkit::open_runtime },
    Engine { name: "ONNX Runtime", open: onnxruntime::open },
    Engine { name: "LiteRT", open: litert::open },
    Engine { name: "tract", open: tract::open },
    Engine { name: "rten", open: rten::open },
    Engine { name: "burn", open: burn::open },
    Engine { name: "microflow", open: microflow::open },
    Engine { name: "embedded-nn", open: embedded_nn::open },
];
