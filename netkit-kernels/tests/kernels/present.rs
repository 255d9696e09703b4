//! Was an instruction set there to be tested at all?

use netkit_kernels::{Isa, Kernels};

/// `NETKIT_REQUIRE_ISA`, a list of names, fails where one is missing, so that a CI job which is there
/// for an instruction set cannot pass without it.
#[test]
fn required_instruction_sets_are_present() {
    let present: Vec<_> = Kernels::all().map(|kernels| kernels.isa().name()).collect();
    println!("instruction sets: {}", present.join(" "));
    for name in std::env::var("NETKIT_REQUIRE_ISA").unwrap_or_default().split([' ', ',']) {
        assert!(
            name.is_empty() || present.contains(&name),
            "{name} is required, not in {present:?}"
        );
    }
}

#[test]
fn names_are_unique_and_found() {
    for isa in Isa::ALL {
        assert_eq!(Isa::from_name(isa.name()), Some(isa));
    }
    assert_eq!(Isa::from_name("AVX2"), None);
}
