//! The rules that a layer record can break by itself.

use core::ops::ControlFlow;

use super::{
    Activation, Conv2d, ConvNextV2Block, Dense, DepthwiseConv2d, FeatureTap, Layer, LayerKind,
    LayerNorm2d, MobileNetV4Uib, YoloxDecoupledHead, YoloxPafpnMultiscale,
};
use crate::bytes::Reader;
use crate::diag::{Code, Diagnostic, Sink, Site, Value};
use crate::format::{Flow, check_zero, stop};

/// Reads past `count` records and reports what is wrong with each by itself.
pub(in crate::format) fn check(
    reader: &mut Reader<'_>,
    count: u32,
    quantized: bool,
    sink: &mut dyn Sink,
) -> Flow {
    for index in 0..count as u16 {
        let offset = reader.offset() as u64;
        let left = reader.remaining() as u64;
        let truncated = |site: Site, needed: usize| {
            Diagnostic::new(Code::LayerTruncated, site)
                .found(Value::Count(left, "byte"))
                .expected(Value::Count(needed as u64, "byte"))
        };
        let Some(code) = reader.clone().u8() else {
            return stop(sink, truncated(Site::byte(offset).in_layer(index, None), 4));
        };
        let Some(kind) = LayerKind::from_code(code) else {
            return stop(
                sink,
                Diagnostic::new(Code::LayerKind, Site::byte(offset).in_layer(index, None))
                    .found(Value::integer(code))
                    .expected(Value::Between(1, 14)),
            );
        };
        let site = Site::layer(index, kind);
        let decoded = reader
            .take(kind.record_bytes())
            .and_then(|record| Some((record, Layer::decode(kind, record)?)));
        let Some((record, layer)) = decoded else {
            return stop(sink, truncated(site.at(offset), kind.record_bytes()));
        };
        check_record(record, &layer, site, offset, quantized, sink)?;
    }
    ControlFlow::Continue(())
}

fn check_record(
    record: &[u8],
    layer: &Layer,
    site: Site,
    offset: u64,
    quantized: bool,
    sink: &mut dyn Sink,
) -> Flow {
    let kind = layer.kind();
    for range in [1..4, kind.reserved()] {
        check_zero(record, range, "reserved bytes", site, offset, Code::Reserved, sink)?;
    }
    if let Some(at) = kind.activation_offset() {
        let code = record.get(at).copied().unwrap_or(0);
        if Activation::from_code(code).is_none() {
            sink.report(
                Diagnostic::new(Code::Activation, site.at(offset + at as u64))
                    .found(Value::integer(code))
                    .expected(Value::Between(0, 6)),
            )?;
        }
    }
    if quantized && !kind.has_int8_form() {
        sink.report(
            Diagnostic::new(Code::QuanLayerKind, site.at(offset))
                .found(Value::Kind(kind))
                .expected(Value::Text(
                    "only dense, conv2d, depthwise_conv2d, max_pool2d, avg_pool2d, flatten \
                     and mobilenetv4_uib",
                )),
        )?;
    }
    let mut number =
        |field: &'static str, at: u64, value: f32, holds: bool, expected: &'static str| {
            if holds {
                return ControlFlow::Continue(());
            }
            sink.report(
                Diagnostic::new(Code::Finite, site.at(offset + at))
                    .field(field)
                    .found(Value::Float(value))
                    .expected(Value::Text(expected)),
            )
        };
    let finite = "a finite number";
    let not_negative = "a finite number of at least 0";
    match *layer {
        Layer::Dense(Dense { alpha, .. }) => number("alpha", 12, alpha, alpha.is_finite(), finite),
        Layer::Conv2d(Conv2d { alpha, .. })
        | Layer::DepthwiseConv2d(DepthwiseConv2d { alpha, .. }) => {
            number("alpha", 20, alpha, alpha.is_finite(), finite)
        }
        Layer::ConvNextV2Block(ConvNextV2Block { eps, .. })
        | Layer::LayerNorm2d(LayerNorm2d { eps, .. }) => {
            number("eps", 12, eps, eps.is_finite() && eps >= 0.0, not_negative)
        }
        Layer::MobileNetV4Uib(MobileNetV4Uib { expand_ratio: ratio, .. }) => number(
            "expand_ratio",
            16,
            ratio,
            ratio.is_finite() && ratio > 0.0,
            "a finite number above 0",
        ),
        Layer::YoloxDecoupledHead(YoloxDecoupledHead { num_convs, .. }) => {
            check_byte(Code::YoloxConvs, "num_convs", num_convs, 4, site.at(offset + 16), sink)
        }
        Layer::YoloxPafpnMultiscale(YoloxPafpnMultiscale { num_convs, .. }) => {
            check_byte(Code::YoloxConvs, "num_convs", num_convs, 4, site.at(offset + 24), sink)
        }
        Layer::FeatureTap(FeatureTap { tap_id, .. }) => {
            check_byte(Code::TapId, "tap_id", tap_id, 3, site.at(offset + 8), sink)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn check_byte(
    code: Code,
    field: &'static str,
    value: u8,
    most: u8,
    site: Site,
    sink: &mut dyn Sink,
) -> Flow {
    if value <= most {
        return ControlFlow::Continue(());
    }
    sink.report(
        Diagnostic::new(code, site)
            .field(field)
            .found(Value::integer(value))
            .expected(Value::Between(0, most.into())),
    )
}
