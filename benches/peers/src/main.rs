//! netkit beside the engines that its users would otherwise choose: the same models, the same inputs, one thread,
//! batch 1, the engines taking turns within one run. README.md says what is compared and how.

mod compiled;

use std::process::ExitCode;

use compiled::ENGINES;
use netkit_peers::arguments::Arguments;
use netkit_peers::engines::{Engine, Python, is_peer};
use netkit_peers::measure::{Runner, Samples};
use netkit_peers::model::{self, DType, Model, Result, Values};
use netkit_peers::report::{Measured, Outcome, Report, Row};
use netkit_peers::{fresh, peak};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `Ok(false)` when some engine's answers were out of tolerance.
fn run() -> Result<bool> {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1))? else { return Ok(true) };
    let python = arguments.python()?;
    let models = model::load(&arguments.models)?;
    let engines: Vec<&Engine> =
        ENGINES.iter().filter(|engine| arguments.wants_engine(engine.name)).collect();
    let mut report =
        Report::new(engines.iter().map(|engine| engine.name).collect(), peak::measure());
    if arguments.processes {
        eprintln!("fresh processes");
        report.processes = fresh::measure(&python, &arguments)?;
    }
    for model in models.iter().filter(|model| arguments.wants_model(&model.row())) {
        eprintln!("{}", model.title);
        report.rows.push(compare(&python, &engines, model, &arguments)?);
    }
    print!("{report}");
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(report.agrees())
}

fn compare(
    python: &Python,
    engines: &[&Engine],
    model: &Model,
    arguments: &Arguments,
) -> Result<Row> {
    let examples = model.examples()?;
    let mut contenders = Vec::new();
    for engine in engines {
        contenders.push(match open(python, engine, model, &examples) {
            Ok(Some((runner, deviation))) => Ok((runner, deviation, Samples::default())),
            Ok(None) => Err(Outcome::Unsupported),
            Err(error) => Err(Outcome::Failed(error.to_string())),
        });
    }
    for _ in 0..arguments.rounds {
        for contender in &mut contenders {
            let Ok((runner, _, samples)) = contender else { continue };
            match runner.turn(arguments.turn) {
                Ok(taken) => samples.extend(taken),
                Err(error) => *contender = Err(Outcome::Failed(error.to_string())),
            }
        }
    }
    let outcomes = contenders.into_iter().zip(engines).map(|(contender, engine)| match contender {
        Err(outcome) => outcome,
        Ok((runner, deviation, samples)) => match samples.summary() {
            None => Outcome::Failed("no samples".into()),
            Some((minimum, median)) => Outcome::Measured(Measured {
                minimum,
                median,
                deviation,
                agrees: deviation <= tolerance(engine, model),
                remark: runner.remark(),
            }),
        },
    });
    Ok(Row::new(model, outcomes.collect()))
}

/// Peers round int8 in their own ways; netkit has to meet the format to the last bit.
fn tolerance(engine: &Engine, model: &Model) -> f64 {
    if model.dtype == DType::Int8 && !is_peer(engine.name) { 0.0 } else { model.tolerance }
}

/// The engine with the model loaded, and its largest deviation over all examples.
fn open(
    python: &Python,
    engine: &Engine,
    model: &Model,
    examples: &[(Values, Values)],
) -> Result<Option<(Box<dyn Runner>, f64)>> {
    let Some(mut runner) = (engine.open)(python, model)? else { return Ok(None) };
    let mut worst = 0.0f64;
    for (input, expected) in examples {
        let answer = runner.infer(input)?;
        // Twice, so that an engine that keeps state between calls cannot hide it.
        let again = runner.infer(input)?;
        if answer != again {
            return Err("two runs on one input differ".into());
        }
        worst = worst.max(answer.deviation(expected));
    }
    Ok(Some((runner, worst)))
}
