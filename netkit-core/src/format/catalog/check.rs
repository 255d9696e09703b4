//! The rules that descriptors can break by themselves, and the payload against them.

use core::ops::ControlFlow;

use super::{DESCRIPTOR_BYTES, Descriptor, dtype_code};
use crate::bytes::Reader;
use crate::diag::{Code, Diagnostic, Sink, Site, Tensor, Value};
use crate::format::{Flow, NkFile, check_zero, stop};
use crate::tensor::DType;

/// Which of the two slots of a pair a tensor is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Weight,
    Bias,
}

impl Slot {
    const fn tensor(self, index: u16) -> Tensor {
        match self {
            Self::Weight => Tensor::Weight(index),
            Self::Bias => Tensor::Bias(index),
        }
    }
}

/// What the descriptors of a file add up to.
#[derive(Clone, Copy)]
pub(in crate::format) struct Totals {
    /// Bytes of all weights without padding, or `None` where a broken descriptor leaves it open.
    weights: Option<u64>,
    /// Bytes of all biases, likewise.
    biases: Option<u64>,
}

/// Reads past both halves of the catalog and reports what is wrong with each descriptor by itself.
pub(in crate::format) fn check(
    reader: &mut Reader<'_>,
    file: &NkFile<'_>,
    sink: &mut dyn Sink,
) -> Flow<Totals> {
    let weights = check_slot(reader, Slot::Weight, file, sink)?;
    let biases = check_slot(reader, Slot::Bias, file, sink)?;
    ControlFlow::Continue(Totals { weights, biases })
}

fn check_slot(
    reader: &mut Reader<'_>,
    slot: Slot,
    file: &NkFile<'_>,
    sink: &mut dyn Sink,
) -> Flow<Option<u64>> {
    let mut total = Some(0);
    for (index, owner) in (0..file.header.pair_count as u16).zip(file.pair_owners()) {
        let offset = reader.offset() as u64;
        let site = owner.tensor(slot.tensor(index));
        let left = reader.remaining() as u64;
        let Some(descriptor) = Descriptor::read(reader) else {
            return stop(
                sink,
                Diagnostic::new(Code::DescriptorTruncated, site.at(offset))
                    .found(Value::Count(left, "byte"))
                    .expected(Value::Count(DESCRIPTOR_BYTES as u64, "byte")),
            );
        };
        let bytes =
            check_descriptor(&descriptor, slot, site, offset, file.header.is_quantized(), sink)?;
        total = total.zip(bytes).map(|(total, bytes): (u64, u64)| total + bytes);
    }
    ControlFlow::Continue(total)
}

/// The bytes of the elements, or `None` where the descriptor leaves them open.
fn check_descriptor(
    descriptor: &Descriptor,
    slot: Slot,
    site: Site,
    offset: u64,
    quantized: bool,
    sink: &mut dyn Sink,
) -> Flow<Option<u64>> {
    let dtype = check_dtype(descriptor, slot, site.at(offset + 1), quantized, sink)?;
    if descriptor.reserved != 0 {
        sink.report(
            Diagnostic::new(Code::Reserved, site.at(offset + 2))
                .field("reserved bytes")
                .found(Value::Bits(descriptor.reserved.into()))
                .expected(Value::Text("zero")),
        )?;
    }
    let elements = check_dims(descriptor, slot, site, offset, sink)?;
    ControlFlow::Continue(
        dtype.zip(elements).map(|(dtype, elements)| u64::from(elements) * dtype.size() as u64),
    )
}

fn check_dtype(
    descriptor: &Descriptor,
    slot: Slot,
    site: Site,
    quantized: bool,
    sink: &mut dyn Sink,
) -> Flow<Option<DType>> {
    let (expected, words) = match (quantized, slot) {
        (false, _) => (DType::F32, "1 (float32) in a float model"),
        (true, Slot::Weight) => (DType::I8, "2 (int8) for the weights of a quantized model"),
        (true, Slot::Bias) => (DType::I32, "3 (int32) for the biases of a quantized model"),
    };
    if descriptor.dtype == dtype_code(expected) {
        return ControlFlow::Continue(Some(expected));
    }
    sink.report(
        Diagnostic::new(Code::TensorType, site)
            .field("dtype")
            .found(Value::integer(descriptor.dtype))
            .expected(Value::Text(words)),
    )?;
    ControlFlow::Continue(None)
}

/// The number of elements, or `None` where rank, dimensions and count contradict each other.
fn check_dims(
    descriptor: &Descriptor,
    slot: Slot,
    site: Site,
    offset: u64,
    sink: &mut dyn Sink,
) -> Flow<Option<u32>> {
    let rank = usize::from(descriptor.rank);
    if !(1..=4).contains(&rank) {
        sink.report(
            Diagnostic::new(Code::TensorRank, site.at(offset))
                .field("rank")
                .found(Value::integer(descriptor.rank))
                .expected(Value::Between(1, 4)),
        )?;
        return ControlFlow::Continue(None);
    }
    if slot == Slot::Bias && rank != 1 {
        sink.report(
            Diagnostic::new(Code::BiasRank, site.at(offset))
                .field("rank")
                .found(Value::integer(descriptor.rank))
                .expected(Value::Integer(1)),
        )?;
    }
    let mut whole = true;
    let mut product = Some(1_u64);
    let axes = descriptor
        .dims
        .iter()
        .zip(["dims[0]", "dims[1]", "dims[2]", "dims[3]"])
        .zip([4, 8, 12, 16]);
    for (axis, ((&dim, field), at)) in axes.enumerate() {
        let used = axis < rank;
        if used {
            product = product.and_then(|product| product.checked_mul(dim.into()));
        }
        if used != (dim != 0) {
            whole = false;
            sink.report(
                Diagnostic::new(Code::TensorDims, site.at(offset + at))
                    .field(field)
                    .found(Value::integer(dim))
                    .expected(if used { Value::AtLeast(1) } else { Value::Integer(0) }),
            )?;
        }
    }
    if !whole {
        return ControlFlow::Continue(None);
    }
    let dims = Value::shape(descriptor.dims.get(..rank).unwrap_or(&[]));
    let Some(product) = product.filter(|&product| product <= u32::MAX.into()) else {
        sink.report(
            Diagnostic::new(Code::SizeOverflow, site.at(offset + 4))
                .field("the tensor")
                .found(dims)
                .expected(Value::Text("fewer than 2^32 elements")),
        )?;
        return ControlFlow::Continue(None);
    };
    if product != u64::from(descriptor.element_count) {
        sink.report(
            Diagnostic::new(Code::ElementCount, site.at(offset + 20))
                .field("num_elements")
                .found(Value::integer(descriptor.element_count))
                .expected(Value::integer(product)),
        )?;
        return ControlFlow::Continue(None);
    }
    ControlFlow::Continue(Some(descriptor.element_count))
}

/// Reports where the payload does not hold exactly the tensors of the catalog, and what is wrong
/// with its values.
pub(in crate::format) fn check_payload(
    file: &NkFile<'_>,
    totals: Totals,
    sink: &mut dyn Sink,
) -> Flow {
    let Totals { weights: Some(weights), biases: Some(biases) } = totals else {
        return ControlFlow::Continue(());
    };
    let header = &file.header;
    let mut placed = true;
    let padded = if header.is_quantized() { weights.next_multiple_of(4) } else { weights };
    for (field, offset, found, expected) in [
        ("weights_bytes", 40, header.weights_bytes, padded),
        ("biases_bytes", 44, header.biases_bytes, biases),
    ] {
        if u64::from(found) != expected {
            placed = false;
            sink.report(
                Diagnostic::new(Code::PayloadBytes, Site::byte(offset))
                    .field(field)
                    .found(Value::integer(found))
                    .expected(Value::integer(expected)),
            )?;
        }
    }
    if !placed {
        // Where the tensors lie is open, so nothing can be said about their values.
        return ControlFlow::Continue(());
    }
    let tail = weights as usize..padded as usize;
    let blob = file.weight_payload();
    let base = file.payload_offset as u64;
    check_zero(
        blob,
        tail,
        "padding bytes of the weights",
        Site::FILE,
        base,
        Code::WeightTail,
        sink,
    )?;
    for pair in file.pairs() {
        for (slot, view, field) in
            [(Slot::Weight, pair.weight, "weight"), (Slot::Bias, pair.bias, "bias")]
        {
            let values = view.as_f32();
            let bad = values.and_then(|values| {
                let index = values.first_non_finite()?;
                Some((index, values.get(index)?))
            });
            if let Some((index, value)) = bad {
                let site = file.pair_owner(pair.index).tensor(slot.tensor(pair.index));
                sink.report(
                    Diagnostic::new(Code::Finite, site.at(view.offset + 4 * index as u64))
                        .field(field)
                        .found(Value::Float(value))
                        .expected(Value::Text("a finite number")),
                )?;
            }
        }
    }
    ControlFlow::Continue(())
}
