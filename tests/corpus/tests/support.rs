//! `docs/support.md`: what runs, and where its kernels are. The page is written from what compiles and runs here and
//! from the sources of the kernels; this test fails where it is out of date, and `BLESS=1` in the environment writes it
//! anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use netkit_backbones::around;
use netkit_core::diag::FirstError;
use netkit_core::format::{LayerKind, NkFile};
use netkit_core::program::{OwnedStorage, compile};
use netkit_core::tensor::DType;
use netkit_corpus_tests::MODELS;
use netkit_kernels::Isa;

#[test]
fn the_support_page_is_up_to_date() {
    let path = root().join("docs/support.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/support.md is out of date: run `BLESS=1 cargo test -p netkit-corpus-tests --test support`"
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    let isas: Vec<String> = Isa::ALL.iter().map(|isa| format!("`{}`", isa.name())).collect();
    format!(
        "\
<!-- Written by a test: BLESS=1 cargo test -p netkit-corpus-tests --test support -->

# What runs

Every layer kind of the format, through `netkit::model!` and through the runtime loader. A
layer is lowered to primitive operators; both ways call the same kernels and give the same bits.

## Layers

\"yes\" stands for a network around this layer that the macro compiled and the runtime loaded, and whose outputs agreed
to the bit when this page was written. A dash stands for a layer that the format does not have in int8: such
a file is refused, with that reason.

{}
## Operators

Where the kernel of an operator is, for vector units (one loop for all of them) and, behind the `+`, for
microcontrollers; the textbook loop it is compared with; and whether it needs scratch memory, which both ways take
into account when they size the arena. Paths are relative to `netkit-kernels/src`.

{}
## Instruction sets

The loops over vector units are compiled for: {}. Their vector types and inner tiles are in `arch/`.
On x86-64 `scalar` is there only with the feature `portable`, or where `--cfg netkit_isa=\"scalar\"` pins it.
",
        layers(),
        operators(),
        isas.join(", ")
    )
}

/// A row for each layer kind.
fn layers() -> String {
    let mut table = String::from(
        "| kind | layer | float32 macro | float32 runtime | int8 macro | int8 runtime | operators |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for kind in LayerKind::ALL {
        let [float, int8] = ["float32", "int8"].map(|dtype| runs(kind, dtype));
        assert_eq!(float, ["yes"; 2], "{} in float32", kind.name());
        assert_eq!(int8[0] == "yes", kind.has_int8_form(), "{} in int8", kind.name());
        let [[fm, fr], [im, ir]] = [float, int8];
        let operators = lowered(kind);
        writeln!(
            table,
            "| {} | `{}` | {fm} | {fr} | {im} | {ir} | {operators} |",
            kind.code(),
            kind.name()
        )
        .unwrap();
    }
    table
}

/// Whether a network around this kind runs through the macro, and through the runtime.
fn runs(kind: LayerKind, dtype: &str) -> [&'static str; 2] {
    let name = format!("kinds/{}_{dtype}.nk", kind.name());
    let Some(model) = MODELS.iter().find(|model| model.name == name) else { return ["–"; 2] };
    if let Err(why) = (model.check)() {
        panic!("{name}: {why}");
    }
    let bytes = std::fs::read(model.file).unwrap();
    if let Err(why) = (model.compare)(&bytes) {
        panic!("{name}: {why}");
    }
    ["yes"; 2]
}

/// The operators that layers of this kind become, in float32 or int8.
fn lowered(kind: LayerKind) -> String {
    let mut names: Vec<String> = Vec::new();
    for dtype in [DType::F32, DType::I8] {
        let Ok(bytes) = around(kind, dtype).to_bytes() else { continue };
        let mut sink = FirstError::new();
        let file = NkFile::parse(&bytes, &mut sink).unwrap();
        let mut storage = OwnedStorage::of(&file);
        let program = compile(&file, storage.lend(), &mut sink).unwrap();
        for layer in program.layers().iter().filter(|layer| layer.kind == kind) {
            let nodes = &program.graph().nodes()[usize::from(layer.first_node)..];
            for node in &nodes[..usize::from(layer.nodes)] {
                let name = format!("`{}`", node.op.name());
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    match (kind, names.is_empty()) {
        (LayerKind::BatchNorm2d, true) => {
            "folded into the convolution before it; else `batch_norm`".into()
        }
        (LayerKind::MaxPool2d, true) => {
            "fused into the convolution before it; else `max_pool2d`".into()
        }
        (_, true) => "none: the same values".into(),
        (_, false) => names.join(", "),
    }
}

/// A row for each primitive operator.
fn operators() -> String {
    let kernels = Sources::read(&root().join("netkit-kernels/src"));
    let mut table = String::from(
        "| operator | float32 | int8 | textbook loop | scratch |\n|---|---|---|---|---|\n",
    );
    for operator in operator_names() {
        let doors = ["f32", "s8"].map(|dtype| kernels.door(&operator, dtype));
        assert!(doors[0].is_some(), "{operator} has no float kernel");
        let cell = |door: &Option<Door>| match door {
            Some(door) => door.kernels.join(", ") + &door.micro,
            None => "–".into(),
        };
        let [float, int8] = [cell(&doors[0]), cell(&doors[1])];
        let mut references: Vec<&str> =
            doors.iter().flatten().filter_map(|door| door.reference.as_deref()).collect();
        references.dedup();
        // Copying is its own textbook loop.
        assert!(!references.is_empty() || operator == "copy", "{operator} has no reference");
        let reference = if references.is_empty() { "–".into() } else { references.join(", ") };
        let scratch =
            match [&doors[0], &doors[1]].map(|door| door.as_ref().is_some_and(|d| d.scratch)) {
                [true, true] => "float32, int8",
                [true, false] => "float32",
                [false, true] => "int8",
                [false, false] => "none",
            };
        writeln!(table, "| `{operator}` | {float} | {int8} | {reference} | {scratch} |").unwrap();
    }
    table
}

/// The names in `Op::name`, in order.
fn operator_names() -> Vec<String> {
    let source = std::fs::read_to_string(root().join("netkit-core/src/op/mod.rs")).unwrap();
    let (_, names) = source.split_once("pub const fn name(&self)").unwrap();
    let (names, _) = names.split_once("\n    }\n").unwrap();
    names
        .lines()
        .filter_map(|line| Some(line.split_once("=> \"")?.1.split_once('"')?.0.into()))
        .collect()
}

/// A door, as its source has it.
struct Door {
    kernels: Vec<String>,
    /// That for microcontrollers, as it stands behind the others.
    micro: String,
    reference: Option<String>,
    scratch: bool,
}

/// The sources of a crate by path.
struct Sources(Vec<(String, String)>);

impl Sources {
    fn read(folder: &Path) -> Self {
        let mut sources = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(inner) = folders.pop() {
            for entry in std::fs::read_dir(&inner).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let name =
                        path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
                    sources.push((name, std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        sources.sort();
        Self(sources)
    }

    /// The file in this folder that defines this function.
    fn defines(&self, folder: &str, function: &str) -> Option<(&str, &str)> {
        let declarations = [format!("fn {function}("), format!("fn {function}<")];
        self.0
            .iter()
            .filter(|(name, _)| name.starts_with(folder))
            .find(|(_, source)| {
                declarations.iter().any(|declared| source.contains(declared.as_str()))
            })
            .map(|(name, source)| (name.as_str(), source.as_str()))
    }

    /// The door of an operator: `operator_dtype`, or `operator` where all types share one.
    fn door(&self, operator: &str, dtype: &str) -> Option<Door> {
        let typed = format!("{operator}_{dtype}");
        let (function, (file, source)) = match self.defines("doors/", &typed) {
            Some(found) => (typed.as_str(), found),
            None => (operator, self.defines("doors/", operator)?),
        };
        // From its signature to that of the next. The shorter of two forms calls the longer, which stands behind it.
        let start = source.rfind(&format!("fn {function}"))?;
        let body = &source[start..];
        let end = body.find("\n    }\n").unwrap_or(body.len());
        let body = &body[..end];
        let mut kernels: Vec<String> = source
            .lines()
            .filter_map(|line| line.strip_prefix("use crate::generic::")?.strip_suffix(';'))
            .filter_map(|import| import.split_once("::"))
            .filter(|(_, names)| {
                let names = names.trim_matches(['{', '}']).split(", ");
                let made = |name: &str| {
                    let starts = [' ', '('].map(|before| format!("{before}{name}"));
                    starts.iter().any(|start| {
                        [" {", "::<"].iter().any(|end| body.contains(&format!("{start}{end}")))
                    })
                };
                names.into_iter().any(made)
            })
            .map(|(module, _)| format!("`generic/{module}.rs`"))
            .collect();
        if kernels.is_empty() {
            kernels.push(format!("`{file}`"));
        }
        let micro = format!("micro/{function}.rs");
        let has_micro = self.0.iter().any(|(name, _)| *name == micro);
        Some(Door {
            kernels,
            micro: if has_micro { format!(" + `{micro}`") } else { String::new() },
            reference: self.defines("reference/", function).map(|(file, _)| format!("`{file}`")),
            scratch: self.defines("workspace", function).is_some(),
        })
    }
}
