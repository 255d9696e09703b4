//! Int8 dense layers of few rows from weights in file order: each output is a dot product of two stretches
//! of memory, and packing the weights would take longer than using them.

use super::block_s8::Aligned;
use super::conv2d_s8::copy_offset;
use super::dense_s8::DenseS8;
use crate::arch::pairs_s8::PairsS8;
use crate::arch::rows_s8::{FoldS8, RowDots, RowOfFile};
use crate::arch::store_s8::{Channels, StoreS8};
use netkit_core::pack::{GROUP_BYTES, PANEL};

/// Outputs that are stored together: four vectors, at most 8 lanes wide.
const OUTPUTS: usize = 2 * PANEL;

impl DenseS8<'_> {
    /// Whether [`row_by_row`](Self::row_by_row) is better than packing.
    #[inline(always)]
    pub(crate) fn has_few_rows(&self) -> bool {
        self.dense.rows <= 8
    }

    /// The layer, one row after the other; `weights` are in file order.
    #[inline(always)]
    pub(crate) fn row_by_row<S: FoldS8>(self, simd: S, weights: &[i8]) {
        let (len, channels) = (self.dense.in_features, self.dense.out_features);
        let end = self.end::<S>();
        let most = self.scratch.len();
        let padded = len.min(most).next_multiple_of(GROUP_BYTES).min(most);
        let rows = self.input.chunks_exact(len.max(1));
        for (input, output) in rows.zip(self.output.chunks_exact_mut(channels.max(1))) {
            let block = self.scratch.get_mut(..padded).unwrap_or(&mut []);
            copy_offset::<S>(input, block);
            if let Some(padding) = block.get_mut(len..) {
                padding.fill(0);
            }
            if end.excess == 0 {
                let row = RowOfFile::<false> { input: block, weights, len, end, output };
                simd.call(row);
            } else {
                let row = RowOfFile::<true> { input: block, weights, len, end, output };
                simd.call(row);
            }
        }
    }

    /// Whether [`by_rows`](Self::by_rows) knows how, and is better than packing.
    #[inline(always)]
    pub(crate) fn has_rows(&self) -> bool {
        self.dense.rows < 4 && (-128..=127).contains(&self.input_zero_point)
    }

    /// The layer, if it [`has_rows`](Self::has_rows); `weights` are in file order.
    #[inline(always)]
    pub(crate) fn by_rows<S: PairsS8>(self, simd: S, weights: &[i8]) {
        const { assert!(4 * S::LANES == OUTPUTS) };
        let (len, channels) = (self.dense.in_features, self.dense.out_features);
        let rows = self.input.chunks_exact(len.max(1));
        for (input, output) in rows.zip(self.output.chunks_exact_mut(channels.max(1))) {
            // No offset: the zero point is taken out of the inputs, not of the sums.
            let centre = self.input_zero_point as i16;
            for (to, &x) in self.scratch.as_chunks_mut().0.iter_mut().zip(input) {
                *to = (i16::from(x) - centre).to_le_bytes();
            }
            for first in (0..channels).step_by(OUTPUTS) {
                let here = first..(first + OUTPUTS).min(channels);
                let mut sums = Aligned([0; OUTPUTS]);
                let bias = self.bias.get(here.clone()).unwrap_or(&[]);
                for (to, &bias) in sums.0.iter_mut().zip(bias) {
                    *to = bias;
                }
                let multipliers = self.multipliers.get(here.clone()).unwrap_or(&[]);
                let finish = Channels::<S, 4>::new(simd, multipliers, &sums.0, len, self.stage);
                simd.call(RowDots {
                    input: self.scratch,
                    weights: weights.get(first * len..).unwrap_or(&[]),
                    len,
                    rows: here.len(),
                    sums: &mut sums.0,
                });
                simd.call(StoreS8 {
                    channels: &finish,
                    pixels: 1,
                    sums: &sums.0,
                    output: output.get_mut(first..).unwrap_or(&mut []),
                    pitch: channels,
                });
            }
        }
    }
}
