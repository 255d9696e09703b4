//! Int8 without vector instructions: four lanes as arrays. Packed filters go through here; those in
//! file order have kernels that read them where they lie.

use crate::isa::Scalar;
use crate::simd_s8::{KernelOn, SimdS8, offset_input};
use netkit_core::pack::PANEL;
use netkit_core::quant::{Multiplier, OutputStage};

const LANES: usize = 4;

impl SimdS8 for Scalar {
    type Sums = [i32; LANES];
    type Parts = [i32; LANES];
    type Inputs = [[u8; 4]; LANES];
    type Weights = [[i8; 4]; LANES];
    type Scales = [Multiplier; LANES];
    type Outputs = [[i32; LANES]; 4];

    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 3] = [1, 1, 0];
    const DEPTHWISE_PIXELS: usize = 1;
    const READS_FILE_ORDER: bool = true;

    #[inline(always)]
    fn call<K: KernelOn<Self>>(self, kernel: K) -> K::Output {
        #[inline(never)]
        fn enter<K: KernelOn<Scalar>>(token: Scalar, kernel: K) -> K::Output {
            kernel.run_on(token)
        }
        enter(self, kernel)
    }

    #[inline(always)]
    fn splat(self, x: i32) -> [i32; LANES] {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load_sums(self, from: *const i32) -> [i32; LANES] {
        // SAFETY: the caller vouches for LANES readable values.
        unsafe { from.cast::<[i32; LANES]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store_sums(self, to: *mut i32, sums: [i32; LANES]) {
        // SAFETY: the caller vouches for LANES writable values.
        unsafe { to.cast::<[i32; LANES]>().write_unaligned(sums) }
    }

    #[inline(always)]
    fn add(self, mut a: [i32; LANES], b: [i32; LANES]) -> [i32; LANES] {
        for (a, b) in a.iter_mut().zip(b) {
            *a = a.wrapping_add(b);
        }
        a
    }

    #[inline(always)]
    fn max(self, mut a: [i32; LANES], b: [i32; LANES]) -> [i32; LANES] {
        for (a, b) in a.iter_mut().zip(b) {
            *a = b.max(*a);
        }
        a
    }

    #[inline(always)]
    unsafe fn load_fractions(self, from: *const i8, zero_point: [i32; LANES]) -> [i32; LANES] {
        // SAFETY: the caller vouches for LANES readable bytes.
        let bytes = unsafe { from.cast::<[i8; LANES]>().read() };
        let mut fractions = [0; LANES];
        for ((to, x), zero_point) in fractions.iter_mut().zip(bytes).zip(zero_point) {
            *to = i32::from(x).wrapping_sub(zero_point) << 20;
        }
        fractions
    }

    #[inline(always)]
    unsafe fn splat_inputs(self, from: *const u8) -> [[u8; 4]; LANES] {
        // SAFETY: the caller vouches for 4 readable bytes.
        [unsafe { from.cast::<[u8; 4]>().read() }; LANES]
    }

    #[inline(always)]
    unsafe fn load_inputs(self, from: *const u8) -> [[u8; 4]; LANES] {
        // SAFETY: the caller vouches for 16 readable bytes.
        unsafe { from.cast::<[[u8; 4]; LANES]>().read() }
    }

    #[inline(always)]
    unsafe fn load_weights(self, from: *const i8) -> [[i8; 4]; LANES] {
        // SAFETY: the caller vouches for 16 readable weights.
        unsafe { from.cast::<[[i8; 4]; LANES]>().read() }
    }

    #[inline(always)]
    fn parts(self, sums: [i32; LANES]) -> [i32; LANES] {
        sums
    }

    #[inline(always)]
    fn total(self, sums: [i32; LANES]) -> [i32; LANES] {
        sums
    }

    #[inline(always)]
    fn dot(
        self,
        mut sums: [i32; LANES],
        inputs: [[u8; 4]; LANES],
        weights: [[i8; 4]; LANES],
    ) -> [i32; LANES] {
        for ((sum, inputs), weights) in sums.iter_mut().zip(inputs).zip(weights) {
            for (x, w) in inputs.into_iter().zip(weights) {
                *sum = sum.wrapping_add(i32::from(x) * i32::from(w));
            }
        }
        sums
    }

    #[inline(always)]
    fn scales(self, multipliers: &[Multiplier; PANEL]) -> [Multiplier; LANES] {
        let [a, b, c, d, ..] = *multipliers;
        [a, b, c, d]
    }

    #[inline(always)]
    fn rescale<const MODERATE: bool>(
        self,
        mut sums: [i32; LANES],
        scales: &[Multiplier; LANES],
    ) -> [i32; LANES] {
        for (sum, scale) in sums.iter_mut().zip(scales) {
            *sum = scale.apply(*sum);
        }
        sums
    }

    #[inline(always)]
    fn narrow(self, mut sums: [[i32; LANES]; 4], stage: &OutputStage) -> [[i32; LANES]; 4] {
        for sum in sums.as_flattened_mut() {
            *sum = i32::from(stage.clamp(*sum));
        }
        sums
    }

    #[inline(always)]
    unsafe fn store_outputs<const START: usize, const LEN: usize>(
        self,
        to: *mut i8,
        outputs: [[i32; LANES]; 4],
    ) {
        for (i, output) in outputs.iter().skip(START).take(LEN).flatten().enumerate() {
            // SAFETY: the caller vouches for LANES · LEN writable bytes.
            unsafe { to.wrapping_add(i).write(*output as i8) };
        }
    }

    #[inline(always)]
    unsafe fn interleave(self, rows: [*const i8; 4], to: *mut u8) {
        for (i, row) in rows.into_iter().enumerate() {
            for j in 0..4 * LANES {
                // SAFETY: the caller vouches for 16 readable bytes of each row.
                let x = unsafe { row.wrapping_add(j).read() };
                // SAFETY: the caller vouches for 64 writable bytes.
                unsafe { to.wrapping_add(4 * j + i).write(offset_input::<Scalar>(x)) };
            }
        }
    }
}
