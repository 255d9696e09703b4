//! Int8 dense layers of one row of few inputs. In small networks each waits for the one before, and does little: what counts
//! is how long it takes from an input to an output, and how few instructions stand beside that. So inputs go from where they
//! lie into registers, without scratch between, and whatever does not depend on them is done while they are waited for.

use super::tile_s8::unrolled;
use crate::simd_s8::{KernelS8, SimdS8, moderate_start};
use netkit_core::pack::{GROUP, GROUP_BYTES, PANEL};
use netkit_core::quant::{Multiplier, OutputStage};

/// The most inputs: with more, how fast weights are read counts for more than how soon.
pub(crate) const MOST_INPUTS: usize = 64;

/// The outputs of one row of at most [`MOST_INPUTS`] from panels.
pub(crate) struct ShortRow<'a> {
    pub(crate) input: &'a [i8],
    pub(crate) panels: &'a [i8],
    pub(crate) bias: &'a [i32],
    pub(crate) multipliers: &'a [Multiplier],
    pub(crate) output: &'a mut [i8],
    pub(crate) input_zero_point: i32,
    pub(crate) stage: OutputStage,
}

/// Groups that are multiplied at once, into sums of their own.
const GROUPS: usize = 4;

/// Below this are starts whose sums are moderate.
const ROOM: i32 = moderate_start(MOST_INPUTS) as i32;

impl KernelS8 for ShortRow<'_> {
    type Output = ();

    /// Does nothing if the input is too long, or there is not one bias and one multiplier for each output. Outputs without a
    /// panel are left out.
    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        let Self { input, panels, bias, multipliers, output, input_zero_point, stage } = self;
        let outputs = output.len();
        if input.len() > MOST_INPUTS || bias.len() != outputs || multipliers.len() != outputs {
            return;
        }
        let panel_len = (input.len().div_ceil(GROUP) + 1) * GROUP_BYTES;
        // What the inputs as read are above those that count, negated.
        let excess = simd.splat(input_zero_point.wrapping_add(S::INPUT_OFFSET).wrapping_neg());
        let (mut panels, mut first) = (panels, 0);
        while let (true, Some((panel, behind))) =
            (first < outputs, panels.split_at_checked(panel_len))
        {
            for lane in (0..PANEL).step_by(S::LANES) {
                let channel = first + lane;
                if channel >= outputs {
                    return;
                }
                let to = output.get_mut(channel..).unwrap_or(&mut []);
                let bias = bias.get(channel..).unwrap_or(&[]);
                let multipliers = multipliers.get(channel..).unwrap_or(&[]);
                let scales = simd.scales_of(multipliers);
                // SAFETY: in front of a panel stand the sums of its weights, PANEL of them.
                let weights =
                    unsafe { simd.load_sums(panel.as_ptr().cast::<i32>().wrapping_add(lane)) };
                let start = simd.add(simd.load_sums_of(bias), simd.multiply(weights, excess));
                // SAFETY: the panel is as long as `dots` asks.
                let sums = unsafe { dots(simd, input, panel, lane, start) };
                let mut bytes = [0; PANEL];
                if simd.are_moderate(start, &scales, ROOM) {
                    let rescaled = simd.rescale::<true>(sums, &scales);
                    // SAFETY: the array has room for LANES bytes.
                    unsafe { simd.store_moderate(bytes.as_mut_ptr(), rescaled, &stage) };
                } else {
                    let rescaled = simd.rescale::<false>(sums, &scales);
                    let outputs = simd.narrow([rescaled; 4], &stage);
                    // SAFETY: as above.
                    unsafe { simd.store_outputs::<0, 1>(bytes.as_mut_ptr(), outputs) };
                }
                match (to.get_mut(..S::LANES), bytes.get(..S::LANES)) {
                    (Some(to), Some(bytes)) => to.copy_from_slice(bytes),
                    _ => store_few(bytes, to),
                }
            }
            panels = behind;
            first += PANEL;
        }
    }
}

/// `start` and the products of the input with one vector of channels from `lane` on.
///
/// # Safety
/// The panel has [`GROUP_BYTES`] of sums, and as many for every four inputs and for those that are left; `lane + LANES` is at most
/// [`PANEL`].
#[inline(always)]
unsafe fn dots<S: SimdS8>(
    simd: S,
    input: &[i8],
    panel: &[i8],
    lane: usize,
    start: S::Sums,
) -> S::Sums {
    let mut acc = [simd.parts(simd.splat(0)); GROUPS];
    acc[0] = simd.parts(start);
    let mut weights = panel.as_ptr().wrapping_add(GROUP_BYTES + lane * GROUP);
    let (fours, tail) = input.as_chunks::<GROUP>();
    let (quads, fours) = fours.as_chunks::<GROUPS>();
    for quad in quads {
        unrolled!(g < 4 {
            // SAFETY: the caller vouches for this group.
            let w = unsafe { simd.load_weights(weights.wrapping_add(g * GROUP_BYTES)) };
            acc[g] = simd.dot(acc[g], splat(simd, quad[g]), w);
        });
        weights = weights.wrapping_add(GROUPS * GROUP_BYTES);
    }
    unrolled!(g < 3 {
        if let Some(&four) = fours.get(g) {
            // SAFETY: as above.
            let w = unsafe { simd.load_weights(weights) };
            weights = weights.wrapping_add(GROUP_BYTES);
            acc[g] = simd.dot(acc[g], splat(simd, four), w);
        }
    });
    if let [a, rest @ ..] = tail {
        let b = rest.first().map_or(0, |&b| b);
        let c = rest.get(1).map_or(0, |&c| c);
        // SAFETY: the caller vouches for the group of those that are left.
        let w = unsafe { simd.load_weights(weights) };
        acc[3] = simd.dot(acc[3], splat(simd, [*a, b, c, 0]), w);
    }
    let first = simd.add(simd.total(acc[0]), simd.total(acc[1]));
    let second = simd.add(simd.total(acc[2]), simd.total(acc[3]));
    simd.add(first, second)
}

/// The same four inputs in every lane. Of one number: bytes one by one would be stored and read as a whole, for which the
/// processor waits until they are in the cache.
#[inline(always)]
fn splat<S: SimdS8>(simd: S, four: [i8; GROUP]) -> S::Inputs {
    const { assert!(S::INPUT_OFFSET == 0 || S::INPUT_OFFSET == 128) };
    let offset = u32::from_le_bytes([S::INPUT_OFFSET as u8; GROUP]);
    let four = u64::from(u32::from_le_bytes(four.map(|x| x as u8)) ^ offset);
    let bytes = if S::INPUT_BYTES == 2 {
        let pairs = (four | four << 16) & 0x0000_ffff_0000_ffff;
        (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff
    } else {
        four
    };
    let bytes = bytes.to_le_bytes();
    // SAFETY: eight bytes are four inputs of any set.
    unsafe { simd.splat_inputs(bytes.as_ptr()) }
}

/// Stores as many bytes as there is room for, fewer than sixteen, without memory between.
#[inline(always)]
fn store_few(bytes: [i8; PANEL], to: &mut [i8]) {
    let all = u128::from_le_bytes(bytes.map(|x| x as u8));
    let mut left = all as u64;
    let (eights, to) = to.as_chunks_mut::<8>();
    if let Some(eight) = eights.first_mut() {
        *eight = left.to_le_bytes().map(|x| x as i8);
        left = (all >> 64) as u64;
    }
    let (fours, to) = to.as_chunks_mut::<4>();
    if let Some(four) = fours.first_mut() {
        *four = (left as u32).to_le_bytes().map(|x| x as i8);
        left >>= 32;
    }
    let (twos, to) = to.as_chunks_mut::<2>();
    if let Some(two) = twos.first_mut() {
        *two = (left as u16).to_le_bytes().map(|x| x as i8);
        left >>= 16;
    }
    if let Some(one) = to.first_mut() {
        *one = left as i8;
    }
}
