//! NumPy's `.npy` files, as far as data for cases and calibration comes in them: numbers in row-major
//! order, versions 1 to 3 of the format.

use std::fmt;

/// An array from a `.npy` file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The shape; empty for a scalar.
    pub dims: Vec<usize>,
    /// The elements, row-major. Every element type that is read fits a double, 64-bit integers beyond
    /// 2⁵³ excepted, which are rounded.
    pub values: Vec<f64>,
}

/// Why a `.npy` file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NpyError {
    /// The bytes are no `.npy` file.
    Format(&'static str),
    /// The array is of a type that is not read.
    ElementType(String),
    /// The array is stored column-major.
    FortranOrder,
    /// The file has not as many bytes as its shape needs.
    Length {
        /// Bytes that the elements need, if that is a number at all.
        expected: Option<usize>,
        /// Bytes behind the header.
        found: usize,
    },
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(what) => write!(f, "not an .npy file: {what}"),
            Self::ElementType(name) => {
                write!(f, "the array is of type {name}; little-endian floats and integers are read")
            }
            Self::FortranOrder => f.write_str(
                "the array is stored column-major; save it with numpy.ascontiguousarray",
            ),
            Self::Length { expected: Some(expected), found } => {
                write!(f, "the array needs {expected} bytes and the file has {found}")
            }
            Self::Length { expected: None, .. } => f.write_str("the array is too large"),
        }
    }
}

impl std::error::Error for NpyError {}

/// Reads a whole file.
///
/// # Errors
/// [`NpyError`]; nothing is allocated before the file is known to hold the elements.
pub fn read(file: &[u8]) -> Result<Array, NpyError> {
    let rest = file.strip_prefix(b"\x93NUMPY").ok_or(NpyError::Format("wrong magic"))?;
    let short = NpyError::Format("the header is cut off");
    let (&[major, _minor], rest) = rest.split_first_chunk().ok_or(short.clone())?;
    let (length, rest) = match major {
        1 => {
            let (bytes, rest) = rest.split_first_chunk().ok_or(short.clone())?;
            (usize::from(u16::from_le_bytes(*bytes)), rest)
        }
        2 | 3 => {
            let (bytes, rest) = rest.split_first_chunk().ok_or(short.clone())?;
            (u32::from_le_bytes(*bytes) as usize, rest)
        }
        _ => return Err(NpyError::Format("an unknown version")),
    };
    let (header, data) = rest.split_at_checked(length).ok_or(short)?;
    let header = str::from_utf8(header).map_err(|_| NpyError::Format("the header is no text"))?;
    let descriptor = quoted(value_of(header, "descr")?)?;
    if value_of(header, "fortran_order")?.starts_with("True") {
        return Err(NpyError::FortranOrder);
    }
    let dims = tuple(value_of(header, "shape")?)?;
    let count = dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
    decode(descriptor, data, count).map(|values| Array { dims, values })
}

fn decode(descriptor: &str, data: &[u8], count: Option<usize>) -> Result<Vec<f64>, NpyError> {
    fn numbers<const N: usize>(
        data: &[u8],
        count: Option<usize>,
        number: impl Fn([u8; N]) -> f64,
    ) -> Result<Vec<f64>, NpyError> {
        let expected = count.and_then(|count| count.checked_mul(N));
        if expected != Some(data.len()) {
            return Err(NpyError::Length { expected, found: data.len() });
        }
        Ok(data.as_chunks().0.iter().map(|bytes| number(*bytes)).collect())
    }
    match descriptor {
        "<f4" => numbers(data, count, |bytes| f32::from_le_bytes(bytes).into()),
        "<f8" => numbers(data, count, f64::from_le_bytes),
        "|u1" | "|b1" => numbers(data, count, |[byte]: [u8; 1]| byte.into()),
        "|i1" => numbers(data, count, |bytes| i8::from_le_bytes(bytes).into()),
        "<u2" => numbers(data, count, |bytes| u16::from_le_bytes(bytes).into()),
        "<i2" => numbers(data, count, |bytes| i16::from_le_bytes(bytes).into()),
        "<u4" => numbers(data, count, |bytes| u32::from_le_bytes(bytes).into()),
        "<i4" => numbers(data, count, |bytes| i32::from_le_bytes(bytes).into()),
        "<u8" => numbers(data, count, |bytes| u64::from_le_bytes(bytes) as f64),
        "<i8" => numbers(data, count, |bytes| i64::from_le_bytes(bytes) as f64),
        other => Err(NpyError::ElementType(other.to_owned())),
    }
}

/// What stands behind `'key':` in the header's dictionary.
fn value_of<'h>(header: &'h str, key: &str) -> Result<&'h str, NpyError> {
    let missing = NpyError::Format("the header lacks an entry");
    let at = [format!("'{key}'"), format!("\"{key}\"")]
        .iter()
        .find_map(|quoted| header.find(quoted.as_str()).map(|at| at + quoted.len()));
    let rest = header.get(at.ok_or(missing.clone())?..).ok_or(missing.clone())?;
    rest.trim_start().strip_prefix(':').map(str::trim_start).ok_or(missing)
}

fn quoted(value: &str) -> Result<&str, NpyError> {
    let structured = NpyError::ElementType("a structure".to_owned());
    let quote = value.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let quote = quote.ok_or(structured.clone())?;
    value[1..].split_once(quote).map(|(text, _)| text).ok_or(structured)
}

fn tuple(value: &str) -> Result<Vec<usize>, NpyError> {
    let wrong = || NpyError::Format("the header's shape is no tuple of numbers");
    let inner = value.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?.0;
    inner
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().map_err(|_| wrong()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    fn header(descriptor: &str, shape: &str) -> String {
        format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': {shape}, }}   \n")
    }

    #[test]
    fn numbers_of_every_type() {
        let one = |descriptor: &str, data: &[u8]| read(&file(&header(descriptor, "(1,)"), data));
        for (descriptor, data, value) in [
            ("<f4", &(-1.5f32).to_le_bytes()[..], -1.5),
            ("<f8", &0.1f64.to_le_bytes(), 0.1),
            ("|u1", &[200], 200.0),
            ("|b1", &[1], 1.0),
            ("|i1", &[0xff], -1.0),
            ("<u2", &[0, 1], 256.0),
            ("<i2", &[0xfe, 0xff], -2.0),
            ("<u4", &[0, 0, 0, 0x80], 2_147_483_648.0),
            ("<i4", &[0xff; 4], -1.0),
            ("<u8", &[7, 0, 0, 0, 0, 0, 0, 0], 7.0),
            ("<i8", &[0xff; 8], -1.0),
        ] {
            let array = one(descriptor, data).unwrap();
            assert_eq!((array.dims, array.values), (vec![1], vec![value]), "{descriptor}");
        }
        for other in [">f4", "<f2", "<c8", "|S3", "|O"] {
            assert_eq!(one(other, &[0; 8]), Err(NpyError::ElementType(other.into())));
        }
    }

    #[test]
    fn shapes() {
        let array = read(&file(&header("|u1", "(2, 3)"), &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(array.dims, [2, 3]);
        assert_eq!(array.values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(read(&file(&header("|u1", "()"), &[9])).unwrap().dims, [0usize; 0]);
        // Version 2 has a longer length.
        let text = header("|u1", "(1,)");
        let mut second = b"\x93NUMPY\x02\x00".to_vec();
        second.extend((text.len() as u32).to_le_bytes());
        second.extend(text.as_bytes());
        second.push(5);
        assert_eq!(read(&second).unwrap().values, [5.0]);
    }

    #[test]
    fn damaged_files_are_errors() {
        let whole = file(&header("<f4", "(2, 2)"), &[0; 16]);
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end}");
        }
        assert_eq!(
            read(&file(&header("<f4", "(2, 3)"), &[0; 16])),
            Err(NpyError::Length { expected: Some(24), found: 16 })
        );
        let huge = format!("({}, {})", usize::MAX, usize::MAX);
        assert_eq!(
            read(&file(&header("|u1", &huge), &[])),
            Err(NpyError::Length { expected: None, found: 0 })
        );
        let fortran = header("<f4", "(1,)").replace("False", "True");
        assert_eq!(read(&file(&fortran, &[0; 4])), Err(NpyError::FortranOrder));
        assert!(matches!(read(&file("{}", &[])), Err(NpyError::Format(_))));
        assert!(matches!(read(&file(&header("<f4", "(-1,)"), &[])), Err(NpyError::Format(_))));
        let structured = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}";
        assert!(matches!(read(&file(structured, &[0; 4])), Err(NpyError::ElementType(_))));
        for at in 0..whole.len() {
            for value in [0, b'(', b'\'', 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                drop(read(&damaged));
            }
        }
    }
}
