//! One MNIST CNN inference with burn, the weights compiled in.

use netkit_peers::engines::burn::Burn;
use netkit_peers::fresh::{digit, finish};
use netkit_peers::graph::Graph;
use netkit_peers::measure::Session;
use netkit_peers::model::{Result, Values};

static GRAPH: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.graph");
static CASES: &[u8] = include_bytes!("../../made/models/mnist_cnn_f32.cases");

fn main() -> Result<()> {
    let mut network = Burn::new(&Graph::parse(GRAPH)?)?;
    network.set_input(&Values::F32(digit(CASES)))?;
    network.run()?;
    finish(network.output()?.f32()?);
    Ok(())
}
