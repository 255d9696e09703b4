//! Every input that coverage-guided runs found, once more.

use netkit_hostile::{TARGETS, found};

#[test]
fn what_the_fuzzers_found_breaks_no_promise() {
    for target in TARGETS {
        let path = found::file(target.name);
        let packed = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error} (`.ci/sanitize keep`)", path.display()));
        let inputs = found::unpack(&packed).expect("whole inputs");
        assert!(inputs.len() > 50, "{}: {} inputs", target.name, inputs.len());
        let through = inputs.iter().filter(|input| (target.run)(input)).count();
        println!("{}: {} inputs, {through} got through", target.name, inputs.len());
        assert!(through > 0, "{}: no input got through", target.name);
    }
}
