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

/// A function of the image.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// What the runner needs to know of an ELF image.
pub(crate) struct Image {
    pub(crate) size: Size,
    pub(crate) functions: Vec<Function>,
}

impl Image {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let explain = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let bytes = std::fs::read(path).map_err(|e| explain(&e))?;
        let file = object::File::parse(bytes.as_slice()).map_err(|e| explain(&e))?;
        let mut size = Size::default();
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
            }
            if sh_flags & u64::from(SHF_WRITE) != 0 {
                size.statics += section.size();
            }
        }
        let is_thumb = file.architecture() == object::Architecture::Arm;
        let functions = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| {
                let name = symbol.name().ok()?.to_owned();
                // A Thumb function's symbol has the lowest bit set; its instructions do not.
                let address = symbol.address() & if is_thumb { !1 } else { !0 };
                Some(Function { name, address, size: symbol.size() })
            })
            .collect();
        Ok(Self { size, functions })
    }

    /// The address of the function called `name`.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|function| function.name == name).map(|f| f.address)
    }
}
