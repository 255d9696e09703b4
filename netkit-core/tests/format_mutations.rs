//! Damaged files: whatever is done to the bytes, reading them ends in a view or in diagnostics, and
//! compiling what was read in a program or in diagnostics.
//!
//! `NETKIT_MUTATIONS` sets how many random mutations each file gets, for longer runs than CI's.
#![cfg(feature = "alloc")]

mod format_support;

use format_support::{every_kind, int8_cnn, model_files, worked_mlp};
use netkit_core::diag::{Diagnostics, FirstError};
use netkit_core::format::{CaseInput, ModelDescription, NkFile};
use netkit_core::program::{OwnedStorage, compile};

/// Reads `bytes`, uses all of the view if there is one, and gives whether there was.
fn read(bytes: &[u8]) -> bool {
    let mut all = Diagnostics::new();
    let mut first = FirstError::new();
    let file = NkFile::parse(bytes, &mut all);
    assert_eq!(file.is_some(), all.is_empty());
    assert_eq!(NkFile::parse(bytes, &mut first).is_some(), file.is_some());
    let codes = |sink: &Diagnostics| sink.iter().next().map(|found| (found.code, found.site));
    assert_eq!(first.first().map(|found| (found.code, found.site)), codes(&all));
    check_texts(&all, bytes);
    let Some(file) = file else { return false };
    walk(&file);
    let mut storage = OwnedStorage::of(&file);
    let compiled = compile(&file, storage.lend(), &mut all).is_some();
    assert_eq!(compiled, all.is_empty());
    check_texts(&all, bytes);
    let written = ModelDescription::from_file(&file).to_bytes().unwrap();
    assert!(written.len() <= bytes.len());
    let again = NkFile::parse(&written, &mut FirstError::new()).unwrap();
    assert_eq!(ModelDescription::from_file(&again).to_bytes().unwrap(), written);
    true
}

/// Every diagnostic must read as a sentence and point into the file.
fn check_texts(diagnostics: &Diagnostics, bytes: &[u8]) {
    for found in diagnostics.iter() {
        let text = found.to_string();
        assert!(
            !["{field}", "{is}", "{found}", "{expected}"].iter().any(|slot| text.contains(slot)),
            "{text}"
        );
        assert!(found.site.offset.is_none_or(|offset| offset <= bytes.len() as u64), "{text}");
    }
}

/// Touches every value that a view gives, and checks that they come from where it says.
fn walk(file: &NkFile<'_>) {
    let bytes = file.as_bytes();
    assert_eq!(file.layers().count(), file.header().layer_count as usize);
    let (mut weights, mut biases) = (0, 0);
    for pair in file.pairs() {
        for tensor in [pair.weight, pair.bias] {
            assert_eq!(tensor.as_bytes().len(), tensor.shape.elements() * tensor.dtype.size());
            let start = tensor.offset as usize;
            assert_eq!(tensor.as_bytes(), &bytes[start..start + tensor.as_bytes().len()]);
            let f32s = tensor.as_f32().map_or(0, |values| values.iter().count());
            let i8s = tensor.as_i8().map_or(0, |values| values.iter().count());
            let i32s = tensor.as_i32().map_or(0, |values| values.iter().count());
            assert_eq!(f32s + i8s + i32s, tensor.shape.elements());
        }
        weights += pair.weight.as_bytes().len();
        biases += pair.bias.as_bytes().len();
    }
    assert_eq!(file.pairs().count(), file.header().pair_count as usize);
    assert!(file.weight_payload().len() - weights < 4);
    assert_eq!(file.bias_payload().len(), biases);
    for record in file.quant_records() {
        assert!(record.channel_scales.iter().all(|scale| scale > 0.0));
        assert!(record.weight_scale(0) > 0.0 && record.weight_scale(usize::MAX) > 0.0);
    }
    let records = if file.header().is_quantized() { file.header().pair_count } else { 0 };
    assert_eq!(file.quant_records().count(), records as usize);
    for case in file.cases() {
        assert!(!case.name.is_empty() && !case.input.is_empty() && !case.expected.is_empty());
        if let CaseInput::F32(values) = case.input {
            assert!(values.iter().all(f32::is_finite));
        }
        assert!(case.expected.iter().all(f32::is_finite));
    }
    assert_eq!(file.cases().count(), file.cases().len());
    assert!(file.pair(usize::MAX).is_none() && file.quant_record(usize::MAX).is_none());
}

fn small_files() -> Vec<(String, Vec<u8>)> {
    let built = [("worked_mlp", worked_mlp()), ("int8_cnn", int8_cnn()), ("kinds", every_kind())];
    built.into_iter().map(|(name, model)| (name.into(), model.to_bytes().unwrap())).collect()
}

#[test]
fn every_truncation_is_refused() {
    for (name, bytes) in small_files() {
        assert!(read(&bytes), "{name}");
        for length in 0..bytes.len() {
            assert!(!read(&bytes[..length]), "{name} cut at {length}");
        }
    }
    for (name, bytes) in model_files() {
        assert!(read(&bytes), "{name}");
        let step = bytes.len() / 200 + 1;
        for length in (0..bytes.len()).step_by(step).chain(bytes.len() - 9..bytes.len()) {
            assert!(!read(&bytes[..length]), "{name} cut at {length}");
        }
    }
}

#[test]
fn every_byte_may_have_any_value() {
    for (name, good) in small_files() {
        let mut bytes = good.clone();
        for offset in 0..good.len() {
            for value in 0..=255 {
                bytes[offset] = value;
                let _ = read(&bytes);
            }
            bytes[offset] = good[offset];
        }
        assert!(read(&bytes), "{name}");
    }
}

/// Values at which sizes and counts go wrong.
const EXTREMES: [u32; 14] = [
    0,
    1,
    2,
    4,
    100,
    128,
    255,
    0x4000,
    0x1_0000,
    0x4000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

/// Each extreme, and the neighbours of what is there.
fn extremes(good: u32) -> impl Iterator<Item = u32> {
    EXTREMES.into_iter().chain([good.wrapping_sub(1), good.wrapping_add(1), good.wrapping_neg()])
}

/// Pitfall B34: dimensions, counts and lengths at which products and sums wrap.
#[test]
fn b34_every_word_may_be_extreme() {
    let mut files = small_files();
    files.extend(model_files());
    for (name, good) in files {
        // Large files: the tables before the payload, where every size is.
        let tables = NkFile::parse(&good, &mut FirstError::new()).unwrap().weights_offset();
        let end = if good.len() < 4096 { good.len() - 3 } else { tables.min(512) };
        let mut bytes = good.clone();
        for offset in 0..end {
            let word = [good[offset], good[offset + 1], good[offset + 2], good[offset + 3]];
            for value in extremes(u32::from_le_bytes(word)) {
                if offset % 4 != 0 && good.len() >= 4096 {
                    continue;
                }
                bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
                let _ = read(&bytes);
            }
            bytes[offset..offset + 4].copy_from_slice(&word);
        }
        assert!(read(&bytes), "{name}");
    }
}

/// A xorshift generator: the same mutations in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// One to four changes: bytes, words, pieces removed, doubled or moved, most of them near the
    /// front, where the tables are.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let length = bytes.len();
            let reach = if self.below(3) == 0 { length } else { length.min(600) };
            let at = self.below(reach);
            let piece = at..(at + 1 + self.below(40)).min(length);
            match self.below(7) {
                0 => bytes[at] = self.next() as u8,
                1 => bytes[at] ^= 1 << self.below(8),
                2 | 3 if at + 4 <= length => {
                    let value = EXTREMES[self.below(EXTREMES.len())];
                    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
                }
                4 => drop(bytes.drain(piece)),
                5 => {
                    let copy = bytes[piece].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => {
                    let copy = bytes[piece].to_vec();
                    let to = self.below(length - copy.len());
                    bytes[to..to + copy.len()].copy_from_slice(&copy);
                }
            }
            if bytes.is_empty() {
                return;
            }
        }
    }
}

#[test]
fn random_mutations_are_read_or_refused() {
    let asked = std::env::var("NETKIT_MUTATIONS").ok().and_then(|count| count.parse().ok());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut files = small_files();
    files.extend(model_files());
    let (mut read_back, mut refused) = (0_u64, 0_u64);
    for (_, good) in files {
        let count = asked.unwrap_or(if good.len() < 4096 { 8_000 } else { 300 });
        for _ in 0..count {
            let mut bytes = good.clone();
            random.mutate(&mut bytes);
            *(if read(&bytes) { &mut read_back } else { &mut refused }) += 1;
        }
    }
    println!("{read_back} mutated files read, {refused} refused");
    assert!(read_back > 0 && refused > read_back);
}
