//! The operations generic kernels are written over: only those some kernel here uses.

use crate::arch::tile_f32::step;
use crate::arch::transpose::Transpose;

/// A kernel written once for every instruction set.
///
/// `run` is inlined into a function compiled with the features of `S`; so must be everything it calls
/// that touches vectors (`#[inline(always)]`), or the intrinsics inside become function calls.
pub(crate) trait Kernel {
    /// What the kernel answers.
    type Output;
    /// The body.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// [`Simd::call`] that is a call for certain. Of functions with `target_feature` the compiler (Rust 1.95) forgets that they are
/// never to be inlined, and inlines kernels of AVX2 and AVX-512 into kernels of the same set; into this function, which has no
/// features of its own, it cannot.
///
/// Not for every call: depthwise tiles, which are inlined as things are, took 2 to 3 % more time with AVX2 when called.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
pub(crate) fn call_apart<S: Simd, K: Kernel>(simd: S, kernel: K) -> K::Output {
    simd.call(kernel)
}

/// `1.5 · 2^23`: added to a float of moderate size it leaves the nearest integer in the low bits.
pub(crate) const ROUND: f32 = 12_582_912.0;

/// Float vectors of one instruction set. Implemented by the tokens of [`isa`](crate::isa).
///
/// Comparisons are those of IEEE 754: false if a side is NaN. `max` and `min` are defined by them, on
/// every instruction set, so that what a kernel does with NaN does not depend on the machine.
pub(crate) trait Simd: Transpose {
    /// `LANES` floats.
    type Vector: Copy;

    /// Floats in a vector: a power of two, at most [`PANEL`](netkit_core::pack::PANEL).
    const LANES: usize;

    /// Pixels of the largest register tile of the convolution with one vector of channels, with two, and with three (0
    /// where one and two are as good).
    const TILE_PIXELS: [usize; 3];

    /// Whether few sizes of that tile are compiled, none of which lists taps, and loops left as they are: for a set that is there
    /// so that every machine is served, whose code is a part of every program.
    const FEW_TILES: bool = false;

    /// Whether the first lanes of a vector are loaded and stored as fast as all of them.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "nobody else asks"))]
    const MASKS: bool = false;

    /// Pixels of the largest register tile of the depthwise convolution, with two vectors of channels: at
    /// most 8.
    const DEPTHWISE_PIXELS: usize;

    /// Columns of the widest kernel of which depthwise tiles take two vectors of channels at once.
    const DEPTHWISE_PAIRS: usize = 5;

    /// Whether depthwise tiles at the edges of a map, and those away from them, are compiled apart, so that no column is
    /// asked whether it is inside. Worth its code where it was measured.
    const DEPTHWISE_EDGES: bool = false;

    /// Rows of the input and rows of the weights whose dot products a dense layer forms together where the input has several:
    /// as many as there are registers for the sums of, in a shape that [`DenseF32`](crate::generic::dense_f32::DenseF32)
    /// knows. Zeros where each row of the input alone is faster.
    #[cfg(not(netkit_micro))]
    const DENSE_TILE: [usize; 2] = [2, 4];

    /// Whether weights in file order are read where they lie instead of being packed a panel at a time.
    const READS_FILE_ORDER: bool = false;

    /// Steps of the depth that a tile takes at once: 1, or, where a product with any one lane of a vector is an
    /// instruction, `LANES`.
    const TAPS_AT_ONCE: usize = 1;

    /// Runs a kernel in a function of its own, compiled with this set's features.
    fn call<K: Kernel>(self, kernel: K) -> K::Output;

    /// `x` in every lane.
    fn splat(self, x: f32) -> Self::Vector;

    /// The first `LANES` elements; missing ones are 0.
    fn load(self, from: &[f32]) -> Self::Vector;

    /// Stores into the first `LANES` elements, or as many as there are.
    fn store(self, to: &mut [f32], vector: Self::Vector);

    /// `LANES` elements at `from`.
    ///
    /// # Safety
    /// `from` is valid for reading `LANES` floats. No alignment beyond that of `f32` is asked.
    unsafe fn load_pointer(self, from: *const f32) -> Self::Vector;

    /// `LANES` elements to `to`.
    ///
    /// # Safety
    /// `to` is valid for writing `LANES` floats.
    unsafe fn store_pointer(self, to: *mut f32, vector: Self::Vector);

    /// The first `lanes` elements at `from`, 0 in the other lanes.
    ///
    /// # Safety
    /// `from` is valid for reading so many floats, which are at most `LANES`.
    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, lanes: usize) -> Self::Vector {
        // SAFETY: the caller vouches for the floats.
        self.load(unsafe { core::slice::from_raw_parts(from, lanes) })
    }

    /// The first `lanes` elements to `to`.
    ///
    /// # Safety
    /// `to` is valid for writing so many floats, which are at most `LANES`.
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, lanes: usize, vector: Self::Vector) {
        // SAFETY: the caller vouches for the floats.
        self.store(unsafe { core::slice::from_raw_parts_mut(to, lanes) }, vector);
    }

    /// Asks for the cache line at `from`, to be in the second-level cache or nearer when it is wanted. A hint: nothing is
    /// read, and nothing need be there.
    #[inline(always)]
    fn prefetch(self, _from: *const f32) {}

    /// `a + b`
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a − b`
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a · b`
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a / b`
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `√x`, correctly rounded.
    #[inline(always)]
    fn sqrt(self, x: Self::Vector) -> Self::Vector {
        let mut lanes = [0.0; netkit_core::pack::PANEL];
        self.store(&mut lanes, x);
        for lane in lanes.iter_mut().take(Self::LANES) {
            *lane = libm::sqrtf(*lane);
        }
        self.load(&lanes)
    }
    /// `a · b + c`, with one rounding where the instruction set has it and two where not.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// `sums[v] = x[index] · weights[v] + sums[v]`, as [`mul_add`](Self::mul_add).
    ///
    /// # Safety
    /// `x + index` is valid for reading.
    #[inline(always)]
    unsafe fn mul_add_broadcast<const V: usize>(
        self,
        x: *const f32,
        index: usize,
        weights: &[Self::Vector; V],
        sums: &mut [Self::Vector; V],
    ) {
        // SAFETY: the caller vouches for the pointer.
        let x = self.splat(unsafe { *x.wrapping_add(index) });
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = self.mul_add(x, *weight, *sum);
        }
    }

    /// [`TAPS_AT_ONCE`](Self::TAPS_AT_ONCE) steps of the depth, one after the other: of each the weights are a row of
    /// each panel, `panel_pitch` floats apart, and the tap of pixel `p` is at `pixels[p] + offset`.
    ///
    /// # Safety
    /// Every row exists in each of the `V` vectors' panels, and every tap in each pixel.
    #[inline(always)]
    unsafe fn mul_add_taps<const P: usize, const V: usize>(
        self,
        weights: *const f32,
        panel_pitch: usize,
        pixels: &[*const f32; P],
        offset: usize,
        sums: &mut [[Self::Vector; V]; P],
    ) {
        const { assert!(Self::TAPS_AT_ONCE == 1) };
        // SAFETY: the caller vouches for the step.
        unsafe { step(self, weights, panel_pitch, pixels, offset, sums) };
    }

    /// `a > b ? a : b`
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a < b ? a : b`
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a > b ? yes : no`
    fn select_greater(
        self,
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector;
    /// `2^n` for `t = 1.5 · 2^23 + n`, `n` in −126..=127: the exponent taken from the low bits of `t`.
    fn power_of_two(self, t: Self::Vector) -> Self::Vector;
    /// The nearest integer `n` and what is left of `x`, exactly, which is at most 1/2. Where `2^x` is not a float, `x` may be
    /// taken for a number that is about as far off.
    #[inline(always)]
    fn split_integer(self, x: Self::Vector) -> (Self::Vector, Self::Vector) {
        // The bounds are where `scale` has its own.
        let x = self.min(self.splat(128.5), self.max(self.splat(-125.0), x));
        let n = self.sub(self.add(x, self.splat(ROUND)), self.splat(ROUND));
        (self.sub(x, n), n)
    }
    /// `x · 2^n`, `n` an integer in −125..=128 or what [`split_integer`](Self::split_integer) gives: infinite where the
    /// product is.
    #[inline(always)]
    fn scale(self, x: Self::Vector, n: Self::Vector) -> Self::Vector {
        // In two steps: n = 128 has no float of its own.
        let half = self.power_of_two(self.add(n, self.splat(ROUND - 1.0)));
        self.mul(self.mul(x, half), self.splat(2.0))
    }
    /// Sum of all lanes, halves added to halves.
    fn reduce_sum(self, vector: Self::Vector) -> f32;
    /// Sum of all lanes of each of four vectors, halves added to halves, whose order the set may choose.
    fn reduce_sums(self, vectors: [Self::Vector; 4]) -> [f32; 4];
    /// Maximum of all lanes, as [`max`](Self::max).
    fn reduce_max(self, vector: Self::Vector) -> f32;
}
