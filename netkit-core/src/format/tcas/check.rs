//! The rules that the test section can break by itself.

use core::ops::ControlFlow;

use super::{CaseInput, MAX_CASES, PREFIX_BYTES, Raw, Section, TCAS_MAGIC, read_prefix};
use crate::bytes::{Packed, Reader};
use crate::diag::{Code, Diagnostic, Sink, Site, Value};
use crate::format::{Flow, NkFile, check_zero, stop};

/// Reads past the section and reports what is wrong with it by itself.
pub(in crate::format) fn check(
    reader: &mut Reader<'_>,
    file: &NkFile<'_>,
    sink: &mut dyn Sink,
) -> Flow<Section> {
    let offset = reader.offset() as u64;
    let left = reader.remaining();
    let Some((magic, count, tolerance)) = read_prefix(reader) else {
        return stop(
            sink,
            Diagnostic::new(Code::CasesTruncated, Site::byte(offset))
                .found(Value::Count(left as u64, "byte"))
                .expected(Value::Count(PREFIX_BYTES as u64, "byte")),
        );
    };
    if magic != TCAS_MAGIC {
        return stop(
            sink,
            Diagnostic::new(Code::CasesMagic, Site::byte(offset))
                .found(Value::Bytes(magic))
                .expected(Value::Bytes(TCAS_MAGIC)),
        );
    }
    if count == 0 || count > MAX_CASES {
        return stop(
            sink,
            Diagnostic::new(Code::CaseCount, Site::byte(offset + 4))
                .field("case_count")
                .found(Value::integer(count))
                .expected(Value::Between(1, MAX_CASES.into())),
        );
    }
    if !(tolerance.is_finite() && tolerance >= 0.0) {
        sink.report(
            Diagnostic::new(Code::CaseTolerance, Site::byte(offset + 8))
                .field("tolerance")
                .found(Value::Float(tolerance))
                .expected(Value::Text("a finite number of at least 0")),
        )?;
    }
    let mut names: [&[u8]; MAX_CASES as usize] = [&[]; MAX_CASES as usize];
    let cases = reader.offset();
    let count = count as u16;
    for index in 0..count {
        let case = match Raw::read(reader, file.header.flags.has_int8_cases()) {
            Ok(case) => case,
            Err(broken) => {
                return stop(
                    sink,
                    Diagnostic::new(broken.code, Site::byte(broken.offset).case(index))
                        .field(broken.field)
                        .found(broken.found)
                        .expected(broken.expected),
                );
            }
        };
        check_case(&case, index, &names, sink)?;
        if let Some(slot) = names.get_mut(usize::from(index)) {
            *slot = case.name;
        }
    }
    ControlFlow::Continue(Section { cases, count, tolerance })
}

/// `names` holds those of the cases before, then empty ones, which no case has.
fn check_case(case: &Raw<'_>, index: u16, names: &[&[u8]], sink: &mut dyn Sink) -> Flow {
    let site = Site::FILE.case(index);
    let name_site = site.at(case.offset + 1);
    let fault = match core::str::from_utf8(case.name) {
        Ok(_) => case.name.contains(&0).then_some("has a NUL"),
        Err(_) => Some("is not UTF-8"),
    };
    if let Some(fault) = fault {
        sink.report(
            Diagnostic::new(Code::CaseNameText, name_site)
                .found(Value::Text(fault))
                .expected(Value::Text("UTF-8 without NUL")),
        )?;
    }
    if let Some(other) = names.iter().position(|name| *name == case.name) {
        sink.report(
            Diagnostic::new(Code::CaseDuplicate, name_site).found(Value::Integer(other as i64)),
        )?;
    }
    let padding = 0..case.padding.len();
    check_zero(
        case.padding,
        padding,
        "padding bytes of the name",
        site,
        case.padding_offset,
        Code::Reserved,
        sink,
    )?;
    if case.label < -1 {
        sink.report(
            Diagnostic::new(Code::CaseLabel, site.at(case.label_offset))
                .field("label")
                .found(Value::integer(case.label))
                .expected(Value::Text("a class or -1 for none")),
        )?;
    }
    let input = match case.input {
        CaseInput::F32(values) => values,
        CaseInput::I8(_) => Packed::new(&[]),
    };
    for (field, values, offset) in [
        ("input value", input, case.input_offset),
        ("expected value", case.expected, case.expected_offset),
    ] {
        let bad = values.first_non_finite().and_then(|index| Some((index, values.get(index)?)));
        if let Some((index, value)) = bad {
            sink.report(
                Diagnostic::new(Code::Finite, site.at(offset + 4 + 4 * index as u64))
                    .field(field)
                    .found(Value::Float(value))
                    .expected(Value::Text("a finite number")),
            )?;
        }
    }
    ControlFlow::Continue(())
}
