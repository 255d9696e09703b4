//! The fuzz targets on stable: seeds as they are, then mutated with knowledge of what they are.
//!
//! `NETKIT_MUTATIONS` sets how many mutations each target gets, for longer runs than CI's; `NETKIT_SEED` another
//! sequence of them.

use netkit_hostile::random::Random;
use netkit_hostile::{TARGETS, Target, target};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a target on an input; where it panics, the input is kept in a file and named.
fn run(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).unwrap_or_else(|_| {
        let kept = std::env::temp_dir().join(format!("netkit-crash-{}", target.name));
        std::fs::write(&kept, input).unwrap();
        panic!("{}: the input is in {}", target.name, kept.display());
    })
}

/// `default` mutations, each of a seed, some of an earlier mutation that got through.
fn mutate(name: &str, default: u64) {
    let target = target(name).unwrap();
    let seeds = (target.seeds)();
    let mut whole = 0;
    for seed in &seeds {
        whole += u64::from(run(target, seed));
    }
    assert!(whole > 0, "{name}: no seed is valid");
    let mut random = Random::new(number("NETKIT_SEED", 1));
    let mut pool = seeds.clone();
    let count = number("NETKIT_MUTATIONS", default);
    let mut through = 0_u64;
    for _ in 0..count {
        let mut input = pool[random.below(pool.len())].clone();
        (target.mutate)(&mut random, &mut input);
        if run(target, &input) {
            through += 1;
            if input.len() < 8000 {
                let at = seeds.len() + random.below(256);
                if at < pool.len() { pool[at] = input } else { pool.push(input) }
            }
        }
    }
    println!("{name}: {count} mutations of {} seeds, {through} got through", seeds.len());
    assert!(through > 0 && (through < count || name == "kernels"), "{name}: {through} of {count}");
}

#[test]
fn every_target_has_a_test_and_a_fuzz_target() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let here = include_str!("mutations.rs");
    for target in TARGETS {
        assert!(here.contains(&format!("mutate(\"{}\"", target.name)), "{}", target.name);
        assert!(folder.join(format!("{}.rs", target.name)).is_file(), "{}", target.name);
    }
}

#[test]
fn parse() {
    mutate("parse", 60_000);
}

#[test]
fn compile() {
    mutate("compile", 40_000);
}

#[test]
fn roundtrip() {
    mutate("roundtrip", 20_000);
}

#[test]
fn expand() {
    mutate("expand", 1_500);
}

#[test]
fn runtime() {
    mutate("runtime", 20_000);
}

#[test]
fn kernels() {
    mutate("kernels", 4_000);
}

#[test]
fn onnx() {
    mutate("onnx", 20_000);
}

#[test]
fn command_line() {
    mutate("cli", 3_000);
}
