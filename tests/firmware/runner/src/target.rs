//! The targets: what to compile for and what to run it on.

/// A way to run a firmware image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emulator {
    /// `qemu-system-arm` and further arguments after the machine.
    QemuArm { machine: &'static str, arguments: &'static [&'static str] },
    /// `qemu-system-riscv32`, machine `virt`.
    QemuRiscV,
    /// `qemu-aarch64` with this processor.
    QemuAarch64 { processor: &'static str },
    /// Node.js.
    Node,
}

/// One line of the table in docs/microcontrollers.md.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// What the command line and the budget call it.
    pub(crate) name: &'static str,
    /// What the table calls it.
    pub(crate) core: &'static str,
    pub(crate) triple: &'static str,
    pub(crate) rustflags: &'static str,
    /// The feature of netkit that goes with the processor.
    pub(crate) feature: Option<&'static str>,
    pub(crate) emulator: Emulator,
    /// Level 3 where the loops are the compiler's, size where they are assembly. It cannot be told for one crate apart:
    /// with link-time optimisation the level of the whole decides whether loops become vectors.
    pub(crate) optimisation: &'static str,
    /// The machine whose memory map `firmware-board` links for; empty where it has no say.
    pub(crate) memory: &'static str,
}

impl Target {
    /// Whether the firmware runs without an operating system.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self.emulator, Emulator::QemuArm { .. } | Emulator::QemuRiscV)
    }

    /// Whether its images are ELF files, which tell their sizes and where the markers are.
    pub(crate) fn has_elf(&self) -> bool {
        self.emulator != Emulator::Node
    }

    /// The emulator's program.
    pub(crate) fn program(&self) -> &'static str {
        match self.emulator {
            Emulator::QemuArm { .. } => "qemu-system-arm",
            Emulator::QemuRiscV => "qemu-system-riscv32",
            Emulator::QemuAarch64 { .. } => "qemu-aarch64",
            Emulator::Node => "node",
        }
    }

    /// Whether a workload fits into the machine's flash: 0.9 MiB of float weights do not fit into 512 KiB.
    pub(crate) fn holds(&self, workload: &str) -> bool {
        workload != "mnist_cnn" || !matches!(self.memory, "microbit" | "mps3-an547")
    }

    /// Whether the standard library is there, and `netkit` is built with it.
    pub(crate) fn has_std(&self) -> bool {
        matches!(self.emulator, Emulator::QemuAarch64 { .. })
    }
}

const SIZE: &str = "s";
const SPEED: &str = "3";

const fn cortex_m(
    name: &'static str,
    core: &'static str,
    triple: &'static str,
    rustflags: &'static str,
    machine: &'static str,
) -> Target {
    Target {
        name,
        core,
        triple,
        rustflags,
        feature: None,
        emulator: Emulator::QemuArm { machine, arguments: &[] },
        optimisation: SIZE,
        memory: machine,
    }
}

/// Every target, smallest first.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "m0",
        core: "Cortex-M0",
        triple: "thumbv6m-none-eabi",
        rustflags: "",
        feature: None,
        // The chip has 16 KiB of RAM and 256 KiB of flash; QEMU lets both grow, for the workloads that need more. What
        // fits in the real chip is told by the table's RAM and flash columns.
        emulator: Emulator::QemuArm {
            machine: "microbit",
            arguments: &[
                "-global",
                "nrf51-soc.sram-size=131072",
                "-global",
                "nrf51-soc.flash-size=524288",
            ],
        },
        optimisation: SPEED,
        memory: "microbit",
    },
    cortex_m("m3", "Cortex-M3", "thumbv7m-none-eabi", "", "mps2-an385"),
    cortex_m("m4", "Cortex-M4F", "thumbv7em-none-eabihf", "-Ctarget-cpu=cortex-m4", "mps2-an386"),
    cortex_m("m7", "Cortex-M7F", "thumbv7em-none-eabihf", "-Ctarget-cpu=cortex-m7", "mps2-an500"),
    Target {
        feature: Some("dsp"),
        ..cortex_m(
            "m33",
            "Cortex-M33",
            "thumbv8m.main-none-eabihf",
            "-Ctarget-cpu=cortex-m33",
            "mps2-an505",
        )
    },
    Target {
        feature: Some("mve"),
        optimisation: SPEED,
        ..cortex_m(
            "m55",
            "Cortex-M55",
            "thumbv8m.main-none-eabihf",
            "-Ctarget-cpu=cortex-m55",
            "mps3-an547",
        )
    },
    Target {
        name: "rv32",
        core: "RV32IMAC",
        triple: "riscv32imac-unknown-none-elf",
        rustflags: "",
        feature: None,
        emulator: Emulator::QemuRiscV,
        optimisation: SPEED,
        memory: "",
    },
    Target {
        name: "a53",
        core: "AArch64 without dotprod",
        triple: "aarch64-unknown-linux-gnu",
        rustflags: "",
        feature: None,
        emulator: Emulator::QemuAarch64 { processor: "cortex-a53" },
        optimisation: SPEED,
        memory: "",
    },
    Target {
        name: "a76",
        core: "AArch64 with dotprod",
        triple: "aarch64-unknown-linux-gnu",
        rustflags: "",
        feature: None,
        emulator: Emulator::QemuAarch64 { processor: "cortex-a76" },
        optimisation: SPEED,
        memory: "",
    },
    Target {
        name: "wasm",
        core: "wasm32",
        triple: "wasm32-unknown-unknown",
        rustflags: "",
        feature: None,
        emulator: Emulator::Node,
        optimisation: SPEED,
        memory: "",
    },
    Target {
        name: "wasm-simd128",
        core: "wasm32 with simd128",
        triple: "wasm32-unknown-unknown",
        rustflags: "-Ctarget-feature=+simd128",
        feature: None,
        emulator: Emulator::Node,
        optimisation: SPEED,
        memory: "",
    },
];
