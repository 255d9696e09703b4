//! What a firmware image takes in memory, and where its functions are.

use object::elf::{SHF_ALLOC, SHF_WRITE};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, SymbolKind};
use std::path::Path;

/// Bytes an image takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Sections with contents: code, constants, the image of initialised data.
    pub(crate) flash: u64,
    /// Of those, the executable ones.
    pub(crate) code: u64,
    /// Statics in RAM; the stack comes on top.
    pub(crate) statics: u64,
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    Thumb,
    RiscV,
    Aarch64,
}

/// A function of the image.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// What the runner needs to know of an ELF image.
pub(crate) struct Image {
    pub(crate) architecture: Architecture,
    pub(crate) size: Size,
    pub(crate) functions: Vec<Function>,
    /// Executable sections: address and bytes.
    pub(crate) text: Vec<(u64, Vec<u8>)>,
}

impl Image {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let explain = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let bytes = std::fs::read(path).map_err(|e| explain(&e))?;
        let file = object::File::parse(bytes.as_slice()).map_err(|e| explain(&e))?;
        let mut size = Size::default();
        let mut text = Vec::new();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            if sh_flags & u64::from(SHF_ALLOC) == 0 {
                continue;
            }
            let in_flash = section.kind() != SectionKind::UninitializedData;
            if in_flash {
                size.flash += section.size();
            }
            if section.kind() == SectionKind::Text {
                size.code += section.size();
                let bytes = section.data().map_err(|e| explain(&e))?;
                text.push((section.address(), bytes.to_vec()));
            }
            if sh_flags & u64::from(SHF_WRITE) != 0 {
                size.statics += section.size();
            }
        }
        let architecture = match file.architecture() {
            object::Architecture::Arm => Architecture::Thumb,
            object::Architecture::Riscv32 => Architecture::RiscV,
            object::Architecture::Aarch64 => Architecture::Aarch64,
            other => return Err(explain(&format!("an image for {other:?}"))),
        };
        let mut functions: Vec<Function> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| {
                let name = symbol.name().ok()?.to_owned();
                // A Thumb function's symbol has the lowest bit set; its instructions do not.
                let address =
                    symbol.address() & if architecture == Architecture::Thumb { !1 } else { !0 };
                Some(Function { name, address, size: symbol.size() })
            })
            .collect();
        functions.sort_by_key(|function| function.address);
        Ok(Self { architecture, size, functions, text })
    }

    /// The function that an address is in.
    pub(crate) fn function_at(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.address <= address);
        let before = self.functions.get(..after)?.iter().rev();
        // Some symbols have no size, and aliases begin at one address.
        let mut covering =
            before.filter(|f| f.size > 0).take(4).filter(|f| address < f.address + f.size);
        covering.next().map(|function| function.name.as_str())
    }

    /// The four bytes at an address of code, fewer at its end filled up with zeros.
    pub(crate) fn word(&self, address: u64) -> Option<u32> {
        let inside = |(start, bytes): &&(u64, Vec<u8>)| {
            (*start..*start + bytes.len() as u64).contains(&address)
        };
        let (start, bytes) = self.text.iter().find(inside)?;
        let bytes = bytes.get((address - start) as usize..)?;
        let mut word = [0; 4];
        for (to, &from) in word.iter_mut().zip(bytes) {
            *to = from;
        }
        Some(u32::from_le_bytes(word))
    }

    /// The address of the function called `name`.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|function| function.name == name).map(|f| f.address)
    }
}
