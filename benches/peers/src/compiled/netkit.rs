//! netkit, both ways: compiled in by `netkit::model!`, and the same file through the runtime.

use netkit::Model as Compiled;
use netkit::QuantizedModel as CompiledInt8;
use netkit::arena::Bump;
use netkit::runtime::Network;

use netkit_peers::engines::Python;
use netkit_peers::measure::{Local, Runner, Session};
use netkit_peers::model::{DType, Model, Result, Values};

/// The compiled models, and how each is opened by name.
macro_rules! models {
    ($wrap:ident, $open:ident, $($type:ident = $name:literal $path:tt $($option:ident)*;)*) => {
        $(netkit::model!($type = $path, $(convolution = $option)*);)*

        fn $open(name: &str) -> Option<Box<dyn Runner>> {
            match name {
                $($name => Some(Box::new(Local($wrap::new($type::new_boxed())))),)*
                _ => None,
            }
        }
    };
}

models! {
    Float, open_float,
    MnistMlp = "mnist_mlp_f32" "made/models/mnist_mlp_f32.nk";
    MnistCnn = "mnist_cnn_f32" "made/models/mnist_cnn_f32.nk";
    MnistDscnn = "mnist_dscnn_f32" "made/models/mnist_dscnn_f32.nk";
    UibBlock = "uib_block_f32" "made/models/uib_block_f32.nk";
    ConvnextBlock = "convnext_block_f32" "made/models/convnext_block_f32.nk";
    ResnetBlock = "resnet_block_f32" "made/models/resnet_block_f32.nk";
    ResnetBlockWinograd = "resnet_block_f32_winograd" "made/models/resnet_block_f32.nk" winograd;
    MobilenetV4 = "mobilenetv4_small_f32" "made/models/mobilenetv4_small_f32.nk";
    Resnet18 = "resnet18_f32" "made/models/resnet18_f32.nk";
    Resnet18Winograd = "resnet18_f32_winograd" "made/models/resnet18_f32.nk" winograd;
}

models! {
    Int8, open_int8,
    MnistMlpInt8 = "mnist_mlp_int8" "made/models/mnist_mlp_int8.nk";
    MnistCnnInt8 = "mnist_cnn_int8" "made/models/mnist_cnn_int8.nk";
    MnistDscnnInt8 = "mnist_dscnn_int8" "made/models/mnist_dscnn_int8.nk";
    UibBlockInt8 = "uib_block_int8" "made/models/uib_block_int8.nk";
    MobilenetV4Int8 = "mobilenetv4_small_int8" "made/models/mobilenetv4_small_int8.nk";
    SineMlpInt8 = "sine_mlp_int8" "made/models/sine_mlp_int8.nk";
}

pub fn open_macro(_: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    Ok(match model.dtype {
        DType::F32 => open_float(&model.row()),
        DType::Int8 => open_int8(&model.row()),
    })
}

struct Float<M: Compiled> {
    network: Box<M>,
    input: Vec<f32>,
    output: Vec<f32>,
}

impl<M: Compiled> Float<M> {
    fn new(network: Box<M>) -> Self {
        Self { network, input: vec![0.0; M::INPUT_LEN], output: vec![0.0; M::OUTPUT_LEN] }
    }
}

impl<M: Compiled> Session for Float<M>
where
    for<'v> &'v M::Input: TryFrom<&'v [f32]>,
    for<'v> &'v mut M::Output: TryFrom<&'v mut [f32]>,
{
    fn set_input(&mut self, input: &Values) -> Result<()> {
        self.input.clear();
        self.input.extend_from_slice(input.f32()?);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let (Ok(input), Ok(output)) =
            (self.input.as_slice().try_into(), self.output.as_mut_slice().try_into())
        else {
            return Err("the model's lengths are not those of the example".into());
        };
        self.network.forward_into(input, output);
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::F32(self.output.clone()))
    }
}

struct Int8<M: CompiledInt8> {
    network: Box<M>,
    input: Vec<i8>,
    output: Vec<i8>,
}

impl<M: CompiledInt8> Int8<M> {
    fn new(network: Box<M>) -> Self {
        Self { network, input: vec![0; M::INPUT_LEN], output: vec![0; M::OUTPUT_LEN] }
    }
}

impl<M: CompiledInt8> Session for Int8<M>
where
    for<'v> &'v M::QuantizedInput: TryFrom<&'v [i8]>,
    for<'v> &'v mut M::QuantizedOutput: TryFrom<&'v mut [i8]>,
{
    fn set_input(&mut self, input: &Values) -> Result<()> {
        self.input.clear();
        self.input.extend_from_slice(input.int8()?);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let (Ok(input), Ok(output)) =
            (self.input.as_slice().try_into(), self.output.as_mut_slice().try_into())
        else {
            return Err("the model's lengths are not those of the example".into());
        };
        self.network.forward_i8_into(input, output);
        Ok(())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::Int8(self.output.clone()))
    }
}

// ---- runtime

/// What the runtime may take for activations, scratch and tables: plenty for the largest model here.
const ARENA: usize = 64 << 20;

pub fn open_runtime(_: &Python, model: &Model) -> Result<Option<Box<dyn Runner>>> {
    let Some(path) = model.file("nk").filter(|_| !model.winograd) else { return Ok(None) };
    // A network borrows its arena; a run of the comparison loads each model once and then ends.
    let arena: &'static Bump =
        Box::leak(Box::new(Bump::heap(ARENA).map_err(|error| error.to_string())?));
    let network = Network::open(path, arena).map_err(|error| error.to_string())?;
    Ok(Some(match model.dtype {
        DType::F32 => Box::new(Local(Loaded {
            network,
            input: vec![0.0f32; model.input_len],
            output: vec![0.0f32; model.output_len],
        })),
        DType::Int8 => Box::new(Local(Loaded {
            network,
            input: vec![0i8; model.input_len],
            output: vec![0i8; model.output_len],
        })),
    }))
}

struct Loaded<T> {
    network: Network<'static>,
    input: Vec<T>,
    output: Vec<T>,
}

impl Session for Loaded<f32> {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        self.input.copy_from_slice(input.f32()?);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.network
            .forward(&self.input, &mut self.output)
            .map_err(|error| error.to_string().into())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::F32(self.output.clone()))
    }
}

impl Session for Loaded<i8> {
    fn set_input(&mut self, input: &Values) -> Result<()> {
        self.input.copy_from_slice(input.int8()?);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        self.network
            .forward_i8(&self.input, &mut self.output)
            .map_err(|error| error.to_string().into())
    }

    fn output(&self) -> Result<Values> {
        Ok(Values::Int8(self.output.clone()))
    }
}
