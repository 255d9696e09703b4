//! The tables of docs/microcontrollers.md.

use crate::build::workspace;
use crate::measurements::{Key, Measurements, Metric};
use crate::target::TARGETS;
use std::fmt::Write;
use std::path::PathBuf;

const BEGIN: &str = "<!-- measurements: written by `cargo run -- --bless` in tests/firmware -->\n";
const END: &str = "<!-- end of measurements -->\n";

/// The page the tables are part of.
pub(crate) fn page() -> PathBuf {
    workspace().join("../../docs/microcontrollers.md")
}

/// `text` with the tables between its two comments replaced; `None` when the comments are not there.
pub(crate) fn with_tables(text: &str, measurements: &Measurements) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", tables(measurements)))
}

/// One table a metric, and one of the steps of networks: workloads and their regions down, targets across.
pub(crate) fn tables(measurements: &Measurements) -> String {
    let mut text = format!("\nMeasured with {}.\n", measurements.compiler);
    for metric in Metric::ALL {
        let title = match metric {
            Metric::Instructions => "Executed instructions",
            Metric::Stack => "Stack, bytes",
            Metric::Code => "Flash apart from weights and inputs, bytes",
            Metric::Memory => "RAM apart from the stack, bytes",
        };
        table(&mut text, measurements, title, |key| key.metric == metric && !key.is_step());
    }
    let title = "Executed instructions of each step";
    table(&mut text, measurements, title, Key::is_step);
    text.push('\n');
    text
}

fn table(
    text: &mut String,
    measurements: &Measurements,
    title: &str,
    belongs: impl Fn(&Key) -> bool,
) {
    let values: Vec<(&Key, u64)> = measurements
        .values
        .iter()
        .filter(|(key, _)| belongs(key))
        .map(|(key, &value)| (key, value))
        .collect();
    let mut rows: Vec<(&str, &str, Metric)> = values
        .iter()
        .map(|(key, _)| (key.workload.as_str(), key.region.as_str(), key.metric))
        .collect();
    rows.sort_unstable();
    rows.dedup();
    let columns: Vec<_> = TARGETS
        .iter()
        .filter(|target| values.iter().any(|(key, _)| key.target == target.name))
        .collect();
    if rows.is_empty() {
        return;
    }
    // Writing to a `String` cannot fail.
    let _ = write!(text, "\n### {title}\n\n| |");
    for target in &columns {
        let _ = write!(text, " {} |", target.core);
    }
    let _ = write!(text, "\n|---|{}\n", "---:|".repeat(columns.len()));
    for (workload, region, metric) in rows {
        let _ = match region {
            "-" => write!(text, "| {workload} |"),
            region => write!(text, "| {workload}: {region} |"),
        };
        for target in &columns {
            let key = Key {
                target: target.name.to_owned(),
                workload: workload.to_owned(),
                region: region.to_owned(),
                metric,
            };
            let _ = match measurements.values.get(&key) {
                Some(&value) => write!(text, " {} |", grouped(value)),
                None => write!(text, " |"),
            };
        }
        text.push('\n');
    }
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, grouped, tables, with_tables};
    use crate::measurements::Measurements;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(4_812_345), "4 812 345");
    }

    #[test]
    fn steps_have_a_table_of_their_own() {
        let measured = Measurements::parse(
            "m4\tcnn\trun\tinstructions\t1000\nm4\tcnn\trun/00-conv2d\tinstructions\t900\n",
        );
        let text = tables(&measured.unwrap());
        let (whole, steps) = text.split_once("of each step").unwrap();
        assert!(whole.contains("| cnn: run | 1 000 |\n") && !whole.contains("conv2d"), "{text}");
        assert!(steps.contains("| cnn: run/00-conv2d | 900 |\n"), "{text}");
    }

    #[test]
    fn only_the_tables_are_replaced() {
        let measured = Measurements::parse("m4\tcnn\trun\tinstructions\t1000\n").unwrap();
        let page = with_tables(&format!("above\n{BEGIN}old\n{END}below\n"), &measured).unwrap();
        assert!(page.starts_with("above\n") && page.ends_with("below\n") && !page.contains("old"));
        assert!(page.contains("| | Cortex-M4F |\n|---|---:|\n| cnn: run | 1 000 |\n"), "{page}");
        assert_eq!(with_tables(&page, &measured).as_ref(), Some(&page));
        assert_eq!(with_tables("no comments", &measured), None);
    }
}
