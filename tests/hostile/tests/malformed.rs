//! Pitfall B34: the shapes of malformed files that broke other loaders, through every door.

use netkit_hostile::{seeds, target};

/// A change to a file, and why it matters.
type Damage = (&'static str, fn(&mut Vec<u8>));

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// On the worked model of the format's description: header 48, two records of 16 bytes, four descriptors of 24 bytes
/// from byte 80, payload at 176, test cases at 224.
const DAMAGES: [Damage; 16] = [
    ("an input of 2^31 − 1 features", |file| put(file, 16, i32::MAX as u32)),
    ("65537 × 65536 inputs wrap 32 bits", |file| {
        put(file, 12, 65537);
        put(file, 16, 65536);
    }),
    ("2^32 − 1 squared wraps 64 bits in bytes", |file| {
        put(file, 12, u32::MAX);
        put(file, 16, u32::MAX);
    }),
    ("eight bytes", |file| file.truncate(8)),
    ("nothing", Vec::clear),
    ("no layers", |file| put(file, 28, 0)),
    ("2^32 − 1 layers", |file| put(file, 28, u32::MAX)),
    ("101 layers", |file| put(file, 28, 101)),
    ("2^32 − 1 tensors", |file| {
        put(file, 32, u32::MAX);
        put(file, 36, u32::MAX);
    }),
    ("payload offset and size wrap 32 bits", |file| put(file, 40, u32::MAX - 175)),
    ("both payloads together wrap 32 bits", |file| {
        put(file, 40, 0x8000_0000);
        put(file, 44, 0x8000_0000);
    }),
    ("a tensor of rank 5", |file| file[80] = 5),
    ("a tensor whose dimensions wrap 32 bits to its count", |file| {
        put(file, 84, 0x1_0000);
        put(file, 88, 0x1_0000);
        put(file, 100, 0);
    }),
    ("a dense layer of 2^32 − 1 units", |file| put(file, 52, u32::MAX)),
    ("2^32 − 1 test cases", |file| put(file, 228, u32::MAX)),
    ("a case whose input is longer than the file", |file| put(file, 256, 16384)),
];

#[test]
fn b34_known_shapes_of_malformed_files_are_refused_by_every_door() {
    let good = seeds::nk().swap_remove(0);
    for name in ["parse", "compile", "roundtrip", "expand", "runtime"] {
        let run = target(name).unwrap().run;
        assert!(run(&good), "{name}");
        for (what, damage) in DAMAGES {
            let mut file = good.clone();
            damage(&mut file);
            // Whether layers fit each other is not for reading to say.
            let whole_network = matches!(name, "compile" | "expand" | "runtime");
            assert!(!run(&file) || !whole_network, "{name} accepts {what}");
        }
    }
}
