//! Names of the items and locals that a step's code consists of.

use proc_macro2::Ident;
use quote::format_ident;

/// The constants of one step.
#[derive(Clone)]
pub(super) struct Names {
    /// The operator's attributes.
    pub(super) operator: Ident,
    /// The attributes of the pool fused into it.
    pub(super) pool: Ident,
    /// The filter as its kernel takes it.
    pub(super) filter: Ident,
    /// The scale of a normalisation.
    pub(super) weights: Ident,
    /// The bias, or the shift of a normalisation.
    pub(super) bias: Ident,
    /// The fixed-point factors of an int8 step.
    pub(super) multipliers: Ident,
    /// The row sums of an int8 dense layer.
    pub(super) row_sums: Ident,
    /// Bytes of scratch.
    pub(super) scratch: Ident,
}

impl Names {
    /// Those of the step with this index.
    pub(super) fn of(step: usize) -> Self {
        let name = |what: &str| format_ident!("{what}_{step}");
        Self {
            operator: name("OPERATOR"),
            pool: name("POOL"),
            filter: name("FILTER"),
            weights: name("WEIGHTS"),
            bias: name("BIAS"),
            multipliers: name("MULTIPLIERS"),
            row_sums: name("ROW_SUMS"),
            scratch: name("SCRATCH"),
        }
    }
}
