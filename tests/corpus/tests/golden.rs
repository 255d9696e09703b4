//! Every model file at hand, compiled by `netkit::model!`, passes its own test cases.

use netkit::{Model, SelfTest};

type Check = fn() -> Result<SelfTest, String>;

include!(concat!(env!("OUT_DIR"), "/models.rs"));

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

#[test]
fn every_model_passes_its_test_cases() {
    if !HAS_CORPUS {
        println!("skipped: no corpus");
    }
    let mut failed = 0;
    for (name, check, exact) in MODELS {
        let result = check().and_then(|passed| match *exact && passed.max_deviation != 0.0 {
            true => Err(format!("an int8 output is off by {}", passed.max_deviation)),
            false => Ok(passed),
        });
        match result {
            Ok(SelfTest { cases, max_deviation, .. }) => {
                println!("{name}: {cases} cases, largest deviation {max_deviation:e}");
            }
            Err(why) => {
                failed += 1;
                println!("{name}: FAILED: {why}");
            }
        }
    }
    assert_eq!(failed, 0, "of {} models", MODELS.len());
}
