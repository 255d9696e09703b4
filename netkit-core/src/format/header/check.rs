//! Reading the header, and the rules that it can break by itself.

use core::ops::ControlFlow;

use super::{Flags, HEADER_BYTES, Header, MAGIC, MAX_LAYERS, MAX_TENSORS, NetworkKind};
use crate::bytes::Reader;
use crate::diag::{Code, Diagnostic, Sink, Site, Value};
use crate::format::{Flow, stop};
use crate::tensor::Shape;

impl Header {
    pub(in crate::format) fn read(reader: &mut Reader<'_>, sink: &mut dyn Sink) -> Flow<Self> {
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
