//! The catalogue of rules: one code, one wording and at most one hint for each.

use core::fmt;

use super::Diagnostic;

macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $code:literal, $rule:literal {
            title: $title:literal,
            message: $message:literal,
            $(hint: $hint:literal,)?
        }
    )*) => {
        /// A rule that a model can break. Sections and rule ids are those of the format's description.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as it is printed and asked for, such as `NK0503`. It never changes its meaning.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }

            /// The rule in the format's description: an id such as `S-CHANNELS` of section 10.3, the section `10.1` or
            /// `10.2` for a check that every reader makes, or `limit` for a limit of this implementation.
            pub const fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule),* }
            }

            /// What is wrong, in a few words that hold for every case.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),* }
            }

            /// What to do about it, where there is something general to say.
            pub const fn hint(self) -> Option<&'static str> {
                match self { $(Self::$variant => codes!(@hint $($hint)?)),* }
            }

            /// The sentence, with `{field}`, `{found}` and `{expected}` standing for those of the diagnostic.
            const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message),* }
            }
        }
    };
    (@hint) => { None };
    (@hint $hint:literal) => { Some($hint) };
}

codes! {
    // File and header.
    /// The file is empty.
    Empty = "NK0101", "10.1" {
        title: "the file is empty",
        message: "the file is empty",
        hint: "The file was probably not written to the end, or not fetched (Git LFS leaves a pointer file, a failed download an empty one).",
    }
    /// Not a .nk file.
    Magic = "NK0102", "10.1" {
        title: "not a .nk file",
        message: "the file starts with {found}, expected {expected}",
        hint: "ONNX models are turned into .nk files by `netkit convert`.",
    }
    /// The header is cut short.
    HeaderTruncated = "NK0103", "10.1" {
        title: "the header is cut short",
        message: "the file has {found}, the header alone takes {expected}",
        hint: "The file was probably not written or copied to the end.",
    }
    /// Unknown format version.
    Version = "NK0104", "10.1" {
        title: "unknown format version",
        message: "format version is {found}, expected {expected}",
        hint: "Versions 3 (float) and 4 (int8) are understood; write the model again with a matching exporter, or use a newer netkit.",
    }
    /// Too many layers or tensors.
    Limits = "NK0105", "10.1" {
        title: "too many layers or tensors",
        message: "{field} is {found}, expected {expected}",
    }
    /// Unknown network kind.
    NetworkKind = "NK0106", "S-KIND" {
        title: "unknown network kind",
        message: "{field} is {found}, expected {expected}",
    }
    /// Input rank does not fit the network kind.
    InputRank = "NK0107", "S-RANK" {
        title: "input rank does not fit the network kind",
        message: "{field} is {found}, expected {expected}",
    }
    /// Input dimension missing or left over.
    InputShape = "NK0108", "S-SHAPE" {
        title: "input dimension missing or left over",
        message: "{field} is {found}, expected {expected}",
    }
    /// Version and quantized flag disagree.
    VersionFlag = "NK0109", "S-VERSION" {
        title: "version and quantized flag disagree",
        message: "format version is {found}, expected {expected}",
        hint: "Float models are version 3, int8 models are version 4 with flag 0x0002.",
    }
    /// Unknown or contradictory flags.
    Flags = "NK0110", "S-FLAGS" {
        title: "unknown or contradictory flags",
        message: "flags are {found}, expected {expected}",
    }
    /// The model has no layers.
    NoLayers = "NK0111", "S-EMPTY" {
        title: "the model has no layers",
        message: "{field} is {found}, expected {expected}",
    }
    /// Weight and bias tensors do not pair up.
    TensorCounts = "NK0112", "S-COUNT" {
        title: "weight and bias tensors do not pair up",
        message: "{field} is {found}, expected {expected}",
        hint: "Every weight tensor has exactly one bias tensor; a layer without bias stores zeros.",
    }
    /// Reserved bytes are not zero.
    Reserved = "NK0113", "S-RESERVED" {
        title: "reserved bytes are not zero",
        message: "{field} hold {found}, expected {expected}",
    }
    /// Bytes after the last section.
    Trailing = "NK0114", "S-TRAILING" {
        title: "bytes after the last section",
        message: "the file has {found} more than its sections take",
    }
    /// The file is cut short.
    FileTruncated = "NK0115", "10.1" {
        title: "the file is cut short",
        message: "the file has {found}, its header asks for {expected}",
        hint: "The file was probably not written or copied to the end.",
    }
    /// A size is too large.
    SizeOverflow = "NK0116", "S-OVERFLOW" {
        title: "a size is too large",
        message: "{field} is {found}, expected {expected}",
    }
    // Layer records.
    /// Unknown layer kind.
    LayerKind = "NK0201", "10.1" {
        title: "unknown layer kind",
        message: "layer kind is {found}, expected {expected}",
    }
    /// A layer record is cut short.
    LayerTruncated = "NK0202", "10.1" {
        title: "a layer record is cut short",
        message: "the file ends in a layer record: {found} left, {expected} needed",
        hint: "num_layers may be larger than the number of records, or the file was not written to the end.",
    }
    /// Unknown activation.
    Activation = "NK0203", "S-ACT" {
        title: "unknown activation",
        message: "activation is {found}, expected {expected}",
    }
    /// A number is not finite or out of range.
    Finite = "NK0204", "S-FINITE" {
        title: "a number is not finite or out of range",
        message: "{field} is {found}, expected {expected}",
        hint: "A diverged training run leaves such values; train again or clamp before exporting.",
    }
    /// Tap number out of range.
    TapId = "NK0205", "S-TAP" {
        title: "tap number out of range",
        message: "{field} is {found}, expected {expected}",
    }
    /// Feature taps do not match the pyramid.
    Taps = "NK0206", "S-TAP" {
        title: "feature taps do not match the pyramid",
        message: "{field} is {found}, expected {expected}",
        hint: "Put feature_tap 0 after the map with four times the height and width of the last, and feature_tap 1 after the one with twice.",
    }
    /// Too many convolutions in a YOLOX head.
    YoloxConvs = "NK0207", "S-YOLOX" {
        title: "too many convolutions in a YOLOX head",
        message: "{field} is {found}, expected {expected}",
    }
    /// Hidden width of a YOLOX head too small.
    YoloxHidden = "NK0208", "S-YOLOX-HIDDEN" {
        title: "hidden width of a YOLOX head too small",
        message: "{field} is {found}, expected {expected}",
    }
    /// Inverted bottleneck with an impossible attribute.
    Uib = "NK0209", "S-UIB" {
        title: "inverted bottleneck with an impossible attribute",
        message: "{field} is {found}, expected {expected}",
    }
    /// Inverted bottleneck that narrows behind a start depthwise.
    UibExpand = "NK0210", "S-UIB-EXPAND" {
        title: "inverted bottleneck that narrows behind a start depthwise",
        message: "{field} is {found}, expected {expected}",
    }
    // Tensors.
    /// A tensor descriptor is cut short.
    DescriptorTruncated = "NK0301", "10.1" {
        title: "a tensor descriptor is cut short",
        message: "the file ends in the tensor catalog: {found} left, {expected} needed",
        hint: "num_weight_tensors or num_bias_tensors may be too large, or the file was not written to the end.",
    }
    /// Tensor rank out of range.
    TensorRank = "NK0302", "S-CAT-RANK" {
        title: "tensor rank out of range",
        message: "{field} is {found}, expected {expected}",
    }
    /// Wrong element type.
    TensorType = "NK0303", "S-CAT-DTYPE" {
        title: "wrong element type",
        message: "{field} is {found}, expected {expected}",
        hint: "Float models hold float32 only; int8 models hold int8 weights and int32 biases.",
    }
    /// Tensor dimension missing or left over.
    TensorDims = "NK0304", "S-CAT-DIMS" {
        title: "tensor dimension missing or left over",
        message: "{field} is {found}, expected {expected}",
    }
    /// Element count is not the product of the dimensions.
    ElementCount = "NK0305", "S-CAT-COUNT" {
        title: "element count is not the product of the dimensions",
        message: "{field} is {found}, expected {expected}",
    }
    /// Bias is not a vector.
    BiasRank = "NK0306", "S-BIAS-RANK" {
        title: "bias is not a vector",
        message: "{field} is {found}, expected {expected}",
    }
    /// Payload size and tensors disagree.
    PayloadBytes = "NK0307", "S-BYTES" {
        title: "payload size and tensors disagree",
        message: "{field} is {found}, expected {expected}",
    }
    /// Weight padding is not zero.
    WeightTail = "NK0308", "S-TAIL" {
        title: "weight padding is not zero",
        message: "{field} hold {found}, expected {expected}",
    }
    /// Payload is not aligned.
    PayloadAlignment = "NK0309", "S-ALIGN" {
        title: "payload is not aligned",
        message: "{field} is {found}, expected {expected}",
    }
    /// Weight shape does not fit the layer.
    TensorShape = "NK0310", "S-CAT-SHAPE" {
        title: "weight shape does not fit the layer",
        message: "weights are {found} but the layer needs {expected}",
    }
    /// Bias length does not fit the layer.
    BiasShape = "NK0311", "S-BIAS-SHAPE" {
        title: "bias length does not fit the layer",
        message: "bias is {found} but the layer needs {expected}",
    }
    /// Layers and tensors do not add up.
    TensorUse = "NK0312", "S-UNUSED" {
        title: "layers and tensors do not add up",
        message: "the layers use {expected} but the file holds {found}",
    }
    // Quantization.
    /// Quantization section missing.
    QuanMagic = "NK0401", "10.1" {
        title: "quantization section missing",
        message: "the section starts with {found}, expected {expected}",
    }
    /// Quantization section cut short.
    QuanTruncated = "NK0402", "10.1" {
        title: "quantization section cut short",
        message: "the file ends in the quantization section: {found} left, {expected} needed",
        hint: "The file was probably not written or copied to the end.",
    }
    /// Number of quantization records out of range.
    QuanCount = "NK0403", "10.1" {
        title: "number of quantization records out of range",
        message: "{field} is {found}, expected {expected}",
    }
    /// Not one quantization record a tensor pair.
    QuanRecords = "NK0404", "10.2" {
        title: "not one quantization record a tensor pair",
        message: "the section has {found}, expected {expected}",
    }
    /// Unknown quantization flags.
    QuanFlags = "NK0405", "S-QUAN-FLAGS" {
        title: "unknown quantization flags",
        message: "{field} is {found}, expected {expected}",
    }
    /// Scale is not a positive number.
    QuanScale = "NK0406", "S-QUAN-SCALE" {
        title: "scale is not a positive number",
        message: "{field} is {found}, expected {expected}",
    }
    /// Zero point out of range.
    QuanZeroPoint = "NK0407", "S-QUAN-ZP" {
        title: "zero point out of range",
        message: "{field} is {found}, expected {expected}",
    }
    /// Weights are not quantized symmetrically.
    QuanWeightZeroPoint = "NK0408", "S-QUAN-WZP" {
        title: "weights are not quantized symmetrically",
        message: "{field} is {found}, expected {expected}",
        hint: "Quantize weights symmetrically: zero point 0.",
    }
    /// Number of channel scales does not fit.
    QuanChannels = "NK0409", "S-QUAN-CH" {
        title: "number of channel scales does not fit",
        message: "the record has {found}, expected {expected}",
    }
    /// Quantization does not chain.
    QuanChain = "NK0410", "S-QUAN-CHAIN" {
        title: "quantization does not chain",
        message: "input has {found} but the layer before it gives {expected}",
    }
    /// A 32-bit sum may overflow.
    QuanAccumulator = "NK0411", "S-QUAN-ACC" {
        title: "a 32-bit sum may overflow",
        message: "{field} is {found}, expected {expected}",
    }
    /// Activation without an int8 form.
    QuanActivation = "NK0412", "S-QUAN-ACT" {
        title: "activation without an int8 form",
        message: "activation is {found}, expected {expected}",
    }
    /// Layer kind without an int8 form.
    QuanLayerKind = "NK0413", "10.2" {
        title: "layer kind without an int8 form",
        message: "a quantized model holds {found}, expected {expected}",
        hint: "Keep the model in float, or replace the layer before quantizing.",
    }
    // Network.
    /// Layer in a place where it cannot be.
    LayerOrder = "NK0501", "S-ORDER" {
        title: "layer in a place where it cannot be",
        message: "{found} cannot stand here: {expected}",
    }
    /// More than one flatten.
    SecondFlatten = "NK0502", "S-FLATTEN" {
        title: "more than one flatten",
        message: "this is another flatten; {expected}",
    }
    /// Channel counts disagree.
    Channels = "NK0503", "S-CHANNELS" {
        title: "channel counts disagree",
        message: "{field} is {found} but the input has {expected}",
    }
    /// Window does not fit its input.
    Window = "NK0504", "S-WINDOW" {
        title: "window does not fit its input",
        message: "{field} is {found}, expected {expected}",
    }
    /// Depthwise kernel cannot be made out.
    DepthwiseKernel = "NK0505", "10.2" {
        title: "depthwise kernel cannot be made out",
        message: "{found} do not make up a kernel of {expected}",
    }
    /// Pool padding as large as the window.
    PoolPadding = "NK0506", "S-POOL-PAD" {
        title: "pool padding as large as the window",
        message: "{field} is {found}, expected {expected}",
    }
    /// Batch where none can be.
    Batch = "NK0507", "S-BATCH" {
        title: "batch where none can be",
        message: "rows is {found}, expected {expected}",
        hint: "Run the rows one by one with a model of one row.",
    }
    /// A layer's output is too large.
    ActivationSize = "NK0508", "S-OVERFLOW" {
        title: "a layer's output is too large",
        message: "the output has {found}, expected {expected}",
    }
    // Test cases.
    /// Test section missing.
    CasesMagic = "NK0601", "10.1" {
        title: "test section missing",
        message: "the section starts with {found}, expected {expected}",
    }
    /// Test section cut short.
    CasesTruncated = "NK0602", "10.1" {
        title: "test section cut short",
        message: "the file ends in the test section: {found} left, {expected} needed",
        hint: "The file was probably not written or copied to the end.",
    }
    /// Number of test cases out of range.
    CaseCount = "NK0603", "10.1" {
        title: "number of test cases out of range",
        message: "{field} is {found}, expected {expected}",
    }
    /// Length of a test name out of range.
    CaseNameLength = "NK0604", "10.1" {
        title: "length of a test name out of range",
        message: "{field} is {found}, expected {expected}",
    }
    /// Number of test values out of range.
    CaseValueCount = "NK0605", "10.1" {
        title: "number of test values out of range",
        message: "{field} is {found}, expected {expected}",
    }
    /// Test values do not fit the model.
    CaseSize = "NK0606", "S-TCAS-SIZE" {
        title: "test values do not fit the model",
        message: "{field} is {found}, expected {expected}",
    }
    /// Test label is no class of the model.
    CaseLabel = "NK0607", "S-TCAS-LABEL" {
        title: "test label is no class of the model",
        message: "{field} is {found}, expected {expected}",
    }
    /// Two test cases of one name.
    CaseDuplicate = "NK0608", "S-TCAS-DUP" {
        title: "two test cases of one name",
        message: "the name is also that of {found}",
    }
    /// Test name is not text.
    CaseNameText = "NK0609", "S-UTF8" {
        title: "test name is not text",
        message: "the name {found}, expected {expected}",
    }
    /// Tolerance is not a distance.
    CaseTolerance = "NK0610", "S-TCAS" {
        title: "tolerance is not a distance",
        message: "{field} is {found}, expected {expected}",
    }
    // Limits of this implementation.
    /// Layer kind not supported yet.
    UnsupportedLayer = "NK0701", "limit" {
        title: "layer kind not supported yet",
        message: "{found} layers are not supported by this version of netkit",
    }
    /// Too large for the address space.
    TooLarge = "NK0702", "limit" {
        title: "too large for the address space",
        message: "{field} is {found}, expected {expected}",
    }
    /// Working tables do not fit.
    Storage = "NK0703", "limit" {
        title: "working tables do not fit",
        message: "{field} is {found}, expected {expected}",
        hint: "Lend more memory.",
    }
}

impl Code {
    /// The code that prints as `text`, in any case: `nk0503` is found too.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Writes the sentence of `diagnostic` with its values put in.
pub(super) fn write_message(diagnostic: &Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = diagnostic.code.message();
    while let Some((before, behind)) = rest.split_once('{') {
        f.write_str(before)?;
        let Some((name, after)) = behind.split_once('}') else { break };
        match name {
            "field" => f.write_str(diagnostic.field)?,
            "found" => write!(f, "{}", diagnostic.found)?,
            "expected" => write!(f, "{}", diagnostic.expected)?,
            _ => {}
        }
        rest = after;
    }
    f.write_str(rest)
}
