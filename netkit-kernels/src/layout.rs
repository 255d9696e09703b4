//! Which form of a filter the kernels of this build read where both are at hand.

/// Keeps one of two groups of items: `panels` where this build has kernels that compute from packed filters, `file`
/// where its kernels read file order.
///
/// Generated code holds a filter in both forms and lets the target's compiler choose. The choice is made when this crate
/// is compiled, so that no configuration is asked for in the user's crate.
#[cfg(netkit_packs)]
#[macro_export]
macro_rules! layout {
    (panels { $($panels:tt)* } file { $($file:tt)* }) => { $($panels)* };
}

/// Keeps one of two groups of items: `panels` where this build has kernels that compute from packed filters, `file`
/// where its kernels read file order.
///
/// Generated code holds a filter in both forms and lets the target's compiler choose. The choice is made when this crate
/// is compiled, so that no configuration is asked for in the user's crate.
#[cfg(not(netkit_packs))]
#[macro_export]
macro_rules! layout {
    (panels { $($panels:tt)* } file { $($file:tt)* }) => { $($file)* };
}

/// [`layout!`] for int8 filters. With the feature `cmsis-nn` they are in file order, which the library reads.
#[cfg(all(netkit_packs, not(feature = "cmsis-nn")))]
#[macro_export]
macro_rules! layout_s8 {
    (panels { $($panels:tt)* } file { $($file:tt)* }) => { $($panels)* };
}

/// [`layout!`] for int8 filters. With the feature `cmsis-nn` they are in file order, which the library reads.
#[cfg(not(all(netkit_packs, not(feature = "cmsis-nn"))))]
#[macro_export]
macro_rules! layout_s8 {
    (panels { $($panels:tt)* } file { $($file:tt)* }) => { $($file)* };
}

/// Whether kernels of this build read the row sums of dense layers: CMSIS-NN where it may have been compiled for
/// processors with vectors (MVE), which hosts include.
pub const ROW_SUMS: bool =
    cfg!(all(feature = "cmsis-nn", any(not(netkit_micro), netkit_cmsis_nn_mve)));

/// Keeps one of two groups of items: `kept` where [`ROW_SUMS`](crate::ROW_SUMS), else `left`.
#[cfg(all(feature = "cmsis-nn", any(not(netkit_micro), netkit_cmsis_nn_mve)))]
#[macro_export]
macro_rules! row_sums {
    (kept { $($kept:tt)* } left { $($left:tt)* }) => { $($kept)* };
}

/// Keeps one of two groups of items: `kept` where [`ROW_SUMS`](crate::ROW_SUMS), else `left`.
#[cfg(not(all(feature = "cmsis-nn", any(not(netkit_micro), netkit_cmsis_nn_mve))))]
#[macro_export]
macro_rules! row_sums {
    (kept { $($kept:tt)* } left { $($left:tt)* }) => { $($left)* };
}

#[cfg(test)]
mod tests {
    use crate::workspace::PACKS;

    /// The macro cannot ask the constant, so a test does.
    #[test]
    fn panels_are_kept_where_kernels_pack() {
        crate::layout! {
            panels { const PANELS: bool = true; }
            file { const PANELS: bool = false; }
        }
        assert_eq!(PANELS, PACKS);
        crate::layout_s8! {
            panels { const PANELS_S8: bool = true; }
            file { const PANELS_S8: bool = false; }
        }
        assert_eq!(PANELS_S8, PACKS && cfg!(not(feature = "cmsis-nn")));
    }

    #[test]
    fn row_sums_are_kept_where_kernels_read_them() {
        crate::row_sums! {
            kept { const KEPT: bool = true; }
            left { const KEPT: bool = false; }
        }
        assert_eq!(KEPT, crate::ROW_SUMS);
    }
}
