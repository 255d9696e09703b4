//! Writing model files: an owned description of a model and its canonical bytes (section 6.4).
//!
//! What is written is read back before it is handed out, so there is one set of rules, the
//! reader's, and no file leaves here that [`NkFile::parse`] would refuse.

mod description;
mod error;
mod layer;

use alloc::vec::Vec;

pub use description::{
    CaseData, ModelDescription, OwnedCase, OwnedPair, OwnedQuant, OwnedTensor, TensorData,
};
pub use error::WriteError;

use super::{
    DESCRIPTOR_BYTES, Flags, HEADER_BYTES, MAGIC, NkFile, QUAN_MAGIC, TCAS_MAGIC, dtype_code,
};
use crate::diag::{FirstError, Tensor};

impl ModelDescription {
    /// The bytes of the file.
    ///
    /// # Errors
    ///
    /// A tensor whose elements do not make up its shape, a case of the wrong type, anything too
    /// large for its field, and everything that [`NkFile::parse`] refuses.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WriteError> {
        let bytes = self.write()?;
        let mut sink = FirstError::new();
        match (NkFile::parse(&bytes, &mut sink), sink.first()) {
            (None, Some(diagnostic)) => Err(WriteError::Rule(diagnostic.into())),
            _ => Ok(bytes),
        }
    }

    fn write(&self) -> Result<Vec<u8>, WriteError> {
        let weights = || self.pairs.iter().map(|pair| &pair.weight);
        let biases = || self.pairs.iter().map(|pair| &pair.bias);
        let weight_bytes: usize = weights().map(byte_count).sum();
        let bias_bytes: usize = biases().map(byte_count).sum();
        let padding = weight_bytes.next_multiple_of(4) - weight_bytes;

        let tables =
            HEADER_BYTES + self.layers.len() * 28 + 2 * self.pairs.len() * DESCRIPTOR_BYTES;
        let mut out = Vec::with_capacity(tables + weight_bytes + padding + bias_bytes);
        self.write_header(weight_bytes + padding, bias_bytes, &mut out)?;
        for layer in &self.layers {
            layer::write_layer(layer, &mut out);
        }
        for (index, tensor) in weights().enumerate() {
            write_descriptor(tensor, Tensor::Weight(narrow("number of pairs", index)?), &mut out)?;
        }
        for (index, tensor) in biases().enumerate() {
            write_descriptor(tensor, Tensor::Bias(narrow("number of pairs", index)?), &mut out)?;
        }
        if let Some(quant) = &self.quant {
            write_quant(quant, &mut out)?;
        }
        weights().for_each(|tensor| write_elements(tensor, &mut out));
        out.extend([0; 3].iter().take(padding));
        biases().for_each(|tensor| write_elements(tensor, &mut out));
        if !self.cases.is_empty() {
            self.write_cases(&mut out)?;
        }
        Ok(out)
    }

    fn write_header(
        &self,
        weights: usize,
        biases: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let quantized = self.quant.is_some();
        let mut flags = 0;
        if quantized {
            flags |= Flags::QUANTIZED;
        }
        if !self.cases.is_empty() {
            flags |= Flags::CASES;
        }
        if quantized && !self.cases.is_empty() {
            flags |= Flags::INT8_CASES;
        }
        let version: u32 = if quantized { 4 } else { 3 };
        let dims = self.input.dims();
        out.extend(MAGIC);
        out.extend(version.to_le_bytes());
        out.extend([self.kind.code(), dims.len() as u8]);
        out.extend(flags.to_le_bytes());
        write_dims(dims, out);
        for (what, count) in [
            ("number of layers", self.layers.len()),
            ("number of pairs", self.pairs.len()),
            ("number of pairs", self.pairs.len()),
            ("size of the weights", weights),
            ("size of the biases", biases),
        ] {
            out.extend(narrow::<u32>(what, count)?.to_le_bytes());
        }
        Ok(())
    }

    fn write_cases(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.extend(TCAS_MAGIC);
        out.extend(narrow::<u32>("number of test cases", self.cases.len())?.to_le_bytes());
        out.extend(self.tolerance.to_le_bytes());
        for (index, case) in self.cases.iter().enumerate() {
            let length: u8 = narrow("length of a test name", case.name.len())?;
            out.push(length);
            out.extend(case.name.bytes());
            let padding = (1 + case.name.len()).next_multiple_of(4) - (1 + case.name.len());
            out.extend([0; 3].iter().take(padding));
            let label = match case.label {
                Some(label) => narrow::<i32>("label of a test case", label as usize)?,
                None => -1,
            };
            out.extend(label.to_le_bytes());
            match (&case.input, self.quant.is_some()) {
                (CaseData::F32(values), false) => {
                    write_count(values.len(), out)?;
                    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                }
                (CaseData::I8(values), true) => {
                    write_count(values.len(), out)?;
                    out.extend(values.iter().map(|value| *value as u8));
                }
                _ => return Err(WriteError::CaseType { case: index }),
            }
            write_count(case.expected.len(), out)?;
            out.extend(case.expected.iter().flat_map(|value| value.to_le_bytes()));
        }
        Ok(())
    }
}

fn byte_count(tensor: &OwnedTensor) -> usize {
    tensor.data.len() * tensor.data.dtype().size()
}

/// `value` in a field of type `T`.
fn narrow<T: TryFrom<usize> + Bounded>(what: &'static str, value: usize) -> Result<T, WriteError> {
    T::try_from(value).map_err(|_| WriteError::TooLarge {
        what,
        found: value as u64,
        most: T::MOST,
    })
}

trait Bounded {
    const MOST: u64;
}

macro_rules! bounded {
    ($($type:ty),*) => {$(
        impl Bounded for $type {
            const MOST: u64 = <$type>::MAX as u64;
        }
    )*};
}

bounded!(u8, u16, u32, i32);

fn write_count(count: usize, out: &mut Vec<u8>) -> Result<(), WriteError> {
    out.extend(narrow::<u32>("number of test values", count)?.to_le_bytes());
    Ok(())
}

fn write_dims(dims: &[u32], out: &mut Vec<u8>) {
    let padded = dims.iter().chain(&[0; 4]).take(4);
    out.extend(padded.flat_map(|dim| dim.to_le_bytes()));
}

fn write_descriptor(
    tensor: &OwnedTensor,
    which: Tensor,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let (found, expected) = (tensor.data.len(), tensor.shape.elements());
    if found != expected {
        return Err(WriteError::ElementCount { tensor: which, found, expected });
    }
    let dims = tensor.shape.dims();
    out.extend([dims.len() as u8, dtype_code(tensor.data.dtype()), 0, 0]);
    write_dims(dims, out);
    out.extend(narrow::<u32>("number of elements", expected)?.to_le_bytes());
    Ok(())
}

fn write_elements(tensor: &OwnedTensor, out: &mut Vec<u8>) {
    match &tensor.data {
        TensorData::F32(values) => {
            values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        }
        TensorData::I8(values) => out.extend(values.iter().map(|value| *value as u8)),
        TensorData::I32(values) => {
            values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        }
    }
}

fn write_quant(records: &[OwnedQuant], out: &mut Vec<u8>) -> Result<(), WriteError> {
    // A table of one scale says nothing that the record does not say, unless it says something
    // else.
    let has_tables = records.iter().any(|record| match record.channel_scales.as_slice() {
        [] => false,
        [scale] => scale.to_bits() != record.weight.scale.to_bits(),
        _ => true,
    });
    out.extend(QUAN_MAGIC);
    out.extend(narrow::<u16>("number of quantization records", records.len())?.to_le_bytes());
    out.extend(u16::from(has_tables).to_le_bytes());
    for record in records {
        for quant in [record.input, record.weight, record.bias, record.output] {
            out.extend(quant.scale.to_le_bytes());
            out.extend(quant.zero_point.to_le_bytes());
        }
    }
    for record in records.iter().filter(|_| has_tables) {
        out.extend(
            narrow::<u32>("number of channel scales", record.channel_scales.len())?.to_le_bytes(),
        );
        out.extend(record.channel_scales.iter().flat_map(|scale| scale.to_le_bytes()));
    }
    Ok(())
}
