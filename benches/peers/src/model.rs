//! The models to compare: `index.json`, the example inputs and what must come out.

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub type Error = Box<dyn std::error::Error>;
pub type Result<T> = std::result::Result<T, Error>;

/// Element type of a model's input and output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    F32,
    Int8,
}

/// One operator with weights, for the roofline.
#[derive(Clone, Debug, Deserialize)]
pub struct Layer {
    pub macs: u64,
    pub weight_bytes: u64,
}

/// One entry of `index.json`. Shapes are (height, width, channels) or (features,).
#[derive(Clone, Debug, Deserialize)]
pub struct Model {
    pub name: String,
    pub title: String,
    pub dtype: DType,
    /// File suffixes that exist for this model.
    pub forms: Vec<String>,
    pub cases: usize,
    pub input_shape: Vec<usize>,
    pub output_shape: Vec<usize>,
    pub input_len: usize,
    pub output_len: usize,
    pub layers: Vec<Layer>,
    /// Largest accepted deviation of a peer: absolute for f32, in steps of the output for int8.
    pub tolerance: f64,
    /// Largest wanted time of netkit over the best peer's.
    pub target: Option<f64>,
    #[serde(skip)]
    pub folder: PathBuf,
    /// A second row for the model: netkit with `convolution = winograd`.
    #[serde(skip)]
    pub winograd: bool,
}

/// Models that have such a row.
const WINOGRAD: [&str; 2] = ["resnet_block_f32", "resnet18_f32"];

impl Model {
    /// Name of the row.
    pub fn row(&self) -> String {
        let suffix = if self.winograd { "_winograd" } else { "" };
        format!("{}{suffix}", self.name)
    }

    /// Path of the model in one form, `None` where it has no such form.
    pub fn file(&self, form: &str) -> Option<PathBuf> {
        self.forms
            .iter()
            .any(|known| known == form)
            .then(|| self.folder.join(format!("{}.{form}", self.name)))
    }

    pub fn macs(&self) -> u64 {
        self.layers.iter().map(|layer| layer.macs).sum()
    }

    /// Every example: input and expected output, maps as NHWC.
    pub fn examples(&self) -> Result<Vec<(Values, Values)>> {
        let bytes = std::fs::read(self.folder.join(format!("{}.cases", self.name)))?;
        let size = match self.dtype {
            DType::F32 => 4,
            DType::Int8 => 1,
        };
        let (input, output) = (self.input_len * size, self.output_len * size);
        if bytes.len() != self.cases * (input + output) {
            return Err(format!("{}.cases has {} bytes", self.name, bytes.len()).into());
        }
        Ok(bytes
            .chunks_exact(input + output)
            .map(|case| {
                (
                    Values::decode(self.dtype, &case[..input]),
                    Values::decode(self.dtype, &case[input..]),
                )
            })
            .collect())
    }
}

/// Reads `index.json` of a folder that `python -m generate` wrote.
pub fn load(folder: &Path) -> Result<Vec<Model>> {
    let text = std::fs::read_to_string(folder.join("index.json")).map_err(|error| {
        format!("{}: {error}; run.sh generates the models", folder.join("index.json").display())
    })?;
    let mut models: Vec<Model> = serde_json::from_str(&text)?;
    for model in &mut models {
        model.folder = folder.to_owned();
    }
    let with_second_row = models.into_iter().flat_map(|model| {
        let second = WINOGRAD.contains(&model.name.as_str()).then(|| Model {
            title: format!("{}, Winograd", model.title),
            winograd: true,
            ..model.clone()
        });
        [Some(model), second]
    });
    Ok(with_second_row.flatten().collect())
}

/// A tensor's elements.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    F32(Vec<f32>),
    Int8(Vec<i8>),
}

impl Values {
    pub fn decode(dtype: DType, bytes: &[u8]) -> Values {
        match dtype {
            DType::F32 => Values::F32(
                bytes
                    .chunks_exact(4)
                    .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                    .collect(),
            ),
            DType::Int8 => Values::Int8(bytes.iter().map(|&b| b as i8).collect()),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        match self {
            Values::F32(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Int8(values) => values.iter().map(|&v| v as u8).collect(),
        }
    }

    pub fn f32(&self) -> Result<&[f32]> {
        match self {
            Values::F32(values) => Ok(values),
            Values::Int8(_) => Err("the model is int8, the engine runs f32".into()),
        }
    }

    pub fn int8(&self) -> Result<&[i8]> {
        match self {
            Values::Int8(values) => Ok(values),
            Values::F32(_) => Err("the model is f32, the engine runs int8".into()),
        }
    }

    /// Largest deviation from `expected`: absolute for f32, in steps for int8; infinite where lengths differ or a
    /// value is not finite.
    pub fn deviation(&self, expected: &Values) -> f64 {
        fn largest<T: Copy + Into<f64>>(a: &[T], b: &[T]) -> f64 {
            if a.len() != b.len() {
                return f64::INFINITY;
            }
            // `max` would drop a NaN.
            a.iter().zip(b).map(|(&x, &y)| (x.into() - y.into()).abs()).fold(0.0, |worst, d| {
                if d.is_finite() && worst >= d {
                    worst
                } else if d.is_finite() {
                    d
                } else {
                    f64::INFINITY
                }
            })
        }
        match (self, expected) {
            (Values::F32(a), Values::F32(b)) => largest(a, b),
            (Values::Int8(a), Values::Int8(b)) => largest(a, b),
            _ => f64::INFINITY,
        }
    }
}

/// NHWC → NCHW for maps; vectors stay.
pub fn to_nchw<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let [height, width, channels] = *shape else { return values.to_vec() };
    let pixels = height * width;
    (0..channels).flat_map(|c| (0..pixels).map(move |p| values[p * channels + c])).collect()
}

/// NCHW → NHWC for maps; vectors stay. `shape` is (height, width, channels) all the same.
pub fn to_nhwc<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let [height, width, channels] = *shape else { return values.to_vec() };
    let pixels = height * width;
    (0..pixels).flat_map(|p| (0..channels).map(move |c| values[c * pixels + p])).collect()
}

/// The batch-1 shape of a NCHW engine.
pub fn nchw_shape(shape: &[usize]) -> Vec<usize> {
    match *shape {
        [height, width, channels] => vec![1, channels, height, width],
        _ => [&[1], shape].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_inverse() {
        let shape = [2, 3, 5];
        let values: Vec<f32> = (0..30).map(|v| v as f32).collect();
        let nchw = to_nchw(&values, &shape);
        assert_eq!(nchw[..6], [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        assert_eq!(to_nhwc(&nchw, &shape), values);
    }

    #[test]
    fn deviation_sees_what_max_would_not() {
        let expected = Values::F32(vec![1.0, 2.0]);
        assert_eq!(Values::F32(vec![1.5, 2.25]).deviation(&expected), 0.5);
        assert_eq!(Values::F32(vec![f32::NAN, 2.0]).deviation(&expected), f64::INFINITY);
        assert_eq!(Values::F32(vec![2.0, f32::NAN]).deviation(&expected), f64::INFINITY);
        assert_eq!(Values::F32(vec![1.0]).deviation(&expected), f64::INFINITY);
        assert_eq!(Values::Int8(vec![1, 2]).deviation(&expected), f64::INFINITY);
        assert_eq!(Values::Int8(vec![-128]).deviation(&Values::Int8(vec![127])), 255.0);
    }
}
