//! What was measured, and the file that keeps it: budget and record in one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    /// Executed instructions of a region.
    Instructions,
    /// Bytes of stack of a region.
    Stack,
    /// Bytes of flash of an image apart from weights and inputs.
    Code,
    /// Bytes of RAM: the model's arena and statics, the stack apart.
    Memory,
}

impl Metric {
    pub(crate) const ALL: [Self; 4] = [Self::Instructions, Self::Code, Self::Memory, Self::Stack];

    fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Stack => "stack",
            Self::Code => "code",
            Self::Memory => "memory",
        }
    }
}

/// What a measurement is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) target: String,
    pub(crate) workload: String,
    /// `-` for the whole image.
    pub(crate) region: String,
    pub(crate) metric: Metric,
}

impl Key {
    /// Whether it is of a step of a network, rather than of a whole region.
    pub(crate) fn is_step(&self) -> bool {
        self.region.contains('/')
    }
}

/// Measurements and the compiler that made what was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measurements {
    pub(crate) compiler: String,
    pub(crate) values: BTreeMap<Key, u64>,
}

/// A measurement that left its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Regression {
    key: Key,
    budget: u64,
    found: u64,
}

impl Measurements {
    /// The file of the budget, committed beside this crate.
    pub(crate) fn path() -> PathBuf {
        crate::build::workspace().join("budget.tsv")
    }

    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut measurements = Self::default();
        for line in text.lines() {
            if let Some(compiler) = line.strip_prefix("# measured with ") {
                measurements.compiler = compiler.to_owned();
            }
            if line.starts_with('#') {
                continue;
            }
            let explain = || format!("not a line of a budget: {line:?}");
            let fields: Vec<&str> = line.split('\t').collect();
            let &[target, workload, region, metric, value] = fields.as_slice() else {
                return Err(explain());
            };
            let metric =
                Metric::ALL.into_iter().find(|m| m.name() == metric).ok_or_else(explain)?;
            let key = Key {
                target: target.to_owned(),
                workload: workload.to_owned(),
                region: region.to_owned(),
                metric,
            };
            measurements.values.insert(key, value.parse().map_err(|_| explain())?);
        }
        Ok(measurements)
    }

    /// Takes over what `newer` measured, and forgets what else was known of the same images.
    pub(crate) fn merge(&mut self, newer: Self) {
        self.compiler = newer.compiler;
        let measured: BTreeSet<_> =
            newer.values.keys().map(|key| (key.target.clone(), key.workload.clone())).collect();
        self.values
            .retain(|key, _| !measured.contains(&(key.target.clone(), key.workload.clone())));
        self.values.extend(newer.values);
    }

    /// What is more than one hundredth above `budget`. Bytes get 16 on top: a function that is aligned otherwise is no
    /// regression. Nor is an instruction that moved from one step to the next; those of a network are counted together
    /// as well.
    pub(crate) fn regressions(&self, budget: &Self) -> Vec<Regression> {
        let mut regressions = Vec::new();
        for (key, &found) in &self.values {
            let Some(&budget) = budget.values.get(key) else { continue };
            let slack = match key.metric {
                Metric::Instructions if key.is_step() => 64,
                Metric::Instructions => 0,
                Metric::Stack | Metric::Code | Metric::Memory => 16,
            };
            if found > budget + budget / 100 + slack {
                regressions.push(Regression { key: key.clone(), budget, found });
            }
        }
        regressions
    }

    /// How many are more than one hundredth below `budget`, or not in it: a reason to record them.
    pub(crate) fn news(&self, budget: &Self) -> usize {
        let is_news = |&(key, &found): &(&Key, &u64)| {
            budget.values.get(key).is_none_or(|&budget| found < budget - budget / 100)
        };
        self.values.iter().filter(is_news).count()
    }
}

impl fmt::Display for Measurements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Written by `cargo run -- --bless` in tests/firmware; more than 1 % above a value fails."
        )?;
        writeln!(f, "# measured with {}", self.compiler)?;
        writeln!(f, "# target\tworkload\tregion\tmetric\tvalue")?;
        for (key, value) in &self.values {
            let Key { target, workload, region, metric } = key;
            writeln!(f, "{target}\t{workload}\t{region}\t{}\t{value}", metric.name())?;
        }
        Ok(())
    }
}

impl fmt::Display for Regression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key: Key { target, workload, region, metric }, budget, found } = self;
        let percent = 100.0 * (*found as f64 / (*budget).max(1) as f64 - 1.0);
        write!(
            f,
            "{target} {workload} {region}: {found} {}, budget {budget} ({percent:+.1} %)",
            metric.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Measurements;

    fn budget(value: u64) -> Measurements {
        let line = format!("# measured with rustc 1\nm4\tcnn\tforward\tinstructions\t{value}\n");
        Measurements::parse(&line).unwrap()
    }

    #[test]
    fn written_and_read_back() {
        let measurements = budget(1000);
        assert_eq!(Measurements::parse(&measurements.to_string()).unwrap(), measurements);
        assert!(Measurements::parse("m4\tcnn\tforward\tmiles\t1").is_err());
        assert!(Measurements::parse("m4\tcnn\tforward\tstack").is_err());
    }

    #[test]
    fn new_measurements_replace_those_of_the_same_images() {
        let mut old = Measurements::parse(
            "m4\tcnn\trenamed\tinstructions\t1\nm3\tcnn\tforward\tinstructions\t2\n",
        )
        .unwrap();
        old.merge(budget(3));
        let values: Vec<_> = old.values.values().copied().collect();
        assert_eq!(values, [2, 3]);
    }

    #[test]
    fn a_step_may_gain_what_another_loses() {
        let step = |value| {
            Measurements::parse(&format!("m4\tcnn\tforward/00-conv2d\tinstructions\t{value}\n"))
                .unwrap()
        };
        assert_eq!(step(164).regressions(&step(100)), []);
        assert_eq!(step(166).regressions(&step(100)).len(), 1);
        assert_eq!(step(101_065).regressions(&step(100_000)).len(), 1);
    }

    #[test]
    fn one_percent_is_the_limit() {
        assert_eq!(budget(1010).regressions(&budget(1000)), []);
        assert_eq!(budget(1011).regressions(&budget(1000)).len(), 1);
        assert_eq!(budget(990).news(&budget(1000)), 0);
        assert_eq!(budget(989).news(&budget(1000)), 1);
        assert_eq!(budget(1).news(&Measurements::default()), 1);
    }
}
