//! The `.nk` file: borrowed views of its sections, nothing copied.
//!
//! [`NkFile::parse`] believes nothing: it reads a file from front to back once, and gives a view
//! only where every rule holds that the bytes of the file or one section of it can break. Whether
//! the layers fit each other and their tensors is for the stages behind it to say.
//!
//! Section numbers in this module are those of the format's description.

mod catalog;
mod geometry;
mod header;
mod layer;
mod quan;
mod tcas;
#[cfg(feature = "alloc")]
mod write;

use core::fmt;
use core::ops::{ControlFlow, Range};

pub use catalog::{DESCRIPTOR_BYTES, Pair, Pairs, TensorView, dtype_code, dtype_from_code};
pub use geometry::{
    Geometry, decode_conv2d, decode_depthwise, decode_pool, encode_conv2d, encode_depthwise,
    encode_pool,
};
pub use header::{Flags, HEADER_BYTES, Header, MAGIC, MAX_LAYERS, MAX_TENSORS, NetworkKind};
pub use layer::{
    Activation, BatchNorm2d, Conv2d, ConvNextV2Block, Dense, DepthwiseConv2d, FeatureTap, Layer,
    LayerKind, LayerNorm2d, LayerRecord, Layers, MobileNetV4Uib, Pool2d, ResNetBasicBlock,
    YoloxDecoupledHead, YoloxPafpnMultiscale,
};
pub use quan::{MAX_RECORDS, QUAN_MAGIC, QuantRecord, QuantRecords};
pub use tcas::{
    CaseInput, MAX_CASE_VALUES, MAX_CASES, MAX_NAME_BYTES, TCAS_MAGIC, TestCase, TestCases,
};

#[cfg(feature = "alloc")]
pub use write::{
    CaseData, ModelDescription, OwnedCase, OwnedPair, OwnedQuant, OwnedTensor, TensorData,
    WriteError,
};

use crate::bytes::Reader;
use crate::diag::{Code, Diagnostic, Sink, Site, Value, Watched};

/// How a check goes on: with what it found out, or not at all.
type Flow<T = ()> = ControlFlow<(), T>;

/// Reports `diagnostic` and stops the check, as nothing behind this place can be read.
fn stop<T>(sink: &mut dyn Sink, diagnostic: Diagnostic) -> Flow<T> {
    let _ = sink.report(diagnostic);
    ControlFlow::Break(())
}

/// Reports the first byte of `bytes[range]` that is not zero. `base` is the offset of `bytes` in
/// the file.
fn check_zero(
    bytes: &[u8],
    range: Range<usize>,
    field: &'static str,
    site: Site,
    base: u64,
    code: Code,
    sink: &mut dyn Sink,
) -> Flow {
    let start = range.start as u64;
    let bad = bytes.get(range).unwrap_or(&[]).iter().enumerate().find(|(_, byte)| **byte != 0);
    match bad {
        None => ControlFlow::Continue(()),
        Some((index, byte)) => sink.report(
            Diagnostic::new(code, site.at(base + start + index as u64))
                .field(field)
                .found(Value::Bits((*byte).into()))
                .expected(Value::Text("zero")),
        ),
    }
}

/// A model file whose every section is well formed.
///
/// ```
/// use netkit_core::diag::FirstError;
/// use netkit_core::format::NkFile;
///
/// let mut sink = FirstError::new();
/// assert!(NkFile::parse(b"GIF89a", &mut sink).is_none());
/// let first = sink.first().unwrap();
/// assert_eq!(first.code.as_str(), "NK0102");
/// assert_eq!(first.to_string(), r#"byte 0x0: the file starts with "GIF8", expected "NKIT""#);
/// ```
#[derive(Clone, Copy)]
pub struct NkFile<'a> {
    bytes: &'a [u8],
    header: Header,
    catalog_offset: usize,
    quan: Option<quan::Section>,
    payload_offset: usize,
    tcas: Option<tcas::Section>,
}

impl<'a> NkFile<'a> {
    /// Reads a file and reports every rule that it breaks. `None` where there was anything to
    /// report.
    ///
    /// Takes time linear in the length of `bytes` and no memory besides a few hundred bytes of
    /// stack.
    pub fn parse(bytes: &'a [u8], sink: &mut dyn Sink) -> Option<Self> {
        let mut sink = Watched::new(sink);
        match Self::read(bytes, &mut sink) {
            ControlFlow::Continue(file) if sink.is_clean() => Some(file),
            _ => None,
        }
    }

    fn read(bytes: &'a [u8], sink: &mut dyn Sink) -> Flow<Self> {
        let mut reader = Reader::new(bytes);
        let header = Header::read(&mut reader, sink)?;
        layer::check(&mut reader, header.layer_count, header.is_quantized(), sink)?;
        // The sections are found one after the other; what is not found yet is empty.
        let catalog_offset = reader.offset();
        let payload_offset = bytes.len();
        let mut file =
            Self { bytes, header, catalog_offset, quan: None, payload_offset, tcas: None };
        let totals = catalog::check(&mut reader, &file, sink)?;
        if header.is_quantized() {
            file.quan = Some(quan::check(&mut reader, &file, sink)?);
        }
        // Every part so far is a multiple of 4 bytes long, so the payload is aligned without
        // padding (section 1).
        file.payload_offset = reader.offset();
        file.check_length(sink)?;
        catalog::check_payload(&file, totals, sink)?;
        let Some(mut reader) = Reader::at(bytes, file.payload_end() as usize) else {
            return ControlFlow::Break(());
        };
        if header.flags.has_cases() {
            file.tcas = Some(tcas::check(&mut reader, &file, sink)?);
        }
        if reader.remaining() > 0 {
            let (offset, more) = (reader.offset() as u64, reader.remaining() as u64);
            let mut trailing = Diagnostic::new(Code::Trailing, Site::byte(offset))
                .found(Value::Count(more, "byte"));
            if !header.flags.has_cases() && reader.take(4) == Some(&tcas::TCAS_MAGIC) {
                // Not printed: it tells the hint what seems to follow.
                trailing = trailing.expected(Value::Bytes(tcas::TCAS_MAGIC));
            }
            sink.report(trailing)?;
        }
        ControlFlow::Continue(file)
    }

    fn check_length(&self, sink: &mut dyn Sink) -> Flow {
        let length = self.bytes.len() as u64;
        if self.payload_end() <= length {
            // Both payloads may be nearly 4 GiB, but where a tensor lies is kept in 32 bits.
            if self.payload_end() > u32::MAX.into() {
                return stop(sink, Diagnostic::new(Code::TooLarge, Site::FILE));
            }
            return ControlFlow::Continue(());
        }
        stop(
            sink,
            Diagnostic::new(Code::FileTruncated, Site::byte(length))
                .found(Value::Count(length, "byte"))
                .expected(Value::Count(self.payload_end(), "byte")),
        )
    }

    /// The offset behind the bias payload.
    fn payload_end(&self) -> u64 {
        self.payload_offset as u64
            + u64::from(self.header.weights_bytes)
            + u64::from(self.header.biases_bytes)
    }

    /// The layer that owns each tensor pair, for diagnostics about its tensors. Pairs behind those
    /// that the layers take have no owner; there is no end of them.
    fn pair_owners(&self) -> impl Iterator<Item = Site> {
        let owners = self.layers().flat_map(|layer| {
            let site = Site::layer(layer.index, layer.kind());
            (0..layer.pair_count).map(move |_| site)
        });
        owners.chain(core::iter::repeat(Site::FILE))
    }

    /// The layer that owns one tensor pair.
    fn pair_owner(&self, index: u16) -> Site {
        self.pair_owners().nth(index.into()).unwrap_or(Site::FILE)
    }

    /// The whole file.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The layers in execution order.
    pub fn layers(&self) -> Layers<'a> {
        let reader = Reader::at(self.bytes, HEADER_BYTES).unwrap_or(Reader::new(&[]));
        Layers::new(reader, self.header.layer_count, self.header.is_quantized())
    }

    /// The tensor pairs in catalog order, which is layer order.
    pub fn pairs(&self) -> Pairs<'a> {
        Pairs::new(self)
    }

    /// One tensor pair. This walks the catalog, at most 128 descriptors; walk
    /// [`pairs`](Self::pairs) for all of them.
    pub fn pair(&self, index: usize) -> Option<Pair<'a>> {
        self.pairs().nth(index)
    }

    /// The quantization records, one a tensor pair; none in float models.
    pub fn quant_records(&self) -> QuantRecords<'a> {
        QuantRecords::new(self.bytes, self.quan)
    }

    /// The quantization record of one tensor pair. This walks the records, at most 100.
    pub fn quant_record(&self, index: usize) -> Option<QuantRecord<'a>> {
        self.quant_records().nth(index)
    }

    /// The offset of the weight payload in the file, a multiple of 4.
    pub const fn weights_offset(&self) -> usize {
        self.payload_offset
    }

    /// The offset of the bias payload in the file, a multiple of 4.
    pub const fn biases_offset(&self) -> usize {
        self.payload_offset.saturating_add(self.header.weights_bytes as usize)
    }

    /// All weights, back to back, with the padding at their end.
    pub fn weight_payload(&self) -> &'a [u8] {
        self.bytes.get(self.weights_offset()..self.biases_offset()).unwrap_or(&[])
    }

    /// All biases, back to back.
    pub fn bias_payload(&self) -> &'a [u8] {
        let end = self.biases_offset().saturating_add(self.header.biases_bytes as usize);
        self.bytes.get(self.biases_offset()..end).unwrap_or(&[])
    }

    /// The test cases in order; none where the file has no such section.
    pub fn cases(&self) -> TestCases<'a> {
        TestCases::new(self.bytes, self.tcas, self.header.flags.has_int8_cases())
    }

    /// How far an output may be from that of a test case, absolutely; `None` where there are no
    /// cases.
    pub fn tolerance(&self) -> Option<f32> {
        self.tcas.map(|section| section.tolerance)
    }
}

/// The header; the bytes may be many.
impl fmt::Debug for NkFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NkFile").field("header", &self.header).finish_non_exhaustive()
    }
}
