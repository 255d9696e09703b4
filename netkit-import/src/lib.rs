//! Trained models of other tools as netkit models.
//!
//! ```
//! # fn demo(file: Vec<u8>) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
//! use netkit_import::{Options, onnx};
//!
//! let source = onnx::Model::parse(file)?;
//! let conversion = source.convert(&Options::default())?;
//! Ok(conversion.model.to_bytes()?)
//! # }
//! ```
//!
//! An importer decodes a source, builds one graph of it with maps stored NHWC, rewrites that
//! (folding, fusion) and writes it as the layers of a `.nk` file. What cannot be converted is refused
//! by name, and all of it at once: [`Obstacles`] tells node, operator, shapes, reason and what helps.
//! A source is data from outside: however damaged or hostile, it makes an error, never a panic, and no
//! more memory is used than a small multiple of the file's size.
#![forbid(unsafe_code)]

mod cases;
mod conversion;
mod graph;
pub mod npy;
mod obstacle;
pub mod onnx;
mod options;
mod rewrite;
mod to_nk;
mod view;

pub use cases::CaseError;
pub use conversion::{Conversion, Interface};
pub use obstacle::{Obstacle, Obstacles, Origin};
pub use options::Options;
