//! The tensor catalog and the payload (section 6): what each tensor is, and the bytes that hold it.

mod check;

use core::fmt;
use core::iter::FusedIterator;

pub(super) use check::{check, check_payload};

use super::NkFile;
use crate::bytes::{Packed, Reader};
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
#[derive(Clone, Copy)]
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

/// Type, shape and place; the elements may be many.
impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorView")
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .field("descriptor_offset", &self.descriptor_offset)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
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
