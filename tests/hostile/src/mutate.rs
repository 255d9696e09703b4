//! Changes to inputs that know what the input is: fields and lengths at their extremes, products that overflow,
//! pieces lost, doubled and moved.

use crate::random::Random;
use netkit_core::diag::FirstError;
use netkit_core::format::{HEADER_BYTES, NkFile};

/// Values at which sizes, counts and products of them go wrong.
pub const EXTREMES: [u32; 20] = [
    0,
    1,
    2,
    3,
    4,
    7,
    100,
    101,
    128,
    129,
    255,
    0x4000,
    0x4001,
    0x1_0000,
    0x1_0001,
    0x4000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

/// Bit patterns of floats at which arithmetic goes wrong.
const FLOATS: [u32; 10] = [
    0x0000_0000, // 0
    0x8000_0000, // −0
    0x0000_0001, // the smallest
    0x007f_ffff, // the largest denormal
    0x7f7f_ffff, // the largest
    0xff7f_ffff,
    0x7f80_0000, // ∞
    0xff80_0000,
    0x7fc0_0000, // NaN
    0x3f80_0000, // 1
];

/// Replaces a word by an extreme or by a neighbour of what it is.
fn word(random: &mut Random, bytes: &mut [u8], at: usize) {
    let Some(slot) = bytes.get_mut(at..at + 4) else { return };
    let good = u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]]);
    let value = match random.below(8) {
        0 => good.wrapping_add(1),
        1 => good.wrapping_sub(1),
        2 => good.wrapping_neg(),
        3 => good.wrapping_mul(2),
        4 => random.choose(&FLOATS),
        5 => good ^ 1 << random.below(32),
        _ => random.choose(&EXTREMES),
    };
    slot.copy_from_slice(&value.to_le_bytes());
}

/// A change that needs no knowledge: a byte, a bit, a piece removed, doubled, moved or appended.
fn piece(random: &mut Random, bytes: &mut Vec<u8>) {
    let length = bytes.len();
    let at = random.below(length);
    let piece = at..(at + 1 + random.below(40)).min(length);
    match random.below(7) {
        0 if at < length => bytes[at] = random.next() as u8,
        1 if at < length => bytes[at] ^= 1 << random.below(8),
        2 => drop(bytes.drain(piece)),
        3 => {
            let copy = bytes[piece].to_vec();
            bytes.splice(at..at, copy);
        }
        4 => {
            let copy = bytes[piece].to_vec();
            let to = random.below(length - copy.len() + 1);
            bytes[to..to + copy.len()].copy_from_slice(&copy);
        }
        5 => bytes.truncate(at),
        _ => bytes.extend((0..1 + random.below(8)).map(|_| random.next() as u8)),
    }
}

/// Bytes without structure.
pub fn bytes(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(6) {
        piece(random, bytes);
    }
}

/// A `.nk` file: every field of header, records, catalog and tables, pairs of dimensions whose product overflows,
/// weights, test cases; as one change or a few.
pub fn nk(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(3) {
        let tables = NkFile::parse(bytes, &mut FirstError::new())
            .map_or_else(|| bytes.len().min(400), |file| file.weights_offset());
        match random.below(12) {
            0 => word(random, bytes, random.clone().below(HEADER_BYTES / 4) * 4),
            1..=4 => {
                let at = random.below(tables / 4) * 4;
                word(random, bytes, at);
            }
            // A byte of the tables: kinds, activations, paddings, ranks, types.
            5 | 6 => {
                let at = random.below(tables);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.choose(&[0, 1, 2, 3, 4, 5, 7, 15, 16, 127, 128, 255]);
                }
            }
            // Two neighbouring words whose product wraps 32 or 64 bits.
            7 => {
                let at = random.below(tables / 4) * 4;
                let (a, b) = random.choose(&[
                    (0x1_0001, 0x1_0000),
                    (0x1_0000, 0x1_0000),
                    (0x7fff_ffff, 4),
                    (0xffff_ffff, 0xffff_ffff),
                    (0x8000_0000, 2),
                ]);
                for (at, value) in [(at, a), (at + 4, b)] {
                    if let Some(slot) = bytes.get_mut(at..at + 4) {
                        slot.copy_from_slice(&u32::to_le_bytes(value));
                    }
                }
            }
            // A word behind the tables: a weight, a bias, the length of a case.
            8 | 9 => {
                let at = tables + random.below(bytes.len().saturating_sub(tables) / 4) * 4;
                word(random, bytes, at);
            }
            _ => piece(random, bytes),
        }
    }
}

/// A protobuf file: bytes that may be tags, lengths and numbers, at the extremes of a varint.
pub fn protobuf(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => {
                let varint: &[u8] = random.choose(&[
                    &[0x00],
                    &[0x7f],
                    &[0xff, 0x01],
                    &[0xff, 0xff, 0xff, 0xff, 0x07],
                    &[0x80, 0x80, 0x80, 0x80, 0x10],
                    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
                ]);
                let end = (at + 1).min(bytes.len());
                bytes.splice(at..end, varint.iter().copied());
            }
            1 | 2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = byte.wrapping_add(random.choose(&[1, 255, 8, 248, 128]));
                }
            }
            3 => word(random, bytes, at),
            _ => piece(random, bytes),
        }
    }
}

/// A command line: arguments with zero bytes between them.
pub fn arguments(random: &mut Random, bytes: &mut Vec<u8>) {
    const WORDS: [&str; 48] = [
        "convert",
        "inspect",
        "run",
        "test",
        "bench",
        "plan",
        "emit",
        "explain",
        "help",
        "--help",
        "--version",
        "-",
        "--",
        "---",
        "-o",
        "--output",
        "--check",
        "--input-shape",
        "--cases",
        "--labels",
        "--case-count",
        "--tolerance",
        "--no-verify",
        "--json",
        "--arena",
        "--isa",
        "--time",
        "--raw",
        "--profile",
        "--name",
        "--package",
        "--arena=1e999",
        "0",
        "-1",
        "1,2,3",
        "1,,2",
        "18446744073709551616",
        "64K",
        "64KiB",
        "99999999999G",
        "NaN",
        "inf",
        "-0",
        "avx2",
        "NK0101",
        "é",
        "models/mnist_mlp.nk",
        "=",
    ];
    for _ in 0..1 + random.below(4) {
        if random.below(3) == 0 {
            piece(random, bytes);
            continue;
        }
        let mut list: Vec<Vec<u8>> = bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        let at = random.below(list.len() + 1);
        match random.below(3) {
            0 if at < list.len() => drop(list.remove(at)),
            1 if at < list.len() => list.swap(0, at),
            _ => list.insert(at, random.choose(&WORDS).into()),
        }
        *bytes = list.join(&0);
    }
}
