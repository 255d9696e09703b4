//! Where models come from: the rules for paths, and reading.

use netkit_core::format::{HEADER_BYTES, MAGIC};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What a path is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Base {
    /// The folder of the invoking package's `Cargo.toml`.
    Manifest,
    /// The folder that the invoking package's build script writes to.
    OutDir,
}

impl Base {
    /// The environment variable that holds the folder, for the macro and for the code it makes.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Manifest => "CARGO_MANIFEST_DIR",
            Self::OutDir => "OUT_DIR",
        }
    }
}

/// A path as the macro accepts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelPath {
    /// What it is relative to.
    pub base: Base,
    /// The rest, as written.
    pub relative: String,
}

/// A path that the macro refuses, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// Nothing between the quotes.
    Empty,
    /// It starts at the root of a file system or drive.
    Absolute,
    /// It starts with a variable that is not `$OUT_DIR`.
    Variable,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => {
                "the path is empty\n\
                 hint: it is relative to the package's Cargo.toml, such as \"models/digits.nk\""
            }
            Self::Absolute => {
                "absolute paths are refused, because they hold on one machine only\n\
                 hint: write the path relative to the package's Cargo.toml, or \"$OUT_DIR/…\" for a \
                 file that the build script makes"
            }
            Self::Variable => {
                "only $OUT_DIR may stand at the start of a path\n\
                 hint: all other paths are relative to the package's Cargo.toml"
            }
        })
    }
}

impl ModelPath {
    /// Applies the rules to a path as written.
    pub fn parse(written: &str) -> Result<Self, PathError> {
        let (base, relative) = match written.strip_prefix("$OUT_DIR") {
            Some(rest) => match rest.strip_prefix(['/', '\\']) {
                Some(relative) => (Base::OutDir, relative),
                None => return Err(PathError::Variable),
            },
            None => (Base::Manifest, written),
        };
        let bytes = relative.as_bytes();
        // `C:` is a drive whatever follows; a file of that name would not be portable either.
        let has_drive = bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
        if relative.is_empty() {
            Err(PathError::Empty)
        } else if relative.starts_with('$') {
            Err(PathError::Variable)
        } else if relative.starts_with(['/', '\\']) || has_drive {
            Err(PathError::Absolute)
        } else {
            Ok(Self { base, relative: relative.to_owned() })
        }
    }

    /// The file's name without extension.
    pub fn stem(&self) -> &str {
        let name = self.relative.rsplit(['/', '\\']).next().unwrap_or_default();
        match name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => name,
        }
    }
}

/// As written, but for what `Escaped` escapes.
impl fmt::Display for ModelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.base == Base::OutDir {
            f.write_str("$OUT_DIR/")?;
        }
        Escaped(&self.relative).fmt(f)
    }
}

/// A name for comments, documentation and messages. It may hold line ends, behind which a comment would end and code begin,
/// and characters that steer a terminal or turn the direction of text, which the compiler refuses.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            let turns_text = matches!(
                character,
                '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            );
            if character.is_control() || turns_text {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

/// The same of a path on disk.
fn shown(path: &Path) -> String {
    Escaped(&path.to_string_lossy()).to_string()
}

/// Why a model could not be read: a sentence, and lines of help behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Where models are read from.
pub trait Source {
    /// The bytes of a file.
    fn read(&self, path: &ModelPath) -> Result<Vec<u8>, ReadError>;
}

/// Files on disk, as the invoking package sees them.
#[derive(Clone, Debug)]
pub struct Disk {
    manifest: Option<PathBuf>,
    out: Option<PathBuf>,
}

impl Disk {
    /// The folders of the package being compiled, from the variables that cargo sets.
    pub fn from_environment() -> Self {
        let folder = |base: Base| std::env::var_os(base.variable()).map(PathBuf::from);
        Self { manifest: folder(Base::Manifest), out: folder(Base::OutDir) }
    }

    /// A package in the given folder, without a build script.
    pub fn package(manifest: impl Into<PathBuf>) -> Self {
        Self { manifest: Some(manifest.into()), out: None }
    }

    /// What a path is relative to.
    fn folder(&self, path: &ModelPath) -> Result<&Path, ReadError> {
        let folder = match path.base {
            Base::Manifest => &self.manifest,
            Base::OutDir => &self.out,
        };
        let Some(folder) = folder else {
            return Err(ReadError {
                message: match path.base {
                    Base::Manifest => "CARGO_MANIFEST_DIR is not set, so there is nothing to \
                                       resolve the path against\n\
                                       hint: build with cargo, or set it to the folder of the \
                                       package's Cargo.toml"
                        .to_owned(),
                    Base::OutDir => "OUT_DIR is not set: the package has no build script\n\
                                     hint: add a build.rs that writes the model, or name a file of \
                                     the package"
                        .to_owned(),
                },
            });
        };
        // The generated code names the folder through `env!`, which takes Unicode only.
        if folder.to_str().is_none() {
            return Err(ReadError {
                message: format!(
                    "{} is not valid Unicode, which the compiler needs of the folder\n\
                     hint: rename the folder",
                    shown(folder)
                ),
            });
        }
        Ok(folder)
    }
}

impl Source for Disk {
    fn read(&self, path: &ModelPath) -> Result<Vec<u8>, ReadError> {
        let folder = self.folder(path)?;
        let tried = folder.join(&path.relative);
        read_model(&tried).map_err(|error| ReadError {
            message: match error.kind() {
                std::io::ErrorKind::NotFound => {
                    let (what, more) = match std::fs::read_link(&tried) {
                        Ok(target) => (
                            "this is a link to a file that is not there",
                            format!("\nlinks to: {}", shown(&target)),
                        ),
                        Err(_) => (
                            "file not found",
                            from_the_manifest(folder, path)
                                .unwrap_or_else(|| near_names(&tried, path)),
                        ),
                    };
                    format!("{what}\ntried: {}{more}", shown(&tried))
                }
                _ if tried.is_dir() => {
                    format!("this is a folder, not a model file\ntried: {}", shown(&tried))
                }
                _ => format!("{error}\ntried: {}", shown(&tried)),
            },
        })
    }
}

/// Larger than any model whose sizes fit the 32 bits that the format has for them.
const MAX_FILE_BYTES: u64 = 1 << 32;

/// Reads a regular file that is no larger than a model can be: a device has no end, a pipe may have no writer, and a
/// build must neither hang nor fill the memory. Of a file that does not begin like a model only the beginning.
fn read_model(path: &Path) -> std::io::Result<Vec<u8>> {
    let invalid = |why: String| std::io::Error::new(std::io::ErrorKind::InvalidData, why);
    let metadata = std::fs::metadata(path)?;
    if metadata.is_file() {
        if metadata.len() > MAX_FILE_BYTES {
            let bytes = metadata.len();
            return Err(invalid(format!(
                "the file has {bytes} bytes, a model at most {MAX_FILE_BYTES}"
            )));
        }
    } else if !metadata.is_dir() {
        return Err(invalid("this is a device or a pipe, not a file".to_owned()));
    }
    let mut file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    if bytes.starts_with(&MAGIC) {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    files: BTreeMap<ModelPath, Vec<u8>>,
}

impl Memory {
    /// One file.
    pub fn with(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let path = ModelPath::parse(path).expect("a path that the macro accepts");
        Self { files: BTreeMap::from([(path, bytes.into())]) }
    }
}

impl Source for Memory {
    fn read(&self, path: &ModelPath) -> Result<Vec<u8>, ReadError> {
        self.files
            .get(path)
            .cloned()
            .ok_or_else(|| ReadError { message: "file not found".to_owned() })
    }
}

/// The most names a message lists.
const NAMES: usize = 5;

/// A line that proposes the path from the manifest's folder where the path may have been meant from another one: from that
/// of the source file, as `include_bytes!` takes it, or from a folder beside the package.
fn from_the_manifest(manifest: &Path, path: &ModelPath) -> Option<String> {
    if path.base != Base::Manifest {
        return None;
    }
    let mut rest = path.relative.as_str();
    loop {
        rest = rest.trim_start_matches("./").trim_start_matches('/');
        let above = rest.strip_prefix("../");
        let inside_src = format!("src/{rest}");
        let candidates = if above.is_some() { &[rest][..] } else { &[rest, &inside_src] };
        if let Some(meant) = candidates.iter().find(|meant| manifest.join(meant).is_file()) {
            return Some(format!("\nhint: {RELATIVE}: did you mean \"{}\"?", Escaped(meant)));
        }
        rest = above?;
    }
}

/// The rule that who is used to `include_bytes!` does not expect.
const RELATIVE: &str = "paths are relative to the folder of the package's Cargo.toml";

/// A line that says what is there instead of a file that is not: names like the one that was asked for,
/// else any models beside it, else the folder that is missing.
fn near_names(tried: &Path, path: &ModelPath) -> String {
    if cfg!(not(windows)) && path.relative.contains('\\') {
        return "\nhint: write `/` between folders, which every system takes".to_owned();
    }
    let Some(folder) = tried.parent() else { return String::new() };
    // Cargo unpacks what it publishes, to see whether it can be built.
    let unpacked = folder
        .components()
        .collect::<Vec<_>>()
        .windows(2)
        .any(|pair| pair[0].as_os_str() == "target" && pair[1].as_os_str() == "package");
    if unpacked {
        return "\nhint: the published package lacks the file: it must lie in the package's folder, and no `include` or \
                `exclude` of Cargo.toml nor a .gitignore may leave it out"
            .to_owned();
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        let mut missing = folder;
        while let Some(parent) = missing.parent().filter(|parent| !parent.is_dir()) {
            missing = parent;
        }
        let rule = match path.base {
            Base::Manifest => format!("; {RELATIVE}"),
            Base::OutDir => String::new(),
        };
        return format!("\nhint: there is no folder {}{rule}", shown(missing));
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let asked = tried.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let near = nearest(&asked, names.iter().map(String::as_str));
    let prefix = match path.relative.rfind('/') {
        Some(end) => &path.relative[..=end],
        None => "",
    };
    if !near.is_empty() {
        let quote = |name: &&str| format!("\"{}{}\"", Escaped(prefix), Escaped(name));
        let quoted: Vec<String> = near.iter().map(quote).collect();
        return format!("\nhint: did you mean {}?", quoted.join(" or "));
    }
    let models: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| name.ends_with(".nk")).collect();
    let more = models.len().saturating_sub(NAMES);
    let listed = Escaped(&models[..models.len() - more].join(", ")).to_string();
    match (models.len(), more) {
        (0, _) => "\nhint: there are no .nk files in that folder".to_owned(),
        (_, 0) => format!("\nhint: that folder holds {listed}"),
        _ => format!("\nhint: that folder holds {listed} and {more} more"),
    }
}

/// Up to three of the names of files that resemble `asked`, nearest first: about a third of the characters differ, and
/// at most one more than of the nearest. An extension that both have tells nothing.
pub fn nearest<'n>(asked: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let asked = asked.to_lowercase();
    let difference = |name: &str| {
        let name = name.to_lowercase();
        let stems = asked.strip_suffix(".nk").zip(name.strip_suffix(".nk"));
        let (asked, name) = stems.unwrap_or((&asked, &name));
        let bound = (asked.chars().count() + 1) / 3;
        Some(edit_distance(asked, name)).filter(|&distance| distance <= bound)
    };
    let mut near: Vec<(usize, &str)> =
        names.into_iter().filter_map(|name| Some((difference(name)?, name))).collect();
    near.sort_unstable();
    let least = near.first().map_or(0, |&(distance, _)| distance);
    near.retain(|&(distance, _)| distance <= least + 1);
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Characters to insert, delete or replace to make `b` of `a` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_manifest_or_to_out_dir() {
        let parse = |written: &str| {
            ModelPath::parse(written)
                .map(|path| (path.base, path.relative.clone(), path.stem().to_owned()))
        };
        let ok =
            |base, relative: &str, stem: &str| Ok((base, relative.to_owned(), stem.to_owned()));
        assert_eq!(parse("a.nk"), ok(Base::Manifest, "a.nk", "a"));
        assert_eq!(parse("../m ö/a.b.nk"), ok(Base::Manifest, "../m ö/a.b.nk", "a.b"));
        assert_eq!(parse("$OUT_DIR/x/a.nk"), ok(Base::OutDir, "x/a.nk", "a"));
        assert_eq!(parse(r"models\a.nk"), ok(Base::Manifest, r"models\a.nk", "a"));
        assert_eq!(parse("models/.nk"), ok(Base::Manifest, "models/.nk", ".nk"));
        assert_eq!(parse(""), Err(PathError::Empty));
        assert_eq!(parse("$OUT_DIR/"), Err(PathError::Empty));
        for absolute in ["/a.nk", r"C:\a.nk", "c:a.nk", r"\\server\a.nk", "$OUT_DIR//a.nk"] {
            assert_eq!(parse(absolute), Err(PathError::Absolute), "{absolute}");
        }
        for variable in ["$HOME/a.nk", "$OUT_DIRECTORY/a.nk", "$OUT_DIR", "$OUT_DIR/$X/a.nk"] {
            assert_eq!(parse(variable), Err(PathError::Variable), "{variable}");
        }
    }

    #[test]
    fn no_name_ends_a_comment() {
        let shown = |written: &str| ModelPath::parse(written).unwrap().to_string();
        assert_eq!(shown("models/e\u{301}té \"a\" 神.nk"), "models/e\u{301}té \"a\" 神.nk");
        assert_eq!(shown("$OUT_DIR/a.nk"), "$OUT_DIR/a.nk");
        assert_eq!(
            shown("a\n*/fn main(){}\r\u{202e}\u{2028}\u{1b}[2J.nk"),
            "a\\n*/fn main(){}\\r\\u{202e}\\u{2028}\\u{1b}[2J.nk"
        );
    }

    /// A build must neither wait for a pipe's writer nor read a device without end.
    #[cfg(unix)]
    #[test]
    fn only_files_of_a_models_size_are_read() {
        let refused = |path: &str| read_model(Path::new(path)).unwrap_err().to_string();
        assert_eq!(refused("/dev/zero"), "this is a device or a pipe, not a file");
        let folder = std::env::temp_dir().join(format!("netkit-sizes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe.nk");
        if std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success())
        {
            assert_eq!(refused(pipe.to_str().unwrap()), "this is a device or a pipe, not a file");
        }
        let long = folder.join("long.nk");
        std::fs::File::create(&long).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let error = refused(long.to_str().unwrap());
        assert_eq!(error, "the file has 4294967297 bytes, a model at most 4294967296");
        let other = folder.join("other.nk");
        std::fs::write(&other, [b'x'; 1 << 16]).unwrap();
        assert_eq!(read_model(&other).unwrap(), [b'x'; HEADER_BYTES]);
        std::fs::write(&other, [MAGIC, *b"rest"].concat().repeat(100)).unwrap();
        assert_eq!(read_model(&other).unwrap().len(), 800);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn distances() {
        for (a, b, distance) in
            [("", "abc", 3), ("kitten", "sitting", 3), ("same", "same", 0), ("ab", "ba", 2)]
        {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
            assert_eq!(edit_distance(b, a), distance, "{b} {a}");
        }
    }

    #[test]
    fn near_names_share_more_than_their_extension() {
        for (asked, names, near) in [
            (
                "mnist_cmn.nk",
                &["mnist_cnn.nk", "mnist_mlp.nk", "kws.nk"][..],
                &["mnist_cnn.nk"][..],
            ),
            ("KWS.nk", &["kws.nk", "kws2.nk"], &["kws.nk", "kws2.nk"]),
            ("q.nk", &["a.nk", "y.nk", "kws.nk"], &[]),
            ("q7.nk", &["a.nk", "q8.nk", "x.onnx"], &["q8.nk"]),
            ("trunc.nk", &["tall.nk", "wrong.nk", "trunk.nk"], &["trunk.nk"]),
            ("resnet18.nk", &["yolox.nk", "convnext.nk"], &[]),
            ("mnist_cnn", &["mnist_cnn.nk"], &["mnist_cnn.nk"]),
        ] {
            assert_eq!(nearest(asked, names.iter().copied()), near, "{asked}");
        }
    }

    #[test]
    fn a_missing_file_is_reported_with_what_is_there() {
        let folder = std::env::temp_dir().join(format!("netkit-source-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("models/empty")).unwrap();
        for name in ["mnist_cnn.nk", "mnist_cnn_int8.nk", "kws.nk"] {
            std::fs::write(folder.join("models").join(name), b"").unwrap();
        }
        let disk = Disk::package(&folder);
        let read = |path: &str| {
            let error = disk.read(&ModelPath::parse(path).unwrap()).unwrap_err();
            error.to_string().replace(folder.to_str().unwrap(), "PACKAGE")
        };
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("gone.nk", folder.join("link.nk")).unwrap();
            assert_eq!(
                read("link.nk"),
                "this is a link to a file that is not there\ntried: PACKAGE/link.nk\nlinks to: gone.nk"
            );
        }
        assert_eq!(
            read("models/minst_cnn.nk"),
            "file not found\ntried: PACKAGE/models/minst_cnn.nk\n\
             hint: did you mean \"models/mnist_cnn.nk\"?"
        );
        assert_eq!(
            read("models/resnet.nk"),
            "file not found\ntried: PACKAGE/models/resnet.nk\n\
             hint: that folder holds kws.nk, mnist_cnn.nk, mnist_cnn_int8.nk"
        );
        assert_eq!(
            read("models/empty/a.nk"),
            "file not found\ntried: PACKAGE/models/empty/a.nk\n\
             hint: there are no .nk files in that folder"
        );
        assert_eq!(
            read("model/x/a.nk"),
            "file not found\ntried: PACKAGE/model/x/a.nk\nhint: there is no folder PACKAGE/model; \
             paths are relative to the folder of the package's Cargo.toml"
        );
        // Paths from where the source file is, or from one folder too far up.
        std::fs::create_dir_all(folder.join("src/nets")).unwrap();
        std::fs::write(folder.join("src/nets/own.nk"), b"").unwrap();
        for (asked, meant) in [
            ("../models/kws.nk", "models/kws.nk"),
            ("../../models/kws.nk", "models/kws.nk"),
            ("./../..//models/kws.nk", "models/kws.nk"),
            ("nets/own.nk", "src/nets/own.nk"),
            ("./nets/own.nk", "src/nets/own.nk"),
        ] {
            let error = read(asked);
            let expected = format!(
                "\nhint: paths are relative to the folder of the package's Cargo.toml: \
                 did you mean \"{meant}\"?"
            );
            assert!(error.ends_with(&expected), "{asked}: {error}");
        }
        assert_eq!(read("models"), "this is a folder, not a model file\ntried: PACKAGE/models");
        #[cfg(not(windows))]
        assert_eq!(
            read(r"models\kws.nk"),
            "file not found\ntried: PACKAGE/models\\kws.nk\n\
             hint: write `/` between folders, which every system takes"
        );
        // Names that the system does not take, and what a terminal would take for more than a name.
        for (path, message) in [
            ("models/a\0.nk", "tried: PACKAGE/models/a\\u{0}.nk"),
            ("models/\u{1b}[2J\n.nk", "tried: PACKAGE/models/\\u{1b}[2J\\n.nk\nhint: that folder"),
            (&"long/".repeat(2000), "\ntried: PACKAGE/long/long"),
            (&format!("{}.nk", "long".repeat(2000)), "\ntried: PACKAGE/longlong"),
            ("models/kws.nk/a.nk", "\ntried: PACKAGE/models/kws.nk/a.nk"),
        ] {
            let error = read(path);
            assert!(error.contains(message), "{path:?}: {error}");
            assert_eq!(error.lines().count() - error.matches("\nhint").count(), 2, "{error}");
        }
        std::fs::write(folder.join("models/k\u{1b}[2J.nk"), b"").unwrap();
        assert!(read("models/k[2J.nk").ends_with(r#"hint: did you mean "models/k\u{1b}[2J.nk"?"#));
        assert!(read("$OUT_DIR/a.nk").starts_with("OUT_DIR is not set"));
        let unpacked = Disk::package(folder.join("target/package/user-0.1.0"));
        let error = unpacked.read(&ModelPath::parse("models/kws.nk").unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("hint: the published package lacks the file"),
            "{error}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
