//! The catalogue of rules: one code, one wording and one hint for each.

use core::fmt;

use super::Diagnostic;

macro_rules! codes {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $code:literal, $rule:literal {
            title: $title:literal,
            message: $message:literal,
            hint: $hint:literal,
            explanation: $explanation:literal,
        }
    )*) => {
        /// A rule that a model can break. Sections and rule ids are those of the format's
        /// description.
        ///
        /// The first two digits of a code tell what it is about: 01 the file and its header, 02
        /// layer records, 03 tensors, 04 quantization, 05 the network as a whole, 06 test cases,
        /// 07 limits of this implementation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as it is printed and asked for, such as `NK0503`. It never changes its
            /// meaning.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code),* }
            }

            /// The rule in the format's description: an id such as `S-CHANNELS` of section 10.3,
            /// the section `10.1` or `10.2` for a check that every reader makes, or `limit` for a
            /// limit of this implementation.
            pub const fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule),* }
            }

            /// What is wrong, in a few words that hold for every case.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title),* }
            }

            /// What to do about it.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint),* }
            }

            /// What the rule is for, what usually breaks it, and what to do: a paragraph for
            /// `netkit explain`.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation),* }
            }

            /// The sentence, with `{field}`, `{found}` and `{expected}` standing for those of the
            /// diagnostic and `{is}` for the verb that goes with the field.
            const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message),* }
            }
        }
    };
}

codes! {
    // File and header.
    /// The file is empty.
    Empty = "NK0101", "10.1" {
        title: "the file is empty",
        message: "the file is empty",
        hint: "The file was probably never written, or its download failed: make or fetch it again.",
        explanation: "The file has no bytes at all, so there is nothing to read.",
    }
    /// Not a .nk file.
    Magic = "NK0102", "10.1" {
        title: "not a .nk file",
        message: "the file starts with {found}, expected {expected}",
        hint:
            "Look whether this is the right file; ONNX models become .nk files by `netkit convert`.",
        explanation:
            "Every .nk file begins with the four bytes `NKIT`. This one does not, so it is some \
            other kind of file, or its beginning was overwritten. A pointer file of Git LFS \
            begins with `vers`, an HTML error page with `<!DO` or `<htm`; fetch the real file \
            then. An ONNX file usually begins with the byte 8.",
    }
    /// The header is cut short.
    HeaderTruncated = "NK0103", "10.1" {
        title: "the header is cut short",
        message: "the file has {found}, the header alone takes {expected}",
        hint: "The file was probably not written or copied to the end.",
        explanation:
            "The header is 48 bytes long and says how large everything behind it is. The file \
            begins like a model but ends inside its header.",
    }
    /// Unknown format version.
    Version = "NK0104", "10.1" {
        title: "unknown format version",
        message: "format version is {found}, expected {expected}",
        hint:
            "Versions 3 (float) and 4 (int8) are understood; write the model again with a matching \
            exporter, or use a newer netkit.",
        explanation:
            "The format has two versions. Version 3 holds float models; version 4 added int8 \
            models with a QUAN section. Other numbers stand for layouts that this reader does not \
            know, and guessing could give wrong answers.",
    }
    /// Too many layers or tensors.
    Limits = "NK0105", "10.1" {
        title: "too many layers or tensors",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Use fused blocks where the model has them, or split it in two.",
        explanation:
            "A file holds at most 100 layers, 128 weight tensors and 128 bias tensors. Larger \
            counts are refused before anything is read by them. If the model really is larger, \
            use fused blocks (mobilenetv4_uib, resnet_basic_block, convnextv2_block) or split it \
            in two.",
    }
    /// Unknown network kind.
    NetworkKind = "NK0106", "S-KIND" {
        title: "unknown network kind",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Export the model again; by hand, write 1 for an MLP and 2 for a CNN.",
        explanation:
            "The byte at offset 8 says whether the network is an MLP (1: dense layers on a matrix) \
            or a CNN (2: layers on a map). The meaning of the input's dimensions depends on it.",
    }
    /// Input rank does not fit the network kind.
    InputRank = "NK0107", "S-RANK" {
        title: "input rank does not fit the network kind",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Give an MLP an input of rows and features, a CNN one of height, width and channels.",
        explanation:
            "An MLP takes a matrix of rows and features, so its input has rank 2; a CNN takes a \
            map of height, width and channels, so its input has rank 3. Any other rank \
            contradicts the network kind.",
    }
    /// Input dimension missing or left over.
    InputShape = "NK0108", "S-SHAPE" {
        title: "input dimension missing or left over",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Export the model with a fixed input shape; dimensions that it does not use are 0.",
        explanation:
            "The header has room for four input dimensions. Those that the network kind uses must \
            be at least 1, as an input without elements means nothing; those that it does not use \
            must be 0.",
    }
    /// Version and quantized flag disagree.
    VersionFlag = "NK0109", "S-VERSION" {
        title: "version and quantized flag disagree",
        message: "format version is {found}, expected {expected}",
        hint: "Float models are version 3, int8 models are version 4 with flag 0x0002.",
        explanation:
            "The version and the flag 0x0002 (quantized) say the same thing twice: version 4 with \
            the flag is an int8 model, version 3 without it a float model. Where they disagree it \
            is open whether a QUAN section follows and what the tensors are, so nothing behind \
            the header is read.",
    }
    /// Unknown or contradictory flags.
    Flags = "NK0110", "S-FLAGS" {
        title: "unknown or contradictory flags",
        message: "flags are {found}, expected {expected}",
        hint: "Clear unknown bits, and set 0x0004 exactly where both 0x0001 and 0x0002 are set.",
        explanation:
            "Three flags are defined: 0x0001 says that test cases follow, 0x0002 that the model is \
            quantized, 0x0004 that the inputs of the test cases are int8. The third is set \
            exactly when the other two are. An unknown bit may announce something that this \
            reader would misread.",
    }
    /// The model has no layers.
    NoLayers = "NK0111", "S-EMPTY" {
        title: "the model has no layers",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Find out why the exporter wrote no layer, and export the model again.",
        explanation:
            "A model must have at least one layer. Without any it would return its input, which is \
            never what was meant.",
    }
    /// Weight and bias tensors do not pair up.
    TensorCounts = "NK0112", "S-COUNT" {
        title: "weight and bias tensors do not pair up",
        message: "{field} {is} {found}, expected {expected}",
        hint:
            "Every weight tensor has exactly one bias tensor; a layer without bias stores zeros.",
        explanation:
            "Every weight tensor is paired with one bias tensor: normalizations keep their scale \
            in the first and their shift in the second, and layers without a bias store zeros. \
            The two counts in the header must therefore be equal.",
    }
    /// Reserved bytes are not zero.
    Reserved = "NK0113", "S-RESERVED" {
        title: "reserved bytes are not zero",
        message: "{field} hold {found}, expected {expected}",
        hint: "Fetch or export the file again; a newer exporter may need a newer netkit.",
        explanation:
            "Bytes without a meaning are written as zero, so that a later version of the format \
            can use them. A byte that is not zero is a sign of damage, or of a writer that knows \
            more than this reader.",
    }
    /// Bytes after the last section.
    Trailing = "NK0114", "S-TRAILING" {
        title: "bytes after the last section",
        message: "the file has {found} more than its sections take",
        hint: "Cut the file at that byte: something was appended to it.",
        explanation:
            "The sizes in the header and in the sections say where the file ends. More bytes \
            follow, so either a size is too small or something was appended. If test cases were \
            appended, flag 0x0001 must be set.",
    }
    /// The file is cut short.
    FileTruncated = "NK0115", "10.1" {
        title: "the file is cut short",
        message: "the file has {found}, its header asks for {expected}",
        hint: "The file was probably not written or copied to the end.",
        explanation:
            "The header says how many bytes of weights and biases follow the tables. The file ends \
            before that. Weights that are missing cannot be made up.",
    }
    /// A size is too large.
    SizeOverflow = "NK0116", "S-OVERFLOW" {
        title: "a size is too large",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Look at each dimension: one is damaged, or the exporter mixed two fields up.",
        explanation:
            "The product of the dimensions does not fit the 32 bits that the format has for a \
            count. A damaged dimension is the usual cause: no real layer has 4 billion weights. \
            Products are checked in 64 bits, so they cannot wrap to a small number.",
    }

    // Layer records.
    /// Unknown layer kind.
    LayerKind = "NK0201", "10.1" {
        title: "unknown layer kind",
        message: "layer kind is {found}, expected {expected}",
        hint: "Fetch or export the file again, or use a newer netkit.",
        explanation:
            "The first byte of a record says what kind of layer it is, from 1 (dense) to 14 \
            (yolox_pafpn_multiscale). Its size follows from the kind, so nothing behind an \
            unknown record can be found. The record may be damaged, an earlier record may have \
            had the wrong length, or the file was written by a newer exporter.",
    }
    /// A layer record is cut short.
    LayerTruncated = "NK0202", "10.1" {
        title: "a layer record is cut short",
        message: "the file ends in a layer record: {found} left, {expected} needed",
        hint:
            "The header may count more layers than there are, or the file was not written to the \
            end.",
        explanation: "The header announces more layer records than the file has room for.",
    }
    /// Unknown activation.
    Activation = "NK0203", "S-ACT" {
        title: "unknown activation",
        message: "activation is {found}, expected {expected}",
        hint: "Train with an activation that the format has, or export the model again.",
        explanation:
            "Layers with weights carry an activation: 0 none, 1 relu, 2 sigmoid, 3 tanh, 4 \
            leaky_relu, 5 relu6, 6 softmax. Some readers take any other number as none, which \
            silently gives wrong answers; it is refused here.",
    }
    /// A number is not finite or out of range.
    Finite = "NK0204", "S-FINITE" {
        title: "a number is not finite or out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint: "A diverged training run leaves such values; train again or clamp before exporting.",
        explanation:
            "Weights, biases, test values, leaky slopes and epsilons must be finite; an epsilon \
            must not be negative and an expansion ratio must be above 0. One NaN in the weights \
            turns every output behind it into NaN. Training that diverged is the usual cause, a \
            damaged file another. Only the first bad value of each tensor is reported.",
    }
    /// Tap number out of range.
    TapId = "NK0205", "S-TAP" {
        title: "tap number out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint:
            "Number the taps from 0 to 3; a later tap of the same number replaces the earlier \
            one.",
        explanation: "A feature_tap keeps a copy of the running map under a number from 0 to 3.",
    }
    /// Feature taps do not match the pyramid.
    Taps = "NK0206", "S-TAP" {
        title: "feature taps do not match the pyramid",
        message: "{field} {is} {found}, expected {expected}",
        hint:
            "Put feature_tap 0 after the map with four times the height and width of the last, and \
            feature_tap 1 after the one with twice.",
        explanation:
            "A yolox_pafpn_multiscale layer reads two maps kept earlier besides its input: tap 0 \
            must have exactly four times the input's height and width and c3_channels channels, \
            tap 1 twice the height and width and c4_channels channels. Here a tap is missing or \
            has another size.",
    }
    /// Too many convolutions in a YOLOX head.
    YoloxConvs = "NK0207", "S-YOLOX" {
        title: "too many convolutions in a YOLOX head",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Build the head with at most 4 convolutions in each branch.",
        explanation: "Each branch of a YOLOX head has 0 to 4 convolutions.",
    }
    /// Hidden width of a YOLOX head too small.
    YoloxHidden = "NK0208", "S-YOLOX-HIDDEN" {
        title: "hidden width of a YOLOX head too small",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Widen the head to at least 4 channels and at least the number of classes.",
        explanation:
            "The hidden width of a YOLOX head should be at least 4 and at least the number of \
            classes. Narrower heads are well defined, but the engine that the format comes from \
            overruns a buffer on them.",
    }
    /// Inverted bottleneck with an impossible attribute.
    Uib = "NK0209", "S-UIB" {
        title: "inverted bottleneck with an impossible attribute",
        message: "{field} {is} {found}, expected {expected}",
        hint:
            "Use depthwise kernels that are odd or 0, and a stride above 1 only with a depthwise \
            that applies it.",
        explanation:
            "In a mobilenetv4_uib block each depthwise kernel is 0 (absent) or odd, the stride is \
            at least 1, and middle_dw_downsample is 0 or 1. A stride above 1 needs a depthwise \
            that applies it: the middle one with middle_dw_downsample 1, or the start one \
            otherwise. Without one the stride would have no effect on the map and still switch \
            off the shortcut.",
    }
    /// Inverted bottleneck that narrows behind a start depthwise.
    UibExpand = "NK0210", "S-UIB-EXPAND" {
        title: "inverted bottleneck that narrows behind a start depthwise",
        message: "{field} {is} {found}, expected {expected}",
        hint:
            "Raise expand_ratio until the block expands to at least in_channels, or leave out the \
            start depthwise.",
        explanation:
            "A mobilenetv4_uib block with a start depthwise should expand to at least as many \
            channels as it takes in. Fewer are well defined, but the engine that the format comes \
            from overlaps two buffers on them.",
    }

    // Tensors.
    /// A tensor descriptor is cut short.
    DescriptorTruncated = "NK0301", "10.1" {
        title: "a tensor descriptor is cut short",
        message: "the file ends in the tensor catalog: {found} left, {expected} needed",
        hint:
            "The header may count more tensors than there are, or the file was not written to the \
            end.",
        explanation:
            "The tensor catalog has a descriptor of 24 bytes for each weight and each bias tensor. \
            The header announces more of them than the file has room for.",
    }
    /// Tensor rank out of range.
    TensorRank = "NK0302", "S-CAT-RANK" {
        title: "tensor rank out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Export the model again, or write the tensor with one to four dimensions.",
        explanation:
            "A tensor has one to four dimensions. The rank says how many of the descriptor's four \
            are used.",
    }
    /// Wrong element type.
    TensorType = "NK0303", "S-CAT-DTYPE" {
        title: "wrong element type",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Float models hold float32 only; int8 models hold int8 weights and int32 biases.",
        explanation:
            "The element type is 1 (float32), 2 (int8) or 3 (int32). In a float model every tensor \
            is float32; in a quantized model every weight is int8 and every bias int32. The size \
            of the tensor's payload follows from the type, so a wrong one shifts everything \
            behind it.",
    }
    /// Tensor dimension missing or left over.
    TensorDims = "NK0304", "S-CAT-DIMS" {
        title: "tensor dimension missing or left over",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Write the dimensions in use first, each at least 1, and 0 in the others.",
        explanation:
            "The dimensions that the rank counts must be at least 1, the others must be 0.",
    }
    /// Element count is not the product of the dimensions.
    ElementCount = "NK0305", "S-CAT-COUNT" {
        title: "element count is not the product of the dimensions",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Export the model again; by hand, write the product of the dimensions.",
        explanation:
            "A descriptor holds the number of elements besides the dimensions. It must be their \
            product; where it is not, one of them is damaged, and the tensors behind this one \
            would be read from the wrong place.",
    }
    /// Bias is not a vector.
    BiasRank = "NK0306", "S-BIAS-RANK" {
        title: "bias is not a vector",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Reshape the bias to one dimension before exporting.",
        explanation: "A bias has one value for each output channel, so its tensor has rank 1.",
    }
    /// Payload size and tensors disagree.
    PayloadBytes = "NK0307", "S-BYTES" {
        title: "payload size and tensors disagree",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Export the model again; by hand, write what the sizes of the tensors add up to.",
        explanation:
            "Tensors lie back to back, so the payload is as long as their sizes add up to: four \
            bytes an element in float models; in quantized models one byte a weight, rounded up \
            to a multiple of 4, and four bytes a bias. The header says something else, so one of \
            the two is wrong and the tensors cannot be found.",
    }
    /// Weight padding is not zero.
    WeightTail = "NK0308", "S-TAIL" {
        title: "weight padding is not zero",
        message: "{field} hold {found}, expected {expected}",
        hint: "Export the model again, with zeros between the last weight and the first bias.",
        explanation:
            "The weights of a quantized model are followed by up to three zero bytes, so that the \
            biases begin at a multiple of 4. Those bytes belong to no weight and must be zero.",
    }
    /// Payload is not aligned.
    PayloadAlignment = "NK0309", "S-ALIGN" {
        title: "payload is not aligned",
        message: "{field} {is} at address {found} in memory, expected {expected}",
        hint:
            "Put the model into a buffer that is aligned to 4 bytes or more, such as \
            `netkit::include_model!` makes.",
        explanation:
            "Weights and biases begin at a multiple of 4 bytes. Inside a file this always holds, \
            because everything before them is a multiple of 4 bytes long; in memory it depends on \
            where the file was put. Use `Aligned` or `netkit::include_model!` instead of a bare \
            byte array.",
    }
    /// Weight shape does not fit the layer.
    TensorShape = "NK0310", "S-CAT-SHAPE" {
        title: "weight shape does not fit the layer",
        message: "weights are {found} but the layer needs {expected}",
        hint: "Export the weights in the order that the layer wants: outputs first, inputs last.",
        explanation:
            "The dimensions of a weight tensor are set by its layer: `[units, in]` for dense, \
            `[filters, K, K, in]` for conv2d, `[C, Kh, Kw]` for depthwise_conv2d, `[C]` for \
            normalizations. The right number of elements in another shape is refused too, as it \
            is the mark of weights in another order, such as channels first.",
    }
    /// Bias length does not fit the layer.
    BiasShape = "NK0311", "S-BIAS-SHAPE" {
        title: "bias length does not fit the layer",
        message: "biases are {found} but the layer needs {expected}",
        hint: "Export one bias for each output channel of the layer, zeros where it has none.",
        explanation:
            "A bias (or the shift of a normalization) has one value for each output channel of its \
            layer.",
    }
    /// Layers and tensors do not add up.
    TensorUse = "NK0312", "S-UNUSED" {
        title: "layers and tensors do not add up",
        message: "the layers use {expected} pairs of tensors but the file has {found}",
        hint:
            "Compare the layers with those that were trained: one is missing, doubled or of \
            another kind.",
        explanation:
            "Each layer takes its tensor pairs from the catalog in order: one for dense, conv2d, \
            depthwise_conv2d and the normalizations, none for pools, flatten and feature_tap, \
            several for fused blocks. In the end exactly all must be taken. Left-over or missing \
            pairs mean that a layer is not what the writer thought, and that others may have been \
            given the wrong weights.",
    }

    // Quantization.
    /// Quantization section missing.
    QuanMagic = "NK0401", "10.1" {
        title: "quantization section missing",
        message: "the section starts with {found}, expected {expected}",
        hint: "Export the model again; a float model does not have flag 0x0002.",
        explanation:
            "A model with flag 0x0002 has a QUAN section behind its tensor catalog. It begins with \
            the four bytes `QUAN`.",
    }
    /// Quantization section cut short.
    QuanTruncated = "NK0402", "10.1" {
        title: "quantization section cut short",
        message: "the file ends in the quantization section: {found} left, {expected} needed",
        hint: "The file was probably not written or copied to the end.",
        explanation:
            "The file ends inside its QUAN section: a record takes 32 bytes, and with bit 0 of \
            quan_flags a table of channel scales follows for each.",
    }
    /// Number of quantization records out of range.
    QuanCount = "NK0403", "10.1" {
        title: "number of quantization records out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Split a model of more than 100 tensor pairs in two, or keep it in float.",
        explanation:
            "The QUAN section has 1 to 100 records. A quantized model can therefore have at most \
            100 tensor pairs, and must have one.",
    }
    /// Not one quantization record a tensor pair.
    QuanRecords = "NK0404", "10.2" {
        title: "not one quantization record a tensor pair",
        message: "the section has {found}, expected {expected}",
        hint: "Quantize the model again, with one record for each weight tensor.",
        explanation:
            "Record k says how the tensors of pair k are quantized, so there must be exactly one \
            record for each pair.",
    }
    /// Unknown quantization flags.
    QuanFlags = "NK0405", "S-QUAN-FLAGS" {
        title: "unknown quantization flags",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Quantize the model again, or use a newer netkit.",
        explanation:
            "Bit 0 of quan_flags says that tables of channel scales follow. No other bit has a \
            meaning.",
    }
    /// Scale is not a positive number.
    QuanScale = "NK0406", "S-QUAN-SCALE" {
        title: "scale is not a positive number",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Calibrate with inputs that reach the layer, or give it any scale above 0.",
        explanation:
            "A scale is the real distance between two neighbouring integers, so it is finite and \
            above 0. A layer whose output was constant in calibration often ends up with scale 0; \
            give it any positive scale.",
    }
    /// Zero point out of range.
    QuanZeroPoint = "NK0407", "S-QUAN-ZP" {
        title: "zero point out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Quantize to signed bytes; the zero points of unsigned ones are 128 larger.",
        explanation:
            "The zero point of an int8 tensor is the integer that stands for 0, so it lies from \
            -128 to 127.",
    }
    /// Weights are not quantized symmetrically.
    QuanWeightZeroPoint = "NK0408", "S-QUAN-WZP" {
        title: "weights are not quantized symmetrically",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Quantize weights symmetrically: zero point 0.",
        explanation:
            "Weights and biases are quantized symmetrically: their zero point is 0. The kernels of \
            the engine that the format comes from go wrong with another one.",
    }
    /// Number of channel scales does not fit.
    QuanChannels = "NK0409", "S-QUAN-CH" {
        title: "number of channel scales does not fit",
        message: "the table has {found}, expected {expected}",
        hint: "Write one scale for each output channel, or none where w_scale holds for all.",
        explanation:
            "A table of channel scales has one scale for each output channel, or is empty where \
            all channels share w_scale.",
    }
    /// Quantization does not chain.
    QuanChain = "NK0410", "S-QUAN-CHAIN" {
        title: "quantization does not chain",
        message: "input has {found} but the layer before it gives {expected}",
        hint:
            "Write the output scale and zero point of each layer as the input of the next, bit \
            for bit.",
        explanation:
            "What a layer reads is quantized as the layer before it gave it; pools and flatten \
            hand scale and zero point on unchanged. Here the record's input differs from the \
            output of the producer, so the integers would be taken for other numbers than they \
            stand for.",
    }
    /// A 32-bit sum may overflow.
    QuanAccumulator = "NK0411", "S-QUAN-ACC" {
        title: "a 32-bit sum may overflow",
        message: "{field} {is} {found}, expected {expected}",
        hint:
            "Use fewer inputs for each output, a smaller bias or fewer softmax units, or keep the \
            model in float.",
        explanation:
            "Layers of int8 models add up products in 32 bits. With this many weights for an \
            output, or a bias this large, the sum of the largest possible products could pass \
            2^31. Rows of a softmax have the same limit at 4095 units.",
    }
    /// Activation without an int8 form.
    QuanActivation = "NK0412", "S-QUAN-ACT" {
        title: "activation without an int8 form",
        message: "activation is {found}, expected {expected}",
        hint: "Train with relu or relu6, or keep the model in float.",
        explanation:
            "Quantized layers may have no activation, relu or relu6; a dense layer may have \
            softmax. The others would need a quantization between the sum and the activation, \
            which the file does not carry. The engine that the format comes from ignores them \
            silently.",
    }
    /// Layer kind without an int8 form.
    QuanLayerKind = "NK0413", "10.2" {
        title: "layer kind without an int8 form",
        message: "a quantized model holds {found}, expected {expected}",
        hint: "Keep the model in float, or replace the layer before quantizing.",
        explanation:
            "Int8 arithmetic is defined for dense, conv2d, depthwise_conv2d, max_pool2d, \
            avg_pool2d, flatten and mobilenetv4_uib. Batch norms are folded into the convolution \
            before them when quantizing.",
    }

    // Network.
    /// Layer in a place where it cannot be.
    LayerOrder = "NK0501", "S-ORDER" {
        title: "layer in a place where it cannot be",
        message: "{found} cannot stand here: {expected}",
        hint:
            "In a CNN put a flatten before the first dense layer, and nothing but dense layers \
            behind it.",
        explanation:
            "An MLP holds dense layers only. In a CNN dense layers come behind a flatten, and \
            behind a flatten only dense layers may come.",
    }
    /// More than one flatten.
    SecondFlatten = "NK0502", "S-FLATTEN" {
        title: "more than one flatten",
        message: "this is another flatten; {expected}",
        hint: "Leave out the second flatten.",
        explanation:
            "Behind a flatten the state is a vector, so another flatten would do nothing. Readers \
            disagree about what it does to the count of features, so it is refused.",
    }
    /// Channel counts disagree.
    Channels = "NK0503", "S-CHANNELS" {
        title: "channel counts disagree",
        message: "{field} {is} {found} but the input has {expected}",
        hint: "Look at the layer before this one: what it gives is what this one takes.",
        explanation:
            "A layer on a map takes as many channels as the map has. Records other than conv2d \
            hold that number; for conv2d it is the last dimension of the weights. The layer \
            before may have another number of filters than this one was trained with.",
    }
    /// Window does not fit its input.
    Window = "NK0504", "S-WINDOW" {
        title: "window does not fit its input",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Use a stride of at least 1, and a kernel that fits the padded map.",
        explanation:
            "A kernel and a stride are at least 1, and the kernel fits into the map with its \
            padding on both axes. Some readers divide by a stride of 0, or give one row where a \
            window does not fit; it is refused here.",
    }
    /// Depthwise kernel cannot be made out.
    DepthwiseKernel = "NK0505", "10.2" {
        title: "depthwise kernel cannot be made out",
        message: "{found} do not make up {expected}",
        hint: "Export the layer again with the kernel size that its weights were trained with.",
        explanation:
            "The last byte of a depthwise_conv2d record is either the width of the kernel or the \
            padding that the bottom and right have more than the top and left. Which of them is \
            told from the number of weights of each channel. Here neither reading gives a whole \
            kernel.",
    }
    /// Pool padding as large as the window.
    PoolPadding = "NK0506", "S-POOL-PAD" {
        title: "pool padding as large as the window",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Make the padding smaller than the window.",
        explanation:
            "A pool's padding must be smaller than its window on each side, else there would be \
            windows without a single element, whose maximum or mean means nothing.",
    }
    /// Batch where none can be.
    Batch = "NK0507", "S-BATCH" {
        title: "batch where none can be",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Run the rows one by one with a model of one row.",
        explanation:
            "An MLP may compute several rows at once. A softmax would then mix the rows, and int8 \
            models are defined for one row only.",
    }
    /// A layer's output is too large.
    ActivationSize = "NK0508", "S-OVERFLOW" {
        title: "a layer's output is too large",
        message: "{field} {is} {found}, expected {expected} elements",
        hint: "Look at the layer's dimensions, padding and stride, or make the input smaller.",
        explanation:
            "The output of this layer is larger than this reader accepts, or its size does not fit \
            32 bits. A damaged dimension, padding or stride is the usual cause.",
    }

    /// No outputs.
    NoOutputs = "NK0509", "10.2" {
        title: "a layer without outputs",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Give the layer at least one output.",
        explanation:
            "A layer has at least one output: filters, units, out_channels, hidden_dim and \
            num_classes must not be 0.",
    }

    // Test cases.
    /// Test section missing.
    CasesMagic = "NK0601", "10.1" {
        title: "test section missing",
        message: "the section starts with {found}, expected {expected}",
        hint: "Export the model again; a file without test cases does not have flag 0x0001.",
        explanation:
            "A model with flag 0x0001 has a TCAS section behind its biases. It begins with the \
            four bytes `TCAS`.",
    }
    /// Test section cut short.
    CasesTruncated = "NK0602", "10.1" {
        title: "test section cut short",
        message: "the file ends in the test section: {found} left, {expected} needed",
        hint: "The file was probably not written or copied to the end.",
        explanation:
            "The file ends inside its TCAS section. Each case has a name, a label, input values \
            and output values.",
    }
    /// Number of test cases out of range.
    CaseCount = "NK0603", "10.1" {
        title: "number of test cases out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Keep 1 to 16 cases, or none and clear flag 0x0001.",
        explanation:
            "The TCAS section has 1 to 16 cases. A model without cases has no such section and \
            flag 0x0001 is not set.",
    }
    /// Length of a test name out of range.
    CaseNameLength = "NK0604", "10.1" {
        title: "length of a test name out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Give the case a name of 1 to 127 bytes.",
        explanation: "The name of a case has 1 to 127 bytes.",
    }
    /// Number of test values out of range.
    CaseValueCount = "NK0605", "10.1" {
        title: "number of test values out of range",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Leave the cases out where the input or the output is larger.",
        explanation:
            "A case has 1 to 16384 input values and as many output values at most. Models with \
            larger inputs or outputs cannot carry cases.",
    }
    /// Test values do not fit the model.
    CaseSize = "NK0606", "S-TCAS-SIZE" {
        title: "test values do not fit the model",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Make the cases again from this version of the model.",
        explanation:
            "The number of input values of a case must be that of the model's input, and likewise \
            for the output.",
    }
    /// Test label is no class of the model.
    CaseLabel = "NK0607", "S-TCAS-LABEL" {
        title: "test label is no class of the model",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Count classes from 0, and write -1 where a case has none.",
        explanation:
            "The label of a case is a class of the model, counted from 0, or -1 for none.",
    }
    /// Two test cases of one name.
    CaseDuplicate = "NK0608", "S-TCAS-DUP" {
        title: "two test cases of one name",
        message: "the name is also that of test case {found}",
        hint: "Give each case a name of its own.",
        explanation: "Cases are told apart by their names in reports, so no two have the same.",
    }
    /// Test name is not text.
    CaseNameText = "NK0609", "S-UTF8" {
        title: "test name is not text",
        message: "the name {found}, expected {expected}",
        hint: "Cut names between characters, at no more than 127 bytes of UTF-8.",
        explanation:
            "The name of a case is shown in reports, so it is UTF-8 and has no NUL. Names cut at \
            127 bytes in the middle of a character are a known fault of writers.",
    }
    /// Tolerance is not a distance.
    CaseTolerance = "NK0610", "S-TCAS" {
        title: "tolerance is not a distance",
        message: "{field} {is} {found}, expected {expected}",
        hint: "Write a small number, such as 0.0001.",
        explanation:
            "The tolerance says how far an output may be from the expected one. It is finite and \
            not negative.",
    }

    // Limits of this implementation.
    /// Too large for the address space.
    TooLarge = "NK0702", "limit" {
        title: "too large for the address space",
        message: "the model does not fit into the address space",
        hint: "Make the input or the layers smaller, or use a larger target.",
        explanation:
            "A size does not fit the address space of the machine or the limits of the planner, or \
            the tensors end behind the first 4 GiB of the file. On small targets the model may be \
            too large altogether.",
    }
    /// Working tables do not fit.
    Storage = "NK0703", "limit" {
        title: "working tables do not fit",
        message: "the tables of the model do not fit into the memory lent for them",
        hint: "Lend more memory.",
        explanation:
            "Compiling a model at run time needs room for tables of its layers and tensors, which \
            the caller lends. What was lent is too small for this model.",
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

/// What to do about a file that begins with these bytes instead of those of a model, where they tell what it is.
pub(super) const fn hint_of_other_file(start: [u8; 4]) -> Option<&'static str> {
    Some(match start {
        [b'v', b'e', b'r', b's'] => {
            "This looks like a pointer file of Git LFS: fetch the model with `git lfs pull`."
        }
        [b'<', ..] => "This looks like a web page: download the model itself.",
        // Protobuf: field 1 is ONNX's version, then a text, a message or the model's version follows.
        [0x08, 1..=31, field, _] if field & 7 == 2 || field == 0x28 => {
            "This looks like ONNX: `netkit convert` turns it into a .nk file."
        }
        _ => return None,
    })
}

/// What to do about test cases that no flag announces.
pub(super) const UNANNOUNCED_CASES: &str =
    "Test cases seem to follow: set flag 0x0001, or cut the file at that byte.";

/// Writes the sentence of `diagnostic` with its values put in.
pub(super) fn write_message(diagnostic: &Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = diagnostic.code.message();
    while let Some((before, behind)) = rest.split_once('{') {
        f.write_str(before)?;
        let Some((name, after)) = behind.split_once('}') else { break };
        match name {
            "field" => f.write_str(diagnostic.field)?,
            "is" => f.write_str(if is_plural(diagnostic.field) { "are" } else { "is" })?,
            "found" => write!(f, "{}", diagnostic.found)?,
            "expected" => write!(f, "{}", diagnostic.expected)?,
            _ => {}
        }
        rest = after;
    }
    f.write_str(rest)
}

/// Whether a field is spoken of in the plural: `weights` and `softmax units` are, `num_layers` and
/// `bias` is.
fn is_plural(field: &str) -> bool {
    field.ends_with('s') && !field.contains('_') && !["bias", "eps"].contains(&field)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;
    use crate::diag::{Axes, Dims, Site, Tensor, Value};
    use crate::format::LayerKind;

    /// Section 10.3 of the format's description, in its order. `S-TCAS` is its rule for the
    /// tolerance, which has no id of its own there.
    const STRICT_RULES: &[&str] = &[
        "S-KIND",
        "S-RANK",
        "S-SHAPE",
        "S-VERSION",
        "S-FLAGS",
        "S-EMPTY",
        "S-COUNT",
        "S-OVERFLOW",
        "S-RESERVED",
        "S-TAIL",
        "S-ALIGN",
        "S-CAT-RANK",
        "S-CAT-DTYPE",
        "S-CAT-DIMS",
        "S-CAT-COUNT",
        "S-CAT-SHAPE",
        "S-BIAS-RANK",
        "S-BIAS-SHAPE",
        "S-BYTES",
        "S-UNUSED",
        "S-CHANNELS",
        "S-WINDOW",
        "S-POOL-PAD",
        "S-ACT",
        "S-QUAN-ACT",
        "S-FINITE",
        "S-UIB",
        "S-UIB-EXPAND",
        "S-YOLOX",
        "S-YOLOX-HIDDEN",
        "S-TAP",
        "S-FLATTEN",
        "S-ORDER",
        "S-QUAN-FLAGS",
        "S-QUAN-SCALE",
        "S-QUAN-ZP",
        "S-QUAN-WZP",
        "S-QUAN-CH",
        "S-QUAN-CHAIN",
        "S-QUAN-ACC",
        "S-BATCH",
        "S-TCAS-SIZE",
        "S-TCAS-LABEL",
        "S-TCAS-DUP",
        "S-UTF8",
        "S-TCAS",
        "S-TRAILING",
    ];

    /// The rows of sections 10.1 and 10.2, and the codes that report them.
    const UPSTREAM_CHECKS: &[(&str, &[Code])] = &[
        ("empty buffer", &[Code::Empty]),
        ("fewer than 48 bytes, or wrong magic", &[Code::HeaderTruncated, Code::Magic]),
        ("version not 3 or 4", &[Code::Version]),
        ("too many layers or tensors", &[Code::Limits]),
        ("unknown layer kind, or truncated record", &[Code::LayerKind, Code::LayerTruncated]),
        ("truncated descriptor", &[Code::DescriptorTruncated]),
        ("flag 0x0002 with version 3", &[Code::VersionFlag]),
        ("bad QUAN", &[Code::QuanMagic, Code::QuanCount, Code::QuanTruncated]),
        ("file shorter than its payload", &[Code::FileTruncated]),
        ("file longer than its payload", &[Code::Trailing]),
        (
            "bad TCAS",
            &[
                Code::CasesMagic,
                Code::CaseCount,
                Code::CaseNameLength,
                Code::CaseValueCount,
                Code::CasesTruncated,
            ],
        ),
        ("network kind other than 1, 2", &[Code::NetworkKind]),
        ("payload not 4-aligned in memory", &[Code::PayloadAlignment]),
        ("MLP: weight or bias size", &[Code::TensorShape, Code::BiasShape]),
        ("quantized: record count", &[Code::QuanRecords]),
        ("quantized: dtypes", &[Code::TensorType]),
        ("quantized CNN: layer kind", &[Code::QuanLayerKind]),
        ("conv: kernel, filters, weights", &[Code::Window, Code::NoOutputs, Code::TensorShape]),
        ("depthwise: unresolvable kernel", &[Code::DepthwiseKernel]),
        ("running channels", &[Code::Channels]),
        ("dense before flatten", &[Code::LayerOrder]),
        ("out_scale not above 0", &[Code::QuanScale]),
        ("no layers", &[Code::NoLayers]),
        ("tap_id above 3", &[Code::TapId]),
        ("out of memory", &[Code::TooLarge]),
    ];

    #[test]
    fn every_rule_of_the_description_has_a_code() {
        for rule in STRICT_RULES {
            assert!(Code::ALL.iter().any(|code| code.rule() == *rule), "{rule} has no code");
        }
        for code in Code::ALL {
            let known = STRICT_RULES.contains(&code.rule())
                || ["10.1", "10.2", "limit"].contains(&code.rule());
            assert!(known, "{code}: {} is no rule", code.rule());
            if ["10.1", "10.2"].contains(&code.rule()) {
                let row = UPSTREAM_CHECKS.iter().find(|(_, codes)| codes.contains(code));
                assert!(row.is_some(), "{code} stands for no check of section {}", code.rule());
            }
        }
        assert!(UPSTREAM_CHECKS.iter().all(|(_, codes)| !codes.is_empty()));
    }

    #[test]
    fn codes_are_numbered_in_order_and_found_again() {
        let numbers: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        for code in Code::ALL {
            let text = code.as_str();
            assert!(text.len() == 6 && text.starts_with("NK"), "{text}");
            assert!(text[2..].bytes().all(|digit| digit.is_ascii_digit()), "{text}");
            assert_eq!(Code::from_text(text), Some(*code));
            assert_eq!(Code::from_text(&text.to_ascii_lowercase()), Some(*code));
        }
        assert_eq!(Code::from_text("NK0000"), None);
        assert_eq!(Code::from_text(""), None);
    }

    #[test]
    fn every_text_reads_as_it_should() {
        for code in Code::ALL {
            for (name, text) in [("title", code.title()), ("message", code.message())] {
                assert!(!text.is_empty() && !text.ends_with(['.', ' ']), "{code} {name}");
            }
            for text in [code.explanation(), code.hint()] {
                assert!(text.ends_with('.'), "{code}: {text}");
                assert!(!text.contains("  ") && !text.contains('\n'), "{code}: {text}");
                assert!(text.starts_with(|first: char| first.is_uppercase()), "{code}: {text}");
            }
            let mut message = code.message();
            while let Some((_, behind)) = message.split_once('{') {
                let (name, after) = behind.split_once('}').unwrap();
                assert!(["field", "is", "found", "expected"].contains(&name), "{code}: {name}");
                message = after;
            }
            assert!(!message.contains('}'), "{code}");
        }
    }

    #[test]
    fn a_diagnostic_reads_as_a_sentence() {
        let site = Site::layer(3, LayerKind::Conv2d).at(0x5c);
        let diagnostic = Diagnostic::new(Code::Channels, site)
            .field("weights")
            .found(Value::ShapeAs(Dims::new(&[8, 3, 3, 4]), Axes::Ohwi))
            .expected(Value::Count(3, "channel"));
        assert_eq!(
            diagnostic.to_string(),
            "layer 3 (conv2d), byte 0x5c: weights are 8×3×3×4 (OHWI) but the input has 3 \
             channels"
        );
        let everywhere = site.tensor(Tensor::Quantization(2)).case(1);
        assert_eq!(
            Diagnostic::new(Code::SecondFlatten, everywhere).to_string(),
            "layer 3 (conv2d), quantization record 2, test case 1, byte 0x5c: this is another \
             flatten; "
        );
        let whole = Diagnostic::new(Code::Empty, Site::FILE);
        assert_eq!(whole.to_string(), "the file is empty");
        assert_eq!(Site::FILE.to_string(), "file");
        assert_eq!(whole.hint(), Code::Empty.hint());
    }
}
