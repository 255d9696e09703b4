//! Options of `netkit::model!`, on a network that they matter to.

use netkit_backbones_tests::{ResNet18, ResNet18Both, ResNet18Winograd};

fn image(seed: usize) -> [f32; ResNet18::INPUT_LEN] {
    core::array::from_fn(|i| ((i * 37 + seed * 71) % 113) as f32 / 56.0 - 1.0)
}

/// It answers the file's own test cases, which an independent evaluator wrote, and otherwise as the default does but for
/// rounding.
#[test]
fn winograd_answers_as_the_default_but_for_rounding() {
    let (mut direct, mut winograd) = (ResNet18::new_boxed(), ResNet18Winograd::new_boxed());
    let (cases, passed) = (direct.self_test().unwrap(), winograd.self_test().unwrap());
    assert_eq!(passed.cases, cases.cases);
    println!("off by {:e}, directly by {:e}", passed.max_deviation, cases.max_deviation);
    let mut differ = 0;
    for seed in 0..3 {
        let (exact, found) = (direct.forward(&image(seed)), winograd.forward(&image(seed)));
        let largest = exact.iter().fold(0.0, |largest: f32, x| largest.max(x.abs()));
        for (exact, found) in exact.iter().zip(&found) {
            assert!((exact - found).abs() < 1e-5 * largest, "{found}, not {exact}");
            differ += u32::from(exact.to_bits() != found.to_bits());
        }
    }
    assert!(differ > 0, "the option does nothing");
}

#[test]
fn winograd_in_batches_is_winograd_one_by_one() {
    let inputs = [image(0), image(1), image(2)];
    let mut outputs = [[0.0; ResNet18::OUTPUT_LEN]; 3];
    ResNet18Both::new_boxed().forward_batch_into(&inputs, &mut outputs);
    let mut alone = ResNet18Winograd::new_boxed();
    for (input, output) in inputs.iter().zip(&outputs) {
        assert_eq!(alone.forward(input).map(f32::to_bits), output.map(f32::to_bits));
    }
}

/// Everything that is not about how convolutions are computed is the same.
#[test]
fn an_option_changes_scratch_and_nothing_else() {
    assert_eq!(ResNet18Winograd::MACS, ResNet18::MACS);
    assert_eq!(ResNet18Winograd::WEIGHT_BYTES, ResNet18::WEIGHT_BYTES);
    assert_eq!(ResNet18Winograd::LAYERS, ResNet18::LAYERS);
    let activations = ResNet18::ARENA_BYTES - ResNet18::SCRATCH_BYTES;
    let with_winograd = ResNet18Winograd::ARENA_BYTES - ResNet18Winograd::SCRATCH_BYTES;
    assert_eq!(with_winograd / 64, activations / 64);
    assert_ne!(ResNet18Winograd::SCRATCH_BYTES, ResNet18::SCRATCH_BYTES);
}
