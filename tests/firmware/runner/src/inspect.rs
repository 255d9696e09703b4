//! What the machine code itself must show: no formatting, heap or atomics in an image; no float in an int8 network; and that
//! the loops are made of the instructions the kernels are there for.
//!
//! Symbols tell what is linked, the counter which instructions ran and how often, the listing what they are.

use crate::counter::Executed;
use crate::image::{Architecture, Image};
use crate::target::Target;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What an instruction is, as far as anybody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Computes with floats.
    Float,
    /// Part of an atomic operation.
    Atomic,
    /// A sum of so many products.
    Dot(u64),
    /// So many products side by side.
    Products(u64),
    Other,
}

/// The instructions of an image by address.
pub(crate) struct Listing {
    kinds: BTreeMap<u64, Kind>,
}

/// One image that was run.
pub(crate) struct Inspection<'a> {
    pub(crate) target: &'a Target,
    pub(crate) workload: &'a str,
    pub(crate) image: &'a Image,
    pub(crate) listing: &'a Listing,
    pub(crate) executed: &'a [Executed],
    /// Names of the measured regions, in order.
    pub(crate) regions: &'a [&'a str],
    /// Whether the loops are netkit's: those of another library are made as it likes.
    pub(crate) own_kernels: bool,
    /// Products that the workload computes, where they must be made by dot products.
    pub(crate) products: Option<u64>,
}

/// The products of a network of dot products alone.
pub(crate) fn network_products(workload: &str) -> Option<u64> {
    match workload {
        // Of the second convolution's 11 × 11 pixels the pool behind it reads 10 × 10.
        "mnist_cnn_int8" => Some(26 * 26 * 9 * 32 + 10 * 10 * 9 * 32 * 64 + 1600 * 128 + 128 * 10),
        "mnist_mlp_int8" => Some(784 * 128 + 128 * 10),
        _ => None,
    }
}

/// Whether a workload computes in int8 where it is measured.
pub(crate) fn is_int8(workload: &str) -> bool {
    workload.ends_with("_int8") || workload == "kernels_s8"
}

impl Listing {
    /// Arm's is `arm-none-eabi-objdump`'s; RISC-V's instructions are told apart here, as far as they ran.
    pub(crate) fn read(
        target: &Target,
        path: &Path,
        image: &Image,
        executed: &[Executed],
    ) -> Result<Self, String> {
        let kinds = match image.architecture {
            Architecture::Thumb => {
                let mut command = Command::new("arm-none-eabi-objdump");
                let command = command.args(["-d", "--no-show-raw-insn"]).arg(path);
                if target.feature == Some("mve") {
                    // The image does not say that it holds vectors.
                    command.args(["-m", "armv8.1-m.main"]);
                }
                let output =
                    command.output().map_err(|error| format!("arm-none-eabi-objdump: {error}"))?;
                if !output.status.success() {
                    return Err(format!("arm-none-eabi-objdump: {}", output.status));
                }
                disassembled(&String::from_utf8_lossy(&output.stdout))
            }
            Architecture::RiscV => executed
                .iter()
                .filter_map(|entry| Some((entry.address, of_riscv(image.word(entry.address)?))))
                .collect(),
            Architecture::Aarch64 => BTreeMap::new(),
        };
        Ok(Self { kinds })
    }
}

/// Reads a listing: address, colon, mnemonic.
fn disassembled(listing: &str) -> BTreeMap<u64, Kind> {
    let instruction = |line: &str| {
        let (address, rest) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        Some((address, of_arm(rest.split_whitespace().next()?)))
    };
    listing.lines().filter_map(instruction).collect()
}

fn of_arm(mnemonic: &str) -> Kind {
    let (name, suffix) = mnemonic.split_once('.').unwrap_or((mnemonic, ""));
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let lanes = match suffix {
        "s8" | "u8" | "i8" => 16,
        "s16" | "u16" | "i16" => 8,
        _ => 4,
    };
    if ["f16", "f32", "f64"].iter().any(|float| suffix.split('.').any(|part| part == *float)) {
        Kind::Float
    } else if starts(&["ldrex", "strex", "ldaex", "stlex"]) {
        Kind::Atomic
    } else if starts(&["vmladav", "vmlav"]) {
        Kind::Dot(lanes)
    } else if starts(&["smlad", "smuad", "smlald"]) {
        Kind::Dot(2)
    } else if starts(&["vmull"]) {
        // Of every second lane, twice as wide.
        Kind::Products(lanes / 2)
    } else if starts(&["vmla", "vmul"]) {
        Kind::Products(lanes)
    } else {
        Kind::Other
    }
}

fn of_riscv(word: u32) -> Kind {
    // Two bytes long, unless both low bits are set. Outside of quadrant 1 an odd function is a load or store of floats.
    if word & 3 != 3 {
        let is_float = word & 3 != 1 && word >> 13 & 1 == 1;
        return if is_float { Kind::Float } else { Kind::Other };
    }
    match word & 0x7f {
        0x2f => Kind::Atomic,
        0x07 | 0x27 | 0x43 | 0x47 | 0x4b | 0x4f | 0x53 => Kind::Float,
        _ => Kind::Other,
    }
}

/// Whether a function computes with floats for processors that cannot.
fn is_soft_float(name: &str) -> bool {
    let helper = name.strip_prefix("__aeabi_");
    let of_arm = helper.is_some_and(|name| {
        name.starts_with('f') || name.starts_with('d') || name.contains("2f") || name.contains("2d")
    });
    let of_gcc =
        name.starts_with("__") && helper.is_none() && (name.contains("sf") || name.contains("df"));
    of_arm || of_gcc || name.contains("compiler_builtins5float") || name.contains("4libm")
}

/// What no image may hold, as part of a symbol's name, and what that is.
const FORBIDDEN: [(&str, &str); 7] = [
    ("4core3fmt", "core::fmt"),
    ("core..fmt", "core::fmt"),
    ("__rust_alloc", "an allocator"),
    ("_ZN5alloc", "the crate alloc"),
    ("_5alloc", "the crate alloc"),
    ("__atomic_", "atomics"),
    ("__sync_", "atomics"),
];

/// The multiply-accumulate operations of a region that must be done by instructions of a kind.
enum Work {
    Dots(u64),
    Products(u64),
}

impl Inspection<'_> {
    /// Everything that is not as it must be.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for function in &self.image.functions {
            for (part, what) in FORBIDDEN {
                if function.name.contains(part) {
                    complaints.push(format!("the image holds {what}: {}", function.name));
                }
            }
        }
        for (address, kind) in &self.listing.kinds {
            if *kind == Kind::Atomic {
                complaints.push(format!("an atomic operation at {address:#x}"));
            }
        }
        if is_int8(self.workload) {
            complaints.extend(self.floats());
        }
        for (region, work) in self.expected() {
            complaints.extend(self.work(region, &work));
        }
        complaints
    }

    fn floats(&self) -> impl Iterator<Item = String> {
        self.executed.iter().filter_map(|entry| {
            let function = self.image.function_at(entry.address).unwrap_or("elsewhere");
            let is_float = self.listing.kinds.get(&entry.address) == Some(&Kind::Float);
            (is_float || is_soft_float(function)).then(|| {
                let region = self.regions.get(entry.region).unwrap_or(&"?");
                format!("{region} computes with floats at {:#x}, {function}", entry.address)
            })
        })
    }

    /// What the loops of which region must be made of.
    fn expected(&self) -> Vec<(&'static str, Work)> {
        if !self.own_kernels {
            return Vec::new();
        }
        match (self.target.name, self.workload, self.products) {
            ("m4" | "m7" | "m33" | "m55", _, Some(products)) => {
                vec![("forward", Work::Dots(products))]
            }
            ("m55", "kernels_s8", _) => vec![
                ("conv2d-13x13x32-3x3-64", Work::Dots(11 * 11 * 9 * 32 * 64)),
                ("dense-400-64", Work::Dots(400 * 64)),
                ("depthwise-28x28x32-3x3", Work::Products(26 * 26 * 9 * 32)),
            ],
            _ => Vec::new(),
        }
    }

    fn work(&self, region: &str, work: &Work) -> Option<String> {
        let Some(index) = self.regions.iter().position(|name| *name == region) else {
            return Some(format!("no region {region}"));
        };
        let of_region = self.executed.iter().filter(|entry| entry.region == index);
        let done: u64 = of_region
            .map(|entry| match (work, self.listing.kinds.get(&entry.address)) {
                (Work::Dots(_), Some(Kind::Dot(products)))
                | (Work::Products(_), Some(Kind::Products(products))) => entry.count * products,
                _ => 0,
            })
            .sum();
        let (what, wanted) = match work {
            Work::Dots(wanted) => ("sums of products (smlad, vmladav, vmlav)", *wanted),
            Work::Products(wanted) => ("vectors of products (vmla, vmul)", *wanted),
        };
        (done < wanted).then(|| {
            format!("{region}: {done} of {wanted} products are made by {what}: the loop is not what it should be")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        FORBIDDEN, Inspection, Kind, Listing, disassembled, is_soft_float, of_arm, of_riscv,
    };
    use crate::counter::Executed;
    use crate::image::{Architecture, Function, Image, Size};
    use crate::target::TARGETS;

    #[test]
    fn arm_instructions() {
        for (mnemonic, kind) in [
            ("vmladava.s8", Kind::Dot(16)),
            ("vmlava.s8", Kind::Dot(16)),
            ("vmlavat.u8", Kind::Dot(16)),
            ("vmladavax.s16", Kind::Dot(8)),
            ("smlad", Kind::Dot(2)),
            ("vmla.i32", Kind::Products(4)),
            ("vmul.i32", Kind::Products(4)),
            ("vmullb.s16", Kind::Products(4)),
            ("vmul.f32", Kind::Float),
            ("vcvt.s32.f32", Kind::Float),
            ("vldr", Kind::Other),
            ("vpush", Kind::Other),
            ("vmov", Kind::Other),
            ("ldrex", Kind::Atomic),
            ("ldr.w", Kind::Other),
        ] {
            assert_eq!(of_arm(mnemonic), kind, "{mnemonic}");
        }
        let listing = disassembled(
            "00000130 <main>:\n     130:\tpush\t{r7, lr}\n     132:\tsmlad\tr0, r1, r2, r0\n",
        );
        assert_eq!(
            listing.into_iter().collect::<Vec<_>>(),
            [(0x130, Kind::Other), (0x132, Kind::Dot(2))]
        );
    }

    #[test]
    fn riscv_instructions() {
        for (word, kind) in [
            (0x00c5_8533, Kind::Other),  // add a0, a1, a2
            (0x00c5_f553, Kind::Float),  // fadd.s fa0, fa1, fa2
            (0x0005_2507, Kind::Float),  // flw fa0, 0(a0)
            (0x1005_252f, Kind::Atomic), // lr.w a0, (a0)
            (0x0000_852e, Kind::Other),  // c.mv a0, a1
            (0x0000_4502, Kind::Other),  // c.lwsp a0, 0(sp)
            (0x0000_050e, Kind::Other),  // c.slli a0, 3
            (0x0000_6108, Kind::Float),  // c.flw fa0, 0(a0)
            (0x0000_0001, Kind::Other),  // c.nop
            (0x0000_2001, Kind::Other),  // c.jal
        ] {
            assert_eq!(of_riscv(word), kind, "{word:#x}");
        }
    }

    #[test]
    fn soft_floats() {
        for name in [
            "__aeabi_fadd",
            "__aeabi_dmul",
            "__aeabi_i2f",
            "__aeabi_f2iz",
            "__mulsf3",
            "__floatsidf",
        ] {
            assert!(is_soft_float(name), "{name}");
        }
        for name in ["__aeabi_lmul", "__aeabi_uidiv", "__aeabi_memcpy", "__muldi3", "forward"] {
            assert!(!is_soft_float(name), "{name}");
        }
    }

    fn complaints(name: &str, kind: Kind, count: u64) -> Vec<String> {
        let image = Image {
            architecture: Architecture::Thumb,
            size: Size::default(),
            functions: vec![Function { name: name.to_owned(), address: 0x100, size: 0x100 }],
            text: Vec::new(),
        };
        let target = TARGETS.iter().find(|target| target.name == "m55").unwrap();
        let inspection = Inspection {
            target,
            workload: "mnist_cnn_int8",
            image: &image,
            listing: &Listing { kinds: [(0x120, kind)].into() },
            executed: &[Executed { region: 0, address: 0x120, count }],
            regions: &["forward"],
            own_kernels: true,
            products: Some(1600),
        };
        inspection.complaints()
    }

    #[test]
    fn what_must_not_be_is_found() {
        assert_eq!(complaints("forward", Kind::Dot(16), 100), Vec::<String>::new());
        assert!(complaints("forward", Kind::Dot(16), 99)[0].contains("1584 of 1600"));
        assert!(complaints("forward", Kind::Float, 1)[0].contains("floats at 0x120"));
        assert!(complaints("__mulsf3", Kind::Dot(16), 100)[0].contains("floats"));
        assert!(complaints("forward", Kind::Atomic, 1)[0].contains("atomic"));
        for (part, what) in FORBIDDEN {
            let found = complaints(&format!("_R{part}3abc"), Kind::Dot(16), 100);
            assert!(found.iter().any(|complaint| complaint.contains(what)), "{part}: {found:?}");
        }
    }
}
