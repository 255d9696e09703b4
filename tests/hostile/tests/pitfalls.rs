//! What went wrong for others, by the ids of the list of pitfalls: each is a test of that name somewhere in the
//! repository, or a reason why it cannot happen here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Pitfalls, and the tests that hold their right answers.
const TESTED: &[(&str, &[&str])] = &[
    ("B01", &["b01_same_upper_and_same_lower_differ_with_a_stride"]),
    ("B02", &["b02_auto_pad_of_an_open_size_asks_for_it"]),
    ("B03", &["b03_same_padding_rounds_the_output_up"]),
    ("B04", &["b04_ceil_mode_drops_the_window_that_starts_in_the_padding"]),
    (
        "B06",
        &["b06_depthwise_kernels_may_be_uneven", "b06_multipliers_read_the_channel_they_belong_to"],
    ),
    ("B08", &["b08_a_transposed_weight_is_read_by_its_perm"]),
    (
        "B09",
        &[
            "b09_a_batch_norm_scales_weights_and_the_old_bias",
            "b09_a_pinned_or_activated_convolution_is_not_folded",
        ],
    ),
    ("B10", &["b10_every_way_to_flatten_permutes_the_same"]),
    ("B11", &["b11_quantized_operators_are_refused"]),
    ("B12", &["b12_constants_of_every_spelling"]),
    (
        "B13",
        &[
            "b13_clip_of_every_version",
            "b13_masks_of_minus_infinity_are_refused",
            "b13_no_float_of_a_model_is_a_literal",
        ],
    ),
    ("B14", &["b14_two_roundings_are_not_one"]),
    ("B15", &["b15_extremes_saturate"]),
    ("B17", &["b17_means_of_section_12", "b17_means_round_away_from_zero"]),
    ("B18", &["b18_padding_is_real_zero"]),
    ("B20", &["b20_extreme_vectors_do_not_saturate"]),
    ("B21", &["b21_every_misalignment_equals_the_reference"]),
    (
        "B22",
        &[
            "b22_any_geometry_agrees_with_the_reference",
            "b22_random_layers_equal_the_reference",
            "b22_scratch_that_is_short_or_misaligned_is_refused",
        ],
    ),
    ("B24", &["b24_an_answer_does_not_depend_on_earlier_ones"]),
    ("B25", &["b25_a_missing_bias_is_zero", "b25_softmax_of_the_largest_logits"]),
    ("B26", &["b26_softmax_of_special_logits", "b26_softmax_shifts_by_the_maximum"]),
    (
        "B29",
        &[
            "b29_errors_stay_within_the_documented_units",
            "b29_kernels_call_nothing_of_the_platform",
        ],
    ),
    (
        "B30",
        &[
            "b30_convolutions_end_at_a_guard_page_at_every_number_of_channels",
            "b30_convolutions_end_at_a_guard_page_at_every_width",
            "b30_dense_kernels_end_at_a_guard_page_at_every_length",
            "b30_elementwise_kernels_end_at_a_guard_page_at_every_length",
            "b30_the_sanitizer_reports_a_load_past_the_end",
            "b30_touching_a_guard_page_ends_the_process",
        ],
    ),
    (
        "B31",
        &[
            "b31_every_truncation_and_misalignment_is_refused",
            "b31_parts_are_aligned_whatever_their_place",
        ],
    ),
    ("B32", &["b32_a_large_value_does_not_touch_the_stack", "b32_a_small_stack_is_enough"]),
    ("B33", &["b33_every_feature_is_asked_for"]),
    (
        "B34",
        &[
            "b34_every_word_may_be_extreme",
            "b34_known_shapes_of_malformed_files_are_refused_by_every_door",
        ],
    ),
    ("B35", &["b35_floats_passed_otherwise"]),
    (
        "B36",
        &[
            "b36_a_million_weights_cost_the_compiler_little",
            "b36_b41_the_expansion_does_not_grow_with_the_weights",
            "b36_b41_the_number_of_tokens_does_not_depend_on_the_weights",
        ],
    ),
    ("B37", &["b37_no_loop_is_left_to_constant_evaluation"]),
    (
        "B38",
        &[
            "b38_a_build_script_that_writes_another_model_rebuilds",
            "b38_editing_the_model_rebuilds",
        ],
    ),
    ("B39", &["b39_generated_code_is_at_home_everywhere"]),
    ("B41", &["b36_b41_the_expansion_does_not_grow_with_the_weights"]),
    ("B42", &["b42_the_macro_and_the_loader_give_the_same_bits"]),
];

/// Pitfalls that do not concern this code, and why. What comes to concern it moves to the other list.
const NOT_HERE: &[(&str, &str)] = &[];

/// The ids of the whole list.
const IDS: [&str; 34] = [
    "B01", "B02", "B03", "B04", "B06", "B08", "B09", "B10", "B11", "B12", "B13", "B14", "B15",
    "B17", "B18", "B20", "B21", "B22", "B24", "B25", "B26", "B29", "B30", "B31", "B32", "B33",
    "B34", "B35", "B36", "B37", "B38", "B39", "B41", "B42",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Calls `visit` with every Rust file below a folder.
fn sources(folder: &Path, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            if name != "target" && !name.starts_with('.') {
                sources(&path, visit);
            }
        } else if name.ends_with(".rs") {
            visit(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

/// The functions under `#[test]`, and the file that each is in.
fn tests() -> BTreeMap<String, PathBuf> {
    let mut tests = BTreeMap::new();
    sources(&repository(), &mut |path, text| {
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next())
                && std::mem::take(&mut marked)
            {
                tests.insert(name.to_owned(), path.to_owned());
            }
            // A test that is left out of ordinary runs holds nothing.
            marked =
                line == "#[test]" || marked && line.starts_with("#[") && !line.contains("ignore");
        }
    });
    tests
}

#[test]
fn every_pitfall_is_a_test_or_a_reason() {
    let tests = tests();
    assert!(tests.len() > 300, "{} tests were found", tests.len());
    let mut listed = BTreeSet::new();
    for (id, names) in TESTED {
        let prefix = format!("{}_", id.to_lowercase());
        assert!(!names.is_empty() && listed.insert(*id), "{id}");
        for name in *names {
            assert!(name.contains(&prefix), "{name} is no test of {id}");
            assert!(tests.contains_key(*name), "{id}: the test {name} is gone");
        }
    }
    for (id, why) in NOT_HERE {
        assert!(listed.insert(id) && why.len() > 20, "{id}: {why}");
    }
    assert_eq!(listed, BTreeSet::from(IDS));
}

/// Pitfall B29: an `exp` that differs between platforms. Square roots are exact everywhere; nothing else is called.
#[test]
fn b29_kernels_call_nothing_of_the_platform() {
    const FUNCTIONS: [&str; 14] = [
        "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "powf", "tanh", "sinh", "cosh",
        "sin", "cos", "cbrt",
    ];
    let mut files = 0;
    sources(&repository().join("netkit-kernels/src"), &mut |path, text| {
        // The oracle of the tests computes in double precision, and its answers carry tolerances.
        if path.components().any(|part| part.as_os_str() == "reference") {
            return;
        }
        files += 1;
        // The int8 softmax looks its exponentials up.
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap().replace("stage.exp(", "");
        for name in FUNCTIONS {
            for call in [format!(".{name}("), format!("f32::{name}("), format!("libm::{name}")] {
                assert!(!text.contains(&call), "{}: {call}", path.display());
            }
        }
    });
    assert!(files > 20, "{files} files");
}
