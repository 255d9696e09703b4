//! The first 48 bytes (section 2): what kind of network, its input, and how large the other
//! sections are.

use core::fmt;
use core::ops::ControlFlow;

use super::{Flow, stop};
use crate::bytes::Reader;
use crate::diag::{Code, Diagnostic, Sink, Site, Value};
use crate::tensor::Shape;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 48;
/// The first four bytes of every model file.
pub const MAGIC: [u8; 4] = *b"NKIT";
/// The most layer records a file may have.
pub const MAX_LAYERS: u32 = 100;
/// The most weight tensors, and the most bias tensors, a file may have.
pub const MAX_TENSORS: u32 = 128;

/// What kind of network a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkKind {
    /// Dense layers only; the input is `[rows, features]`.
    Mlp,
    /// Any layers; the input is `[height, width, channels]`.
    Cnn,
}

impl NetworkKind {
    /// The byte that stands for it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Mlp => 1,
            Self::Cnn => 2,
        }
    }

    /// The kind that `code` stands for.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Mlp),
            2 => Some(Self::Cnn),
            _ => None,
        }
    }

    /// The number of input dimensions.
    pub const fn input_rank(self) -> u8 {
        match self {
            Self::Mlp => 2,
            Self::Cnn => 3,
        }
    }
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mlp => "MLP",
            Self::Cnn => "CNN",
        })
    }
}

/// The flag bits of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// There are test cases.
    pub const CASES: u16 = 1;
    /// The model is quantized: a QUAN section is there, weights are int8 and biases int32.
    pub const QUANTIZED: u16 = 2;
    /// The inputs of the test cases are int8.
    pub const INT8_CASES: u16 = 4;

    /// Flags with these bits.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether there are test cases.
    pub const fn has_cases(self) -> bool {
        self.0 & Self::CASES != 0
    }

    /// Whether the model is quantized.
    pub const fn is_quantized(self) -> bool {
        self.0 & Self::QUANTIZED != 0
    }

    /// Whether the inputs of the test cases are int8.
    pub const fn has_int8_cases(self) -> bool {
        self.0 & Self::INT8_CASES != 0
    }
}

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The format version: 3 for float models, 4 for int8 models.
    pub version: u32,
    /// The kind of network.
    pub kind: NetworkKind,
    /// What is in the file besides layers and tensors.
    pub flags: Flags,
    /// The input: `[rows, features]` or `[height, width, channels]`.
    pub input: Shape,
    /// The number of layer records.
    pub layer_count: u32,
    /// The number of pairs of a weight and a bias tensor.
    pub pair_count: u32,
    /// The bytes of the weight payload, its padding included.
    pub weights_bytes: u32,
    /// The bytes of the bias payload.
    pub biases_bytes: u32,
}

impl Header {
    /// The input's dimensions, outermost first.
    pub const fn input_dims(&self) -> &[u32] {
        self.input.dims()
    }

    /// Whether the model computes in int8.
    pub const fn is_quantized(&self) -> bool {
        self.flags.is_quantized()
    }

    pub(super) fn read(reader: &mut Reader<'_>, sink: &mut dyn Sink) -> Flow<Self> {
        let length = reader.remaining();
        if length == 0 {
            return stop(sink, Diagnostic::new(Code::Empty, Site::FILE));
        }
        // A short file that does not even start like a model is some other file, not a model cut
        // short.
        let start = reader.clone().take(length.min(MAGIC.len())).unwrap_or(&[]);
        if !MAGIC.starts_with(start) {
            let mut found = [0; 4];
            found[..start.len()].copy_from_slice(start);
            return stop(
                sink,
                Diagnostic::new(Code::Magic, Site::byte(0))
                    .found(Value::Bytes(found))
                    .expected(Value::Bytes(MAGIC)),
            );
        }
        match Raw::read(reader) {
            Some(raw) => raw.check(sink),
            None => stop(
                sink,
                Diagnostic::new(Code::HeaderTruncated, Site::byte(length as u64))
                    .found(Value::Count(length as u64, "byte"))
                    .expected(Value::Count(HEADER_BYTES as u64, "byte")),
            ),
        }
    }
}

/// Stands in for an input that was reported, so that the sections behind the header are still read.
const REPORTED: Shape = Shape::new(&[1]).unwrap();

/// The header as it stands in the file, no field of it believed.
struct Raw {
    version: u32,
    kind: u8,
    input_rank: u8,
    flags: u16,
    input_shape: [u32; 4],
    layer_count: u32,
    weight_tensors: u32,
    bias_tensors: u32,
    weights_bytes: u32,
    biases_bytes: u32,
}

impl Raw {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut header = Reader::new(reader.take(HEADER_BYTES)?);
        header.take(MAGIC.len())?;
        Some(Self {
            version: header.u32()?,
            kind: header.u8()?,
            input_rank: header.u8()?,
            flags: header.u16()?,
            input_shape: [header.u32()?, header.u32()?, header.u32()?, header.u32()?],
            layer_count: header.u32()?,
            weight_tensors: header.u32()?,
            bias_tensors: header.u32()?,
            weights_bytes: header.u32()?,
            biases_bytes: header.u32()?,
        })
    }

    fn check(self, sink: &mut dyn Sink) -> Flow<Header> {
        if self.version != 3 && self.version != 4 {
            return stop(
                sink,
                Diagnostic::new(Code::Version, Site::byte(4))
                    .found(Value::integer(self.version))
                    .expected(Value::Text("3 or 4")),
            );
        }
        let (kind, input) = self.check_input(sink)?;
        let layout_known = self.check_flags(sink)?;
        let counts_known = self.check_counts(sink)?;
        if !(layout_known && counts_known) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(Header {
            version: self.version,
            kind,
            flags: Flags(self.flags),
            input,
            layer_count: self.layer_count,
            pair_count: self.weight_tensors,
            weights_bytes: self.weights_bytes,
            biases_bytes: self.biases_bytes,
        })
    }

    fn check_input(&self, sink: &mut dyn Sink) -> Flow<(NetworkKind, Shape)> {
        let Some(kind) = NetworkKind::from_code(self.kind) else {
            sink.report(
                Diagnostic::new(Code::NetworkKind, Site::byte(8))
                    .field("network_kind")
                    .found(Value::integer(self.kind))
                    .expected(Value::Text("1 (MLP) or 2 (CNN)")),
            )?;
            // Rank and shape mean nothing without the kind; what follows does not depend on it.
            return ControlFlow::Continue((NetworkKind::Cnn, REPORTED));
        };
        if self.input_rank != kind.input_rank() {
            sink.report(
                Diagnostic::new(Code::InputRank, Site::byte(9))
                    .field("input_rank")
                    .found(Value::integer(self.input_rank))
                    .expected(Value::Text(match kind {
                        NetworkKind::Mlp => "2 for an MLP (rows, features)",
                        NetworkKind::Cnn => "3 for a CNN (height, width, channels)",
                    })),
            )?;
        }
        let names: [&str; 4] = match kind {
            NetworkKind::Mlp => {
                ["input rows", "input features", "input_shape[2]", "input_shape[3]"]
            }
            NetworkKind::Cnn => ["input height", "input width", "input channels", "input_shape[3]"],
        };
        let axes = self.input_shape.iter().zip(names).zip([12, 16, 20, 24]);
        for (axis, ((&dim, name), offset)) in axes.enumerate() {
            let used = axis < usize::from(kind.input_rank());
            if used != (dim != 0) {
                sink.report(
                    Diagnostic::new(Code::InputShape, Site::byte(offset))
                        .field(name)
                        .found(Value::integer(dim))
                        .expected(if used { Value::AtLeast(1) } else { Value::Integer(0) }),
                )?;
            }
        }
        let dims = self.input_shape.get(..usize::from(kind.input_rank())).unwrap_or(&[]);
        let shape = Shape::new(dims);
        if shape.is_none() && !dims.contains(&0) {
            sink.report(
                Diagnostic::new(Code::SizeOverflow, Site::byte(12))
                    .field("the input")
                    .found(Value::shape(dims))
                    .expected(Value::Text("fewer than 2^32 elements")),
            )?;
        }
        ControlFlow::Continue((kind, shape.unwrap_or(REPORTED)))
    }

    /// Whether the sections that the flags announce can be believed.
    fn check_flags(&self, sink: &mut dyn Sink) -> Flow<bool> {
        let flags = Flags(self.flags);
        let site = Site::byte(10);
        let mut layout_known = true;
        let known = Flags::CASES | Flags::QUANTIZED | Flags::INT8_CASES;
        if self.flags & !known != 0 {
            sink.report(
                Diagnostic::new(Code::Flags, site)
                    .found(Value::Bits(self.flags.into()))
                    .expected(Value::Text("no bits but 0x0001, 0x0002 and 0x0004")),
            )?;
        }
        if (self.version == 4) != flags.is_quantized() {
            layout_known = false;
            sink.report(
                Diagnostic::new(Code::VersionFlag, Site::byte(4))
                    .found(Value::integer(self.version))
                    .expected(Value::Text(if flags.is_quantized() {
                        "4, as the flags say quantized"
                    } else {
                        "3, as the flags do not say quantized"
                    })),
            )?;
        } else if flags.has_int8_cases() != (flags.has_cases() && flags.is_quantized()) {
            layout_known = false;
            sink.report(
                Diagnostic::new(Code::Flags, site).found(Value::Bits(self.flags.into())).expected(
                    Value::Text(if flags.has_int8_cases() {
                        "0x0004 only together with 0x0001 and 0x0002"
                    } else {
                        "0x0004 where 0x0001 and 0x0002 are set"
                    }),
                ),
            )?;
        }
        ControlFlow::Continue(layout_known)
    }

    /// Whether the sections can be found by the counts.
    fn check_counts(&self, sink: &mut dyn Sink) -> Flow<bool> {
        let mut within = true;
        let counts = [
            ("num_layers", self.layer_count, 28, MAX_LAYERS),
            ("num_weight_tensors", self.weight_tensors, 32, MAX_TENSORS),
            ("num_bias_tensors", self.bias_tensors, 36, MAX_TENSORS),
        ];
        for (field, count, offset, most) in counts {
            if count > most {
                within = false;
                sink.report(
                    Diagnostic::new(Code::Limits, Site::byte(offset))
                        .field(field)
                        .found(Value::integer(count))
                        .expected(Value::AtMost(most.into())),
                )?;
            }
        }
        if self.layer_count == 0 {
            sink.report(
                Diagnostic::new(Code::NoLayers, Site::byte(28))
                    .field("num_layers")
                    .found(Value::Integer(0))
                    .expected(Value::AtLeast(1)),
            )?;
        }
        if within && self.weight_tensors != self.bias_tensors {
            within = false;
            sink.report(
                Diagnostic::new(Code::TensorCounts, Site::byte(36))
                    .field("num_bias_tensors")
                    .found(Value::integer(self.bias_tensors))
                    .expected(Value::integer(self.weight_tensors)),
            )?;
        }
        ControlFlow::Continue(within)
    }
}
