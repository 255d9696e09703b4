//! Pitfall B42: a loader that repacks weights on the device may repack them wrongly there and nowhere else. The networks of
//! [`layers`](crate::layers) once more, from their files: each answer is that of the compiled network, to the bit.

use crate::layers::RUNS;
use crate::random::Random;
use crate::{Board, Report};
use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit::{Model, QuantizedModel};

include!(concat!(env!("OUT_DIR"), "/loaded.rs"));

/// Bytes of memory for what is loaded: activations, scratch, and the tables of the plan.
const MEMORY: usize = 48 * 1024;

fn load<'a>(file: &'a [u8], arena: &'a Bump<'_>) -> Network<'a> {
    match Network::load(file, arena) {
        Ok(network) => network,
        // Without what it says: text would bring in all of `core::fmt`.
        Err(_) => panic!("a network cannot be loaded"),
    }
}

/// Loads a network into memory of its own and runs it as often as [`RUNS`] says.
fn runs<B: Board>(
    board: &mut B,
    name: &str,
    file: &[u8],
    mut run: impl FnMut(&mut B, &mut Network<'_>, &mut Random),
) {
    Report::remark(board, name, "data", file.len() as i32);
    let mut memory = [0; MEMORY];
    let arena = Bump::init(&mut memory);
    let mut network = load(file, &arena);
    let mut random = Random(1);
    for _ in RUNS {
        run(board, &mut network, &mut random);
    }
}

/// Never inlined: one network's memory is on the stack at a time.
#[inline(never)]
fn float<B: Board, M, const INPUT: usize, const OUTPUT: usize>(board: &mut B, file: &[u8])
where
    M: Model<Input = [f32; INPUT], Output = [f32; OUTPUT]> + Default,
{
    runs(board, M::NAME, file, |board, network, random| {
        let mut input = [0.0; INPUT];
        input.fill_with(|| f32::from(random.next() as i8) / 64.0);
        let (mut expected, mut output) = ([0.0; OUTPUT], [0.0; OUTPUT]);
        M::default().forward_into(&input, &mut expected);
        assert!(network.forward(&input, &mut output).is_ok());
        assert!(output.map(f32::to_bits) == expected.map(f32::to_bits), "the loader's bits differ");
        Report::f32(board, M::NAME, &output);
    });
}

/// As `float`.
#[inline(never)]
fn int8<B: Board, M, const INPUT: usize, const OUTPUT: usize>(board: &mut B, file: &[u8])
where
    M: QuantizedModel<QuantizedInput = [i8; INPUT], QuantizedOutput = [i8; OUTPUT]> + Default,
{
    runs(board, M::NAME, file, |board, network, random| {
        let mut input = [0; INPUT];
        input.fill_with(|| random.next() as i8);
        let (mut expected, mut output) = ([0; OUTPUT], [0; OUTPUT]);
        M::default().forward_i8_into(&input, &mut expected);
        assert!(network.forward_i8(&input, &mut output).is_ok());
        assert!(output == expected, "the loader's bits differ");
        Report::i8(board, M::NAME, &output);
    });
}
