//! A finished conversion.

use crate::graph::Graph;
use crate::obstacle::{Obstacle, Obstacles, Origin, Refusal};
use crate::rewrite::rewrite;
use crate::to_nk::to_nk;
use crate::view::View;
use netkit_core::format::ModelDescription;
use std::sync::Arc;

/// A model converted, and where its parts come from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Conversion {
    /// The model: layers and weights, no cases yet.
    pub model: ModelDescription,
    /// The node that each layer was made for, in the order of [`ModelDescription::layers`]. A flatten
    /// was made for the dense layer behind it.
    pub origins: Vec<Arc<Origin>>,
    /// What is worth knowing though it stands not in the way.
    pub notes: Vec<String>,
    /// The input on both sides.
    pub input: Interface,
    /// The output on both sides.
    pub output: Interface,
}

/// An input or output as the source sees it and as netkit keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub(crate) name: String,
    pub(crate) dims: Vec<usize>,
    pub(crate) view: View,
}

/// What an importer makes of a source: the graph, and what did not fit.
#[derive(Debug, Default)]
pub(crate) struct Import {
    pub(crate) graph: Graph,
    pub(crate) obstacles: Vec<Obstacle>,
    pub(crate) notes: Vec<String>,
    pub(crate) input: Option<Interface>,
    pub(crate) output: Option<Interface>,
}

impl Import {
    /// Rewrites the graph and writes it as layers, or tells all that stands in the way.
    pub(crate) fn into_conversion(mut self) -> Result<Conversion, Obstacles> {
        rewrite(&mut self.graph);
        let (model, origins) = to_nk(self.graph, self.obstacles)?;
        match (self.input, self.output) {
            (Some(input), Some(output)) => {
                Ok(Conversion { model, origins, notes: self.notes, input, output })
            }
            _ => Err(Refusal::new("the model has no input or no output").in_model().into()),
        }
    }
}

impl Interface {
    /// The source's name for it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its shape in the source.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Whether the source's element order differs from netkit's, as with NCHW and more than one channel.
    #[must_use]
    pub fn is_reordered(&self) -> bool {
        !self.view.is_contiguous()
    }

    /// Values in the source's order put in netkit's; `None` if there are not as many as the shape has.
    #[must_use]
    pub fn to_netkit_order<T: Copy>(&self, values: &[T]) -> Option<Vec<T>> {
        if values.len() != self.view.elements() {
            return None;
        }
        let mut ordered = values.to_vec();
        for (offset, &value) in self.view.offsets().into_iter().zip(values) {
            *ordered.get_mut(offset)? = value;
        }
        Some(ordered)
    }

    /// Values in netkit's order put in the source's; `None` if there are not as many as the shape has.
    #[must_use]
    pub fn to_source_order<T: Copy>(&self, values: &[T]) -> Option<Vec<T>> {
        if values.len() != self.view.elements() {
            return None;
        }
        self.view.offsets().into_iter().map(|offset| values.get(offset).copied()).collect()
    }
}
