//! A file loaded and run.

use crate::random::Random;
use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_core::op::{Op, Pool2d};
use netkit_core::program::Program;
use netkit_kernels::{Isa, Kernels};
use std::cell::RefCell;

/// Memory of the arena. What needs more is refused, which is a promise too.
const ARENA_BYTES: usize = 1 << 20;
/// Most taps that are computed for one input: larger networks are loaded but not run.
const MAX_WORK: u64 = 1 << 13;
/// The same for one input in 1024.
const MAX_RARE_WORK: u64 = 1 << 20;

struct Room {
    file: Vec<u128>,
    arena: Vec<u8>,
}

thread_local! {
    static ROOM: RefCell<Room> =
        RefCell::new(Room { file: Vec::new(), arena: vec![0xA5; ARENA_BYTES] });
}

/// Taps of all windows, and elements of all tensors.
fn work(program: &Program<'_, '_>) -> u64 {
    let taps = |pool: &Pool2d| {
        let w = pool.window;
        let seen = w.kernel_h.min(w.in_h) as u64 * w.kernel_w.min(w.in_w) as u64;
        (w.out_pixels() * pool.channels) as u64 * seen
    };
    let steps = program.steps().map(|step| {
        let elements = step.output().value.shape.elements() as u64;
        elements
            + match &step.node.op {
                Op::MaxPool2d(pool) | Op::AveragePool2d(pool) => taps(pool),
                op => op.macs() + step.pool().map_or(0, taps),
            }
    });
    steps.fold(program.input().shape.elements() as u64, u64::saturating_add)
}

/// Loads into an arena or says why not; runs on every kind of value, and int8 gives the same on every instruction set.
pub(crate) fn run(bytes: &[u8]) -> bool {
    ROOM.with_borrow_mut(|Room { file, arena }| {
        file.resize(bytes.len().div_ceil(16) + 1, 0);
        let copy: &mut [u8] = bytemuck::cast_slice_mut(file);
        // One file in 16 lies where its tensors are not aligned.
        let mut random = Random::of(bytes);
        let start = if random.below(16) == 0 { 1 + random.below(3) } else { 0 };
        let Some(copy) = copy.get_mut(start..start + bytes.len()) else { return false };
        copy.copy_from_slice(bytes);
        let copy = &*copy;
        let bump = Bump::init(arena);
        let mut network = match Network::load(copy, &bump) {
            Ok(network) => network,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return false;
            }
        };
        assert!(bump.used() <= bump.capacity());
        let most = if random.below(1024) == 0 { MAX_RARE_WORK } else { MAX_WORK };
        if work(network.program()) > most {
            return false;
        }
        let isas: Vec<Kernels> = Kernels::all().collect();
        let kernels = random.choose(&isas);
        network = network.with_kernels(kernels);
        let input: Vec<f32> = (0..network.input_len()).map(|_| random.float()).collect();
        let mut output = vec![0.0; network.output_len()];
        network.forward(&input, &mut output).expect("lengths are the model's");
        for index in 0..network.case_count() {
            assert!(network.check_case(index, &mut output).is_some());
        }
        if network.is_quantized() {
            let input: Vec<i8> = (0..network.input_len()).map(|_| random.next() as i8).collect();
            let mut output = vec![0; network.output_len()];
            network.forward_i8(&input, &mut output).expect("lengths are the model's");
            let scalar = Kernels::for_isa(Isa::Scalar).expect("asked for in Cargo.toml");
            let mut same = vec![1; network.output_len()];
            let mut network = network.with_kernels(scalar);
            network.forward_i8(&input, &mut same).expect("lengths are the model's");
            assert_eq!(output, same, "{} and scalar differ", kernels.isa().name());
        }
        true
    })
}
