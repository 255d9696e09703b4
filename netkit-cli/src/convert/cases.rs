//! Test cases from a data set.

use anyhow::{Context as _, Result, bail};
use netkit_import::npy::{self, Array};
use netkit_import::{CaseError, Conversion, onnx};
use std::collections::HashMap;
use std::path::Path;

use crate::limited;

/// Embeds up to `count` inputs with what the source makes of them, and tells which. With labels, the
/// classes take turns, and an input that the source classifies otherwise is passed over.
pub(super) fn embed(
    conversion: &mut Conversion,
    source: &onnx::Model,
    inputs_path: &Path,
    labels_path: Option<&Path>,
    count: usize,
) -> Result<String> {
    let inputs = Inputs::new(read(inputs_path)?, conversion)
        .with_context(|| inputs_path.display().to_string())?;
    let labels = match labels_path {
        None => None,
        Some(path) => {
            let labels = classes(&read(path)?, inputs.count);
            Some(labels.with_context(|| path.display().to_string())?)
        }
    };
    let mut embedded = 0;
    let mut passed_over = 0;
    for index in turns(inputs.count, labels.as_deref()) {
        if embedded == count {
            break;
        }
        let label = labels.as_ref().and_then(|labels| labels.get(index).copied());
        let input = inputs.get(index, conversion).context("the array is cut off")?;
        let expected = source.evaluate(conversion.input.dims(), &input)?;
        match conversion.add_case(format!("input {index}"), label, &input, &expected) {
            Ok(()) => embedded += 1,
            Err(CaseError::Misclassified { .. }) => passed_over += 1,
            Err(error) => {
                let place = format!("{}: input {index}", inputs_path.display());
                return Err(anyhow::Error::new(error).context(place));
            }
        }
    }
    if embedded == 0 {
        bail!("none of the {passed_over} inputs is classified as its label says");
    }
    let passed_over = match passed_over {
        0 => String::new(),
        some => format!(" ({some} misclassified inputs passed over)"),
    };
    Ok(format!("embedded {embedded} test cases{passed_over}"))
}

/// Longest array of inputs or labels that is read.
const MAX_ARRAY_BYTES: u64 = 1 << 30;

fn read(path: &Path) -> Result<Array> {
    let file = limited::read(path, MAX_ARRAY_BYTES, "an array")?;
    npy::read(&file).with_context(|| path.display().to_string())
}

/// Inputs in an array: one for each index of the first axis.
#[derive(Debug)]
struct Inputs {
    values: Vec<f64>,
    count: usize,
    /// Whether they are in netkit's order instead of the source's.
    netkit_order: bool,
}

impl Inputs {
    fn new(array: Array, conversion: &Conversion) -> Result<Self> {
        let source = conversion.input.dims();
        let elements: usize = source.iter().product();
        let netkit: Vec<usize> =
            conversion.model.input.dims().iter().map(|&dim| dim as usize).collect();
        let Some((&count, each)) = array.dims.split_first() else {
            bail!("a single number where an array of inputs is expected");
        };
        // A batch axis of 1 may be left out.
        let without_batch = match source {
            [1, rest @ ..] => rest,
            all => all,
        };
        let netkit_order = if each == source || each == without_batch || each == [elements] {
            false
        } else if each == netkit {
            true
        } else {
            bail!(
                "an array of shape {:?}; inputs of shape {source:?}, one for each index of the first \
                 axis, are expected",
                array.dims
            );
        };
        if count == 0 {
            bail!("no inputs");
        }
        Ok(Self { values: array.values, count, netkit_order })
    }

    /// Input `index` in the source's order.
    fn get(&self, index: usize, conversion: &Conversion) -> Option<Vec<f32>> {
        let elements = conversion.input.dims().iter().product();
        let values = self.values.chunks_exact(elements).nth(index)?;
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        if self.netkit_order { conversion.input.to_source_order(&values) } else { Some(values) }
    }
}

fn classes(labels: &Array, count: usize) -> Result<Vec<u32>> {
    if labels.values.len() != count {
        bail!("{} labels for {count} inputs", labels.values.len());
    }
    let class = |&value: &f64| {
        if value >= 0.0 && value <= f64::from(u32::MAX) && value.fract() == 0.0 {
            Ok(value as u32)
        } else {
            bail!("{value} is no class")
        }
    };
    labels.values.iter().map(class).collect()
}

/// The order in which inputs are tried: the first of each class, then the second of each, and so on.
fn turns(count: usize, labels: Option<&[u32]>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if let Some(labels) = labels {
        let mut seen: HashMap<u32, usize> = HashMap::new();
        let turn: Vec<usize> = labels
            .iter()
            .map(|&label| {
                let earlier = seen.entry(label).or_default();
                *earlier += 1;
                *earlier
            })
            .collect();
        order.sort_by_key(|&index| (turn.get(index).copied(), index));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::turns;

    #[test]
    fn classes_take_turns() {
        assert_eq!(turns(3, None), [0, 1, 2]);
        assert_eq!(turns(6, Some(&[7, 7, 7, 1, 7, 1])), [0, 3, 1, 5, 2, 4]);
    }
}
