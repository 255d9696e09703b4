//! ONNX.

mod constant;
mod evaluate;
mod import;
mod layout;
mod model;
mod operators;
mod window;
mod wire;

#[cfg(test)]
mod tests;

pub use evaluate::EvaluateError;
pub use model::{MAX_FILE_BYTES, Model, ParseError};

use crate::conversion::Conversion;
use crate::obstacle::Obstacles;
use crate::options::Options;

impl Model {
    /// What the model is as a `.nk` file.
    ///
    /// # Errors
    /// Every obstacle that was found, named after the nodes it concerns; never panics.
    pub fn convert(&self, options: &Options) -> Result<Conversion, Obstacles> {
        import::import(self, options).into_conversion()
    }
}
