//! The tensor catalog and the payload (section 6): what each tensor is, and the bytes that hold it.

use core::iter::FusedIterator;
use core::ops::ControlFlow;

use super::{Flow, NkFile, stop};
use crate::bytes::{Packed, Reader};
use crate::diag::{Code, Diagnostic, Sink, Site, Tensor, Value};
use crate::tensor::{DType, Shape};

/// Bytes of a tensor descriptor.
pub const DESCRIPTOR_BYTES: usize = 24;

/// The byte that stands for an element type in a descriptor.
pub const fn dtype_code(dtype: DType) -> u8 {
    match dtype {
        DType::F32 => 1,
        DType::I8 => 2,
        DType::I32 => 3,
    }
}

/// The element type that `code` stands for in a descriptor.
pub const fn dtype_from_code(code: u8) -> Option<DType> {
    match code {
        1 => Some(DType::F32),
        2 => Some(DType::I8),
        3 => Some(DType::I32),
        _ => None,
    }
}

/// A tensor of a file: type, shape, and its bytes where they lie.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// The element type.
    pub dtype: DType,
    /// The dimensions, outermost first; elements lie row-major.
    pub shape: Shape,
    /// The offset of the descriptor in the file.
    pub descriptor_offset: u64,
    /// The offset of the first element in the file. Those of int8 tensors need not be aligned.
    pub offset: u64,
    bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// The bytes of the elements, little-endian.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, where they are float32.
    pub fn as_f32(&self) -> Option<Packed<'a, f32>> {
        (self.dtype == DType::F32).then(|| Packed::new(self.bytes))
    }

    /// The elements, where they are int8.
    pub fn as_i8(&self) -> Option<Packed<'a, i8>> {
        (self.dtype == DType::I8).then(|| Packed::new(self.bytes))
    }

    /// The elements, where they are int32.
    pub fn as_i32(&self) -> Option<Packed<'a, i32>> {
        (self.dtype == DType::I32).then(|| Packed::new(self.bytes))
    }
}

/// A weight tensor and the bias tensor that goes with it. Normalizations keep their scale in the
/// weight and their shift in the bias.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The place in the catalog, from 0.
    pub index: u16,
    /// Weights, or scales.
    pub weight: TensorView<'a>,
    /// Biases, or shifts: always a vector.
    pub bias: TensorView<'a>,
}

/// The tensor pairs of a file in catalog order.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    bytes: &'a [u8],
    weights: Reader<'a>,
    biases: Reader<'a>,
    weight_offset: u64,
    bias_offset: u64,
    index: u16,
    count: u16,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(file: &NkFile<'a>) -> Self {
        let count = file.header.pair_count as u16;
        let biases_at = file.catalog_offset + usize::from(count) * DESCRIPTOR_BYTES;
        let reader = |at| Reader::at(file.bytes, at).unwrap_or(Reader::new(&[]));
        Self {
            bytes: file.bytes,
            weights: reader(file.catalog_offset),
            biases: reader(biases_at),
            weight_offset: file.payload_offset as u64,
            bias_offset: file.biases_offset() as u64,
            index: 0,
            count,
        }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Pair<'a>> {
        if self.index == self.count {
            return None;
        }
        let weight = view(self.bytes, &mut self.weights, &mut self.weight_offset)?;
        let bias = view(self.bytes, &mut self.biases, &mut self.bias_offset)?;
        let index = self.index;
        self.index += 1;
        Some(Pair { index, weight, bias })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.count - self.index);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Pairs<'_> {}
impl FusedIterator for Pairs<'_> {}

/// The tensor whose descriptor is next in `catalog` and whose elements are at `payload`, both of
/// which move on.
fn view<'a>(
    bytes: &'a [u8],
    catalog: &mut Reader<'a>,
    payload: &mut u64,
) -> Option<TensorView<'a>> {
    let descriptor_offset = catalog.offset() as u64;
    let descriptor = Descriptor::read(catalog)?;
    let dtype = dtype_from_code(descriptor.dtype)?;
    let shape = Shape::new(descriptor.dims.get(..usize::from(descriptor.rank))?)?;
    let offset = *payload;
    let end = offset + u64::from(descriptor.element_count) * dtype.size() as u64;
    *payload = end;
    let bytes = bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)?;
    Some(TensorView { dtype, shape, descriptor_offset, offset, bytes })
}

/// A descriptor as it stands in the file, no field of it believed.
struct Descriptor {
    rank: u8,
    dtype: u8,
    reserved: u16,
    dims: [u32; 4],
    element_count: u32,
}

impl Descriptor {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut descriptor = Reader::new(reader.take(DESCRIPTOR_BYTES)?);
        let r = &mut descriptor;
        Some(Self {
            rank: r.u8()?,
            dtype: r.u8()?,
            reserved: r.u16()?,
            dims: [r.u32()?, r.u32()?, r.u32()?, r.u32()?],
            element_count: r.u32()?,
        })
    }
}

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
pub(super) struct Totals {
    /// Bytes of all weights without padding, or `None` where a broken descriptor leaves it open.
    weights: Option<u64>,
    /// Bytes of all biases, likewise.
    biases: Option<u64>,
}

/// Reads past both halves of the catalog and reports what is wrong with each descriptor by itself.
pub(super) fn check(
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
    for index in 0..file.header.pair_count as u16 {
        let offset = reader.offset() as u64;
        let site = file.pair_site(index).tensor(slot.tensor(index));
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
pub(super) fn check_payload(file: &NkFile<'_>, totals: Totals, sink: &mut dyn Sink) -> Flow {
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
    super::check_zero(
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
                let site = file.pair_site(pair.index).tensor(slot.tensor(pair.index));
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
