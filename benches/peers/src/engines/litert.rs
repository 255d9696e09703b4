//! LiteRT with its XNNPACK delegate, in a Python worker: the wheel exports no C interface to the interpreter.
//!
//! The worker calls the extension's `Invoke` directly, so that Python adds about a tenth of a microsecond to a call.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::Python;
use crate::measure::Runner;
use crate::model::{DType, Model, Result, Values};

pub fn open(python: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    let Some(path) = model.file("tflite") else { return Ok(None) };
    let mut child = Command::new(&python.interpreter)
        .arg(python.scripts.join("litert_worker.py"))
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // LiteRT reports on every load there.
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the worker has no pipes".into());
    };
    let mut worker = Worker {
        child,
        to,
        from: BufReader::new(from),
        dtype: model.dtype,
        operators: 0,
        outside: 0,
    };
    let reply = worker.reply()?;
    (worker.operators, worker.outside) = (reply.operators, reply.outside);
    Ok(Some(Box::new(worker)))
}

struct Worker {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    dtype: DType,
    operators: usize,
    outside: usize,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reply {
    error: Option<String>,
    /// Operators in the model, and how many of them XNNPACK did not take.
    operators: usize,
    outside: usize,
    output: String,
    samples: Vec<f64>,
}

impl Worker {
    fn ask(&mut self, question: serde_json::Value) -> Result<Reply> {
        writeln!(self.to, "{question}")?;
        self.to.flush()?;
        self.reply()
    }

    fn reply(&mut self) -> Result<Reply> {
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err(format!("the worker ended: {}", self.child.wait()?).into());
        }
        let reply: Reply = serde_json::from_str(&line)?;
        match reply.error {
            Some(error) => Err(error.into()),
            None => Ok(reply),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Nothing is left to report an error to.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Runner for Worker {
    fn infer(&mut self, input: &Values) -> Result<Values> {
        let hex: String = input.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        let reply = self.ask(json!({ "input": hex }))?;
        let bytes = (0..reply.output.len() / 2)
            .map(|i| u8::from_str_radix(&reply.output[2 * i..2 * i + 2], 16))
            .collect::<std::result::Result<Vec<u8>, _>>()?;
        Ok(Values::decode(self.dtype, &bytes))
    }

    fn turn(&mut self, budget: Duration) -> Result<Vec<f64>> {
        Ok(self.ask(json!({ "seconds": budget.as_secs_f64() }))?.samples)
    }

    fn remark(&self) -> Option<String> {
        (self.outside > 0).then(|| {
            format!("XNNPACK left {} of {} operators to LiteRT", self.outside, self.operators)
        })
    }
}
