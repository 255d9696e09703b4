//! The TCAS section (section 9): inputs with the outputs that the model gave where it was made.

mod check;

pub(super) use check::check;

use crate::bytes::{Packed, Reader};
use crate::diag::{Code, Site, Value};

/// The first four bytes of the section.
pub const TCAS_MAGIC: [u8; 4] = *b"TCAS";
/// The most cases a file may have.
pub const MAX_CASES: u32 = 16;
/// The most bytes the name of a case may have.
pub const MAX_NAME_BYTES: u8 = 127;
/// The most input values, and the most output values, a case may have.
pub const MAX_CASE_VALUES: u32 = 16384;
/// Bytes of the section before its cases.
const PREFIX_BYTES: usize = 12;

/// The input of a test case.
#[derive(Clone, Copy, Debug)]
pub enum CaseInput<'a> {
    /// Of a float model.
    F32(Packed<'a, f32>),
    /// Of an int8 model.
    I8(Packed<'a, i8>),
}

impl CaseInput<'_> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::I8(values) => values.len(),
        }
    }

    /// Whether there are none, which no file has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A test case: an input, the output it must give, and the class of the input.
#[derive(Clone, Copy, Debug)]
pub struct TestCase<'a> {
    /// The place in the section, from 0.
    pub index: u16,
    /// The offset of the case in the file.
    pub offset: u64,
    /// What the case is called.
    pub name: &'a str,
    /// The class, if the case has one.
    pub label: Option<u32>,
    /// The offset of the label in the file.
    pub label_offset: u64,
    /// The input, flat and row-major.
    pub input: CaseInput<'a>,
    /// The offset of the number of input values in the file; the values follow it.
    pub input_offset: u64,
    /// The output, flat and row-major; of int8 models too in real numbers.
    pub expected: Packed<'a, f32>,
    /// The offset of the number of output values in the file; the values follow it.
    pub expected_offset: u64,
}

impl TestCase<'_> {
    /// This case, for a diagnostic.
    pub const fn site(&self) -> Site {
        Site::byte(self.offset).case(self.index)
    }
}

/// Where the section lies in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// The offset of the first case.
    cases: usize,
    count: u16,
    /// How far an output may be off, absolutely.
    pub(super) tolerance: f32,
}

/// The test cases of a file in order.
#[derive(Clone, Debug)]
pub struct TestCases<'a> {
    reader: Reader<'a>,
    index: u16,
    count: u16,
    int8: bool,
}

impl<'a> TestCases<'a> {
    pub(super) fn new(bytes: &'a [u8], section: Option<Section>, int8: bool) -> Self {
        let reader = section.and_then(|section| Reader::at(bytes, section.cases));
        Self {
            reader: reader.unwrap_or(Reader::new(&[])),
            index: 0,
            count: section.map_or(0, |section| section.count),
            int8,
        }
    }

    /// The cases of a section that [`NkFile::parse`](super::NkFile::parse) found well formed, and
    /// their tolerance, for whoever keeps that section alone. Offsets count from its start. `None`
    /// where `section` does not start like one.
    pub fn of_section(section: &'a [u8], int8: bool) -> Option<(Self, f32)> {
        let mut reader = Reader::new(section);
        let (magic, count, tolerance) = read_prefix(&mut reader)?;
        if magic != TCAS_MAGIC || count > MAX_CASES {
            return None;
        }
        Some((Self { reader, index: 0, count: count as u16, int8 }, tolerance))
    }
}

impl<'a> Iterator for TestCases<'a> {
    type Item = TestCase<'a>;

    fn next(&mut self) -> Option<TestCase<'a>> {
        if self.index == self.count {
            return None;
        }
        let raw = Raw::read(&mut self.reader, self.int8).ok()?;
        let index = self.index;
        self.index += 1;
        Some(TestCase {
            index,
            offset: raw.offset,
            name: core::str::from_utf8(raw.name).ok()?,
            label: u32::try_from(raw.label).ok(),
            label_offset: raw.label_offset,
            input: raw.input,
            input_offset: raw.input_offset,
            expected: raw.expected,
            expected_offset: raw.expected_offset,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.count - self.index);
        (left, Some(left))
    }
}

impl ExactSizeIterator for TestCases<'_> {}

/// Magic, number of cases and tolerance.
fn read_prefix(reader: &mut Reader<'_>) -> Option<([u8; 4], u32, f32)> {
    let mut prefix = Reader::new(reader.take(PREFIX_BYTES)?);
    Some((prefix.array()?, prefix.u32()?, prefix.f32()?))
}

/// A case as it stands in the file; only its sizes are known to be right.
struct Raw<'a> {
    offset: u64,
    name: &'a [u8],
    padding: &'a [u8],
    padding_offset: u64,
    label: i32,
    label_offset: u64,
    input: CaseInput<'a>,
    input_offset: u64,
    expected: Packed<'a, f32>,
    expected_offset: u64,
}

/// Why a case cannot be read. No case behind it can be found either.
struct Broken {
    code: Code,
    offset: u64,
    field: &'static str,
    found: Value,
    expected: Value,
}

impl<'a> Raw<'a> {
    fn read(reader: &mut Reader<'a>, int8: bool) -> Result<Self, Broken> {
        let offset = reader.offset() as u64;
        let length = take(reader, 1)?[0];
        if length == 0 || length > MAX_NAME_BYTES {
            return Err(Broken {
                code: Code::CaseNameLength,
                offset,
                field: "name_len",
                found: Value::integer(length),
                expected: Value::Between(1, MAX_NAME_BYTES.into()),
            });
        }
        let length = usize::from(length);
        let name = take(reader, length)?;
        let padding_offset = reader.offset() as u64;
        let padding = take(reader, (1 + length).next_multiple_of(4) - (1 + length))?;
        let label_offset = reader.offset() as u64;
        let label = i32::from_le_bytes(word(reader)?);
        let input_offset = reader.offset() as u64;
        let input_count = count(reader, "input_count")?;
        let input = if int8 {
            CaseInput::I8(Packed::new(take(reader, input_count)?))
        } else {
            CaseInput::F32(Packed::new(take(reader, 4 * input_count)?))
        };
        let expected_offset = reader.offset() as u64;
        let expected_count = count(reader, "output_count")?;
        let expected = Packed::new(take(reader, 4 * expected_count)?);
        Ok(Self {
            offset,
            name,
            padding,
            padding_offset,
            label,
            label_offset,
            input,
            input_offset,
            expected,
            expected_offset,
        })
    }
}

fn take<'a>(reader: &mut Reader<'a>, needed: usize) -> Result<&'a [u8], Broken> {
    let left = reader.remaining();
    reader.take(needed).ok_or(Broken {
        code: Code::CasesTruncated,
        offset: reader.offset() as u64,
        field: "",
        found: Value::Count(left as u64, "byte"),
        expected: Value::Count(needed as u64, "byte"),
    })
}

fn word(reader: &mut Reader<'_>) -> Result<[u8; 4], Broken> {
    let bytes = take(reader, 4)?;
    Ok([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn count(reader: &mut Reader<'_>, field: &'static str) -> Result<usize, Broken> {
    let offset = reader.offset() as u64;
    let count = u32::from_le_bytes(word(reader)?);
    if count == 0 || count > MAX_CASE_VALUES {
        return Err(Broken {
            code: Code::CaseValueCount,
            offset,
            field,
            found: Value::integer(count),
            expected: Value::Between(1, MAX_CASE_VALUES.into()),
        });
    }
    Ok(count as usize)
}
