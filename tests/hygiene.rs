//! What the macro makes compiles without a word in every kind of crate: strict ones, old ones, with names that get in
//! the way, renamed and re-exported dependencies, odd folders, doctests.

#[path = "../netkit-core/tests/format_support/mod.rs"]
mod format_support;
mod scratch;

use netkit_core::format::{Activation, Conv2d, Dense, Layer, ModelDescription, NetworkKind};
use netkit_core::format::{OwnedPair, OwnedTensor, TensorData};
use netkit_core::tensor::Shape;
use scratch::Scratch;

/// A convolution large enough for its weights to be packed, and a dense layer.
fn cnn() -> ModelDescription {
    let pair = |weight: &[u32], channels: u32| {
        let tensor = |dims: &[u32], value| {
            let shape = Shape::new(dims).unwrap();
            OwnedTensor { shape, data: TensorData::F32(vec![value; shape.elements()]) }
        };
        OwnedPair { weight: tensor(weight, 0.25), bias: tensor(&[channels], 0.5) }
    };
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[6, 6, 2]).unwrap());
    model.push(
        Layer::Conv2d(Conv2d {
            kernel_size: 3,
            stride: 1,
            filters: 20,
            activation: Activation::LeakyRelu,
            pad_h: 1,
            pad_w: 1,
            pad_extra: 0,
            alpha: 0.1,
        }),
        [pair(&[20, 3, 3, 2], 20)],
    );
    model.push(Layer::Flatten, []);
    model.push(
        Layer::Dense(Dense { units: 3, activation: Activation::Softmax, alpha: 0.01 }),
        [pair(&[3, 720], 3)],
    );
    model
}

/// A convolution of 3×3 from `channels` to `channels`, whose weights the macro packs.
#[cfg(target_os = "linux")]
fn wide(channels: u32) -> Vec<u8> {
    let tensor = |dims: &[u32]| {
        let shape = Shape::new(dims).unwrap();
        let values = (0..shape.elements()).map(|i| (i % 251) as f32 / 251.0).collect();
        OwnedTensor { shape, data: TensorData::F32(values) }
    };
    let pair = OwnedPair { weight: tensor(&[channels, 3, 3, channels]), bias: tensor(&[channels]) };
    let mut model = ModelDescription::new(NetworkKind::Cnn, Shape::new(&[3, 3, channels]).unwrap());
    let conv = Conv2d {
        kernel_size: 3,
        stride: 1,
        filters: channels,
        activation: Activation::Relu,
        pad_h: 0,
        pad_w: 0,
        pad_extra: 0,
        alpha: 0.0,
    };
    model.push(Layer::Conv2d(conv), [pair]);
    model.push(Layer::Flatten, []);
    model.to_bytes().unwrap()
}

/// Pitfall B36: what a million weights add to `cargo check`, which editors run at every pause: 300 MB and 2 seconds of the
/// processor at most. It is an eighth and a fifth of that.
#[cfg(target_os = "linux")]
#[test]
fn b36_a_million_weights_cost_the_compiler_little() {
    let scratch = Scratch::new("million");
    let netkit = format!("netkit = {}", Scratch::netkit(""));
    package(&scratch, "million", "2024", &netkit, "netkit::model!(pub Net = \"models/net.nk\");\n");
    scratch.write("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"million\"]\n");
    let check = |channels| {
        let file = wide(channels);
        scratch.write("million/models/net.nk", &file);
        (file.len(), scratch.cost_of_rustc("", &["check", "-q"]))
    };
    // The first time everything else is compiled too.
    check(3);
    let (_, small) = check(4);
    let (bytes, large) = check(334);
    assert!(bytes > 4_000_000, "{bytes} bytes");
    println!("4 channels: {small:?}; {bytes} bytes: {large:?}");
    assert!(
        small.peak_bytes > 20 << 20 && small.peak_bytes < large.peak_bytes,
        "{small:?} {large:?}"
    );
    assert!(large.peak_bytes < small.peak_bytes + 300_000_000, "{small:?} {large:?}");
    assert!(large.seconds < small.seconds + 2.0, "{small:?} {large:?}");
}

/// A package in a folder of the workspace, with the models that all of them use.
fn package(scratch: &Scratch, folder: &str, edition: &str, dependencies: &str, source: &str) {
    let name = format!("user-{}", folder.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
    scratch.write(
        &format!("{folder}/Cargo.toml"),
        format!(
            "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = {edition:?}\n\n\
             [dependencies]\n{dependencies}\n"
        ),
    );
    scratch.write(&format!("{folder}/src/lib.rs"), source);
    let models = [
        ("mlp", format_support::worked_mlp()),
        ("cnn", cnn()),
        ("cnn_int8", format_support::int8_cnn()),
    ];
    for (name, model) in models {
        scratch.write(&format!("{folder}/models/{name}.nk"), model.to_bytes().unwrap());
    }
}

/// A crate without anything special, whose documentation is a test.
const PLAIN: &str = r#"
//! ```
//! NETKIT::model!(Digits = "models/mlp.nk");
//! assert_eq!(Digits::new().forward(&[1.0, 2.0]), [3.0, 3.0]);
//! assert_eq!(Digits::NAME, "mlp");
//! ```

NETKIT::model!(pub Digits = "models/mlp.nk");

#[test]
fn runs() {
    assert_eq!(Digits::new().forward(&[1.0, 2.0]), [3.0, 3.0]);
    assert_eq!(Digits::new_boxed().self_test().unwrap().cases, 3);
}
"#;

/// Places and names that are legal and rare: primitive types shadowed, models in methods, generic and async functions,
/// beside and above the package, behind links, with names of any letters.
const ODD: &str = r#"
#![allow(non_camel_case_types, dead_code)]

mod shadow {
    pub struct f32;
    pub struct i8;
    pub struct u8;
    pub struct usize;
    pub struct bool;
    pub struct str;
    pub trait Copy {}
    pub trait Clone {}
    pub trait Sync {}
    netkit::model!(pub Float = "models/cnn.nk");
    netkit::model!(pub Quantized = "models/cnn_int8.nk");
}

pub struct Method;
impl Method {
    pub fn outputs(&self) -> usize {
        netkit::model!(Inner = "models/mlp.nk");
        Inner::OUTPUT_LEN
    }
}

pub fn generic<T: Default, const N: usize>() -> (T, usize) {
    netkit::model!(Inner = "models/mlp.nk");
    (T::default(), N + Inner::INPUT_LEN)
}

pub async fn later() -> [f32; 2] {
    netkit::model!(Inner = "models/mlp.nk");
    Inner::new().forward(&[1.0, 2.0])
}

netkit::model!(pub Above = "../above.nk");
netkit::model!(pub Dots = "./models/../models/mlp.nk");
netkit::model!(pub Letters = "models/réseau 神经 'n' {0}.nk");
netkit::model!(pub Raw = r"models/mlp.nk");
LINKS

/// One macro that declares several, and one inside another.
macro_rules! family {
    ($($name:ident: $path:literal),* $(,)?) => { $( member! { $name $path } )* };
}
macro_rules! member {
    ($name:ident $path:literal) => {
        pub mod $name {
            netkit::model!(pub Network = $path);
        }
    };
}
family! { first: "models/mlp.nk", second: "models/cnn.nk", third: "models/mlp.nk" }

/// Where only constants may stand, in what is only called later, and paths in fragments of every kind.
pub mod places {
    macro_rules! inputs {
        (literal $path:literal) => {{ netkit::model!(Net = $path); Net::INPUT_LEN }};
        (expr $path:expr) => {{ netkit::model!(Net = $path); Net::INPUT_LEN }};
        (tt $path:tt) => {{ netkit::model!(Net = $path); Net::INPUT_LEN }};
        (tokens $($tokens:tt)*) => {{ netkit::model!(Net = $($tokens)*); Net::INPUT_LEN }};
        (again $path:expr) => { inputs!(expr $path) };
    }
    pub static CLOSURE: fn() -> usize = || inputs!(literal "models/mlp.nk");
    pub type Array = [u8; inputs!(tt "models/mlp.nk")];
    pub enum Discriminant {
        Of = inputs!(tokens "models/mlp.nk", convolution = direct,) as isize,
    }
    pub struct Generic<const N: usize>;
    impl<const N: usize> Generic<N> {
        pub const SUM: usize = N + inputs!(again "models/mlp.nk");
    }
    pub trait Provided {
        fn provided(&self) -> usize {
            inputs!(expr "models/mlp.nk")
        }
    }
    impl<T: Copy> Provided for T {}
}

#[test]
fn runs() {
    assert_eq!(Above::new().forward(&[1.0, 2.0]), [3.0, 3.0]);
    assert_eq!(Dots::new().forward(&[1.0, 2.0]), [3.0, 3.0]);
    assert_eq!(Letters::new().forward(&[1.0, 2.0]), [3.0, 3.0]);
    assert_eq!(Raw::new().forward(&[1.0, 2.0]), first::Network::new().forward(&[1.0, 2.0]));
    assert_eq!((Method.outputs(), generic::<u8, 3>()), (2, (0, 5)));
    assert!(shadow::Float::new_boxed().forward(&[0.5; 72]).iter().all(|x| x.is_finite()));
    assert!(shadow::Quantized::new().self_test().is_ok());
    let _ = (second::Network::ARENA_BYTES, third::Network::NAME, later());
    use places::Provided as _;
    assert_eq!(((places::CLOSURE)(), size_of::<places::Array>()), (2, 2));
    assert_eq!((places::Discriminant::Of as usize, places::Generic::<3>::SUM, 0.provided()), (2, 5, 2));
}
"#;

#[test]
fn odd_places_and_names_are_no_trouble() {
    let scratch = Scratch::new("odd");
    let netkit = format!("netkit = {}", Scratch::netkit(""));
    let links = if cfg!(unix) { "netkit::model!(pub Linked = \"links/file.nk\");" } else { "" };
    package(&scratch, "odd", "2024", &netkit, &ODD.replace("LINKS", links));
    let mlp = format_support::worked_mlp().to_bytes().unwrap();
    scratch.write("above.nk", &mlp);
    scratch.write("odd/models/réseau 神经 'n' {0}.nk", &mlp);
    // Its own workspace, to be one under each of its names.
    scratch.append("odd/Cargo.toml", "\n[workspace]\n");
    scratch.write("odd/Cargo.lock", std::fs::read(scratch.path("Cargo.lock")).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        let odd = scratch.path("odd");
        scratch.write("odd/links/keep", "");
        let _ = std::fs::remove_file(odd.join("links/file.nk"));
        symlink("../models/mlp.nk", odd.join("links/file.nk")).unwrap();
        let _ = std::fs::remove_file(scratch.path("through"));
        symlink("odd", scratch.path("through")).unwrap();
    }
    scratch.cargo_passes("odd", &["test", "-q"]);
    #[cfg(unix)]
    scratch.cargo_passes("", &["test", "-q", "--manifest-path", "through/Cargo.toml"]);
}

/// Pitfall B39: paths from members, doctests and odd folders.
#[test]
fn b39_generated_code_is_at_home_everywhere() {
    let scratch = Scratch::new("hygiene");
    let netkit = format!("netkit = {}", Scratch::netkit(""));
    let strict = include_str!("hygiene/user.rs");
    for edition in ["2018", "2021", "2024"] {
        let source = strict.replace("NETKIT", "::netkit");
        package(&scratch, &format!("strict{edition}"), edition, &netkit, &source);
    }
    // In the first edition `::netkit` is a path into the crate itself, where `core` is.
    let source = strict
        .replace("NETKIT", "::netkit")
        .replace("pub mod core {}\n/// As above.\n", "")
        .replace("<Present as ::core::default::Default>::default()", "Present::new()")
        .replace(
            "/// Names that",
            "#[allow(unused_extern_crates)]\nextern crate netkit;\n\n/// Names that",
        );
    package(&scratch, "strict2015", "2015", &netkit, &source);

    package(&scratch, "names", "2021", &netkit, include_str!("hygiene/names.rs"));
    let mlp = format_support::worked_mlp().to_bytes().unwrap();
    for name in ["nk", "type", "1st", "ÜBER größe-神经.v2"] {
        scratch.write(&format!("names/models/{name}.nk"), &mlp);
    }

    let plain = |path: &str| PLAIN.replace("NETKIT", path);
    package(&scratch, "a päckage with spaces", "2024", &netkit, &plain("netkit"));
    package(&scratch, "nested/member", "2021", &netkit, &plain("netkit"));
    let renamed = format!("nk = {}", Scratch::netkit(", package = \"netkit\""));
    package(&scratch, "renamed", "2024", &renamed, &plain("nk"));
    // Through a crate that hands the macro on; the user does not depend on netkit.
    package(
        &scratch,
        "middle",
        "2024",
        &netkit,
        "pub use netkit::model;\npub use netkit as inner;\n",
    );
    let middle = "middle = { path = \"../middle\", package = \"user-middle\" }";
    package(&scratch, "reexported", "2024", middle, &plain("middle"));
    package(&scratch, "reexported-crate", "2024", middle, &plain("middle::inner"));
    let bare = format!("netkit = {}", Scratch::netkit(", default-features = false"));
    package(
        &scratch,
        "bare",
        "2024",
        &bare,
        "#![no_std]\nnetkit::model!(pub Digits = \"models/cnn_int8.nk\");\n\
         pub static DIGITS: Digits = Digits::new();\n",
    );
    scratch.write(
        "Cargo.toml",
        "[workspace]\nresolver = \"2\"\nmembers = [\"strict2015\", \"strict2018\", \"strict2021\", \"strict2024\", \
         \"a päckage with spaces\", \"nested/member\", \"renamed\", \"middle\", \"reexported\", \
         \"reexported-crate\", \"bare\", \"names\"]\n",
    );

    scratch.cargo_passes("", &["clippy", "-q", "--workspace", "--all-targets"]);
    scratch.cargo_passes("bare", &["clippy", "-q", "--", "-D", "warnings"]);
    // From the root and from a member.
    scratch.cargo_passes("", &["test", "-q", "--workspace"]);
    scratch.cargo_passes("a päckage with spaces", &["test", "-q"]);
    scratch.cargo_passes("", &["test", "-q", "--manifest-path", "nested/member/Cargo.toml"]);
    scratch.cargo_passes("", &["doc", "-q", "--no-deps", "-p", "user-strict2024"]);
}
