//! Reader of the `.graph` files (described in `generate/graph.py`).

use std::path::Path;

use serde::Deserialize;

use crate::model::Result;

#[derive(Deserialize)]
pub struct Graph {
    /// Shape of every value; value 0 is the input.
    pub shapes: Vec<Vec<usize>>,
    pub output: usize,
    pub operators: Vec<Operator>,
    /// Quantisation of every value; empty for f32.
    #[serde(default)]
    pub quants: Vec<Quant>,
    #[serde(skip)]
    data: Vec<u8>,
}

#[derive(Clone, Copy, Deserialize)]
pub struct Quant {
    pub scale: f64,
    pub zero_point: i32,
}

#[derive(Deserialize)]
pub struct Operator {
    pub kind: Kind,
    pub inputs: Vec<usize>,
    pub output: usize,
    pub stride: usize,
    pub kernel: [usize; 2],
    /// Top, left, bottom, right.
    pub pads: [usize; 4],
    pub relu: bool,
    pub eps: f64,
    weight: Option<Place>,
    bias: Option<Place>,
    #[serde(default)]
    pub weight_scales: Vec<f64>,
    #[serde(default)]
    pub per_channel: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Conv,
    Depthwise,
    Dense,
    MaxPool,
    AvgPool,
    Flatten,
    Add,
    LayerNorm,
    Gelu,
    Grn,
    Softmax,
}

#[derive(Deserialize)]
struct Place {
    offset: usize,
    shape: Vec<usize>,
}

impl Graph {
    pub fn read(path: &Path) -> Result<Graph> {
        Graph::parse(&std::fs::read(path)?)
            .map_err(|error| format!("{}: {error}", path.display()).into())
    }

    pub fn parse(bytes: &[u8]) -> Result<Graph> {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or("shorter than its header")?;
        let (text, data) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or("text is cut off")?;
        let mut graph: Graph = serde_json::from_slice(text)?;
        graph.data = data.to_vec();
        Ok(graph)
    }

    fn bytes(&self, place: Option<&Place>, size: usize) -> Result<(&[u8], Vec<usize>)> {
        let place = place.ok_or("operator has no such tensor")?;
        let end = place.offset + place.shape.iter().product::<usize>() * size;
        let bytes = self.data.get(place.offset..end).ok_or("tensor lies outside the file")?;
        Ok((bytes, place.shape.clone()))
    }

    pub fn weight_f32(&self, operator: &Operator) -> Result<(Vec<f32>, Vec<usize>)> {
        let (bytes, shape) = self.bytes(operator.weight.as_ref(), 4)?;
        Ok((
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
            shape,
        ))
    }

    pub fn bias_f32(&self, operator: &Operator) -> Result<Vec<f32>> {
        let (bytes, _) = self.bytes(operator.bias.as_ref(), 4)?;
        Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    pub fn weight_i8(&self, operator: &Operator) -> Result<(Vec<i8>, Vec<usize>)> {
        let (bytes, shape) = self.bytes(operator.weight.as_ref(), 1)?;
        Ok((bytes.iter().map(|&b| b as i8).collect(), shape))
    }

    pub fn bias_i32(&self, operator: &Operator) -> Result<Vec<i32>> {
        let (bytes, _) = self.bytes(operator.bias.as_ref(), 4)?;
        Ok(bytes.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}
