//! The operations int8 kernels are written over: dot products of four, requantization, narrowing.

use crate::arch::tile_s8::{TileS8, unrolled};
use crate::arch::transpose::Transpose;
use crate::generic::dense_s8::DenseS8;
use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

/// An int8 kernel written once for every instruction set; see [`Kernel`](crate::simd::Kernel).
pub(crate) trait KernelS8 {
    /// What the kernel answers.
    type Output;
    /// The body.
    fn run<S: SimdS8>(self, simd: S) -> Self::Output;
}

/// A kernel for one instruction set: any [`KernelS8`], and those that hold vectors of that set.
pub(crate) trait KernelOn<S: SimdS8> {
    /// What the kernel answers.
    type Output;
    /// The body.
    fn run_on(self, simd: S) -> Self::Output;
}

impl<S: SimdS8, K: KernelS8> KernelOn<S> for K {
    type Output = K::Output;

    #[inline(always)]
    fn run_on(self, simd: S) -> K::Output {
        self.run(simd)
    }
}

/// Sums of `LANES` output channels in 32 bits, and what goes in and comes out of them. Implemented by
/// the tokens of [`isa`](crate::isa).
///
/// Inputs are `x + INPUT_OFFSET`, of [`INPUT_BYTES`](Self::INPUT_BYTES) each. With [`INPUT_OFFSET`] they are unsigned: the
/// dot-product instructions of x86-64 multiply unsigned with signed bytes, and where there are none, widening unsigned
/// bytes to 16 bits is cheaper. Those of Arm multiply signed bytes, and the offset is 0. It leaves the sum again through
/// the weights' sums, which packed filters carry.
///
/// Nothing here saturates on the way; the results are those of [`netkit_core::quant`] to the last bit.
pub(crate) trait SimdS8: Transpose {
    /// `LANES` sums.
    type Sums: Copy;
    /// Sums as they grow: `LANES` of them, each perhaps in parts.
    type Parts: Copy;
    /// `LANES` times four inputs.
    type Inputs: Copy;
    /// `LANES` times four weights.
    type Weights: Copy;
    /// The multipliers of `LANES` channels, prepared.
    type Scales: Copy;
    /// `4 · LANES` output bytes.
    type Outputs: Copy;

    /// Channels of a vector: 4, 8 or 16, a divisor of [`PANEL`].
    const LANES: usize;

    /// Pixels of the largest register tile with one vector of channels, with two, and with four (0 where
    /// the registers do not suffice); at most 14.
    const TILE_PIXELS: [usize; 3];

    /// Pixels of the largest tile of a depthwise convolution, one vector of channels wide; at most 14.
    const DEPTHWISE_PIXELS: usize;

    /// Bytes of an input value as prepared for tiles: 2 where bytes would be widened at every use.
    const INPUT_BYTES: usize = 1;

    /// Groups of taps up to which [`short_sums`](Self::short_sums) computes whole rows.
    const SHORT_GROUPS: usize = 0;

    /// Whether tiles of two vectors rescale the sums of the tile before between their products.
    const INTERLEAVES: bool = false;

    /// Groups of taps up to which the weights of two vectors of channels stay in registers.
    const REGISTER_GROUPS: usize = 0;

    /// Groups of inputs up to which dense layers of one row are computed panel by panel instead of as a matrix product, whose
    /// inputs are prepared for several panels at once.
    const ROW_GROUPS: usize = 0;

    /// Whether a tile's sums become outputs before the next tile: where the processor does both at once.
    const STORES_EACH_TILE: bool = false;

    /// Whether [`rescale_positive`](Self::rescale_positive) is shorter than [`rescale`](Self::rescale).
    const RESCALES_POSITIVE: bool = false;

    /// Whether vectors tell what [is moderate](Self::are_moderate).
    const TELLS_MODERATE: bool = false;

    /// Whether weights in file order are read where they lie instead of being packed.
    const READS_FILE_ORDER: bool = false;

    /// Added to an int8 input to make it a byte as this set reads it.
    const INPUT_OFFSET: i32 = INPUT_OFFSET;

    /// Groups of a run that a tile takes at once: 1, or as many as [`dot_groups`](Self::dot_groups) does.
    const GROUPS_AT_ONCE: usize = 1;

    /// Runs a kernel in a function of its own, compiled with this set's features.
    fn call<K: KernelOn<Self>>(self, kernel: K) -> K::Output;

    /// `x` in every lane.
    fn splat(self, x: i32) -> Self::Sums;

    /// `LANES` sums from the `LANES` values at `from`.
    ///
    /// # Safety
    /// `from` is valid for reading `LANES` values; no alignment is asked.
    unsafe fn load_sums(self, from: *const i32) -> Self::Sums;

    /// `LANES` sums to `to`.
    ///
    /// # Safety
    /// `to` is valid for writing `LANES` values; no alignment is asked.
    unsafe fn store_sums(self, to: *mut i32, sums: Self::Sums);

    /// `a + b`, wrapping.
    fn add(self, a: Self::Sums, b: Self::Sums) -> Self::Sums;

    /// The first `LANES` values, zeros where there are fewer.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    fn load_sums_of(self, from: &[i32]) -> Self::Sums {
        let mut few = [0; PANEL];
        let from = if from.len() < Self::LANES {
            for (to, &from) in few.iter_mut().zip(from) {
                *to = from;
            }
            &few
        } else {
            from
        };
        // SAFETY: the slice has LANES values.
        unsafe { self.load_sums(from.as_ptr()) }
    }

    /// `a · b`, wrapping.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    fn multiply(self, a: Self::Sums, b: Self::Sums) -> Self::Sums {
        let (mut products, mut factors) = ([0i32; PANEL], [0; PANEL]);
        // SAFETY: the array has room for LANES sums.
        unsafe { self.store_sums(products.as_mut_ptr(), a) };
        // SAFETY: as above.
        unsafe { self.store_sums(factors.as_mut_ptr(), b) };
        for (product, factor) in products.iter_mut().zip(factors).take(Self::LANES) {
            *product = product.wrapping_mul(factor);
        }
        // SAFETY: the array has LANES sums.
        unsafe { self.load_sums(products.as_ptr()) }
    }

    /// The larger of each pair.
    #[cfg_attr(netkit_micro, allow(dead_code, reason = "for what microcontrollers do in bands"))]
    fn max(self, a: Self::Sums, b: Self::Sums) -> Self::Sums;

    /// `(x − zero_point) · 2^20` of `LANES` bytes: the first step of a quantized sum.
    ///
    /// # Safety
    /// `from` is valid for reading `LANES` bytes.
    unsafe fn load_fractions(self, from: *const i8, zero_point: Self::Sums) -> Self::Sums;

    /// The same four inputs in every lane.
    ///
    /// # Safety
    /// `from` is valid for reading `4 · INPUT_BYTES` bytes.
    unsafe fn splat_inputs(self, from: *const u8) -> Self::Inputs;

    /// Four inputs for each lane.
    ///
    /// # Safety
    /// `from` is valid for reading `4 · LANES · INPUT_BYTES` bytes.
    unsafe fn load_inputs(self, from: *const u8) -> Self::Inputs;

    /// Four weights for each lane.
    ///
    /// # Safety
    /// `from` is valid for reading `4 · LANES` weights.
    unsafe fn load_weights(self, from: *const i8) -> Self::Weights;

    /// Sums to add to.
    fn parts(self, sums: Self::Sums) -> Self::Parts;

    /// Adds to each sum its four products.
    fn dot(self, parts: Self::Parts, inputs: Self::Inputs, weights: Self::Weights) -> Self::Parts;

    /// [`dot`](Self::dot) with the same four inputs in every lane.
    ///
    /// # Safety
    /// `from + at` is valid for reading `4 · INPUT_BYTES` bytes.
    #[inline(always)]
    unsafe fn dot_splat(
        self,
        parts: Self::Parts,
        from: *const u8,
        at: usize,
        weights: Self::Weights,
    ) -> Self::Parts {
        // SAFETY: the caller vouches for the bytes.
        let inputs = unsafe { self.splat_inputs(from.wrapping_add(at)) };
        self.dot(parts, inputs, weights)
    }

    /// The sums.
    fn total(self, parts: Self::Parts) -> Self::Sums;

    /// Adds to the sums of `P` pixels the products of [`GROUPS_AT_ONCE`](Self::GROUPS_AT_ONCE) groups: inputs from
    /// `pixels[p] + offset` on, weights of vector `v` from `weights[v]` on, [`GROUP_BYTES`] from one group to the next.
    ///
    /// # Safety
    /// Each pixel is valid for reading that many groups, and so are the weights.
    #[inline(always)]
    unsafe fn dot_groups<const P: usize, const V: usize>(
        self,
        pixels: &[*const u8; P],
        offset: usize,
        weights: &[*const i8; V],
        sums: &mut [[Self::Parts; V]; P],
    ) {
        const { assert!(Self::GROUPS_AT_ONCE == 1) };
        // SAFETY: the caller vouches for the group.
        unsafe { dot_group(self, pixels, offset, weights, sums) };
    }

    /// Prepares the first `LANES` multipliers.
    fn scales(self, multipliers: &[Multiplier; PANEL]) -> Self::Scales;

    /// Prepares the first `LANES` multipliers, or as many as there are.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    #[inline(always)]
    fn scales_of(self, multipliers: &[Multiplier]) -> Self::Scales {
        let mut few = [NO_MULTIPLIER; PANEL];
        let multipliers = multipliers.first_chunk().unwrap_or_else(|| {
            for (to, &from) in few.iter_mut().zip(multipliers) {
                *to = from;
            }
            &few
        });
        self.scales(multipliers)
    }

    /// Whether these multipliers are [`moderate`] and the sums nearer to zero than `room`. `false` unless the set
    /// [tells it](Self::TELLS_MODERATE).
    #[inline(always)]
    fn are_moderate(self, _sums: Self::Sums, _scales: &Self::Scales, _room: i32) -> bool {
        false
    }

    /// [`Multiplier::apply`] in each lane. `MODERATE` promises that every multiplier and sum is
    /// [`moderate`].
    fn rescale<const MODERATE: bool>(self, sums: Self::Sums, scales: &Self::Scales) -> Self::Sums;

    /// [`rescale`](Self::rescale) of moderate sums by moderate multipliers where it is positive, and elsewhere any number
    /// that is not. Only called where [`RESCALES_POSITIVE`](Self::RESCALES_POSITIVE).
    #[inline(always)]
    fn rescale_positive(self, sums: Self::Sums, scales: &Self::Scales) -> Self::Sums {
        self.rescale::<true>(sums, scales)
    }

    /// [`rescale`](Self::rescale) of even sums by `scales` that are all one half, without a shift.
    #[inline(always)]
    fn half(self, sums: Self::Sums, scales: &Self::Scales) -> Self::Sums {
        self.rescale::<false>(sums, scales)
    }

    /// Four rescaled vectors as bytes: zero point added, clamped, in the order given.
    fn narrow(self, sums: [Self::Sums; 4], stage: &OutputStage) -> Self::Outputs;

    /// Stores part of the outputs: of the first `LANES · len` bytes from `LANES · start` on.
    ///
    /// # Safety
    /// `to` is valid for writing `LANES · LEN` bytes, `LEN` is 1, 2 or 4, and `START + LEN ≤ 4`.
    unsafe fn store_outputs<const START: usize, const LEN: usize>(
        self,
        to: *mut i8,
        outputs: Self::Outputs,
    );

    /// Stores one vector of [moderate](moderate) rescaled sums as bytes: zero point added, clamped.
    ///
    /// # Safety
    /// `to` is valid for writing `LANES` bytes.
    #[inline(always)]
    unsafe fn store_moderate(self, to: *mut i8, sums: Self::Sums, stage: &OutputStage) {
        let outputs = self.narrow([sums; 4], stage);
        // SAFETY: the caller vouches for the bytes.
        unsafe { self.store_outputs::<0, 1>(to, outputs) };
    }

    /// The sums of `pixels` pixels in a row and one vector of channels that have at most
    /// [`SHORT_GROUPS`](Self::SHORT_GROUPS) groups.
    #[inline(always)]
    fn short_sums(self, _tile: TileS8<'_>, _pixels: usize) {}

    /// A dense layer from `weights` in file order.
    #[inline(always)]
    fn dense_file(self, layer: DenseS8<'_>, _weights: &[i8]) {
        layer.by_tiles(self);
    }

    /// A depthwise convolution whose filter is packed, or is to be.
    #[inline(always)]
    fn depthwise(self, layer: DepthwiseConv2dS8<'_>) {
        layer.by_fours(self);
    }

    /// Interleaves four rows: `4 · LANES` groups of the bytes at one position of each row, each byte
    /// plus 128 and `INPUT_BYTES` wide, in the order of the rows' bytes.
    ///
    /// # Safety
    /// Each row is valid for reading `4 · LANES` bytes, `to` for writing `16 · LANES · INPUT_BYTES`.
    unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8);
}

/// Adds to the sums of `P` pixels the products of one group.
///
/// # Safety
/// Each pixel is valid for reading `4 · INPUT_BYTES` bytes at `offset`, and the weights `4 · LANES`.
#[inline(always)]
pub(crate) unsafe fn dot_group<S: SimdS8, const P: usize, const V: usize>(
    simd: S,
    pixels: &[*const u8; P],
    offset: usize,
    weights: &[*const i8; V],
    sums: &mut [[S::Parts; V]; P],
) {
    unrolled!(v < V <= 4 {
        // SAFETY: the caller vouches for the weights.
        let w = unsafe { simd.load_weights(weights[v]) };
        unrolled!(p < P {
            // SAFETY: the caller vouches for the pixel.
            let x = unsafe { simd.splat_inputs(pixels[p].wrapping_add(offset)) };
            sums[p][v] = simd.dot(sums[p][v], x, w);
        });
    });
}

/// Whether a multiplier is below one half and above 2^−30, as those of trained layers are.
///
/// Then, and if sums are within ±2^29, both roundings of a rescaling fit 32 bits on the way, with room for two more, and
/// there is no left shift.
#[inline(always)]
pub(crate) const fn moderate(multiplier: Multiplier) -> bool {
    multiplier.shift < 0 && multiplier.shift >= -29
}

/// Stands where there is no multiplier: [`moderate`], so that it does not send its neighbours the long way.
pub(crate) const NO_MULTIPLIER: Multiplier = Multiplier { multiplier: 0, shift: -1 };

/// Below this are sums that are [`moderate`].
pub(crate) const MODERATE_SUM: u32 = 1 << 29;

/// Below this are numbers that stay [`moderate`] sums whatever `taps` products, of an unsigned and a signed byte, are added.
#[inline(always)]
pub(crate) const fn moderate_start(taps: usize) -> u32 {
    (MODERATE_SUM as usize).saturating_sub(taps.saturating_mul(255 * 128)) as u32
}

/// Added to an int8 input to make it an unsigned byte.
const INPUT_OFFSET: i32 = 128;

/// An int8 input as the kernels of a set read it.
#[inline(always)]
pub(crate) const fn offset_input<S: SimdS8>(x: i8) -> u8 {
    (x as u8).wrapping_add(S::INPUT_OFFSET as u8)
}
