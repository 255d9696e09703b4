//! An ONNX file converted.

use netkit_core::diag::{Diagnostics, FirstError};
use netkit_core::format::NkFile;
use netkit_core::program::{OwnedStorage, compile};
use netkit_import::{Options, onnx};

/// An error of one or more sentences, or a model that netkit itself accepts.
pub(crate) fn run(bytes: &[u8]) -> bool {
    let model = match onnx::Model::parse(bytes.to_vec()) {
        Ok(model) => model,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let conversion = match model.convert(&Options::default()) {
        Ok(conversion) => conversion,
        Err(obstacles) => {
            assert!(!obstacles.as_slice().is_empty());
            for obstacle in obstacles.as_slice() {
                assert!(!obstacle.to_string().is_empty());
            }
            return false;
        }
    };
    // A conversion may still break a rule of the format, which is then an error with that rule's name.
    let Ok(written) = conversion.model.to_bytes() else { return false };
    let mut sink = FirstError::new();
    let file = NkFile::parse(&written, &mut sink).expect("what is written is valid");
    let mut all = Diagnostics::new();
    let mut storage = OwnedStorage::of(&file);
    let _ = compile(&file, storage.lend(), &mut all);
    true
}
