//! What the feature `parallel` gains: whole networks on one thread and on several, in turns within one run.
//!
//! ```sh
//! cargo run --release -p netkit-backbones-tests --features netkit/parallel --example threads -- 2 [float models]
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use netkit::Model;
use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit_backbones_tests::{FOLDER, MobileNetV4, ResNet18};
use rayon_core::{ThreadPool, ThreadPoolBuilder};

const ROUNDS: usize = 5;
const TURN: Duration = Duration::from_millis(300);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let threads = match arguments.next() {
        Some(threads) => threads.parse()?,
        None => std::thread::available_parallelism()?.get(),
    };
    let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build();
    let pools = [pool(1)?, pool(threads)?];
    println!("network, how: shortest ms on 1 thread, on {threads}, ratio; median, median, ratio");
    for path in arguments {
        loaded(Path::new(&path), &pools)?;
    }
    for name in ["resnet18.nk", "mobilenetv4_conv_small.nk"] {
        loaded(&Path::new(FOLDER).join(name), &pools)?;
    }
    compiled::<ResNet18>("resnet18", &pools);
    compiled::<MobileNetV4>("mobilenetv4_conv_small", &pools);
    Ok(())
}

fn image(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37) % 113) as f32 / 113.0).collect()
}

fn compiled<M>(name: &str, pools: &[ThreadPool; 2])
where
    M: Model + Default + Send,
    for<'i> &'i M::Input: TryFrom<&'i [f32]>,
    for<'o> &'o mut M::Output: TryFrom<&'o mut [f32]>,
{
    let (mut model, input) = (Box::<M>::default(), image(M::INPUT_LEN));
    measure(name, "compiled", M::OUTPUT_LEN, pools, |output| {
        if let (Ok(input), Ok(output)) = (input.as_slice().try_into(), output.try_into()) {
            model.forward_into(input, output);
        }
    });
}

fn loaded(path: &Path, pools: &[ThreadPool; 2]) -> Result<(), Box<dyn std::error::Error>> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let bytes = std::fs::read(path)?;
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
    let arena = Bump::heap(64 << 20)?;
    let mut network = Network::load(&bytemuck::cast_slice(&words)[..bytes.len()], &arena)?;
    let (input, outputs) = (image(network.input_len()), network.output_len());
    measure(&name, "loaded", outputs, pools, |output| {
        network.forward(&input, output).expect("the lengths are the model's");
    });
    Ok(())
}

fn measure(
    name: &str,
    how: &str,
    outputs: usize,
    pools: &[ThreadPool; 2],
    mut infer: impl FnMut(&mut [f32]) + Send,
) {
    let mut results = [(); 2].map(|()| vec![0.0f32; outputs]);
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        for ((pool, output), times) in pools.iter().zip(&mut results).zip(&mut times) {
            pool.install(|| {
                infer(output);
                let turn = Instant::now();
                while turn.elapsed() < TURN {
                    let start = Instant::now();
                    infer(output);
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
            });
        }
    }
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&results[0]), bits(&results[1]), "{name}: threads change the result");
    let [one, several] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        (times[0], times[times.len() / 2])
    });
    println!(
        "{name}, {how}: {:.2} {:.2} {:.2}; {:.2} {:.2} {:.2}",
        one.0,
        several.0,
        one.0 / several.0,
        one.1,
        several.1,
        one.1 / several.1
    );
}
