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
