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
    }
}
