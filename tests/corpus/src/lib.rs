//! Every model file at hand through `netkit::model!`, with what can be asked of each: see `build.rs` for where
//! they come from, `tests/` for what is asked.

mod compare;

use netkit::{Model, SelfTest};

use compare::{compare, compare_batches, compare_s8};

include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// A model that the macro has compiled.
#[derive(Clone, Copy, Debug)]
pub struct Compiled {
    /// Where it comes from, and the name of its file.
    pub name: &'static str,
    /// The file.
    pub file: &'static str,
    /// Whether the outputs of its test cases are the exact integers of an int8 model.
    pub exact: bool,
    /// Runs its test cases.
    pub check: fn() -> Result<SelfTest, String>,
    /// Runs it beside the runtime on the bytes of the file.
    pub compare: fn(&[u8]) -> Result<(), String>,
    /// Runs it in batches beside one by one, if it was compiled for batches.
    pub batch: Option<fn() -> Result<(), String>>,
}

/// Runs a model's test cases, and sees that its constants and functions agree with each other.
fn check<M>() -> Result<SelfTest, String>
where
    M: Model + Default,
{
    let mut model = Box::<M>::default();
    if size_of::<M>() != M::ARENA_BYTES {
        return Err(format!("{} bytes of arena in a type of {}", M::ARENA_BYTES, size_of::<M>()));
    }
    let product = |shape: &[usize]| shape.iter().product::<usize>();
    if product(M::INPUT_SHAPE) != M::INPUT_LEN || product(M::OUTPUT_SHAPE) != M::OUTPUT_LEN {
        return Err("shapes and lengths differ".to_owned());
    }
    if size_of::<M::Input>() != 4 * M::INPUT_LEN || size_of::<M::Output>() != 4 * M::OUTPUT_LEN {
        return Err("types and lengths differ".to_owned());
    }
    let macs: u64 = M::LAYERS.iter().map(|layer| layer.macs).sum();
    let bytes: usize = M::LAYERS.iter().map(|layer| layer.weight_bytes).sum();
    if macs != M::MACS || bytes != M::WEIGHT_BYTES {
        return Err("layers and totals differ".to_owned());
    }
    let passed = model.self_test().map_err(|error| error.to_string())?;
    // A second time: nothing that one inference leaves behind may change the next.
    if model.self_test() != Ok(passed) {
        return Err("the second run differs".to_owned());
    }
    Ok(passed)
}
