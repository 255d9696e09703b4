//! Bytes to a network: parse, compile into the arena, bind the weights where they lie.

use bytemuck::Pod;
use netkit_core::diag::{Code, Diagnostic, FirstError, Site};
use netkit_core::format::NkFile;
use netkit_core::graph::{Constant, Node, Value, Weights, fold_bias};
use netkit_core::lower::LayerInfo;
use netkit_core::op::{Conv2d, DepthwiseConv2d, Op};
use netkit_core::pack::row_sums;
use netkit_core::plan::{CACHE_LINE, Slot};
#[cfg(feature = "alloc")]
use netkit_core::program::OwnedStorage;
use netkit_core::program::{Program, Step, Storage, StorageSize, compile};
use netkit_core::quant::Multiplier;
use netkit_core::tensor::DType;
use netkit_kernels::{FilterForm, Kernels, ROW_SUMS, workspace};

use super::Network;
use crate::arena::{ArenaError, Bump};
use crate::error::LoadError;

/// The constants of a step, typed and where they lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound<'a> {
    /// An operator without constants.
    Nothing,
    /// Float filter (or scale) and bias (or shift).
    F32 {
        /// In the file's order.
        filter: &'a [f32],
        /// Of a folded batch norm, for each output channel.
        scale: Option<&'a [f32]>,
        /// With the batch norm folded in.
        bias: &'a [f32],
    },
    /// int8 filter and its requantization.
    I8 {
        /// In the file's order.
        filter: &'a [i8],
        /// In units of input scale · weight scale.
        bias: &'a [i32],
        /// One for each output channel.
        multipliers: &'a [Multiplier],
        /// Of a dense layer, where kernels read them.
        row_sums: &'a [i32],
    },
}

pub(super) fn load<'a>(bytes: &'a [u8], arena: &'a Bump<'_>) -> Result<Network<'a>, LoadError> {
    let mut sink = FirstError::new();
    let program = compile_into(bytes, arena, &mut sink)?;
    let Some(program) = program else {
        // A sink that stays empty beside a missing program would be a bug of the compiler's.
        let first = sink.first();
        return Err(first.unwrap_or(Diagnostic::new(Code::Storage, Site::FILE)).into());
    };
    // Its doors would refuse such a step and leave the output as it was.
    if !program.steps().all(|step| is_computable(&step.node.op)) {
        return Err(too_large());
    }
    let (total, workspace_bytes) = memory_bytes(&program).ok_or_else(too_large)?;
    has_room(arena, |count| count.network(&program, total))?;
    let steps = arena.alloc_slice(program.steps().len(), Bound::Nothing)?;
    for (step, slot) in program.steps().zip(steps.iter_mut()) {
        *slot = bind(&program, &step, arena)?;
    }
    let memory = arena.alloc(total, CACHE_LINE)?;
    let (input, output) = edge_lengths(&program);
    let edges = (arena.alloc_slice(input, 0)?, arena.alloc_slice(output, 0)?);
    Ok(Network {
        program,
        steps,
        memory,
        workspace_bytes,
        edges,
        kernels: Kernels::native(),
        #[cfg(feature = "mmap")]
        _mapping: None,
    })
}

/// A network whose sizes do not fit the address space.
fn too_large() -> LoadError {
    Diagnostic::new(Code::TooLarge, Site::FILE).into()
}

/// An upper bound of what [`load`] takes, wherever the arena begins.
#[cfg(feature = "alloc")]
pub(super) fn arena_bytes(bytes: &[u8]) -> Result<usize, LoadError> {
    let mut sink = FirstError::new();
    let file = NkFile::parse(bytes, &mut sink);
    let mut storage = file.as_ref().map(OwnedStorage::of);
    let program = file
        .as_ref()
        .zip(storage.as_mut())
        .and_then(|(file, storage)| compile(file, storage.lend(), &mut sink));
    let (Some(file), Some(program)) = (file, program) else {
        let first = sink.first();
        return Err(first.unwrap_or(Diagnostic::new(Code::Storage, Site::FILE)).into());
    };
    // What begins at some byte of a cache line ends before it would, begun at the next line.
    let mut count = Count { at: 0 };
    let counted = count
        .storage(&StorageSize::of(&file))
        .and_then(|()| memory_bytes(&program))
        .and_then(|(total, _)| count.network(&program, total))
        .and_then(|()| count.at.checked_add(CACHE_LINE - 1));
    counted.ok_or_else(too_large)
}

/// Where an arena is after what has been taken of it, without taking it.
struct Count {
    at: usize,
}

impl Count {
    fn bytes(&mut self, size: usize, alignment: usize) -> Option<()> {
        self.at = self.at.checked_next_multiple_of(alignment)?.checked_add(size)?;
        Some(())
    }

    fn slice<T>(&mut self, len: usize) -> Option<()> {
        self.bytes(len.checked_mul(size_of::<T>())?, align_of::<T>())
    }

    /// What [`compile_into`] takes.
    fn storage(&mut self, size: &StorageSize) -> Option<()> {
        self.slice::<Node>(size.nodes)?;
        self.slice::<Value>(size.values)?;
        self.slice::<Slot>(size.values)?;
        self.slice::<LayerInfo>(size.layers)
    }

    /// What [`load`] takes behind that, in its order, `total` of it as [`memory_bytes`] says.
    fn network(&mut self, program: &Program<'_, '_>, total: usize) -> Option<()> {
        self.slice::<Bound<'_>>(program.steps().len())?;
        for step in program.steps() {
            let Some(weights) = step.node.weights else { continue };
            let channels = weights.bias.bytes(program.source()).len() / size_of::<i32>();
            if weights.filter.dtype == DType::I8 {
                self.slice::<Multiplier>(channels)?;
                if ROW_SUMS && matches!(step.node.op, Op::Dense { .. }) {
                    self.slice::<i32>(channels)?;
                }
            } else if weights.fold.is_some() {
                self.slice::<f32>(channels)?;
            }
        }
        self.bytes(total, CACHE_LINE)?;
        let (input, output) = edge_lengths(program);
        self.slice::<i8>(input)?;
        self.slice::<i8>(output)
    }
}

/// Says what is missing for a part, the tables or all behind them, not at each allocation.
fn has_room(
    arena: &Bump<'_>,
    takes: impl FnOnce(&mut Count) -> Option<()>,
) -> Result<(), LoadError> {
    let start = arena.alloc(0, 1)?.as_ptr().addr();
    let mut count = Count { at: start };
    takes(&mut count).ok_or_else(too_large)?;
    let (requested, remaining) = (count.at - start, arena.remaining());
    if requested > remaining {
        return Err(ArenaError::Exhausted { requested, remaining }.into());
    }
    Ok(())
}

/// Activations with scratch behind them, and of it the scratch.
fn memory_bytes(program: &Program<'_, '_>) -> Option<(usize, usize)> {
    let workspace =
        program.steps().map(|step| scratch_bytes(&step, FilterForm::File)).max().unwrap_or(0);
    let activations = program.plan().arena_bytes().checked_next_multiple_of(CACHE_LINE)?;
    Some((activations.checked_add(workspace)?, workspace))
}

/// Elements of the int8 input and output of a network that may be run on floats.
fn edge_lengths(program: &Program<'_, '_>) -> (usize, usize) {
    if program.is_quantized() {
        (program.input().shape.elements(), program.output().shape.elements())
    } else {
        (0, 0)
    }
}

fn compile_into<'a>(
    bytes: &'a [u8],
    arena: &'a Bump<'_>,
    sink: &mut FirstError,
) -> Result<Option<Program<'a, 'a>>, LoadError> {
    let Some(file) = NkFile::parse(bytes, sink) else { return Ok(None) };
    let size = StorageSize::of(&file);
    has_room(arena, |count| count.storage(&size))?;
    let storage = Storage {
        nodes: arena.alloc_slice(size.nodes, Node::EMPTY)?,
        values: arena.alloc_slice(size.values, Value::EMPTY)?,
        slots: arena.alloc_slice(size.values, Slot::EMPTY)?,
        layers: arena.alloc_slice(size.layers, LayerInfo::EMPTY)?,
    };
    Ok(compile(&file, storage, sink))
}

/// A constant as values of its type. The file's own layout aligns it to 4 bytes behind the first byte.
fn typed<'a, T: Pod>(program: &Program<'a, '_>, constant: Constant) -> Result<&'a [T], LoadError> {
    let bytes = constant.bytes(program.source());
    bytemuck::try_cast_slice(bytes)
        .map_err(|_| LoadError::misaligned(constant.offset.into(), bytes.as_ptr().addr()))
}

fn bind<'a>(
    program: &Program<'a, 'a>,
    step: &Step<'_, '_>,
    arena: &'a Bump<'_>,
) -> Result<Bound<'a>, LoadError> {
    let node = step.node;
    let Some(weights) = node.weights else { return Ok(Bound::Nothing) };
    if weights.filter.dtype == DType::I8 {
        let bias: &[i32] = typed(program, weights.bias)?;
        let multipliers = arena.alloc_slice(bias.len(), Multiplier { multiplier: 0, shift: 0 })?;
        for (channel, slot) in multipliers.iter_mut().enumerate() {
            *slot = program.multiplier(node, channel);
        }
        let filter = typed(program, weights.filter)?;
        let row_sums = bind_row_sums(step, filter, bias, arena)?;
        return Ok(Bound::I8 { filter, bias, multipliers, row_sums });
    }
    bind_float(program, &weights, arena)
}

/// The row sums of a dense layer, where kernels read them.
fn bind_row_sums<'a>(
    step: &Step<'_, '_>,
    filter: &[i8],
    bias: &[i32],
    arena: &'a Bump<'_>,
) -> Result<&'a [i32], LoadError> {
    let Op::Dense { dense, .. } = &step.node.op else { return Ok(&[]) };
    if !ROW_SUMS {
        return Ok(&[]);
    }
    let sums = arena.alloc_slice(bias.len(), 0)?;
    let zero_point = step.input().value.quant.zero_point;
    let summed = row_sums(dense, filter, bias, zero_point, sums);
    Ok(if summed.is_some() { sums } else { &[] })
}

fn bind_float<'a>(
    program: &Program<'a, 'a>,
    weights: &Weights,
    arena: &'a Bump<'_>,
) -> Result<Bound<'a>, LoadError> {
    let filter = typed(program, weights.filter)?;
    let bias: &[f32] = typed(program, weights.bias)?;
    let Some(fold) = weights.fold else {
        return Ok(Bound::F32 { filter, scale: None, bias });
    };
    let scale: &[f32] = typed(program, fold.scale)?;
    let shift: &[f32] = typed(program, fold.shift)?;
    let folded = arena.alloc_slice(bias.len(), 0.0f32)?;
    for (((folded, &bias), &scale), &shift) in folded.iter_mut().zip(bias).zip(scale).zip(shift) {
        *folded = fold_bias(bias, scale, shift);
    }
    Ok(Bound::F32 { filter, scale: Some(scale), bias: folded })
}

/// Whether this target's kernels can compute an operator at all.
fn is_computable(op: &Op) -> bool {
    match op {
        Op::Conv2d { conv: Conv2d { window, .. }, pool, .. }
        | Op::DepthwiseConv2d { conv: DepthwiseConv2d { window, .. }, pool, .. } => {
            window.is_computable() && pool.is_none_or(|pool| pool.window.is_computable())
        }
        Op::MaxPool2d(pool) | Op::AveragePool2d(pool) => pool.window.is_computable(),
        _ => true,
    }
}

/// Scratch of a step whose filter is in this form. Public for the command line, which asks for the other one.
#[inline]
pub fn scratch_bytes(step: &Step<'_, '_>, form: FilterForm) -> usize {
    match (&step.node.op, step.is_quantized()) {
        (Op::Conv2d { conv, pool: None, .. }, false) => workspace::conv2d_f32(conv, form),
        (Op::Conv2d { conv, pool: Some(pool), .. }, false) => {
            workspace::conv2d_max_pool2d_f32(conv, pool, form)
        }
        (Op::DepthwiseConv2d { conv, pool: None, .. }, false) => {
            workspace::depthwise_conv2d_f32(conv, form)
        }
        (Op::DepthwiseConv2d { conv, pool: Some(pool), .. }, false) => {
            workspace::depthwise_conv2d_max_pool2d_f32(conv, pool, form)
        }
        (Op::GlobalResponseNorm { shape, .. }, _) => workspace::global_response_norm_f32(shape),
        (Op::Conv2d { conv, pool: None, .. }, true) => workspace::conv2d_s8(conv, form),
        (Op::Conv2d { conv, pool: Some(pool), .. }, true) => {
            workspace::conv2d_max_pool2d_s8(conv, pool, form)
        }
        (Op::DepthwiseConv2d { conv, pool: None, .. }, true) => {
            workspace::depthwise_conv2d_s8(conv, form)
        }
        (Op::DepthwiseConv2d { conv, pool: Some(pool), .. }, true) => {
            workspace::depthwise_conv2d_max_pool2d_s8(conv, pool, form)
        }
        (Op::Dense { dense, .. }, true) => workspace::dense_s8(dense, form),
        _ => 0,
    }
}
