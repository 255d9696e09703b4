//! Arguments that do not fit are refused by every door, whatever they are.

mod arguments;
mod doors;
mod names;

use crate::harness::{Random, on_each_isa, random_cases};
use arguments::{Arguments, Change};
use doors::{Call, DOORS};
use netkit_kernels::{FilterForm, Kernels};
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

const FORMS: [FilterForm; 2] = [FilterForm::File, FilterForm::Packed];

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Of each output, whether it is as it was; or what a panic says, which is printed nowhere: there are thousands.
fn outcome(call: Call, kernels: Kernels, given: &mut Arguments) -> Result<Vec<bool>, String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                loud(panic);
            }
        }));
    });
    QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| call(kernels, given)));
    QUIET.set(false);
    outcome.map_err(|panic| match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast::<&str>().map_or(String::new(), |message| (*message).into()),
    })
}

/// Whether a panic is a door's own, which says its name.
fn is_of_a_door(message: &str) -> bool {
    DOORS.iter().any(|(door, _)| message.strip_prefix(door).is_some_and(|m| m.starts_with(": ")))
}

/// Whether a door refused: in builds with debug assertions by a panic of its own, in others by leaving all as it was.
fn is_refusal(outcome: &Result<Vec<bool>, String>) -> bool {
    match outcome {
        Ok(kept) => !cfg!(debug_assertions) && kept.iter().all(|&kept| kept),
        Err(message) => cfg!(debug_assertions) && is_of_a_door(message),
    }
}

/// Whether a door refused or computed something.
fn is_sound(outcome: &Result<Vec<bool>, String>, changes: &[Change]) -> bool {
    let overflows = cfg!(debug_assertions) && changes.iter().any(|change| change.overflows);
    outcome.is_ok() || is_refusal(outcome) || overflows
}

/// Tries all changes of one argument whose name is chosen.
fn refuses(chosen: impl Fn(&str) -> bool) {
    on_each_isa(|kernels| {
        for (door, call) in DOORS {
            for form in FORMS {
                let mut tried = 0;
                for turn in 0.. {
                    let mut given = Arguments::wrong_in_one(form, turn);
                    let outcome = outcome(call, kernels, &mut given);
                    let Some(change) = given.changes.pop() else { break };
                    tried += 1;
                    if !chosen(change.argument) {
                        continue;
                    }
                    let what = format!("{door} {form:?} {} {change:?}", kernels.isa().name());
                    let fine = match change.refused {
                        true => is_refusal(&outcome),
                        false => is_sound(&outcome, &[change]),
                    };
                    assert!(fine, "{what}: {outcome:?}");
                }
                assert!(tried > 3, "{door}: {tried} changes");
            }
        }
    });
}

#[test]
fn each_door_computes_what_fits() {
    on_each_isa(|kernels| {
        for (door, call) in DOORS {
            for form in FORMS {
                let outcome = outcome(call, kernels, &mut Arguments::fitting(form));
                let all = outcome.as_ref().is_ok_and(|kept| kept.iter().all(|&kept| !kept));
                assert!(all, "{door} {form:?} {}: {outcome:?}", kernels.isa().name());
            }
        }
    });
}

#[test]
fn each_argument_that_does_not_fit_is_refused() {
    refuses(|argument| argument != "scratch");
}

#[test]
fn b22_scratch_that_is_short_or_misaligned_is_refused() {
    refuses(|argument| argument == "scratch");
}

/// All lengths fit, but there is nothing that an output could be computed from: no network has such a layer, and sets of
/// instructions would disagree whether it is the bias.
#[test]
fn layers_without_inputs_are_refused() {
    on_each_isa(|kernels| {
        let mut refused = 0;
        for (door, call) in DOORS {
            let mut given = Arguments::without_inputs();
            let outcome = outcome(call, kernels, &mut given);
            if !given.changes.is_empty() {
                refused += 1;
                assert!(is_refusal(&outcome), "{door} {}: {outcome:?}", kernels.isa().name());
            }
        }
        assert_eq!(refused, 8, "convolutions and dense layers");
    });
}

/// Several wrong at once, and factors beside one that is 0: nothing outside a slice is touched, and without debug
/// assertions there is no panic.
#[test]
fn any_arguments_are_refused_or_computed() {
    let seed = Cell::new(0);
    on_each_isa(|kernels| {
        for (door, call) in DOORS {
            for _ in 0..random_cases(1000) {
                seed.set(seed.get() + 1);
                let form = FORMS[(seed.get() % 2) as usize];
                let mut given = Arguments::any(form, Random::new(seed.get()));
                let outcome = outcome(call, kernels, &mut given);
                let what = format!("{door} {form:?} {} {:?}", kernels.isa().name(), given.changes);
                assert!(is_sound(&outcome, &given.changes), "{what}: {outcome:?}");
            }
        }
    });
}

#[test]
#[cfg(not(any(target_family = "wasm", miri)))]
fn every_door_is_tried() {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let tried = DOORS.map(|(door, _)| door.to_owned());
    assert_eq!(names::names(package), tried.into());
}
