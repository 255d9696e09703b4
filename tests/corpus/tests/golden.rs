//! Every model at hand, compiled by `netkit::model!`, passes its own test cases.

use netkit::SelfTest;
use netkit_corpus_tests::{HAS_CORPUS, HAS_RANDOM, MODELS};

#[test]
fn every_model_passes_its_test_cases() {
    if !HAS_CORPUS {
        println!("skipped: no corpus");
    }
    if !HAS_RANDOM {
        println!("skipped: no evaluator or no numpy, hence no random models");
    }
    let mut failed = 0;
    for model in MODELS {
        let name = model.name;
        let result =
            (model.check)().and_then(|passed| match model.exact && passed.max_deviation != 0.0 {
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
