//! `netkit plan`: where every value lives while the network runs, and what sets the peak.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use netkit_core::plan::Placement;
use netkit_core::program::Program;
use serde_json::{Value, json};

use crate::model_file::ModelFile;
use crate::size::{bytes, grouped};
use crate::table;

/// Shows the memory plan of a model.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The model file
    model: PathBuf,
    /// Print JSON, errors too (on standard error)
    #[arg(long)]
    pub(crate) json: bool,
}

/// A value in the arena.
struct Buffer {
    offset: usize,
    bytes: usize,
    first: usize,
    last: usize,
    shape: String,
    producer: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let file = ModelFile::read(&arguments.model)?;
    file.with_program(|program| {
        let mut buffers = buffers(program);
        buffers.sort_by_key(|buffer| (buffer.first, buffer.offset));
        let live: Vec<usize> = (0..program.steps().len())
            .map(|step| {
                buffers.iter().filter(|b| b.first <= step && step <= b.last).map(|b| b.bytes).sum()
            })
            .collect();
        if arguments.json {
            say!("{}", as_json(program, &buffers, &live));
        } else {
            print(program, &buffers, &live);
        }
        Ok(())
    })
}

fn buffers(program: &Program<'_, '_>) -> Vec<Buffer> {
    let mut buffers = Vec::new();
    for step in program.steps() {
        let Placement::Arena { offset } = step.output().placement else { continue };
        let slot = &program.plan().slots()[step.node.output.index()];
        buffers.push(Buffer {
            offset,
            bytes: slot.bytes,
            first: usize::from(slot.lifetime.first),
            last: usize::from(slot.lifetime.last),
            shape: step.output().value.shape.to_string(),
            producer: table::step_name(&step),
        });
    }
    buffers
}

fn print(program: &Program<'_, '_>, buffers: &[Buffer], live: &[usize]) {
    let arena = program.plan().arena_bytes();
    if buffers.is_empty() {
        say!("The network needs no arena: it reads its input and writes its output directly.");
        return;
    }
    let mut rows = table::boxed(&["produced by", "shape", "offset", "bytes", "steps"]);
    for buffer in buffers {
        rows.add_row([
            buffer.producer.clone(),
            buffer.shape.clone(),
            grouped(buffer.offset as u64),
            grouped(buffer.bytes as u64),
            format!("{}–{}", buffer.first, buffer.last),
        ]);
    }
    table::right(&mut rows, &[2, 3, 4]);
    say!("{rows}");
    picture(buffers, live.len(), arena);
    let peak = live.iter().copied().max().unwrap_or(0);
    let at = live.iter().position(|&bytes| bytes == peak).unwrap_or(0);
    say!("arena: {}, kernel workspace apart", bytes(arena));
    say!("most alive at once: {} at step {at}", bytes(peak));
    let mut largest: Vec<&Buffer> =
        buffers.iter().filter(|b| b.first <= at && at <= b.last).collect();
    largest.sort_by_key(|buffer| std::cmp::Reverse(buffer.bytes));
    say!("what would shrink it: a smaller map out of");
    for buffer in largest {
        say!("  {} ({}, {})", buffer.producer, buffer.shape, bytes(buffer.bytes));
    }
}

/// Buffers over time: a column a step, a row a slice of the arena.
fn picture(buffers: &[Buffer], steps: usize, arena: usize) {
    const ROWS: usize = 16;
    let letter = |index: usize| char::from(b'A' + (index % 26) as u8);
    let slice = arena.div_ceil(ROWS).max(1);
    say!("the arena over time: a column a step, a row {}", bytes(slice));
    for row in (0..arena.div_ceil(slice)).rev() {
        let (low, high) = (row * slice, (row + 1) * slice);
        let cells: String = (0..steps)
            .map(|step| {
                buffers
                    .iter()
                    .position(|b| {
                        b.first <= step
                            && step <= b.last
                            && b.offset < high
                            && low < b.offset + b.bytes
                    })
                    .map_or('·', letter)
            })
            .collect();
        say!("{:>12} │{cells}", grouped(low as u64));
    }
    let ruler: String = (0..steps).map(|step| char::from(b'0' + (step % 10) as u8)).collect();
    say!("{:>12} └{}", "", "─".repeat(steps));
    say!("{:>12}  {ruler}", "step");
    for (index, buffer) in buffers.iter().enumerate() {
        say!("{:>12}  {} {}", "", letter(index), buffer.producer);
    }
}

fn as_json(program: &Program<'_, '_>, buffers: &[Buffer], live: &[usize]) -> Value {
    let buffers: Vec<Value> = buffers
        .iter()
        .map(|buffer| {
            json!({
                "producer": buffer.producer,
                "offset": buffer.offset,
                "bytes": buffer.bytes,
                "first_step": buffer.first,
                "last_step": buffer.last,
            })
        })
        .collect();
    json!({
        "arena_bytes": program.plan().arena_bytes(),
        "live_bytes": live,
        "buffers": buffers,
    })
}
