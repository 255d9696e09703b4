//! What a firmware printed, read back and compared with the host's.

use std::fmt;

/// The values of one line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    I8(Vec<i8>),
    F32(Vec<f32>),
}

/// A remark, which is not compared: `# NAME KEY VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) value: u64,
}

/// Everything a run printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Transcript {
    pub(crate) results: Vec<(String, Values)>,
    pub(crate) remarks: Vec<Remark>,
}

/// How a run differs from the host's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Difference {
    Missing { name: String },
    Unexpected { name: String },
    Kind { name: String },
    Length { name: String, expected: usize, found: usize },
    I8 { name: String, index: usize, expected: i8, found: i8 },
    F32 { name: String, index: usize, expected: f32, found: f32 },
}

impl Transcript {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut transcript = Self::default();
        for line in text.lines() {
            let explain = || format!("not a line of a transcript: {line:?}");
            let mut words = line.split(' ');
            let (Some(kind), Some(name)) = (words.next(), words.next()) else {
                return Err(explain());
            };
            let name = name.to_owned();
            match kind {
                "i8" => {
                    let values = words.map(str::parse).collect::<Result<_, _>>();
                    transcript.results.push((name, Values::I8(values.map_err(|_| explain())?)));
                }
                "f32" => {
                    let bits = words.map(|word| u32::from_str_radix(word, 16).map(f32::from_bits));
                    let values = bits.collect::<Result<_, _>>().map_err(|_| explain())?;
                    transcript.results.push((name, Values::F32(values)));
                }
                "#" => {
                    let (Some(key), Some(value)) = (words.next(), words.next()) else {
                        return Err(explain());
                    };
                    let value = value.parse().map_err(|_| explain())?;
                    transcript.remarks.push(Remark { name, key: key.to_owned(), value });
                }
                _ => return Err(explain()),
            }
        }
        Ok(transcript)
    }

    /// The remarks called `key`, by name.
    pub(crate) fn remarks<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        self.remarks.iter().filter(move |r| r.key == key).map(|r| (r.name.as_str(), r.value))
    }

    /// The names of the steps of a region, in order.
    pub(crate) fn steps<'a>(&'a self, region: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.remarks("step").map(|(name, _)| name);
        names.filter(move |name| name.split_once('/').is_some_and(|(of, _)| of == region))
    }

    /// Everything in which `self` differs from what the host computed, the first value of each line only.
    pub(crate) fn compare(&self, host: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (index, (name, expected)) in host.results.iter().enumerate() {
            match self.results.get(index) {
                Some((found_name, found)) if found_name == name => {
                    differences.extend(compare_line(name, expected, found));
                }
                _ => differences.push(Difference::Missing { name: name.clone() }),
            }
        }
        let surplus = self.results.iter().skip(host.results.len());
        differences.extend(surplus.map(|(name, _)| Difference::Unexpected { name: name.clone() }));
        differences
    }
}

fn compare_line(name: &str, expected: &Values, found: &Values) -> Option<Difference> {
    let name = name.to_owned();
    let (expected_length, found_length) = (expected.len(), found.len());
    if expected_length != found_length {
        return Some(Difference::Length { name, expected: expected_length, found: found_length });
    }
    match (expected, found) {
        (Values::I8(expected), Values::I8(found)) => {
            let index = expected.iter().zip(found).position(|(e, f)| e != f)?;
            Some(Difference::I8 { name, index, expected: expected[index], found: found[index] })
        }
        (Values::F32(expected), Values::F32(found)) => {
            // Sums of a few thousand products in another order, and a fused multiply-add here and there.
            let magnitude =
                expected.iter().fold(1e-3_f32, |largest, value| largest.max(value.abs()));
            let near =
                |e: &f32, f: &f32| e.to_bits() == f.to_bits() || (e - f).abs() <= 2e-5 * magnitude;
            let index = expected.iter().zip(found).position(|(e, f)| !near(e, f))?;
            Some(Difference::F32 { name, index, expected: expected[index], found: found[index] })
        }
        _ => Some(Difference::Kind { name }),
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::I8(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name } => write!(f, "{name}: not printed"),
            Self::Unexpected { name } => write!(f, "{name}: printed, but not by the host"),
            Self::Kind { name } => write!(f, "{name}: not of the host's type"),
            Self::Length { name, expected, found } => {
                write!(f, "{name}: {found} values, the host has {expected}")
            }
            Self::I8 { name, index, expected, found } => {
                write!(f, "{name}[{index}]: {found}, the host has {expected}")
            }
            Self::F32 { name, index, expected, found } => {
                write!(f, "{name}[{index}]: {found}, the host has {expected}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, Transcript};

    fn parse(text: &str) -> Transcript {
        Transcript::parse(text).unwrap()
    }

    #[test]
    fn equal_runs_have_no_difference() {
        let text = "i8 a 1 -128\nf32 b 3f800000 7fc00000\n# a region 100\n";
        assert_eq!(parse(text).compare(&parse(text)), []);
    }

    #[test]
    fn int8_must_be_equal_to_the_last_bit() {
        let differences = parse("i8 a 1 2 4").compare(&parse("i8 a 1 2 3"));
        let expected = Difference::I8 { name: "a".into(), index: 2, expected: 3, found: 4 };
        assert_eq!(differences, [expected]);
    }

    #[test]
    fn floats_may_differ_in_the_last_places_only() {
        assert_eq!(parse("f32 a 3f800001").compare(&parse("f32 a 3f800000")), []);
        assert_eq!(parse("f32 a 3f801000").compare(&parse("f32 a 3f800000")).len(), 1);
        assert_eq!(parse("f32 a 7fc00000").compare(&parse("f32 a 3f800000")).len(), 1);
    }

    #[test]
    fn lines_must_be_the_same_ones() {
        let host = parse("i8 a 1\ni8 b 2");
        assert_eq!(parse("i8 a 1").compare(&host), [Difference::Missing { name: "b".into() }]);
        assert_eq!(host.compare(&parse("i8 a 1")), [Difference::Unexpected { name: "b".into() }]);
        assert_eq!(
            parse("i8 a 1\nf32 b 0").compare(&host),
            [Difference::Kind { name: "b".into() }]
        );
        let short = Difference::Length { name: "b".into(), expected: 1, found: 2 };
        assert_eq!(parse("i8 a 1\ni8 b 2 2").compare(&host), [short]);
    }

    #[test]
    fn foreign_lines_are_errors() {
        for line in ["hello", "u8 a 1", "i8 a 128", "f32 a xyz", "# a stack", ""] {
            assert!(Transcript::parse(&format!("{line}\n")).is_err(), "{line:?}");
        }
    }
}
