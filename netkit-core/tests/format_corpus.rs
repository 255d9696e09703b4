//! Every shipped file reads without a word, and its views hold what the format's description says
//! of it.
#![cfg(feature = "alloc")]

mod format_support;

use format_support::model_files;
use netkit_core::diag::Diagnostics;
use netkit_core::format::{ModelDescription, NkFile};

#[test]
fn every_file_reads_without_a_diagnostic() {
    for (name, bytes) in model_files() {
        let mut sink = Diagnostics::new();
        let file = NkFile::parse(&bytes, &mut sink);
        assert!(sink.is_empty(), "{name}: {}", sink.as_slice()[0]);
        let file = file.unwrap();
        assert_eq!(file.layers().count(), file.header().layer_count as usize, "{name}");
        assert_eq!(file.pairs().count(), file.header().pair_count as usize, "{name}");
        let used: u32 = file.layers().map(|layer| layer.pair_count).sum();
        assert_eq!(used, file.header().pair_count, "{name}");
        assert_eq!(file.tolerance().is_some(), file.cases().len() > 0, "{name}");
        assert_eq!(file.cases().count(), file.cases().len(), "{name}");
    }
}

#[test]
fn what_is_read_is_written_byte_for_byte() {
    for (name, bytes) in model_files() {
        let file = NkFile::parse(&bytes, &mut Diagnostics::new()).unwrap();
        let written = ModelDescription::from_file(&file).to_bytes().unwrap();
        let differs = written.iter().zip(&bytes).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{name}: first byte that differs");
        assert_eq!(written.len(), bytes.len(), "{name}");
    }
}
