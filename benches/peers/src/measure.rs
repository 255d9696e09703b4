//! How a time is taken: batches of calls, the shortest and the middle one kept.

use std::time::{Duration, Instant};

use crate::model::{Result, Values};

/// A model loaded into an engine, ready to be called.
pub trait Session {
    /// Puts the input where the engine reads it. Not timed.
    fn set_input(&mut self, input: &Values) -> Result<()>;
    /// One inference from the input set last into memory of the engine's choice. Timed.
    fn run(&mut self) -> Result<()>;
    /// What the last `run` gave, maps as NHWC. Not timed.
    fn output(&self) -> Result<Values>;
}

/// A session in this process or in a worker.
pub trait Runner {
    fn infer(&mut self, input: &Values) -> Result<Values>;
    /// Nanoseconds per inference of each batch that fits into the budget; at least one.
    fn turn(&mut self, budget: Duration) -> Result<Vec<f64>>;
    /// What the engine says about itself, for the notes under the table.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// A batch lasts about this long: far above the clock's resolution, far below a scheduler's slice.
const BATCH: Duration = Duration::from_micros(50);

/// Runs a `Session` of this process; generic, so that the timed loop makes no dynamic call.
pub struct Local<S>(pub S);

impl<S: Session> Runner for Local<S> {
    fn infer(&mut self, input: &Values) -> Result<Values> {
        self.0.set_input(input)?;
        self.0.run()?;
        self.0.output()
    }

    fn turn(&mut self, budget: Duration) -> Result<Vec<f64>> {
        let start = Instant::now();
        // Warm up: the other engines of the round have the caches.
        self.0.run()?;
        let once = Instant::now();
        self.0.run()?;
        let calls = (BATCH.as_nanos() / once.elapsed().as_nanos().max(1)).clamp(1, 100_000) as u32;
        let mut samples = Vec::new();
        while samples.is_empty() || start.elapsed() < budget {
            let batch = Instant::now();
            for _ in 0..calls {
                self.0.run()?;
            }
            samples.push(batch.elapsed().as_nanos() as f64 / f64::from(calls));
        }
        Ok(samples)
    }
}

/// All samples of one engine on one model.
#[derive(Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn extend(&mut self, samples: Vec<f64>) {
        self.0.extend(samples);
    }

    /// (shortest, middle) in microseconds; `None` without samples.
    pub fn summary(&self) -> Option<(f64, f64)> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        Some((sorted.first()? / 1e3, sorted.get(sorted.len() / 2)? / 1e3))
    }
}
