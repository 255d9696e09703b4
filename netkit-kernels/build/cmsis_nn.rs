//! Finds the user's CMSIS-NN and looks whether it can be linked: before the linker does, whose messages name neither the
//! reason nor the remedy, or a device, which gives none.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The variable that names the library's folder.
pub(crate) const VARIABLE: &str = "CMSIS_NN_LIB_DIR";

/// The library's file.
const FILE: &str = "libcmsis-nn.a";

/// Functions that must be there.
const FUNCTIONS: &[&str] = &[
    "arm_convolve_wrapper_s8",
    "arm_convolve_wrapper_s8_get_buffer_size",
    "arm_depthwise_conv_wrapper_s8",
    "arm_depthwise_conv_wrapper_s8_get_buffer_size",
    "arm_fully_connected_s8",
    "arm_fully_connected_s8_get_buffer_size",
    "arm_max_pool_s8",
];

/// A function that version 7 added: dense layers with a factor for each output.
const SINCE_7: &str = "arm_fully_connected_wrapper_s8";

/// What is compiled for, as cargo tells build scripts.
#[derive(Debug)]
pub(crate) struct Target {
    /// `TARGET`.
    pub(crate) triple: String,
    /// `CARGO_CFG_TARGET_ARCH`.
    pub(crate) arch: String,
}

/// A library that can be linked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Library {
    pub(crate) folder: PathBuf,
    /// Whether it has the functions of version 7.
    pub(crate) is_version_7: bool,
    /// Whether it is compiled for processors with vectors.
    pub(crate) has_mve: bool,
}

/// Why there is no such library.
#[derive(Debug)]
pub(crate) enum Refusal {
    NotSet,
    Relative(PathBuf),
    NoFolder(PathBuf),
    NotAFolder(PathBuf),
    NoLibrary(PathBuf),
    Unreadable(PathBuf, io::Error),
    NotAnArchive(PathBuf),
    ThinArchive(PathBuf),
    Empty(PathBuf),
    NotAnObject { library: PathBuf, member: String },
    WrongMachine { library: PathBuf, member: String, found: Machine, triple: String },
    WrongProcessor { library: PathBuf, member: String, found: String, triple: String },
    FloatAbi { library: PathBuf, member: String, hard: bool, triple: String },
    MissingFunction { library: PathBuf, function: &'static str },
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSet => write!(
                f,
                "the feature `cmsis-nn` links CMSIS-NN, but {VARIABLE} is not set\n\
                 help: set it to the folder that holds your {FILE}, or turn the feature off"
            ),
            Self::Relative(folder) => write!(
                f,
                "{VARIABLE} is {}, which is relative, and to what is not known here\n\
                 help: name the whole path; cargo makes it from \
                 `[env] {VARIABLE} = {{ value = \"...\", relative = true }}` in .cargo/config.toml",
                folder.display()
            ),
            Self::NoFolder(folder) => {
                write!(f, "{VARIABLE} is {}, which does not exist", folder.display())
            }
            Self::NotAFolder(path) => write!(
                f,
                "{VARIABLE} is {}, which is not a folder\n\
                 help: name the folder that {FILE} lies in",
                path.display()
            ),
            Self::NoLibrary(folder) => write!(
                f,
                "there is no {FILE} in {} ({VARIABLE})\n\
                 help: a library of another name can be copied or linked to this one",
                folder.display()
            ),
            Self::Unreadable(path, error) => {
                write!(f, "{} cannot be read: {error}", path.display())
            }
            Self::NotAnArchive(path) => {
                write!(f, "{} is not a static library: no archive", path.display())
            }
            Self::ThinArchive(path) => write!(
                f,
                "{} is a thin archive, which holds no code\n\
                 help: make it without ar's option T",
                path.display()
            ),
            Self::Empty(path) => write!(f, "{} holds no object files", path.display()),
            Self::NotAnObject { library, member } => write!(
                f,
                "{member} in {} is not an object file that can be linked without its compiler\n\
                 help: compile the library without link-time optimisation",
                library.display()
            ),
            Self::WrongMachine { library, member, found, triple } => write!(
                f,
                "{} is compiled for {found} ({member}), not for {triple}",
                library.display()
            ),
            Self::WrongProcessor { library, member, found, triple } => write!(
                f,
                "{} is compiled for {found} ({member}), whose instructions {triple} does not have",
                library.display()
            ),
            Self::FloatAbi { library, member, hard, triple } => {
                let (is, wants, option) = if *hard {
                    ("in floating-point registers", "in integer registers", "soft")
                } else {
                    ("in integer registers", "in floating-point registers", "hard")
                };
                write!(
                    f,
                    "{} passes floats {is} ({member}), {triple} {wants}\n\
                     help: compile the library with -mfloat-abi={option}, or for the target whose name {}",
                    library.display(),
                    if *hard { "ends in `eabihf`" } else { "ends in `eabi`" },
                )
            }
            Self::MissingFunction { library, function } => write!(
                f,
                "{} lacks the function {function}\n\
                 help: netkit needs CMSIS-NN 6 or newer, with its s8 functions",
                library.display()
            ),
        }
    }
}

/// What an object file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// ELF's number.
    machine: u16,
    is_64_bit: bool,
}

impl Display for Machine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bits = if self.is_64_bit { "64" } else { "32" };
        match self.machine {
            3 => f.write_str("x86 (32 bits)"),
            40 => f.write_str("Arm (32 bits)"),
            62 => write!(f, "x86-64 ({bits} bits)"),
            183 => f.write_str("AArch64"),
            243 => write!(f, "RISC-V ({bits} bits)"),
            other => write!(f, "machine {other} of ELF ({bits} bits)"),
        }
    }
}

impl Target {
    /// What object files for it say, where they are ELF and it is known.
    fn machine(&self) -> Option<Machine> {
        if ["-apple-", "-windows-"].iter().any(|system| self.triple.contains(system)) {
            return None;
        }
        let (machine, is_64_bit) = match self.arch.as_str() {
            "x86" => (3, false),
            "arm" => (40, false),
            "x86_64" => (62, !self.triple.ends_with("x32")),
            "aarch64" => (183, !self.triple.contains("ilp32")),
            "riscv32" => (243, false),
            "riscv64" => (243, true),
            _ => return None,
        };
        Some(Machine { machine, is_64_bit })
    }

    /// Values of `Tag_CPU_arch` whose code it runs; `None` if it is not said here.
    fn architectures(&self) -> Option<&'static [u64]> {
        const V6_M: &[u64] = &[11, 12];
        const V7_M: &[u64] = &[10, 11, 12];
        const V7E_M: &[u64] = &[10, 11, 12, 13];
        const V8_M_BASE: &[u64] = &[11, 12, 16];
        // What a core of this line has is its maker's choice; that of 8.1 is still this target.
        const V8_M_MAIN: &[u64] = &[10, 11, 12, 13, 16, 17, 21];
        Some(match self.triple.split('-').next()? {
            "thumbv6m" => V6_M,
            "thumbv7m" => V7_M,
            "thumbv7em" => V7E_M,
            "thumbv8m.base" => V8_M_BASE,
            "thumbv8m.main" => V8_M_MAIN,
            _ => return None,
        })
    }

    /// Whether floats are passed in registers of their own.
    fn has_hard_floats(&self) -> bool {
        self.triple.ends_with("hf")
    }
}

/// Names of `Tag_CPU_arch`.
fn architecture_name(architecture: u64) -> String {
    match architecture {
        10 => "Armv7".to_owned(),
        11 | 12 => "Armv6-M".to_owned(),
        13 => "Armv7E-M".to_owned(),
        14 | 15 => "Armv8-A or R".to_owned(),
        16 => "Armv8-M Baseline".to_owned(),
        17 => "Armv8-M Mainline".to_owned(),
        21 => "Armv8.1-M Mainline".to_owned(),
        other => format!("architecture {other} of the Arm ABI"),
    }
}

/// The library in the folder that the variable names.
pub(crate) fn find(folder: Option<PathBuf>, target: &Target) -> Result<Library, Refusal> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).ok_or(Refusal::NotSet)?;
    if folder.is_relative() {
        return Err(Refusal::Relative(folder));
    }
    match fs::metadata(&folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(Refusal::NotAFolder(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Refusal::NoFolder(folder));
        }
        Err(error) => return Err(Refusal::Unreadable(folder, error)),
    }
    let path = folder.join(FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Refusal::NoLibrary(folder));
        }
        Err(error) => return Err(Refusal::Unreadable(path, error)),
    };
    let Inspected { is_version_7, has_mve } = inspect(&bytes, &path, target)?;
    Ok(Library { folder, is_version_7, has_mve })
}

/// The library's path for the linker's cache of what it depends on.
pub(crate) fn file(library: &Library) -> PathBuf {
    library.folder.join(FILE)
}

struct Inspected {
    is_version_7: bool,
    has_mve: bool,
}

/// Looks into every member of the archive.
fn inspect(bytes: &[u8], library: &Path, target: &Target) -> Result<Inspected, Refusal> {
    let not_an_archive = || Refusal::NotAnArchive(library.to_owned());
    if bytes.starts_with(b"!<thin>\n") {
        return Err(Refusal::ThinArchive(library.to_owned()));
    }
    let members = bytes.strip_prefix(b"!<arch>\n").ok_or_else(not_an_archive)?;
    let members = Members { rest: members, long_names: &[] };
    let (mut has_mve, mut objects) = (false, 0);
    let mut functions = BTreeSet::new();
    for member in members {
        let Member { name, content } = member.ok_or_else(not_an_archive)?;
        let Some(expected) = target.machine() else {
            // Not ELF: it is the linker who knows.
            return Ok(Inspected { is_version_7: true, has_mve: false });
        };
        objects += 1;
        let library = || library.to_owned();
        let Some(object) = Object::parse(content) else {
            return Err(Refusal::NotAnObject { library: library(), member: name });
        };
        if object.machine != expected {
            let (found, triple) = (object.machine, target.triple.clone());
            return Err(Refusal::WrongMachine { library: library(), member: name, found, triple });
        }
        if target.arch == "arm" {
            let attributes = object.attributes();
            let hard = attributes.float_arguments == Some(1);
            // 3 is for code that passes none.
            if attributes.float_arguments != Some(3) && hard != target.has_hard_floats() {
                let triple = target.triple.clone();
                return Err(Refusal::FloatAbi { library: library(), member: name, hard, triple });
            }
            if let (Some(found), Some(known)) = (attributes.architecture, target.architectures())
                && !known.contains(&found)
            {
                let (found, triple) = (architecture_name(found), target.triple.clone());
                let library = library();
                return Err(Refusal::WrongProcessor { library, member: name, found, triple });
            }
            has_mve |= attributes.mve.is_some_and(|mve| mve > 0);
        }
        object.functions(&mut functions);
    }
    if objects == 0 {
        return Err(Refusal::Empty(library.to_owned()));
    }
    for function in FUNCTIONS {
        if !functions.contains(function.as_bytes()) {
            return Err(Refusal::MissingFunction { library: library.to_owned(), function });
        }
    }
    Ok(Inspected { is_version_7: functions.contains(SINCE_7.as_bytes()), has_mve })
}

/// A file in an archive.
struct Member<'a> {
    name: String,
    content: &'a [u8],
}

/// The files of an archive of the System V kind; `None` where it is broken.
struct Members<'a> {
    rest: &'a [u8],
    long_names: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = Option<Member<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let Some((name, content)) = self.member() else {
                self.rest = &[];
                return Some(None);
            };
            match name {
                // Indexes of symbols, of 32 and 64 bits, and BSD's.
                "/" | "/SYM64/" => {}
                _ if name.starts_with("__.SYMDEF") => {}
                "//" => self.long_names = content,
                _ => {
                    let (name, content) = self.long_name(name, content);
                    return Some(Some(Member { name, content }));
                }
            }
        }
    }
}

impl<'a> Members<'a> {
    /// The next file as its header tells, index or not.
    fn member(&mut self) -> Option<(&'a str, &'a [u8])> {
        let (header, rest) = self.rest.split_at_checked(60)?;
        let text = |range| Some(std::str::from_utf8(header.get(range)?).ok()?.trim_end());
        let (name, size) = (text(0..16)?, text(48..58)?);
        if header.get(58..60)? != b"`\n" {
            return None;
        }
        let (content, rest) = rest.split_at_checked(size.parse().ok()?)?;
        // Files begin at even offsets; the last may lack its pad.
        let pad = (content.len() % 2).min(rest.len());
        self.rest = &rest[pad..];
        Some((name, content))
    }

    /// The name, which is in the table of long names (`/12`), before the content (`#1/12`), or whole (`a.o/`).
    fn long_name(&self, name: &str, content: &'a [u8]) -> (String, &'a [u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
        if let Some(len) = name.strip_prefix("#1/").and_then(|len| len.parse().ok())
            && let Some((name, content)) = content.split_at_checked(len)
        {
            return (text(name), content);
        }
        let offset = name.strip_prefix('/').and_then(|offset| offset.parse::<usize>().ok());
        if let Some(long) = offset.and_then(|offset| self.long_names.get(offset..)) {
            let end = long.iter().position(|&byte| byte == b'\n').unwrap_or(long.len());
            return (text(&long[..end]).trim_end_matches('/').to_owned(), content);
        }
        (name.trim_end_matches('/').to_owned(), content)
    }
}

/// An ELF file, little-endian.
struct Object<'a> {
    bytes: &'a [u8],
    machine: Machine,
    sections: Vec<Section<'a>>,
}

struct Section<'a> {
    kind: u32,
    link: usize,
    content: &'a [u8],
}

/// What the Arm ABI's attributes say; `None` where they do not.
#[derive(Debug, Default)]
struct Attributes {
    /// `Tag_CPU_arch`.
    architecture: Option<u64>,
    /// `Tag_ABI_VFP_args`.
    float_arguments: Option<u64>,
    /// `Tag_MVE_arch`.
    mve: Option<u64>,
}

const SYMBOLS: u32 = 2;
const ARM_ATTRIBUTES: u32 = 0x7000_0003;

impl<'a> Object<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let is_64_bit = match bytes.get(..6)? {
            b"\x7fELF\x01\x01" => false,
            b"\x7fELF\x02\x01" => true,
            _ => return None,
        };
        let machine = Machine { machine: number(bytes, 18, 2)? as u16, is_64_bit };
        let (table, entry) = if is_64_bit { ((0x28, 8), 0x3A) } else { ((0x20, 4), 0x2E) };
        let start = number(bytes, table.0, table.1)? as usize;
        let size = number(bytes, entry, 2)? as usize;
        let count = number(bytes, entry + 2, 2)? as usize;
        let mut object = Self { bytes, machine, sections: Vec::new() };
        for index in 0..count {
            let header = start.checked_add(index.checked_mul(size)?)?;
            let section = object.section(bytes.get(header..)?.get(..size)?)?;
            object.sections.push(section);
        }
        Some(object)
    }

    fn section(&self, header: &[u8]) -> Option<Section<'a>> {
        let kind = number(header, 4, 4)? as u32;
        let (offset, size, link) = if self.machine.is_64_bit {
            (number(header, 0x18, 8)?, number(header, 0x20, 8)?, number(header, 0x28, 4)?)
        } else {
            (number(header, 0x10, 4)?, number(header, 0x14, 4)?, number(header, 0x18, 4)?)
        };
        const NO_BITS: u32 = 8;
        let content = if kind == NO_BITS {
            &[]
        } else {
            self.bytes.get(offset as usize..)?.get(..size as usize)?
        };
        Some(Section { kind, link: link as usize, content })
    }

    /// Adds the names of functions that it defines for others.
    fn functions(&self, names: &mut BTreeSet<&'a [u8]>) {
        let entry = if self.machine.is_64_bit { 24 } else { 16 };
        let (info, section) = if self.machine.is_64_bit { (4, 6) } else { (12, 14) };
        for table in self.sections.iter().filter(|section| section.kind == SYMBOLS) {
            let Some(strings) = self.sections.get(table.link) else { continue };
            for symbol in table.content.chunks_exact(entry) {
                let (binding, kind) = (symbol[info] >> 4, symbol[info] & 15);
                let is_defined = number(symbol, section, 2).is_some_and(|section| section != 0);
                // Global or weak; a function.
                if !(matches!(binding, 1 | 2) && kind == 2 && is_defined) {
                    continue;
                }
                let name = number(symbol, 0, 4).and_then(|at| strings.content.get(at as usize..));
                if let Some(name) = name.and_then(|rest| rest.split(|&byte| byte == 0).next()) {
                    names.insert(name);
                }
            }
        }
    }

    /// The attributes of the whole file, from the section that the Arm ABI has for them.
    fn attributes(&self) -> Attributes {
        let mut found = Attributes::default();
        for section in self.sections.iter().filter(|section| section.kind == ARM_ATTRIBUTES) {
            // Broken ones say as much as none.
            let _ = found.read(section.content);
        }
        found
    }
}

impl Attributes {
    /// Reads `A`, then for each vendor length, name and parts, each of which is tag, length and, for the whole file, pairs.
    fn read(&mut self, section: &[u8]) -> Option<()> {
        let mut rest = section.strip_prefix(b"A")?;
        while !rest.is_empty() {
            let length = number(rest, 0, 4)? as usize;
            let (vendor, after) = rest.split_at_checked(length)?;
            rest = if length == 0 { return None } else { after };
            let Some(mut parts) = vendor.get(4..)?.strip_prefix(b"aeabi\0") else { continue };
            while !parts.is_empty() {
                let length = number(parts, 1, 4)? as usize;
                let (part, after) = parts.split_at_checked(length)?;
                let is_file = *part.first()? == 1;
                if is_file {
                    self.pairs(part.get(5..)?)?;
                }
                parts = after;
            }
        }
        Some(())
    }

    fn pairs(&mut self, mut pairs: &[u8]) -> Option<()> {
        while !pairs.is_empty() {
            let tag = leb128(&mut pairs)?;
            // Compatibility has a number and a text. Otherwise numbers and texts alternate from 32 on; below, two are
            // texts.
            let (has_number, has_text) = match tag {
                32 => (true, true),
                4 | 5 => (false, true),
                0..32 => (true, false),
                _ => (tag % 2 == 0, tag % 2 == 1),
            };
            if has_number {
                let value = leb128(&mut pairs)?;
                match tag {
                    6 => self.architecture = Some(value),
                    28 => self.float_arguments = Some(value),
                    48 => self.mve = Some(value),
                    _ => {}
                }
            }
            if has_text {
                let end = pairs.iter().position(|&byte| byte == 0)?;
                pairs = pairs.get(end + 1..)?;
            }
        }
        Some(())
    }
}

/// A little-endian number of up to 8 bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let field = bytes.get(at..)?.get(..len)?;
    Some(field.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// A number in groups of seven bits, low ones first.
fn leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
