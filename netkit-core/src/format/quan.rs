//! The QUAN section (section 8.1): scales and zero points of a quantized model.

use core::ops::ControlFlow;

use super::{Flow, NkFile, stop};
use crate::bytes::{Packed, Reader};
use crate::diag::{Code, Diagnostic, Sink, Site, Tensor, Value};
use crate::quant::Quant;

/// The first four bytes of the section.
pub const QUAN_MAGIC: [u8; 4] = *b"QUAN";
/// The most records the section may have.
pub const MAX_RECORDS: u16 = 100;
/// Bytes of the section before its records.
const PREFIX_BYTES: usize = 8;
/// Bytes of a record.
const RECORD_BYTES: usize = 32;
/// The flag that says that a table of channel scales follows for each record.
const CHANNEL_TABLES: u16 = 1;

/// How the tensors of one pair are quantized: `real = scale · (q − zero_point)`.
#[derive(Clone, Copy, Debug)]
pub struct QuantRecord<'a> {
    /// The pair that the record belongs to.
    pub index: u16,
    /// The offset of the record in the file.
    pub offset: u64,
    /// Of what the layer reads.
    pub input: Quant,
    /// Of the weights where there is no table of channel scales. The zero point is always 0.
    pub weight: Quant,
    /// Of the biases as written; nothing uses it, biases count in steps of input scale × weight
    /// scale.
    pub bias: Quant,
    /// Of what the layer gives.
    pub output: Quant,
    /// The weight scale of each output channel; empty where all channels share one.
    pub channel_scales: Packed<'a, f32>,
    /// The offset of the first channel scale in the file, where there are any.
    pub channel_scales_offset: u64,
}

impl QuantRecord<'_> {
    /// The scale of the weights of an output channel.
    pub fn weight_scale(&self, channel: usize) -> f32 {
        self.channel_scales.get(channel).unwrap_or(self.weight.scale)
    }
}

/// Where the section lies in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// The offset of the first record.
    records: usize,
    /// The offset of the first table.
    tables: usize,
    count: u16,
    has_tables: bool,
}

/// The quantization records of a file, one a tensor pair.
#[derive(Clone, Debug)]
pub struct QuantRecords<'a> {
    records: Reader<'a>,
    tables: Option<Reader<'a>>,
    index: u16,
    count: u16,
}

impl<'a> QuantRecords<'a> {
    pub(super) fn new(bytes: &'a [u8], section: Option<Section>) -> Self {
        let none = Self { records: Reader::new(&[]), tables: None, index: 0, count: 0 };
        let Some(section) = section else { return none };
        let Some(records) = Reader::at(bytes, section.records) else { return none };
        let tables = if section.has_tables { Reader::at(bytes, section.tables) } else { None };
        Self { records, tables, index: 0, count: section.count }
    }
}

impl<'a> Iterator for QuantRecords<'a> {
    type Item = QuantRecord<'a>;

    fn next(&mut self) -> Option<QuantRecord<'a>> {
        if self.index == self.count {
            return None;
        }
        let offset = self.records.offset() as u64;
        let [input, weight, bias, output] = read_record(&mut self.records)?;
        let mut channel_scales = Packed::new(&[]);
        let mut channel_scales_offset = offset;
        if let Some(tables) = &mut self.tables {
            let (table, at) = read_table(tables)?;
            channel_scales = table;
            channel_scales_offset = at;
        }
        let index = self.index;
        self.index += 1;
        Some(QuantRecord {
            index,
            offset,
            input,
            weight,
            bias,
            output,
            channel_scales,
            channel_scales_offset,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.count - self.index);
        (left, Some(left))
    }
}

impl ExactSizeIterator for QuantRecords<'_> {}

fn read_record(reader: &mut Reader<'_>) -> Option<[Quant; 4]> {
    let mut record = Reader::new(reader.take(RECORD_BYTES)?);
    let mut quant = || Some(Quant { scale: record.f32()?, zero_point: record.i32()? });
    Some([quant()?, quant()?, quant()?, quant()?])
}

/// A table of channel scales and the offset of its first.
fn read_table<'a>(reader: &mut Reader<'a>) -> Option<(Packed<'a, f32>, u64)> {
    let mut ahead = reader.clone();
    let count = usize::try_from(ahead.u32()?).ok()?;
    let offset = ahead.offset() as u64;
    let scales = Packed::new(ahead.take(count.checked_mul(4)?)?);
    *reader = ahead;
    Some((scales, offset))
}

/// Reads past the section, finds its parts, and reports what is wrong with it by itself.
pub(super) fn check(
    reader: &mut Reader<'_>,
    file: &NkFile<'_>,
    sink: &mut dyn Sink,
) -> Flow<Section> {
    let offset = reader.offset() as u64;
    let truncated = |site: Site, left: usize, needed: u64| {
        Diagnostic::new(Code::QuanTruncated, site)
            .found(Value::Count(left as u64, "byte"))
            .expected(Value::Count(needed, "byte"))
    };
    let left = reader.remaining();
    let Some((magic, count, flags)) = read_prefix(reader) else {
        return stop(sink, truncated(Site::byte(offset), left, PREFIX_BYTES as u64));
    };
    if magic != QUAN_MAGIC {
        return stop(
            sink,
            Diagnostic::new(Code::QuanMagic, Site::byte(offset))
                .found(Value::Bytes(magic))
                .expected(Value::Bytes(QUAN_MAGIC)),
        );
    }
    if count == 0 || count > MAX_RECORDS {
        return stop(
            sink,
            Diagnostic::new(Code::QuanCount, Site::byte(offset + 4))
                .field("count")
                .found(Value::integer(count))
                .expected(Value::Between(1, MAX_RECORDS.into())),
        );
    }
    if u32::from(count) != file.header.pair_count {
        sink.report(
            Diagnostic::new(Code::QuanRecords, Site::byte(offset + 4))
                .found(Value::Count(count.into(), "record"))
                .expected(Value::Count(file.header.pair_count.into(), "record")),
        )?;
    }
    if flags & !CHANNEL_TABLES != 0 {
        sink.report(
            Diagnostic::new(Code::QuanFlags, Site::byte(offset + 6))
                .field("quan_flags")
                .found(Value::Bits(flags.into()))
                .expected(Value::Text("0 or 1")),
        )?;
    }
    let records = reader.offset();
    for (index, owner) in (0..count).zip(file.pair_owners()) {
        let at = reader.offset() as u64;
        let site = owner.tensor(Tensor::Quantization(index));
        let left = reader.remaining();
        match read_record(reader) {
            Some(record) => check_record(record, site, at, sink)?,
            None => return stop(sink, truncated(site.at(at), left, RECORD_BYTES as u64)),
        }
    }
    let tables = reader.offset();
    let has_tables = flags & CHANNEL_TABLES != 0;
    let tabled = if has_tables { count } else { 0 };
    for (index, owner) in (0..tabled).zip(file.pair_owners()) {
        let at = reader.offset() as u64;
        let site = owner.tensor(Tensor::Quantization(index));
        let left = reader.remaining();
        let Some((scales, at_scales)) = read_table(reader) else {
            let count = reader.clone().u32().unwrap_or(0);
            return stop(sink, truncated(site.at(at), left, 4 + 4 * u64::from(count)));
        };
        let bad = scales.iter().enumerate().find(|(_, scale)| !is_scale(*scale));
        if let Some((channel, scale)) = bad {
            sink.report(not_a_scale(
                "channel scale",
                scale,
                site.at(at_scales + 4 * channel as u64),
            ))?;
        }
    }
    ControlFlow::Continue(Section { records, tables, count, has_tables })
}

fn read_prefix(reader: &mut Reader<'_>) -> Option<([u8; 4], u16, u16)> {
    let mut prefix = Reader::new(reader.take(PREFIX_BYTES)?);
    Some((prefix.array()?, prefix.u16()?, prefix.u16()?))
}

fn is_scale(scale: f32) -> bool {
    scale.is_finite() && scale > 0.0
}

fn not_a_scale(field: &'static str, scale: f32, site: Site) -> Diagnostic {
    Diagnostic::new(Code::QuanScale, site)
        .field(field)
        .found(Value::Float(scale))
        .expected(Value::Text("a finite number above 0"))
}

fn check_record(record: [Quant; 4], site: Site, offset: u64, sink: &mut dyn Sink) -> Flow {
    let fields = [
        ("in_scale", "in_zp", false),
        ("w_scale", "w_zp", true),
        ("bias_scale", "bias_zp", true),
        ("out_scale", "out_zp", false),
    ];
    for ((quant, (scale, zero_point, symmetric)), at) in
        record.iter().zip(fields).zip([0, 8, 16, 24])
    {
        if !is_scale(quant.scale) {
            sink.report(not_a_scale(scale, quant.scale, site.at(offset + at)))?;
        }
        let (code, least, most) = if symmetric {
            (Code::QuanWeightZeroPoint, 0, 0)
        } else {
            (Code::QuanZeroPoint, -128, 127)
        };
        if !(least..=most).contains(&quant.zero_point) {
            sink.report(
                Diagnostic::new(code, site.at(offset + at + 4))
                    .field(zero_point)
                    .found(Value::integer(quant.zero_point))
                    .expected(if symmetric {
                        Value::Integer(0)
                    } else {
                        Value::Between(-128, 127)
                    }),
            )?;
        }
    }
    ControlFlow::Continue(())
}
