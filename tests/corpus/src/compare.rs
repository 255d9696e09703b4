//! The macro beside the runtime: the same bits for the same input.

use netkit::arena::Bump;
use netkit::runtime::Network;
use netkit::{BatchModel, Model, QuantizedModel};

/// Amplitudes of the inputs: nothing, the ordinary, and what saturates.
const AMPLITUDES: [f32; 3] = [0.0, 2.0, 100.0];

/// Runs a model both ways on floats.
pub(crate) fn compare<M>(bytes: &[u8]) -> Result<(), String>
where
    M: Model + Default,
    for<'i> &'i M::Input: TryFrom<&'i [f32]>,
{
    with_network(bytes, |network| floats::<M>(network))
}

/// Runs an int8 model both ways, on floats and on integers.
pub(crate) fn compare_s8<M>(bytes: &[u8]) -> Result<(), String>
where
    M: QuantizedModel + Default,
    for<'i> &'i M::Input: TryFrom<&'i [f32]>,
    for<'i> &'i M::QuantizedInput: TryFrom<&'i [i8]>,
{
    with_network(bytes, |network| {
        floats::<M>(network)?;
        let mut model = Box::<M>::default();
        let mut random = Random(2);
        for kind in 0..3 {
            let input: Vec<i8> = (0..M::INPUT_LEN)
                .map(|_| match (kind, random.next() as i8) {
                    (0, any) => any,
                    (1, any) => any | 127,
                    (_, _) => i8::MIN,
                })
                .collect();
            let mut loaded = vec![0; M::OUTPUT_LEN];
            network.forward_i8(&input, &mut loaded).map_err(|error| error.to_string())?;
            let Ok(input) = input.as_slice().try_into() else {
                return Err("the input's length".to_owned());
            };
            let compiled = model.forward_i8(input);
            if compiled.as_ref() != loaded {
                return Err(format!("int8 input {kind}: the macro and the runtime differ"));
            }
        }
        Ok(())
    })
}

fn floats<M>(network: &mut Network<'_>) -> Result<(), String>
where
    M: Model + Default,
    for<'i> &'i M::Input: TryFrom<&'i [f32]>,
{
    let mut model = Box::<M>::default();
    let mut random = Random(1);
    for amplitude in AMPLITUDES {
        let input: Vec<f32> = (0..M::INPUT_LEN)
            .map(|_| amplitude * (random.next() as i32 as f32 / 2f32.powi(31)))
            .collect();
        let mut loaded = vec![0.0; M::OUTPUT_LEN];
        network.forward(&input, &mut loaded).map_err(|error| error.to_string())?;
        let Ok(input) = input.as_slice().try_into() else {
            return Err("the input's length".to_owned());
        };
        let compiled = model.forward(input);
        for (index, (compiled, loaded)) in compiled.as_ref().iter().zip(&loaded).enumerate() {
            if compiled.to_bits() != loaded.to_bits() {
                return Err(format!(
                    "input of ±{amplitude}, output {index}: {compiled} compiled, {loaded} loaded",
                ));
            }
        }
    }
    Ok(())
}

/// Runs a model on more inputs than a batch has, in batches and one by one.
pub(crate) fn compare_batches<M>() -> Result<(), String>
where
    M: BatchModel + Default,
    M::Input: for<'i> TryFrom<&'i [f32]>,
    M::Output: for<'o> TryFrom<&'o [f32]> + Clone,
{
    if size_of::<M>() != M::ARENA_BYTES {
        return Err(format!("{} bytes of arena in a type of {}", M::ARENA_BYTES, size_of::<M>()));
    }
    let mut random = Random(3);
    let mut inputs = Vec::new();
    for amplitude in AMPLITUDES.into_iter().cycle().take(2 * M::BATCH + 1) {
        let input: Vec<f32> = (0..M::INPUT_LEN)
            .map(|_| amplitude * (random.next() as i32 as f32 / 2f32.powi(31)))
            .collect();
        let Ok(input) = M::Input::try_from(&input) else {
            return Err("the input's length".to_owned());
        };
        inputs.push(input);
    }
    // One output more than there are inputs: it is left alone.
    let Ok(empty) = M::Output::try_from(&vec![f32::NAN; M::OUTPUT_LEN]) else {
        return Err("the output's length".to_owned());
    };
    let mut outputs = vec![empty; inputs.len() + 1];
    let mut model = Box::<M>::default();
    model.forward_batch_into(&inputs, &mut outputs);
    let bits = |output: &M::Output| output.as_ref().iter().map(|y| y.to_bits()).collect::<Vec<_>>();
    for (index, input) in inputs.iter().enumerate() {
        let alone = model.forward(input);
        if bits(&alone) != bits(&outputs[index]) {
            return Err(format!(
                "input {index} in batches of {}: {:?}, alone {:?}",
                M::BATCH,
                outputs[index].as_ref(),
                alone.as_ref()
            ));
        }
    }
    match outputs[inputs.len()].as_ref().iter().all(|y| y.is_nan()) {
        true => Ok(()),
        false => Err("an output without an input is written".to_owned()),
    }
}

/// Loads a model from a copy of its bytes that is aligned as the loader wants it.
fn with_network(
    bytes: &[u8],
    run: impl FnOnce(&mut Network<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    let bytes = &bytemuck::cast_slice(&words)[..bytes.len()];
    let arena = Bump::heap(16 << 20).map_err(|error| error.to_string())?;
    let mut network = Network::load(bytes, &arena).map_err(|error| error.to_string())?;
    run(&mut network)
}

/// SplitMix64, the upper half.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 32) as u32
    }
}
