//! Batch norms are folded where that changes nothing for anybody, and nowhere else.

use netkit_backbones::batch_norms;
use netkit_core::diag::FirstError;
use netkit_core::format::NkFile;
use netkit_core::op::Op;
use netkit_core::program::{OwnedStorage, compile};
use netkit_corpus_tests::MODELS;

#[test]
fn batch_norms_are_folded_where_they_may_be() {
    for network in batch_norms() {
        let name = network.name;
        let bytes = network.model.to_bytes().unwrap();
        let mut sink = FirstError::new();
        let file = NkFile::parse(&bytes, &mut sink).unwrap();
        let mut storage = OwnedStorage::of(&file);
        let program = compile(&file, storage.lend(), &mut sink).unwrap();
        let nodes = program.graph().nodes();
        let unfolded = nodes.iter().filter(|node| matches!(node.op, Op::BatchNorm(..))).count();
        assert_eq!(unfolded, network.unfolded, "{name}");

        // The values, compiled and loaded; `golden.rs` and `differential.rs` do so for every model.
        let file_name = format!("batch_norm/{name}.nk");
        let model = MODELS.iter().find(|model| model.name == file_name).unwrap();
        assert_eq!((model.check)().map(|passed| passed.cases), Ok(1), "{name}");
        assert_eq!((model.compare)(&bytes), Ok(()), "{name}");
    }
}
