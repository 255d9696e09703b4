//! Two functions that do nothing, for the instruction counter to see. The runner finds them by name in the image.

/// Keeps the optimiser from seeing that a marker has no effect, and from moving memory accesses across it. The comment
/// is all that tells the two markers apart: the optimiser would merge equal ones.
macro_rules! barrier {
    ($comment:literal) => {
        #[cfg(not(target_arch = "wasm32"))]
        // SAFETY: no instructions at all.
        unsafe {
            core::arch::asm!(concat!("/* ", $comment, " */"), options(nostack, preserves_flags));
        }
    };
}

/// Runs `body` between the markers.
///
/// Never inlined, nor are the markers: the instructions around `body` are then the same for every region, and the
/// runner subtracts those of an empty one.
#[inline(never)]
pub(crate) fn between_markers(body: impl FnOnce()) {
    netkit_region_begin();
    body();
    netkit_region_end();
}

/// Where a region begins.
// SAFETY: the name is this project's own and is defined once.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn netkit_region_begin() {
    barrier!("begin");
}

/// Where a region ends.
// SAFETY: the name is this project's own and is defined once.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn netkit_region_end() {
    barrier!("end");
}
