//! What kernels of unchecked loads answer to arguments that do not belong together: nothing is touched.

use super::depthwise_s8::{DepthwiseSumsOf, DepthwiseTileS8};
use super::interleave_s8::InterleaveS8;
use super::short_s8::ShortOutputsOf;
use super::store_s8::{Channels, StoreS8};
use super::tile_s8::{GroupRuns, OutputsOf, SumsOf, TileS8};
use crate::Kernels;
use crate::simd_s8::{KernelS8, SimdS8};
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};
use netkit_core::quant::{Multiplier, OutputStage};
use std::vec;
use std::vec::Vec;

/// Pixels and vectors of channels of the tiles, tiles side by side, groups of a pixel.
const P: usize = 2;
const V: usize = 2;
const COUNT: usize = 2;
const GROUPS: usize = 2;

const STAGE: OutputStage = OutputStage { zero_point: 0, low: -128, high: 127 };
const UNTOUCHED: i32 = 77;

/// Whether a tile with one thing changed is computed.
struct Tile<F>(F);

/// What can be changed of a tile.
struct Parts {
    input: Vec<u8>,
    step: usize,
    count: usize,
    runs: GroupRuns,
    panels: Vec<i8>,
    lane: usize,
    start: Vec<i32>,
    sums: Vec<i32>,
}

impl Parts {
    /// Slices of just the length that is read and written.
    fn of<S: SimdS8>() -> Self {
        let step = GROUPS * GROUP * S::INPUT_BYTES;
        let panels = (V * S::LANES).div_ceil(PANEL) * (1 + GROUPS) * GROUP_BYTES;
        Self {
            input: vec![1; COUNT * P * step],
            step,
            count: COUNT,
            runs: GroupRuns { rows: 1, row_pitch: 0, columns: 1, column_pitch: 0, groups: GROUPS },
            panels: vec![1; panels],
            lane: 0,
            start: vec![0; V * S::LANES],
            sums: vec![UNTOUCHED; COUNT * P * V * S::LANES],
        }
    }

    fn tile(&mut self) -> TileS8<'_> {
        TileS8 {
            input: &self.input,
            step: self.step,
            count: self.count,
            runs: self.runs,
            panels: &self.panels,
            lane: self.lane,
            start: &self.start,
            sums: &mut self.sums,
        }
    }
}

impl<F: FnOnce(&mut Parts, usize)> KernelS8 for Tile<F> {
    /// Whether sums were stored, and whether outputs were, by either kernel.
    type Output = [bool; 3];

    fn run<S: SimdS8>(self, simd: S) -> [bool; 3] {
        let mut parts = Parts::of::<S>();
        (self.0)(&mut parts, S::LANES);
        simd.call(SumsOf::<P, V>(parts.tile()));
        let stored = parts.sums.iter().any(|&sum| sum != UNTOUCHED);

        let multipliers = vec![Multiplier { multiplier: 1 << 30, shift: -1 }; V * S::LANES];
        let channels = Channels::<S, V>::new(simd, &multipliers, &parts.start, 8, STAGE);
        let width = V * S::LANES;
        let mut output = vec![UNTOUCHED as i8; COUNT * P * width];
        simd.call(OutputsOf::<S, P, V> {
            tile: parts.tile(),
            rows: 1,
            row_step: 0,
            channels: &channels,
            output: &mut output,
            pitch: width,
            row_pitch: 0,
        });
        let tiled = output.iter().any(|&value| value != UNTOUCHED as i8);
        output.fill(UNTOUCHED as i8);
        // Of this kernel the count is pixels.
        parts.count = parts.count.saturating_mul(P);
        simd.call(ShortOutputsOf::<S, GROUPS, V> {
            tile: parts.tile(),
            rows: 1,
            row_step: 0,
            channels: &channels,
            output: &mut output,
            pitch: width,
            row_pitch: 0,
        });
        [stored, tiled, output.iter().any(|&value| value != UNTOUCHED as i8)]
    }
}

fn shorten<T>(values: &mut Vec<T>) {
    values.truncate(values.len() - 1);
}

/// A change of a tile's parts, given the lanes of a vector.
type Change = fn(&mut Parts, usize);

#[test]
fn tiles_that_reach_too_far_are_not_computed() {
    let changes: [(&str, Change); 11] = [
        ("input too short", |parts, _| shorten(&mut parts.input)),
        ("panels too short", |parts, _| shorten(&mut parts.panels)),
        ("start too short", |parts, _| shorten(&mut parts.start)),
        ("amid a vector", |parts, lanes| parts.lane = lanes / 2),
        ("a lane behind the panels", |parts, _| parts.lane = PANEL * V),
        ("a lane whose number wraps", |parts, lanes| parts.lane = usize::MAX / lanes * lanes),
        ("a step that wraps", |parts, _| parts.step = usize::MAX),
        ("tiles that wrap", |parts, _| parts.count = usize::MAX),
        ("no tiles", |parts, _| parts.count = 0),
        ("no rows", |parts, _| parts.runs.rows = 0),
        ("groups that wrap", |parts, _| parts.runs.groups = usize::MAX),
    ];
    for kernels in Kernels::all() {
        let isa = kernels.isa().name();
        assert_eq!(kernels.run_s8(Tile(|_: &mut Parts, _| {})), [true; 3], "{isa}");
        for (what, change) in changes {
            assert_eq!(kernels.run_s8(Tile(change)), [false; 3], "{isa}: {what}");
        }
        let [stored, _, _] = kernels.run_s8(Tile(|parts: &mut Parts, _| shorten(&mut parts.sums)));
        assert!(!stored, "{isa}: sums too short");
    }
}

/// Stores sums of `pixels` pixels, none behind the other.
struct Store(usize);

impl KernelS8 for Store {
    type Output = Vec<i8>;

    fn run<S: SimdS8>(self, simd: S) -> Vec<i8> {
        let multipliers = vec![Multiplier { multiplier: 1 << 30, shift: -1 }; S::LANES];
        let start = vec![0; S::LANES];
        let channels = Channels::<S, 1>::new(simd, &multipliers, &start, 8, STAGE);
        let sums = vec![12; S::LANES];
        let mut output = vec![UNTOUCHED as i8; S::LANES + 1];
        simd.call(StoreS8 {
            channels: &channels,
            pixels: self.0,
            sums: &sums,
            output: &mut output,
            pitch: 0,
        });
        output
    }
}

#[test]
fn no_more_sums_are_stored_than_there_are() {
    for kernels in Kernels::all() {
        for pixels in [1, 2, 1 << 28, usize::MAX / 4, usize::MAX] {
            let output = kernels.run_s8(Store(pixels));
            let (behind, stored) = output.split_last().unwrap();
            assert_eq!(i32::from(*behind), UNTOUCHED, "{}: {pixels}", kernels.isa().name());
            assert!(stored.iter().all(|&x| x == 3), "{}: {pixels}", kernels.isa().name());
        }
    }
}

/// Sums of a depthwise convolution of one tap, its weights from `lane` on.
struct Depthwise(usize);

impl KernelS8 for Depthwise {
    type Output = bool;

    fn run<S: SimdS8>(self, simd: S) -> bool {
        let mut sums = vec![UNTOUCHED; S::LANES];
        simd.call(DepthwiseSumsOf::<1>(DepthwiseTileS8 {
            input: &vec![1; S::LANES * GROUP * S::INPUT_BYTES],
            group_pitch: 0,
            tap_pitch: 0,
            pixel_pitch: 0,
            groups: 0..1,
            kernel_w: 1,
            weights: &[1; GROUP_BYTES],
            all_groups: 1,
            panel_pitch: GROUP_BYTES,
            lane: self.0,
            start: &vec![0; S::LANES],
            sums: &mut sums,
        }));
        sums.iter().any(|&sum| sum != UNTOUCHED)
    }
}

#[test]
fn depthwise_sums_begin_with_a_vector() {
    for kernels in Kernels::all() {
        let isa = kernels.isa().name();
        assert!(kernels.run_s8(Depthwise(0)), "{isa}");
        for lane in [1, PANEL - 1, usize::MAX, usize::MAX / PANEL * PANEL] {
            assert!(!kernels.run_s8(Depthwise(lane)), "{isa}: {lane}");
        }
    }
}

#[test]
fn rows_that_are_too_short_are_not_interleaved() {
    for kernels in Kernels::all() {
        for (len, row_len) in [(64, 63), (usize::MAX, 64), (64, usize::MAX), (65, 65)] {
            let mut to = vec![UNTOUCHED as u8; 64 * GROUP * 2];
            kernels.run_s8(InterleaveS8 { rows: &[1; 4 * 64], row_len, len, to: &mut to });
            assert!(to.iter().all(|&x| i32::from(x) == UNTOUCHED), "{}", kernels.isa().name());
        }
    }
}
