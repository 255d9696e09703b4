//! `netkit inspect --hex`: a section of the file, byte by byte, with what each field means.

use clap::ValueEnum;
use netkit_core::format::{
    CaseInput, DESCRIPTOR_BYTES, HEADER_BYTES, LayerKind, NkFile, TensorView, TestCase,
};

use crate::terminal::harmless;

/// A section of a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// The first 48 bytes
    Header,
    /// The layer records
    Layers,
    /// The tensor descriptors
    Catalog,
    /// Scales and zero points of an int8 model
    Quan,
    /// The weights, the first bytes of each tensor
    Weights,
    /// The biases, the first bytes of each tensor
    Biases,
    /// The test cases
    Tcas,
}

/// How a field is shown.
#[derive(Clone, Copy)]
enum Form {
    U8,
    U16,
    U32,
    I32,
    F32,
    Bytes,
}

impl Form {
    const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::Bytes => 0,
        }
    }
}

/// Prints lines of offset, bytes and meaning.
struct Dump<'a> {
    bytes: &'a [u8],
    offset: usize,
}

/// Bytes shown of a field that has more.
const SHOWN: usize = 16;

impl<'a> Dump<'a> {
    fn field(&mut self, name: &str, form: Form) {
        self.span(name, form, form.bytes());
    }

    fn span(&mut self, name: &str, form: Form, len: usize) {
        let field: &'a [u8] = self.bytes.get(self.offset..self.offset + len).unwrap_or(&[]);
        let value = match (form, field) {
            (Form::U8, &[byte]) => byte.to_string(),
            (Form::U16, &[a, b]) => u16::from_le_bytes([a, b]).to_string(),
            (Form::U32, &[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]).to_string(),
            (Form::I32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]).to_string(),
            (Form::F32, &[a, b, c, d]) => format!("{:?}", f32::from_le_bytes([a, b, c, d])),
            _ => String::new(),
        };
        let mut hex: Vec<String> =
            field.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
        if field.len() > SHOWN {
            hex.push("…".into());
        }
        let line = format!("{:08x}  {:<50}  {name:<26}  {value}", self.offset, hex.join(" "));
        say!("{}", line.trim_end());
        self.offset += len;
    }

    fn title(&self, text: &str) {
        say!("\n{text}");
    }
}

/// Prints a section; false if the file has none.
pub(crate) fn print(file: &NkFile<'_>, section: Section) -> bool {
    let mut dump = Dump { bytes: file.as_bytes(), offset: 0 };
    match section {
        Section::Header => header(&mut dump),
        Section::Layers => layers(file, &mut dump),
        Section::Catalog => catalog(file, &mut dump),
        Section::Quan => return quan(file, &mut dump),
        Section::Weights => tensors(file, &mut dump, "weight", |pair| pair.weight),
        Section::Biases => tensors(file, &mut dump, "bias", |pair| pair.bias),
        Section::Tcas => return tcas(file, &mut dump),
    }
    true
}

fn header(dump: &mut Dump<'_>) {
    dump.span("magic", Form::Bytes, 4);
    dump.field("version", Form::U32);
    dump.field("network_kind", Form::U8);
    dump.field("input_rank", Form::U8);
    dump.field("flags", Form::U16);
    for index in 0..4 {
        dump.field(&format!("input_shape[{index}]"), Form::U32);
    }
    for name in
        ["num_layers", "num_weight_tensors", "num_bias_tensors", "weights_bytes", "biases_bytes"]
    {
        dump.field(name, Form::U32);
    }
}

/// The fields behind a record's four-byte prefix (section 3 of the format).
fn record_fields(kind: LayerKind) -> &'static [(&'static str, Form, usize)] {
    use Form::{Bytes, F32, U8, U16, U32};
    const fn one(name: &'static str, form: Form) -> (&'static str, Form, usize) {
        (name, form, form.bytes())
    }
    const fn zero(len: usize) -> (&'static str, Form, usize) {
        ("reserved", Bytes, len)
    }
    match kind {
        LayerKind::Dense => {
            &const { [one("units", U32), one("activation", U8), zero(3), one("alpha", F32)] }
        }
        LayerKind::Conv2d => {
            &const {
                [
                    one("kernel_size", U32),
                    one("stride", U32),
                    one("filters", U32),
                    one("activation", U8),
                    one("pad_h", U8),
                    one("pad_w", U8),
                    one("pad_extra", U8),
                    one("alpha", F32),
                ]
            }
        }
        LayerKind::MaxPool2d | LayerKind::AvgPool2d => {
            &const {
                [
                    one("pool_size", U32),
                    one("stride", U32),
                    one("pad_h", U8),
                    one("pad_w", U8),
                    one("pool_extra", U16),
                ]
            }
        }
        LayerKind::Flatten => &[],
        LayerKind::BatchNorm2d => &const { [one("channels", U32), zero(4)] },
        LayerKind::DepthwiseConv2d => {
            &const {
                [
                    one("kernel_h", U32),
                    one("stride", U32),
                    one("channels", U32),
                    one("activation", U8),
                    one("pad_h", U8),
                    one("pad_w", U8),
                    one("kw_byte", U8),
                    one("alpha", F32),
                ]
            }
        }
        LayerKind::ConvNextV2Block | LayerKind::LayerNorm2d => {
            &const { [one("channels", U32), zero(4), one("eps", F32)] }
        }
        LayerKind::MobileNetV4Uib => {
            &const {
                [
                    one("in_channels", U32),
                    one("out_channels", U32),
                    one("start_dw_kernel", U8),
                    one("middle_dw_kernel", U8),
                    one("stride", U8),
                    one("middle_dw_downsample", U8),
                    one("expand_ratio", F32),
                    zero(4),
                ]
            }
        }
        LayerKind::ResNetBasicBlock => {
            &const { [one("in_channels", U32), one("out_channels", U32), one("stride", U8), zero(3)] }
        }
        LayerKind::YoloxDecoupledHead => {
            &const {
                [
                    one("in_channels", U32),
                    one("hidden_dim", U32),
                    one("num_classes", U32),
                    one("num_convs", U8),
                    zero(3),
                ]
            }
        }
        LayerKind::FeatureTap => &const { [one("channels", U32), one("tap_id", U8), zero(3)] },
        LayerKind::YoloxPafpnMultiscale => {
            &const {
                [
                    one("c3_channels", U32),
                    one("c4_channels", U32),
                    one("c5_channels", U32),
                    one("hidden_dim", U32),
                    one("num_classes", U32),
                    one("num_convs", U8),
                    zero(3),
                ]
            }
        }
    }
}

fn layers(file: &NkFile<'_>, dump: &mut Dump<'_>) {
    dump.offset = HEADER_BYTES;
    for record in file.layers() {
        dump.title(&format!("layer {}: {}", record.index, record.kind()));
        dump.field("kind", Form::U8);
        dump.span("reserved", Form::Bytes, 3);
        for &(name, form, len) in record_fields(record.kind()) {
            dump.span(name, form, len);
        }
    }
}

fn catalog(file: &NkFile<'_>, dump: &mut Dump<'_>) {
    let weights = file.pairs().map(|pair| (pair.weight.descriptor_offset, "weight", pair.index));
    let biases = file.pairs().map(|pair| (pair.bias.descriptor_offset, "bias", pair.index));
    for (offset, slot, index) in weights.chain(biases) {
        dump.offset = offset as usize;
        dump.title(&format!("{slot} tensor {index}, {DESCRIPTOR_BYTES} bytes"));
        dump.field("rank", Form::U8);
        dump.field("dtype", Form::U8);
        dump.field("reserved", Form::U16);
        for axis in 0..4 {
            dump.field(&format!("dims[{axis}]"), Form::U32);
        }
        dump.field("num_elements", Form::U32);
    }
}

fn quan(file: &NkFile<'_>, dump: &mut Dump<'_>) -> bool {
    let Some(first) = file.quant_record(0) else { return false };
    dump.offset = first.offset as usize - 8;
    dump.span("magic", Form::Bytes, 4);
    dump.field("count", Form::U16);
    dump.field("quan_flags", Form::U16);
    for record in file.quant_records() {
        dump.title(&format!("record {}", record.index));
        for tensor in ["in", "w", "bias", "out"] {
            dump.field(&format!("{tensor}_scale"), Form::F32);
            dump.field(&format!("{tensor}_zp"), Form::I32);
        }
    }
    for record in file.quant_records().filter(|record| !record.channel_scales.is_empty()) {
        dump.title(&format!("channel scales of record {}", record.index));
        dump.offset = record.channel_scales_offset as usize - 4;
        dump.field("count", Form::U32);
        for channel in 0..record.channel_scales.len() {
            dump.field(&format!("scale[{channel}]"), Form::F32);
        }
    }
    true
}

fn tensors<'a>(
    file: &NkFile<'a>,
    dump: &mut Dump<'_>,
    slot: &str,
    pick: fn(netkit_core::format::Pair<'a>) -> TensorView<'a>,
) {
    for pair in file.pairs() {
        let index = pair.index;
        let tensor = pick(pair);
        dump.offset = tensor.offset as usize;
        let label = format!("{slot} {index} {} {}", tensor.shape, tensor.dtype.name());
        dump.span(&label, Form::Bytes, tensor.as_bytes().len());
    }
}

fn tcas(file: &NkFile<'_>, dump: &mut Dump<'_>) -> bool {
    let Some(first) = file.cases().next() else { return false };
    dump.offset = first.offset as usize - 12;
    dump.span("magic", Form::Bytes, 4);
    dump.field("case_count", Form::U32);
    dump.field("tolerance", Form::F32);
    for case in file.cases() {
        one_case(&case, dump);
    }
    true
}

fn one_case(case: &TestCase<'_>, dump: &mut Dump<'_>) {
    dump.title(&format!("case {}: {}", case.index, harmless(case.name)));
    dump.offset = case.offset as usize;
    dump.field("name_len", Form::U8);
    dump.span("name", Form::Bytes, case.name.len());
    let padding = case.label_offset as usize - dump.offset;
    if padding > 0 {
        dump.span("padding", Form::Bytes, padding);
    }
    dump.field("label", Form::I32);
    dump.field("input_count", Form::U32);
    let (kind, bytes) = match case.input {
        CaseInput::F32(values) => ("input (float32)", values.as_bytes().len()),
        CaseInput::I8(values) => ("input (int8)", values.as_bytes().len()),
    };
    dump.span(kind, Form::Bytes, bytes);
    dump.field("output_count", Form::U32);
    dump.span("expected (float32)", Form::Bytes, case.expected.as_bytes().len());
}
