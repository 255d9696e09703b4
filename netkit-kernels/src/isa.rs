//! Instruction sets, and the tokens that prove the machine has one.
//!
//! A token can only be made by its `detect`, which tests every feature that kernels entered with the
//! token are compiled for. With `std` the machine is asked (operating-system support included);
//! without, only what the whole program is compiled for counts.

/// An instruction set kernels exist for; those of one architecture weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// No vector instructions of our own: plain Rust, in four lanes where the compiler can use them. On x86-64
    /// only with the feature `portable`, or pinned by `--cfg netkit_isa="scalar"`.
    Scalar,
    /// x86-64's baseline.
    Sse2,
    /// AVX2 and FMA.
    Avx2,
    /// AVX2, FMA and AVX-VNNI: int8 dot products in 256 bits.
    AvxVnni,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// [`Avx512`](Self::Avx512) and AVX-512 VNNI: int8 dot products in 512 bits.
    Avx512Vnni,
    /// AArch64's vectors: Advanced SIMD.
    Neon,
    /// [`Neon`](Self::Neon) and the dot products of Armv8.2: `sdot`.
    Dotprod,
    /// WebAssembly's vectors of 128 bits.
    Simd128,
}

impl Isa {
    /// Every instruction set, those of one architecture weakest first.
    pub const ALL: [Self; 9] = [
        Self::Scalar,
        Self::Sse2,
        Self::Avx2,
        Self::AvxVnni,
        Self::Avx512,
        Self::Avx512Vnni,
        Self::Neon,
        Self::Dotprod,
        Self::Simd128,
    ];

    /// The name in kernel names, logs and `NETKIT_ISA`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avxvnni",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "avx512vnni",
            Self::Neon => "neon",
            Self::Dotprod => "dotprod",
            Self::Simd128 => "simd128",
        }
    }

    /// The instruction set of a [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|isa| isa.name() == name)
    }
}

/// The token of [`Isa::Scalar`], which every machine has.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

/// Declares a token that proves a list of features, `$detected` being the macro of `std::arch` that asks for one.
#[allow(unused_macros, reason = "not used where only `Scalar` is")]
macro_rules! token {
    ($detected:ident, $(#[$doc:meta])* $name:ident: $($feature:tt),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(());

        impl $name {
            /// The token, if every feature is there.
            #[inline]
            #[must_use]
            pub fn detect() -> Option<Self> {
                #[cfg(feature = "std")]
                let present = true $(&& std::arch::$detected!($feature))+;
                #[cfg(not(feature = "std"))]
                let present = true $(&& cfg!(target_feature = $feature))+;
                present.then_some(Self(()))
            }
        }
    };
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86_64 {
    token! {
        is_x86_feature_detected,
        /// The token of [`Isa::Sse2`](super::Isa::Sse2).
        Sse2: "sse", "sse2"
    }
    token! {
        is_x86_feature_detected,
        /// The token of [`Isa::Avx2`](super::Isa::Avx2). AVX2 does not imply FMA.
        Avx2: "avx", "avx2", "fma"
    }
    token! {
        is_x86_feature_detected,
        /// The token of [`Isa::AvxVnni`](super::Isa::AvxVnni).
        AvxVnni: "avx", "avx2", "fma", "avxvnni"
    }
    token! {
        is_x86_feature_detected,
        /// The token of [`Isa::Avx512`](super::Isa::Avx512).
        Avx512: "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"
    }
    token! {
        is_x86_feature_detected,
        /// The token of [`Isa::Avx512Vnni`](super::Isa::Avx512Vnni).
        Avx512Vnni: "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"
    }

    #[cfg(not(netkit_portable))]
    impl Sse2 {
        /// The token without asking: this module is only compiled where the whole program may use SSE2.
        pub(crate) const BASELINE: Self = Self(());
    }

    impl AvxVnni {
        /// The weaker set this one includes.
        #[inline]
        #[must_use]
        pub fn avx2(self) -> Avx2 {
            Avx2(())
        }
    }

    impl Avx512Vnni {
        /// The weaker set this one includes.
        #[inline]
        #[must_use]
        pub fn avx512(self) -> Avx512 {
            Avx512(())
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use x86_64::{Avx2, Avx512, Avx512Vnni, AvxVnni, Sse2};

#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod aarch64 {
    token! {
        is_aarch64_feature_detected,
        /// The token of [`Isa::Neon`](super::Isa::Neon).
        Neon: "neon"
    }
    token! {
        is_aarch64_feature_detected,
        /// The token of [`Isa::Dotprod`](super::Isa::Dotprod).
        Dotprod: "neon", "dotprod"
    }

    impl Dotprod {
        /// The weaker set this one includes.
        #[inline]
        #[must_use]
        pub fn neon(self) -> Neon {
            Neon(())
        }
    }
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
pub use aarch64::{Dotprod, Neon};

/// The token of [`Isa::Simd128`]. A module with instructions that its host lacks is not loaded, so there is nothing to
/// ask at run time: the token exists where they are compiled for.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[derive(Clone, Copy, Debug)]
pub struct Simd128(());

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
impl Simd128 {
    /// The token.
    #[inline]
    #[must_use]
    pub const fn detect() -> Option<Self> {
        Some(Self(()))
    }
}
