//! Input values from the command line or a file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::limited;

/// Where a model's input comes from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Input {
    /// Values, separated by commas
    #[arg(long, value_name = "V,V,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) input: Option<Vec<String>>,
    /// A file of values: .npy, .csv or .txt (any of commas, semicolons, blanks and line ends between values) or .bin
    /// (little-endian float32, or int8 with --raw)
    #[arg(long, value_name = "FILE")]
    pub(crate) input_file: Option<PathBuf>,
    /// All zeros
    #[arg(long)]
    pub(crate) zeros: bool,
}

impl Input {
    /// `count` finite values.
    pub(crate) fn floats(&self, count: usize) -> Result<Vec<f32>> {
        let values = match (&self.input, &self.input_file) {
            (Some(texts), _) => parse_all(texts.iter().map(String::as_str))?,
            (None, Some(path)) => read(path, Bin::Float32, count)?,
            (None, None) => vec![0.0; count],
        };
        if let Some(bad) = values.iter().position(|value| !(*value as f32).is_finite()) {
            bail!("input value {bad} is {}; models take finite numbers", values[bad]);
        }
        expect_count(values.len(), count)?;
        Ok(values.into_iter().map(|value| value as f32).collect())
    }

    /// `count` whole numbers in −128..=127; `zero_point` stands for zero.
    pub(crate) fn raw(&self, count: usize, zero_point: i8) -> Result<Vec<i8>> {
        let values = match (&self.input, &self.input_file) {
            (Some(texts), _) => parse_all(texts.iter().map(String::as_str))?,
            (None, Some(path)) => read(path, Bin::Int8, count)?,
            (None, None) => vec![f64::from(zero_point); count],
        };
        expect_count(values.len(), count)?;
        let narrow = |(index, value): (usize, f64)| {
            if value.fract() == 0.0 && (-128.0..=127.0).contains(&value) {
                Ok(value as i8)
            } else {
                bail!("input value {index} is {value}; --raw takes whole numbers from -128 to 127")
            }
        };
        values.into_iter().enumerate().map(narrow).collect()
    }
}

fn expect_count(found: usize, expected: usize) -> Result<()> {
    if found != expected {
        bail!("the model takes {expected} values, {found} were given");
    }
    Ok(())
}

/// What the numbers of a `.bin` file are.
#[derive(Clone, Copy)]
enum Bin {
    Float32,
    Int8,
}

/// Values of a file that is to hold `count` of them.
fn read(path: &Path, bin: Bin, count: usize) -> Result<Vec<f64>> {
    /// A header, or comments' worth of blanks.
    const BESIDE_VALUES: u64 = 1 << 20;
    /// Text of a double with all its digits, a separator and some blanks.
    const LONGEST_VALUE: u64 = 64;
    let limit = BESIDE_VALUES + LONGEST_VALUE * count as u64;
    let bytes = limited::read(path, limit, &format!("{count} input values"))?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let named = || path.display().to_string();
    match extension.to_ascii_lowercase().as_str() {
        "npy" => Ok(netkit_import::npy::read(&bytes).with_context(named)?.values),
        "csv" | "txt" => {
            let text = str::from_utf8(&bytes).context("not UTF-8 text").with_context(named)?;
            let separators = |c: char| c == ',' || c == ';' || c.is_whitespace();
            parse_all(text.split(separators).filter(|word| !word.is_empty())).with_context(named)
        }
        "bin" => match bin {
            Bin::Int8 => Ok(bytes.iter().map(|&byte| f64::from(byte.cast_signed())).collect()),
            Bin::Float32 => {
                let (values, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    bail!("{}: {} bytes are no whole number of float32", named(), bytes.len());
                }
                Ok(values.iter().map(|value| f64::from(f32::from_le_bytes(*value))).collect())
            }
        },
        _ => bail!("{}: values are read from .npy, .csv, .txt or .bin files", named()),
    }
}

fn parse_all<'t>(words: impl Iterator<Item = &'t str>) -> Result<Vec<f64>> {
    words
        .enumerate()
        .map(|(index, word)| {
            word.trim()
                .parse::<f64>()
                .with_context(|| format!("value {index}, {word:?}, is no number"))
        })
        .collect()
}
