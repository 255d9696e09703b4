//! Which kernels run: a handle for each instruction set, and the choice among those present.

#[cfg(feature = "cmsis-nn")]
use crate::cmsis_nn::CmsisNn;
use crate::isa::Isa;
#[cfg(netkit_portable)]
use crate::isa::Scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use crate::isa::Simd128;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::isa::{Avx2, Avx512, Avx512Vnni, AvxVnni, Sse2};
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use crate::isa::{Dotprod, Neon};
use crate::simd::Kernel;
use crate::simd_s8::KernelS8;

/// The kernels of one instruction set that this machine has. Its methods are the doors.
///
/// A handle is a token and no table: each door picks its kernel with a `match`, so that a program
/// holds the kernels of the operators it calls and no others, and without `std`, where the match is
/// over a constant, those of one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    choice: Choice,
    #[cfg(feature = "cmsis-nn")]
    cmsis_nn: Option<CmsisNn>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    #[cfg(netkit_portable)]
    Scalar(Scalar),
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Sse2(Sse2),
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx2(Avx2),
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    AvxVnni(AvxVnni),
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx512(Avx512),
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Avx512Vnni(Avx512Vnni),
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon(Neon),
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Dotprod(Dotprod),
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128(Simd128),
}

impl Kernels {
    /// The best kernels of this machine.
    ///
    /// With `std` the machine is asked once. The environment variable `NETKIT_ISA` (a name of
    /// [`Isa::name`]) pins the choice to what [`for_isa`](Self::for_isa) finds and is ignored where that is nothing.
    /// Without `std` the choice is what the program is compiled for (`-C target-feature`,
    /// `-C target-cpu`). The cfg `netkit_isa="scalar"` (`RUSTFLAGS='--cfg netkit_isa="scalar"'`) pins
    /// at compile time and is stronger than both.
    ///
    /// With the feature `cmsis-nn` the linked library comes first, unless a set is pinned.
    #[inline]
    #[must_use]
    pub fn native() -> Self {
        #[cfg(all(feature = "std", not(netkit_isa = "scalar")))]
        return cached::native();
        #[cfg(all(not(feature = "std"), feature = "cmsis-nn", not(netkit_isa = "scalar")))]
        return Self::strongest().with_cmsis_nn();
        #[cfg(any(netkit_isa = "scalar", not(any(feature = "std", feature = "cmsis-nn"))))]
        return Self::strongest();
    }

    /// These kernels behind CMSIS-NN: what the linked library can do it does, exactly as they would. The same kernels
    /// where the library rounds otherwise.
    #[cfg(feature = "cmsis-nn")]
    #[must_use]
    pub fn with_cmsis_nn(self) -> Self {
        Self { cmsis_nn: CmsisNn::detect(), ..self }
    }

    /// Whether these kernels stand behind CMSIS-NN.
    #[cfg(feature = "cmsis-nn")]
    #[inline]
    #[must_use]
    pub const fn has_cmsis_nn(self) -> bool {
        self.cmsis_nn.is_some()
    }

    /// Whether these kernels stand behind a library that may take a layer.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline]
    pub(crate) const fn has_library(self) -> bool {
        #[cfg(feature = "cmsis-nn")]
        return self.has_cmsis_nn();
        #[cfg(not(feature = "cmsis-nn"))]
        false
    }

    /// Offers a layer to the library, if these kernels stand behind one. Returns it where it was not taken.
    #[cfg(feature = "cmsis-nn")]
    #[inline]
    pub(crate) fn offer<L: crate::cmsis_nn::Layer>(self, mut layer: L) -> Option<L> {
        match self.cmsis_nn {
            Some(library) if layer.compute_on(library) => None,
            _ => Some(layer),
        }
    }

    #[inline]
    const fn of(choice: Choice) -> Self {
        Self {
            choice,
            #[cfg(feature = "cmsis-nn")]
            cmsis_nn: None,
        }
    }

    /// The kernels of one instruction set; `None` where this machine, or this build, lacks it: on x86-64, whose baseline is
    /// SSE2, [`Isa::Scalar`] is there with the feature `portable`.
    #[inline]
    #[must_use]
    pub fn for_isa(isa: Isa) -> Option<Self> {
        let choice = match isa {
            #[cfg(netkit_portable)]
            Isa::Scalar => Some(Choice::Scalar(Scalar)),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Sse2 => Sse2::detect().map(Choice::Sse2),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx2 => Avx2::detect().map(Choice::Avx2),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::AvxVnni => AvxVnni::detect().map(Choice::AvxVnni),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx512 => Avx512::detect().map(Choice::Avx512),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Isa::Avx512Vnni => Avx512Vnni::detect().map(Choice::Avx512Vnni),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Isa::Neon => Neon::detect().map(Choice::Neon),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Isa::Dotprod => Dotprod::detect().map(Choice::Dotprod),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Isa::Simd128 => Simd128::detect().map(Choice::Simd128),
            #[allow(unreachable_patterns, reason = "not reached where every set has its arm above")]
            _ => None,
        };
        Some(Self::of(choice?))
    }

    /// The kernels of every instruction set this machine has, weakest first, and with the feature `cmsis-nn` the
    /// strongest behind the linked library. For tests and benches.
    pub fn all() -> impl Iterator<Item = Self> {
        let all = Isa::ALL.into_iter().filter_map(Self::for_isa);
        #[cfg(feature = "cmsis-nn")]
        let all = all.chain([Self::strongest().with_cmsis_nn()]);
        all
    }

    /// The instruction set these kernels are for.
    #[inline]
    #[must_use]
    pub const fn isa(self) -> Isa {
        match self.choice {
            #[cfg(netkit_portable)]
            Choice::Scalar(_) => Isa::Scalar,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Sse2(_) => Isa::Sse2,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx2(_) => Isa::Avx2,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::AvxVnni(_) => Isa::AvxVnni,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx512(_) => Isa::Avx512,
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx512Vnni(_) => Isa::Avx512Vnni,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Choice::Neon(_) => Isa::Neon,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Choice::Dotprod(_) => Isa::Dotprod,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Choice::Simd128(_) => Isa::Simd128,
        }
    }

    /// The strongest set that `for_isa` finds; a constant without `std`.
    #[inline]
    fn strongest() -> Self {
        for &isa in STRONGEST_FIRST {
            if let Some(kernels) = Self::for_isa(isa) {
                return kernels;
            }
        }
        Self::of(WEAKEST)
    }

    /// The token, for doors whose kernels differ more between sets than the vector type.
    #[inline]
    #[allow(dead_code, reason = "for kernels that do not go through `Simd`")]
    pub(crate) const fn choice(self) -> Choice {
        self.choice
    }

    /// Runs a float kernel compiled for this instruction set. Sets that add nothing to float
    /// arithmetic share the kernels of the next one down.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        use crate::simd::Simd as _;
        match self.choice {
            #[cfg(netkit_portable)]
            Choice::Scalar(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Sse2(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx2(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::AvxVnni(token) => token.avx2().call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx512(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx512Vnni(token) => token.avx512().call(kernel),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Choice::Neon(token) => token.call(kernel),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Choice::Dotprod(token) => token.neon().call(kernel),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Choice::Simd128(token) => token.call(kernel),
        }
    }

    /// Runs an int8 kernel compiled for this instruction set.
    #[inline]
    pub(crate) fn run_s8<K: KernelS8>(self, kernel: K) -> K::Output {
        use crate::simd_s8::SimdS8 as _;
        match self.choice {
            #[cfg(netkit_portable)]
            Choice::Scalar(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Sse2(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx2(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::AvxVnni(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx512(token) => token.call(kernel),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Choice::Avx512Vnni(token) => token.call(kernel),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Choice::Neon(token) => token.call(kernel),
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Choice::Dotprod(token) => token.call(kernel),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Choice::Simd128(token) => token.call(kernel),
        }
    }
}

/// What every machine has that the program may meet.
#[cfg(netkit_portable)]
const WEAKEST: Choice = Choice::Scalar(Scalar);
#[cfg(not(netkit_portable))]
const WEAKEST: Choice = Choice::Sse2(Sse2::BASELINE);

/// The instruction sets of this architecture that [`Kernels::strongest`] asks for.
const STRONGEST_FIRST: &[Isa] = if cfg!(netkit_isa = "scalar") {
    &[]
} else if cfg!(target_arch = "x86_64") {
    &[Isa::Avx512Vnni, Isa::Avx512, Isa::AvxVnni, Isa::Avx2, Isa::Sse2]
} else if cfg!(target_arch = "aarch64") {
    &[Isa::Dotprod, Isa::Neon]
} else if cfg!(target_arch = "wasm32") {
    &[Isa::Simd128]
} else {
    &[]
};

/// The machine is asked once.
#[cfg(all(feature = "std", not(netkit_isa = "scalar")))]
mod cached {
    use super::{Isa, Kernels};
    use std::sync::OnceLock;

    /// The handle itself, and whether it was pinned: to prove a token anew takes a test for every feature, longer than a small
    /// layer.
    static CHOSEN: OnceLock<(Kernels, bool)> = OnceLock::new();

    #[inline]
    pub(super) fn native() -> Kernels {
        let (kernels, pinned) = match CHOSEN.get() {
            Some(&chosen) => chosen,
            None => choose(),
        };
        // The library is asked each time: from one that fails nothing more is wanted.
        #[cfg(feature = "cmsis-nn")]
        if !pinned {
            return kernels.with_cmsis_nn();
        }
        #[cfg(not(feature = "cmsis-nn"))]
        let _ = pinned;
        kernels
    }

    #[cold]
    fn choose() -> (Kernels, bool) {
        *CHOSEN.get_or_init(|| {
            let pinned = std::env::var("NETKIT_ISA").ok();
            let pinned = pinned.as_deref().and_then(Isa::from_name).and_then(Kernels::for_isa);
            (pinned.unwrap_or_else(Kernels::strongest), pinned.is_some())
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_choice_is_stable_and_present() {
            let first = Kernels::native().isa();
            assert_eq!(Kernels::native().isa(), first);
            assert!(Kernels::all().any(|kernels| kernels.isa() == first));
        }
    }
}
