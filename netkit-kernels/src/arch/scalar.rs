//! Plain Rust in four lanes: what the compiler makes of it.

use crate::arch::transpose::Transpose;
use crate::isa::Scalar;
use crate::simd::{Kernel, Simd};

const LANES: usize = 4;

#[inline(always)]
fn map2(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    core::array::from_fn(|i| f(a[i], b[i]))
}

impl Transpose for Scalar {}

impl Simd for Scalar {
    type Vector = [f32; LANES];

    const LANES: usize = LANES;
    const TILE_PIXELS: [usize; 3] = [4, 4, 0];
    const FEW_TILES: bool = true;
    const DEPTHWISE_PIXELS: usize = 2;
    const READS_FILE_ORDER: bool = true;
    // Vectors that are none fill the registers: tiles of 2 × 4 took three times as long.
    #[cfg(not(netkit_micro))]
    const DENSE_TILE: [usize; 2] = [0, 0];

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        #[inline(never)]
        fn enter<K: Kernel>(token: Scalar, kernel: K) -> K::Output {
            kernel.run(token)
        }
        enter(self, kernel)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Vector {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::Vector {
        match from.first_chunk() {
            Some(chunk) => *chunk,
            None => {
                let mut vector = [0.0; LANES];
                for (to, &from) in vector.iter_mut().zip(from) {
                    *to = from;
                }
                vector
            }
        }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], vector: Self::Vector) {
        match to.first_chunk_mut() {
            Some(chunk) => *chunk = vector,
            None => {
                for (to, from) in to.iter_mut().zip(vector) {
                    *to = from;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn load_pointer(self, from: *const f32) -> Self::Vector {
        // SAFETY: the caller vouches for four readable floats; an array of floats is aligned as one.
        unsafe { *from.cast() }
    }

    #[inline(always)]
    unsafe fn store_pointer(self, to: *mut f32, vector: Self::Vector) {
        // SAFETY: the caller vouches for four writable floats.
        unsafe { *to.cast() = vector }
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
        core::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        map2(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn select_greater(
        self,
        a: Self::Vector,
        b: Self::Vector,
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector {
        core::array::from_fn(|i| if a[i] > b[i] { yes[i] } else { no[i] })
    }

    #[inline(always)]
    fn power_of_two(self, t: Self::Vector) -> Self::Vector {
        t.map(|t| f32::from_bits((t.to_bits() << 23).wrapping_add(1.0f32.to_bits())))
    }

    #[inline(always)]
    fn reduce_sum(self, v: Self::Vector) -> f32 {
        (v[0] + v[2]) + (v[1] + v[3])
    }

    #[inline(always)]
    fn reduce_sums(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        vectors.map(|v| (v[0] + v[2]) + (v[1] + v[3]))
    }

    #[inline(always)]
    fn reduce_max(self, v: Self::Vector) -> f32 {
        let max = |a: f32, b: f32| if a > b { a } else { b };
        max(max(v[0], v[2]), max(v[1], v[3]))
    }
}
