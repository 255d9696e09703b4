//! Int8 dense layers: rows are the pixels of a matrix product.

use super::block_s8::{BlockS8, ByPanels, PixelGrid};
use super::conv2d_s8::copy_offset;
#[cfg(not(netkit_micro))]
use super::direct_s8::DirectS8;
#[cfg(not(netkit_micro))]
use crate::arch::one_row_s8::{RowEnd, RowOfPanels};
use crate::arch::tile_s8::GroupRuns;
use crate::filter_s8::FilterS8;
#[cfg(not(netkit_micro))]
use crate::simd_s8::KernelOn;
use crate::simd_s8::{KernelS8, SimdS8};
use crate::workspace_s8::dense_block_len;
use netkit_core::op::Dense;
use netkit_core::pack::Runs;
use netkit_core::quant::{Multiplier, OutputStage};

/// A dense layer.
pub(crate) struct DenseS8<'a> {
    pub(crate) dense: Dense,
    pub(crate) input: &'a [i8],
    pub(crate) input_zero_point: i32,
    pub(crate) filter: FilterS8<'a>,
    pub(crate) bias: &'a [i32],
    pub(crate) multipliers: &'a [Multiplier],
    pub(crate) stage: OutputStage,
    pub(crate) output: &'a mut [i8],
    pub(crate) scratch: &'a mut [u8],
}

impl KernelS8 for DenseS8<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: SimdS8>(self, simd: S) {
        if let (true, FilterS8::File(weights)) = (S::READS_FILE_ORDER, self.filter) {
            #[cfg(netkit_micro)]
            return crate::micro::dense_s8(self, weights);
            #[cfg(not(netkit_micro))]
            return DirectS8 {
                input: self.input,
                input_zero_point: self.input_zero_point,
                weights,
                bias: self.bias,
                multipliers: self.multipliers,
                stage: self.stage,
            }
            .dense(&self.dense, self.output);
        }
        #[cfg(not(netkit_micro))]
        let one = self.dense.rows == 1 && Runs::of_dense(&self.dense).groups() <= S::ROW_GROUPS;
        #[cfg(not(netkit_micro))]
        if let (true, FilterS8::Packed(panels)) = (one, self.filter) {
            return self.row_of_panels(simd, panels);
        }
        // Where nothing is packed there is no other form.
        #[allow(irrefutable_let_patterns)]
        if let FilterS8::File(weights) = self.filter {
            return simd.dense_file(self, weights);
        }
        self.by_tiles(simd);
    }
}

impl<'a> DenseS8<'a> {
    /// What becomes of sums.
    #[cfg(not(netkit_micro))]
    #[inline(always)]
    pub(super) fn end<S: SimdS8>(&self) -> RowEnd<'a> {
        RowEnd {
            bias: self.bias,
            multipliers: self.multipliers,
            stage: self.stage,
            excess: self.input_zero_point.wrapping_add(S::INPUT_OFFSET),
        }
    }

    /// The layer of one row, panel by panel.
    #[cfg(not(netkit_micro))]
    #[inline(always)]
    fn row_of_panels<S: SimdS8>(self, simd: S, panels: &[i8]) {
        copy_offset::<S>(self.input, self.scratch);
        let row = RowOfPanels {
            input: self.scratch,
            groups: Runs::of_dense(&self.dense).groups(),
            panels,
            end: self.end::<S>(),
            output: self.output,
        };
        row.run_on(simd);
    }

    /// The layer as a matrix product.
    #[inline(always)]
    pub(crate) fn by_tiles<S: SimdS8>(self, simd: S) {
        // Beside no rows or outputs there may be any number of features.
        if self.output.is_empty() {
            return;
        }
        let Dense { rows, in_features, out_features } = self.dense;
        let split = (dense_block_len(&self.dense) * S::INPUT_BYTES).min(self.scratch.len());
        let (bytes, panels) = self.scratch.split_at_mut(split);
        copy_offset::<S>(self.input, bytes);
        let packed_runs = Runs::of_dense(&self.dense);
        let mut block = BlockS8 {
            input: bytes,
            runs: GroupRuns {
                rows: 1,
                row_pitch: 0,
                columns: 1,
                column_pitch: 0,
                groups: packed_runs.groups(),
            },
            grid: PixelGrid {
                rows: 1,
                columns: rows,
                row_step: 0,
                column_step: in_features * S::INPUT_BYTES,
            },
            input_zero_point: self.input_zero_point,
            bias: self.bias,
            multipliers: self.multipliers,
            stage: self.stage,
            output: self.output,
            pitch: out_features,
        };
        block.filter(simd, packed_runs, self.filter, panels, out_features);
    }
}
