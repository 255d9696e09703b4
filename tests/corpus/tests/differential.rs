//! Every model at hand gives the same bits compiled by the macro and loaded by the runtime, whatever its input.

use netkit_corpus_tests::MODELS;

#[test]
fn macro_and_runtime_agree_to_the_bit() {
    let mut failed = 0;
    for model in MODELS {
        let bytes = std::fs::read(model.file).unwrap();
        if let Err(why) = (model.compare)(&bytes) {
            failed += 1;
            println!("{}: FAILED: {why}", model.name);
        }
    }
    assert_eq!(failed, 0, "of {} models", MODELS.len());
}

#[test]
fn a_batch_is_one_inference_after_the_other() {
    let (mut compared, mut failed) = (0, 0);
    for model in MODELS {
        let Some(compare) = model.batch else { continue };
        compared += 1;
        if let Err(why) = compare() {
            failed += 1;
            println!("{}: FAILED: {why}", model.name);
        }
    }
    assert!(compared > 40, "{compared} models compiled for batches");
    assert_eq!(failed, 0, "of {compared} models");
}
