//! The register tile of the depthwise convolution: some neighbouring pixels of one output row, one vector
//! of channels.
//!
//! Each vector of input is loaded once for all the pixels of the tile that it is a tap of. Taps are added
//! in the order of the kernel, row by row, and taps in the padding not at all, so neither the tile's size
//! nor where the weights come from shows in the result.

use super::tile_s8::unrolled;
use crate::generic::activation::apply_simple;
use crate::generic::window::taps_inside;
use crate::simd::{Kernel, Simd};
use core::ops::Range;
use netkit_core::op::{Activation, Window};

/// A block of channels of some output rows, for kernels `KW` wide and strides of `SW` columns without
/// dilation.
pub(crate) struct DepthwiseRowsF32<'a, const KW: usize, const SW: usize> {
    pub(crate) window: &'a Window,
    /// The whole map, `[in_h][in_w][channels]`.
    pub(crate) input: &'a [f32],
    pub(crate) channels: usize,
    /// The channels to compute.
    pub(crate) block: Range<usize>,
    /// Weights of the block, `[taps][weight_pitch]`.
    pub(crate) weights: &'a [f32],
    pub(crate) weight_pitch: usize,
    /// Of the block.
    pub(crate) bias: &'a [f32],
    /// Applied if it is a simple one.
    pub(crate) activation: Activation,
    pub(crate) rows: Range<usize>,
    /// `[rows.len()][out_w][channels]`
    pub(crate) output: &'a mut [f32],
}

/// Which columns of a tile lie outside the map: none.
const INSIDE: u8 = 0;
/// Half a kernel on the left, as where padding keeps a map's size.
const LEFT: u8 = 1;
/// Half a kernel on the right.
const RIGHT: u8 = 2;
/// Half a kernel on either side: the tile is as wide as the map.
const BOTH: u8 = LEFT | RIGHT;
/// Some or none: each column is asked.
const ANY: u8 = 4;

/// Pixels of the largest tile. Two vectors of channels at once hide more latency and share the work of
/// addressing, but with 16 registers a kernel seven wide leaves room for one.
const fn most<S: Simd, const KW: usize>() -> usize {
    if KW <= 5 { S::DEPTHWISE_PIXELS } else { 8 }
}

impl<const KW: usize, const SW: usize> Kernel for DepthwiseRowsF32<'_, KW, SW> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        if !self.is_sound::<S>() {
            return;
        }
        // As few tiles as can be, of about one size.
        let out_w = self.window.out_w;
        let tiles = out_w.div_ceil(most::<S, KW>()).max(1);
        let (size, longer) = (out_w / tiles, out_w % tiles);
        for (size, ow, tiles) in
            [(size + 1, 0, longer), (size, longer * (size + 1), tiles - longer)]
        {
            macro_rules! sizes {
                ($($size:literal)+) => {
                    match size {
                        _ if tiles == 0 => {}
                        $($size if const { $size <= most::<S, KW>() } => {
                            simd.call(TilesFrom::<$size, KW, SW> { rows: &mut self, ow, tiles });
                        })+
                        _ => {}
                    }
                };
            }
            sizes!(1 2 3 4 5 6 7 8);
        }
    }
}

/// Side by side, `tiles` of `P` pixels from column `ow` on: all rows, all channels of the block.
///
/// A kernel of its own: all sizes of tiles in one function take the compiler longer than each in one by a multiple. It is not
/// one for each tile, whose addresses would then take as long to find as the tile to compute.
struct TilesFrom<'t, 'a, const P: usize, const KW: usize, const SW: usize> {
    /// Sound, as [`DepthwiseRowsF32::run`] has seen.
    rows: &'t mut DepthwiseRowsF32<'a, KW, SW>,
    ow: usize,
    tiles: usize,
}

impl<const P: usize, const KW: usize, const SW: usize> Kernel for TilesFrom<'_, '_, P, KW, SW> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for oh in self.rows.rows.clone() {
            for tile in 0..self.tiles {
                self.rows.tile::<S, P>(simd, oh, self.ow + tile * P);
            }
        }
    }
}

impl<const KW: usize, const SW: usize> DepthwiseRowsF32<'_, KW, SW> {
    /// All that the unchecked loads and stores below rely on.
    #[inline(always)]
    fn is_sound<S: Simd>(&self) -> bool {
        let w = self.window;
        let check = || {
            let input = w.in_h.checked_mul(w.in_w)?.checked_mul(self.channels)?;
            let row = w.out_w.checked_mul(self.channels)?;
            let output = self.rows.len().checked_mul(row)?;
            let taps = w.kernel_h.checked_mul(KW)?;
            let weights = taps.checked_sub(1)?.checked_mul(self.weight_pitch)?;
            let weights = weights.checked_add(self.block.len())?;
            let holds = w.kernel_w == KW
                && w.stride_w == SW
                && w.dilation_w == 1
                && self.block.start <= self.block.end
                && self.block.end <= self.channels
                && self.block.len() >= S::LANES
                && self.bias.len() == self.block.len()
                && input == self.input.len()
                && output == self.output.len()
                && weights <= self.weights.len();
            Some(holds)
        };
        check().unwrap_or(false)
    }

    /// `P` pixels from column `ow` of output row `oh`, all channels of the block.
    #[inline(always)]
    fn tile<S: Simd, const P: usize>(&mut self, simd: S, oh: usize, ow: usize) {
        let w = self.window;
        let taps = taps_inside(oh, w.in_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top);
        let ih = (oh * w.stride_h + taps.start * w.dilation_h).saturating_sub(w.pad_top);
        // The tile's first column in the map, counting the padding left of it.
        let first = ow * SW;
        let column = first.wrapping_sub(w.pad_left).wrapping_mul(self.channels);
        let row = ih * w.in_w * self.channels + self.block.start;
        let pixel = (oh - self.rows.start) * w.out_w + ow;
        let tile = Tile::<P, KW, SW> {
            input: self.input.as_ptr().wrapping_add(row.wrapping_add(column)),
            row_pitch: w.dilation_h * w.in_w * self.channels,
            rows: taps.len(),
            start: w.pad_left.saturating_sub(first),
            end: (w.in_w + w.pad_left).saturating_sub(first),
            weights: self.weights.as_ptr().wrapping_add(taps.start * KW * self.weight_pitch),
            weight_pitch: self.weight_pitch,
            bias: self.bias.as_ptr(),
            activation: self.activation,
            output: self.output.as_mut_ptr().wrapping_add(pixel * self.channels + self.block.start),
            channels: self.channels,
        };
        let lanes = self.block.len();
        let mut lane = 0;
        if const { S::DEPTHWISE_EDGES && KW <= S::DEPTHWISE_PAIRS } {
            let columns = (P - 1) * SW + KW;
            let edges = match (tile.start, tile.end.min(columns)) {
                (0, end) if end == columns => INSIDE,
                // Small tiles are rare, and larger ones do not leave them to an edge.
                _ if 2 * P <= most::<S, KW>() => ANY,
                (start, end) if start == KW / 2 && end == columns => LEFT,
                (0, end) if end + KW / 2 == columns => RIGHT,
                (start, end) if start == KW / 2 && end + KW / 2 == columns => BOTH,
                _ => ANY,
            };
            while edges != ANY && lane + 2 * S::LANES <= lanes {
                macro_rules! vectors {
                    ($edges:expr) => {
                        // SAFETY: `is_sound` holds, two vectors of channels are left, and the edges are those of
                        // the tile.
                        unsafe { tile.vectors::<S, 2, { $edges }>(simd, lane) }
                    };
                }
                match edges {
                    INSIDE => vectors!(INSIDE),
                    LEFT if const { 2 * P > most::<S, KW>() } => vectors!(LEFT),
                    RIGHT if const { 2 * P > most::<S, KW>() } => vectors!(RIGHT),
                    BOTH if const { 2 * P > most::<S, KW>() } => vectors!(BOTH),
                    _ => {}
                }
                lane += 2 * S::LANES;
            }
        }
        if lane < lanes {
            let any = AnyTile { tile, lane, lanes };
            if S::DEPTHWISE_EDGES { simd.call(any) } else { any.run(simd) }
        }
    }
}

/// A tile whose columns may lie outside the map, from `lane` of its block's `lanes` on.
///
/// A kernel of its own where others know their columns, or each of those would begin with the questions that this one asks.
struct AnyTile<const P: usize, const KW: usize, const SW: usize> {
    /// Sound, as [`DepthwiseRowsF32::run`] has seen; its rows, columns and pixels exist.
    tile: Tile<P, KW, SW>,
    lane: usize,
    /// No fewer than a vector has.
    lanes: usize,
}

impl<const P: usize, const KW: usize, const SW: usize> Kernel for AnyTile<P, KW, SW> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tile, mut lane, lanes } = self;
        if KW <= S::DEPTHWISE_PAIRS {
            while lane + 2 * S::LANES <= lanes {
                // SAFETY: the tile is sound; two vectors of channels are left.
                unsafe { tile.vectors::<S, 2, ANY>(simd, lane) };
                lane += 2 * S::LANES;
            }
        }
        while lane < lanes {
            // The last vector overlaps the one before rather than be a part of one.
            // SAFETY: the tile is sound; the block has at least one vector of channels.
            unsafe { tile.vectors::<S, 1, ANY>(simd, lane.min(lanes - S::LANES)) };
            lane += S::LANES;
        }
    }
}

/// A tile: what is the same for all its channels. Pointers are to the first channel of the block.
#[derive(Clone, Copy)]
struct Tile<const P: usize, const KW: usize, const SW: usize> {
    /// The tile's first column of the first kernel row inside the map; that column may be outside.
    input: *const f32,
    row_pitch: usize,
    /// Kernel rows inside the map.
    rows: usize,
    /// Of the tile's input columns, `start..end` are inside the map.
    start: usize,
    end: usize,
    /// Of the first kernel row inside the map.
    weights: *const f32,
    weight_pitch: usize,
    bias: *const f32,
    activation: Activation,
    output: *mut f32,
    /// Floats from one pixel to the next.
    channels: usize,
}

impl<const P: usize, const KW: usize, const SW: usize> Tile<P, KW, SW> {
    /// `V` vectors of channels, from `lane` of the block on.
    ///
    /// # Safety
    /// The block has `lane + V · LANES` channels or more, the tile's rows, columns and pixels exist, and unless `EDGES`
    /// is [`ANY`] the columns outside the map are those that it says.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const V: usize, const EDGES: u8>(self, simd: S, lane: usize) {
        let mut bias = [simd.splat(0.0); V];
        unrolled!(v < V <= 4 {
            // SAFETY: the caller vouches for the channels.
            let from = unsafe { simd.load_pointer(self.bias.wrapping_add(lane + v * S::LANES)) };
            // A bias of −0 becomes 0, as everywhere.
            bias[v] = simd.add(from, simd.splat(0.0));
        });
        let mut sums = [bias; P];
        let mut row = self.input.wrapping_add(lane);
        let mut from = self.weights.wrapping_add(lane);
        for _ in 0..self.rows {
            let mut weights = [[simd.splat(0.0); V]; KW];
            unrolled!(c < KW {
                unrolled!(v < V <= 4 {
                    // SAFETY: the caller vouches for the kernel row and the channels.
                    weights[c][v] = unsafe { simd.load_pointer(from.wrapping_add(v * S::LANES)) };
                });
                from = from.wrapping_add(self.weight_pitch);
            });
            let mut pixel = row;
            // Where a loop stays a loop, the sums it indexes are in memory.
            macro_rules! columns {
                ($($c:literal)+) => {$(
                    if const { $c < (P - 1) * SW + KW } {
                        // SAFETY: the caller vouches for the row and the channels.
                        unsafe { self.column::<S, V, EDGES>(simd, $c, pixel, &weights, &mut sums) };
                        pixel = pixel.wrapping_add(self.channels);
                    }
                )+};
            }
            const { assert!((P - 1) * SW + KW <= 19) };
            columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18);
            row = row.wrapping_add(self.row_pitch);
        }
        match self.activation {
            Activation::Relu => {
                sums = map(sums, |x| apply_simple(simd, Activation::Relu, x));
            }
            Activation::None => {}
            activation => sums = map(sums, |x| apply_simple(simd, activation, x)),
        }
        unrolled!(p < P {
            let to = self.output.wrapping_add(p * self.channels + lane);
            unrolled!(v < V <= 4 {
                // SAFETY: the caller vouches for the pixel and the channels.
                unsafe { simd.store_pointer(to.wrapping_add(v * S::LANES), sums[p][v]) };
            });
        });
    }

    /// Column `c` of the tile, at `pixel`: what it adds to the sums of one kernel row.
    ///
    /// # Safety
    /// As [`vectors`](Self::vectors); `V` vectors of channels can be read at `pixel` if the column is inside the map.
    #[inline(always)]
    unsafe fn column<S: Simd, const V: usize, const EDGES: u8>(
        &self,
        simd: S,
        c: usize,
        pixel: *const f32,
        weights: &[[S::Vector; V]; KW],
        sums: &mut [[S::Vector; V]; P],
    ) {
        let columns = (P - 1) * SW + KW;
        let inside = if EDGES == ANY {
            c >= self.start && c < self.end
        } else {
            (EDGES & LEFT == 0 || c >= KW / 2) && (EDGES & RIGHT == 0 || c + KW / 2 < columns)
        };
        if !inside {
            return;
        }
        unrolled!(v < V <= 4 {
            // SAFETY: the column is inside the map; the caller vouches for the row and the channels.
            let x = unsafe { simd.load_pointer(pixel.wrapping_add(v * S::LANES)) };
            unrolled!(p < P {
                if c >= p * SW && c - p * SW < KW {
                    sums[p][v] = simd.mul_add(x, weights[c - p * SW][v], sums[p][v]);
                }
            });
        });
    }
}

#[inline(always)]
fn map<T: Copy, const P: usize, const V: usize>(
    mut sums: [[T; V]; P],
    f: impl Fn(T) -> T,
) -> [[T; V]; P] {
    unrolled!(p < P {
        unrolled!(v < V <= 4 {
            sums[p][v] = f(sums[p][v]);
        });
    });
    sums
}
