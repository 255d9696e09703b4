//! The loader's promises: one allocation, none while running, clear refusals, equal answers to the macro's.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use netkit::arena::{ArenaError, Bump};
use netkit::error::{Code, LoadErrorKind, RunError, SignatureError};
use netkit::runtime::Network;

/// Counts the allocations of each thread, so that tests beside this one do not disturb it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATIONS.with(Cell::get);
    let result = work();
    (ALLOCATIONS.with(Cell::get) - before, result)
}

mod digits {
    netkit::model!(pub Float = "models/mnist_cnn.nk");
    netkit::model!(pub Mlp = "models/mnist_mlp.nk");
}

static FLOAT: &[u8] = netkit::include_model!("models/mnist_cnn.nk");
static INT8: &[u8] = netkit::include_model!("models/mnist_cnn_int8.nk");

/// A real digit, as the models take it.
fn digit(index: usize) -> [f32; 784] {
    let images = include_bytes!("../models/digits/images.u8");
    core::array::from_fn(|pixel| f32::from(images[784 * index + pixel]) / 255.0)
}

#[test]
fn a_session_allocates_once_and_running_never() {
    // The choice of kernels reads an environment variable the first time.
    let _ = netkit_kernels::Kernels::native();
    let (count, arena) = allocations(|| Bump::heap(1 << 20).unwrap());
    assert_eq!(count, 1);
    for bytes in [FLOAT, INT8] {
        let (count, mut network) = allocations(|| Network::load(bytes, &arena).unwrap());
        assert_eq!(count, 0, "load");
        let (input, mut output) = (digit(0), [0.0; 10]);
        let (count, ran) = allocations(|| network.forward(&input, &mut output));
        assert_eq!((count, ran), (0, Ok(())), "forward");
        if network.is_quantized() {
            let (input, mut output) = ([0; 784], [0; 10]);
            let (count, ran) = allocations(|| network.forward_i8(&input, &mut output));
            assert_eq!((count, ran), (0, Ok(())), "forward_i8");
        }
    }
}

/// Pitfall B42: two ways to run one file, for every model of the repository.
#[test]
fn b42_the_macro_and_the_loader_give_the_same_bits() {
    macro_rules! compare {
        ($($path:literal $(with $quantized:ident)?,)+) => { [$({
            netkit::model!(Compiled = $path);
            static FILE: &[u8] = netkit::include_model!($path);
            let mut arena = Bump::heap(1 << 20).unwrap();
            for index in 0..20 {
                arena.reset();
                let mut network = Network::load(FILE, &arena).unwrap();
                let mut model = Compiled::new_boxed();
                let (input, mut output) = (digit(index), [0.0; 10]);
                network.forward(&input, &mut output).unwrap();
                assert_eq!(model.forward(&input).map(f32::to_bits), output.map(f32::to_bits));
                $(
                    let input = input.map(|x| (x * 255.0 - 128.0) as i8);
                    let mut output = [0; 10];
                    network.$quantized(&input, &mut output).unwrap();
                    assert_eq!(model.$quantized(&input), output);
                )?
            }
            $path
        }),+] };
    }
    let compared = compare! {
        "models/mnist_mlp.nk",
        "models/mnist_cnn.nk",
        "models/mnist_dscnn.nk",
        "models/mnist_mlp_int8.nk" with forward_i8,
        "models/mnist_cnn_int8.nk" with forward_i8,
        "models/mnist_dscnn_int8.nk" with forward_i8,
    };
    let files = std::fs::read_dir("models").unwrap().map(|entry| entry.unwrap().path());
    let models = files.filter(|path| path.extension().is_some_and(|extension| extension == "nk"));
    assert_eq!(models.count(), compared.len());
}

#[test]
fn reported_sizes_are_those_the_arena_confirms() {
    let arena = Bump::heap(1 << 20).unwrap();
    let network = Network::load(FLOAT, &arena).unwrap();
    let running = network.activation_bytes() + network.workspace_bytes();
    assert!(arena.used() >= running && arena.used() < running + 8192, "{arena:?} {running}");
    assert_eq!(
        network.activation_bytes(),
        digits::Float::ARENA_BYTES - digits::Float::SCRATCH_BYTES
    );
}

#[test]
fn an_arena_that_is_too_small_is_an_error_at_every_size() {
    let mut memory = vec![0; 512 * 1024];
    let mut needed = None;
    let sizes = (0..2048).step_by(7).chain((2048..memory.len()).step_by(4093));
    for size in sizes {
        let arena = Bump::init(&mut memory[..size]);
        match Network::load(FLOAT, &arena) {
            Ok(_) => needed = needed.or(Some(size)),
            Err(error) => {
                assert_eq!(needed, None, "{size} bytes: {error}");
                assert!(
                    matches!(error.kind(), LoadErrorKind::Arena(ArenaError::Exhausted { .. })),
                    "{size} bytes: {error}"
                );
            }
        }
    }
    assert!(needed.is_some());
}

#[test]
fn a_case_with_another_length_of_output_is_not_run() {
    for model in [FLOAT, INT8] {
        let arena = Bump::heap(1 << 20).unwrap();
        let mut network = Network::load(model, &arena).unwrap();
        for length in [0, 9, 11] {
            let mut output = vec![7.0; length];
            let report = network.check_case(0, &mut output).unwrap();
            assert_eq!(report.verdict, Err(netkit::Mismatch::Size), "{length} values");
            assert_eq!(output, vec![7.0; length]);
        }
    }
}

/// Every arena is refused at most twice: once for the tables that planning takes, once for all the rest.
#[test]
fn an_arena_that_is_too_small_is_told_by_how_much() {
    let files = std::fs::read_dir("models").unwrap().map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "nk")) {
        // Aligned for its tensors.
        let bytes = std::fs::read(&path).unwrap();
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        let model: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        model[..bytes.len()].copy_from_slice(&bytes);
        let model = &model[..bytes.len()];

        let told = Network::arena_bytes(model).unwrap();
        let mut memory = vec![0; told + 64];
        for start in 0..64 {
            let (mut size, mut refusals) = (0, 0);
            loop {
                let arena = Bump::init(&mut memory[start..][..size]);
                let Err(error) = Network::load(model, &arena) else { break };
                let LoadErrorKind::Arena(ArenaError::Exhausted { requested, remaining }) =
                    error.kind()
                else {
                    panic!("{error}")
                };
                assert!(error.to_string().contains("Network::arena_bytes"), "{error}");
                size += requested - remaining;
                refusals += 1;
            }
            assert!(refusals <= 2, "{}: {refusals}", path.display());
            assert!(size <= told && told - size < 128, "{}: {size}, {told}", path.display());
        }
        let mut fewer = vec![0; told - 128];
        assert!(Network::load(model, &Bump::init(&mut fewer)).is_err());
    }
    assert!(matches!(
        Network::arena_bytes(&FLOAT[..400]).unwrap_err().kind(),
        LoadErrorKind::Model(_)
    ));
}

/// Pitfall B31: a misaligned file is refused, never cast.
#[test]
fn b31_every_truncation_and_misalignment_is_refused() {
    let mut arena = Bump::heap(1 << 20).unwrap();
    for length in (0..FLOAT.len()).step_by(997).chain(0..400) {
        arena.reset();
        let error = Network::load(&FLOAT[..length], &arena).unwrap_err();
        assert!(matches!(error.kind(), LoadErrorKind::Model(_)), "{length}: {error}");
        assert!(error.to_string().starts_with("[NK0"), "{error}");
    }
    let mut shifted = vec![0u64; FLOAT.len() / 8 + 2];
    let shifted: &mut [u8] = bytemuck::cast_slice_mut(&mut shifted);
    for shift in 1..8 {
        arena.reset();
        let copy = &mut shifted[shift..][..FLOAT.len()];
        copy.copy_from_slice(FLOAT);
        match Network::load(copy, &arena) {
            Ok(_) => assert_eq!(shift, 4),
            Err(error) => {
                assert_eq!(error.kind(), LoadErrorKind::Misaligned, "{shift}");
                let text = error.to_string();
                assert!(text.starts_with("[NK0309] byte 0x"), "{text}");
                assert!(text.contains("expected a multiple of 4; Put the model"), "{text}");
                assert!(error.offset().is_some());
            }
        }
    }
}

#[test]
fn wrong_lengths_and_types_compute_nothing() {
    let arena = Bump::heap(1 << 20).unwrap();
    let mut network = Network::load(FLOAT, &arena).unwrap();
    let mut output = [7.0; 10];
    assert_eq!(
        network.forward(&[0.0; 783], &mut output),
        Err(RunError::InputLength { expected: 784, found: 783 })
    );
    assert_eq!(
        network.forward(&[0.0; 784], &mut output[..9]),
        Err(RunError::OutputLength { expected: 10, found: 9 })
    );
    assert_eq!(network.forward_i8(&[0; 784], &mut [0; 10]), Err(RunError::NotQuantized));
    assert_eq!(output, [7.0; 10]);
}

#[test]
fn a_model_of_another_shape_is_refused_by_its_signature() {
    let arena = Bump::heap(1 << 20).unwrap();
    let network = Network::load(FLOAT, &arena).unwrap();
    assert_eq!(network.expect_signature::<digits::Float>(), Ok(()));
    assert_eq!(network.expect_signature::<digits::Mlp>(), Err(SignatureError::Input));
}

#[test]
fn a_broken_rule_names_layer_and_byte() {
    let mut bytes = support::aligned(FLOAT).as_bytes().to_vec();
    // The stride of the first convolution.
    bytes[48 + 8..48 + 12].fill(0);
    let bytes = support::aligned(&bytes);
    let arena = Bump::heap(1 << 20).unwrap();
    let error = Network::load(bytes.as_bytes(), &arena).unwrap_err();
    assert_eq!(error.kind(), LoadErrorKind::Model(Code::Window));
    assert_eq!((error.layer(), error.offset()), (Some(0), Some(52)));
}

#[cfg(feature = "mmap")]
mod mapped {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn a_mapped_file_runs_and_bad_paths_are_errors() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut arena = Bump::heap(1 << 20).unwrap();
        {
            let mut network = Network::open(root.join("models/mnist_cnn.nk"), &arena).unwrap();
            let mut output = [0.0; 10];
            for index in 0..network.case_count() {
                assert!(network.check_case(index, &mut output).unwrap().verdict.is_ok());
            }
        }
        arena.reset();
        let kind = |path: &std::path::Path| Network::open(path, &arena).unwrap_err().kind();
        assert_eq!(kind(&root.join("models/none.nk")), LoadErrorKind::Io(ErrorKind::NotFound));
        assert_eq!(kind(root), LoadErrorKind::Io(ErrorKind::IsADirectory));
        #[cfg(unix)]
        assert_eq!(
            kind(std::path::Path::new("/dev/zero")),
            LoadErrorKind::Io(ErrorKind::InvalidInput)
        );
        let empty = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.nk");
        std::fs::write(&empty, []).unwrap();
        assert_eq!(kind(&empty), LoadErrorKind::Model(Code::Empty));
    }
}
