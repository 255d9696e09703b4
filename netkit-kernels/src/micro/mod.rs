//! Int8 kernels for processors without vectors: microcontrollers.
//!
//! Filters are read in file order, where they lie. What is prepared is the input: the taps of a few
//! output pixels are gathered in scratch as 16-bit values without zero point, so that padding is 0 and
//! the inner loops, the [`Passes`], are products and sums alone. A pass computes all output channels from
//! one preparation.
//!
//! The passes of a processor are functions that get a structure: what to read, where to write. Most are
//! assembly, which this contract suits.

#[cfg(any(test, not(netkit_mve)))]
pub(crate) mod conv2d_s8;
#[cfg(any(test, not(netkit_mve)))]
pub(crate) mod dense_s8;
#[cfg(any(test, not(netkit_mve)))]
pub(crate) mod depthwise_conv2d_s8;
#[cfg(any(test, not(netkit_mve)))]
pub(crate) mod finish;
mod gather;
mod max_pool2d_s8;
#[cfg(any(test, not(any(netkit_mve, netkit_dsp, netkit_thumb2))))]
pub(crate) mod plain;
#[cfg(any(test, netkit_mve))]
mod vector;

#[cfg(netkit_micro)]
mod native;
mod textbook;

pub(crate) use max_pool2d_s8::raise;

#[cfg(netkit_micro)]
pub(crate) use native::{
    conv2d_s8, conv2d_s8_scratch, dense_s8, depthwise_conv2d_s8, depthwise_conv2d_s8_scratch,
    max_pool2d_s8,
};

/// The inner loops of one kind of processor.
///
/// A pass advances its pointers past what it has used; a driver then may set them back and start it once more for a
/// last, overlapping block of channels.
#[cfg(any(test, not(netkit_mve)))]
pub(crate) trait Passes {
    /// Channels that [`conv2d`](Self::conv2d) computes together.
    const CONV2D_CHANNELS: usize;

    /// Computes `blocks` blocks of [`CONV2D_CHANNELS`](Self::CONV2D_CHANNELS) output channels of two pixels.
    ///
    /// # Safety
    ///
    /// For every block the rows of weights, biases, multipliers and outputs of either pixel are there; the columns hold
    /// `whole_groups + 1` groups, and there are at least four taps.
    unsafe fn conv2d(pass: &mut conv2d_s8::Pass);

    /// Computes `blocks` times [`BLOCK`](dense_s8::BLOCK) output features.
    ///
    /// # Safety
    ///
    /// For every block the rows of weights, biases, multipliers and outputs are there, and there are at least four
    /// taps.
    unsafe fn dense(pass: &mut dense_s8::Pass);

    /// Computes `blocks` times [`BLOCK`](depthwise_conv2d_s8::BLOCK) channels of one pixel: `rows` times `columns`
    /// taps, possibly none.
    ///
    /// # Safety
    ///
    /// For every block the inputs at each tap, weights, biases, multipliers and outputs are there.
    unsafe fn depthwise_conv2d(pass: &mut depthwise_conv2d_s8::Pass);

    /// Four input bytes as 16-bit values in the order 0, 2, 1, 3, the halves of `offset` added.
    #[inline(always)]
    fn widen(offset: u32, bytes: [i8; 4]) -> [u32; 2] {
        let [a, b, c, d] =
            bytes.map(|byte| u32::from(i16::from(byte).wrapping_add(offset as i16) as u16));
        [a | c << 16, b | d << 16]
    }
}

/// The input's zero point, negated, in both halves of a word.
#[cfg(any(test, not(netkit_mve)))]
fn offset_pair(zero_point: i32) -> u32 {
    u32::from(zero_point.wrapping_neg() as u16) * 0x1_0001
}

/// The first `bytes` bytes of scratch as words; `None` if it is too short or not aligned to a word.
fn words(scratch: &mut [u8], bytes: usize) -> Option<&mut [u32]> {
    bytemuck::try_cast_slice_mut(scratch.get_mut(..bytes)?).ok()
}

#[cfg(test)]
mod tests {
    use super::plain::Plain;
    use super::textbook::{Shape, Textbook};
    use super::{conv2d_s8, dense_s8, depthwise_conv2d_s8, max_pool2d_s8, vector};
    use crate::filter_s8::FilterS8;
    use crate::generic::conv2d_s8::Conv2dS8;
    use crate::generic::dense_s8::DenseS8;
    use crate::generic::depthwise_conv2d_s8::DepthwiseConv2dS8;
    use crate::generic::max_pool2d_s8::MaxPool2dS8;
    use crate::reference::{self, LayerS8};
    use netkit_core::op::{Conv2d, Dense, DepthwiseConv2d, Padding, Pool2d, Window};
    use netkit_core::quant::{Multiplier, OutputStage};
    use std::vec::Vec;
    use std::{format, vec};

    struct Data {
        input: Vec<i8>,
        weights: Vec<i8>,
        bias: Vec<i32>,
        multipliers: Vec<Multiplier>,
        stage: OutputStage,
    }

    impl Data {
        fn new(input: usize, weights: usize, channels: usize) -> Self {
            let mut state = 1_u32;
            let mut random = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 8
            };
            Self {
                input: (0..input).map(|_| random() as i8).collect(),
                weights: (0..weights).map(|_| random() as i8).collect(),
                bias: (0..channels).map(|_| random() as i32 % 20_000 - 10_000).collect(),
                multipliers: (0..channels)
                    .map(|_| Multiplier {
                        multiplier: (1 << 30) + (random() as i32 & 0x3fff_ffff),
                        shift: -8 - random() as i32 % 4,
                    })
                    .collect(),
                stage: OutputStage { zero_point: -7, low: -100, high: 100 },
            }
        }

        fn textbook(&self, shape: Shape) -> Textbook<'_> {
            Textbook { shape, input: &self.input, weights: &self.weights, layer: self.layer() }
        }

        fn layer(&self) -> LayerS8<'_> {
            LayerS8 {
                input_zero_point: 5,
                bias: &self.bias,
                multipliers: &self.multipliers,
                stage: self.stage,
            }
        }
    }

    #[test]
    fn the_textbook_knows_multipliers_and_gaps() {
        let mut window = window(5, 3, 1, 1);
        window.dilation_h = 2;
        let conv = DepthwiseConv2d { window, channels: 3, multiplier: 2 };
        let data = Data::new(window.in_pixels() * 3, window.taps() * 6, 6);
        let Data { input, weights, .. } = &data;
        let mut expected = vec![0; window.out_pixels() * 6];
        reference::depthwise_conv2d_s8(&conv, input, weights, data.layer(), &mut expected);
        let textbook = data.textbook(Shape::depthwise(&conv));
        let first = 2;
        let mut output = vec![0; (window.out_h - first) * window.out_w * 6];
        textbook.compute(first, &mut output);
        assert_eq!(output, expected[first * window.out_w * 6..]);
    }

    fn window(side: usize, kernel: u32, stride: u32, padding: u32) -> Window {
        let padding = Padding::symmetric(padding, padding);
        Window::new((side, side + 1), (kernel, kernel), stride, padding).unwrap()
    }

    fn words(bytes: usize) -> Vec<u32> {
        vec![0; bytes.div_ceil(4)]
    }

    #[test]
    fn convolutions_are_those_of_the_reference() {
        for (side, kernel, stride, padding) in
            [(5, 3, 1, 0), (5, 3, 1, 1), (7, 3, 2, 1), (4, 1, 1, 0), (6, 2, 2, 0), (2, 5, 1, 3)]
        {
            for in_channels in [1, 2, 3, 4, 5, 8] {
                for out_channels in [4, 5, 6, 7] {
                    let window = window(side, kernel, stride, padding);
                    let conv = Conv2d { window, in_channels, out_channels };
                    let data = Data::new(
                        window.in_pixels() * in_channels,
                        window.taps() * in_channels * out_channels,
                        out_channels,
                    );
                    let mut expected = vec![0; window.out_pixels() * out_channels];
                    let Data { input, weights, .. } = &data;
                    reference::conv2d_s8(&conv, input, weights, data.layer(), &mut expected);
                    let mut output = vec![0; expected.len()];
                    let textbook = data.textbook(Shape::conv2d(&conv));
                    textbook.compute(0, &mut output);
                    assert_eq!(output, expected, "{conv:?}");
                    let few = window.taps() * in_channels < 4;
                    type Door = fn(&mut Conv2dS8<'_>, &[i8]) -> bool;
                    let doors: [(Door, usize, bool); 3] = [
                        (conv2d_s8::conv2d_s8::<Plain<2>>, conv2d_s8::scratch(&conv), !few),
                        (conv2d_s8::conv2d_s8::<Plain<4>>, conv2d_s8::scratch(&conv), !few),
                        (vector::conv2d_s8::conv2d_s8, vector::conv2d_s8::scratch(&conv), true),
                    ];
                    // Whole, and without its first row.
                    let firsts = [0, 1.min(window.out_h - 1)];
                    for ((door, scratch, computes), first) in
                        doors.into_iter().flat_map(|door| firsts.map(|first| (door, first)))
                    {
                        let expected = &expected[first * window.out_w * out_channels..];
                        let mut output = vec![0; expected.len()];
                        let mut scratch = words(scratch);
                        let mut call = Conv2dS8 {
                            conv,
                            input,
                            input_zero_point: 5,
                            filter: FilterS8::File(weights),
                            bias: &data.bias,
                            multipliers: &data.multipliers,
                            stage: data.stage,
                            rows: first..window.out_h,
                            output: &mut output,
                            scratch: bytemuck::cast_slice_mut(&mut scratch),
                        };
                        assert_eq!(door(&mut call, weights), computes, "{conv:?}");
                        if computes {
                            assert_eq!(output, expected, "{conv:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn dense_layers_are_those_of_the_reference() {
        for in_features in 4..12 {
            for out_features in 4..10 {
                let dense = Dense { rows: 2, in_features, out_features };
                let data = Data::new(2 * in_features, in_features * out_features, out_features);
                let mut expected = vec![0; 2 * out_features];
                let Data { input, weights, .. } = &data;
                reference::dense_s8(&dense, input, weights, data.layer(), &mut expected);
                let mut output = vec![0; expected.len()];
                let textbook = data.textbook(Shape::dense(&dense));
                textbook.compute(0, &mut output);
                assert_eq!(output, expected, "{dense:?}");
                for door in [dense_s8::dense_s8::<Plain<2>>, vector::dense_s8::dense_s8] {
                    let mut output = vec![0; 2 * out_features];
                    let mut call = DenseS8 {
                        dense,
                        input,
                        input_zero_point: 5,
                        filter: FilterS8::File(weights),
                        bias: &data.bias,
                        multipliers: &data.multipliers,
                        stage: data.stage,
                        output: &mut output,
                        scratch: &mut [],
                    };
                    assert!(door(&mut call, weights), "{dense:?}");
                    assert_eq!(output, expected, "{dense:?}");
                }
            }
        }
    }

    #[test]
    fn depthwise_convolutions_are_those_of_the_reference() {
        for (side, kernel, stride, padding) in
            [(5, 3, 1, 0), (5, 3, 1, 1), (7, 3, 2, 1), (6, 5, 2, 2), (2, 7, 1, 3), (1, 1, 1, 2)]
        {
            for channels in 4..10 {
                let window = window(side, kernel, stride, padding);
                let conv = DepthwiseConv2d { window, channels, multiplier: 1 };
                let data =
                    Data::new(window.in_pixels() * channels, window.taps() * channels, channels);
                let mut expected = vec![0; window.out_pixels() * channels];
                let Data { input, weights, .. } = &data;
                let layer = data.layer();
                reference::depthwise_conv2d_s8(&conv, input, weights, layer, &mut expected);
                type Door = fn(&mut DepthwiseConv2dS8<'_>, &[i8]) -> bool;
                let doors: [(Door, usize); 2] = [
                    (
                        depthwise_conv2d_s8::depthwise_conv2d_s8::<Plain<2>>,
                        depthwise_conv2d_s8::scratch(&conv),
                    ),
                    (
                        vector::depthwise_conv2d_s8::depthwise_conv2d_s8,
                        vector::depthwise_conv2d_s8::scratch(&conv),
                    ),
                ];
                for (door, scratch) in doors {
                    let mut output = vec![0; expected.len()];
                    let mut scratch = words(scratch);
                    let mut call = DepthwiseConv2dS8 {
                        conv,
                        input,
                        input_zero_point: 5,
                        filter: FilterS8::File(weights),
                        bias: &data.bias,
                        multipliers: &data.multipliers,
                        stage: data.stage,
                        rows: 0..window.out_h,
                        output: &mut output,
                        scratch: bytemuck::cast_slice_mut(&mut scratch),
                    };
                    assert!(door(&mut call, weights), "{conv:?}");
                    assert_eq!(output, expected, "{conv:?}");
                }
            }
        }
    }

    #[test]
    fn maxima_are_those_of_the_reference() {
        for (side, kernel, stride, padding) in
            [(6, 2, 2, 0), (5, 3, 1, 1), (5, 2, 1, 1), (4, 1, 1, 0), (2, 5, 3, 2)]
        {
            for channels in [1, 3, 4, 9, 33] {
                let pool = Pool2d { window: window(side, kernel, stride, padding), channels };
                let input = Data::new(pool.window.in_pixels() * channels, 0, 0).input;
                let mut expected = vec![0; pool.window.out_pixels() * channels];
                reference::max_pool2d_s8(&pool, &input, &mut expected);
                for first in [0, 1.min(pool.window.out_h - 1)] {
                    let expected = &expected[first * pool.window.out_w * channels..];
                    let mut output = vec![0; expected.len()];
                    max_pool2d_s8::max_pool2d_s8(MaxPool2dS8 {
                        pool,
                        input: &input,
                        rows: first..pool.window.out_h,
                        output: &mut output,
                    });
                    assert_eq!(output, expected, "{pool:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_out_of_reach_is_declined_and_nothing_written() {
        let dense = Dense { rows: 1, in_features: 4, out_features: 4 };
        let data = Data::new(4, 16, 4);
        let tries = [
            ("a weight is missing", &data.weights[..15], data.multipliers.clone()),
            ("a shift is not to the right", &data.weights[..], {
                vec![Multiplier { multiplier: 1 << 30, shift: 0 }; 4]
            }),
        ];
        for (what, weights, multipliers) in tries {
            let mut output = [99; 4];
            let mut call = DenseS8 {
                dense,
                input: &data.input,
                input_zero_point: 5,
                filter: FilterS8::File(weights),
                bias: &data.bias,
                multipliers: &multipliers,
                stage: data.stage,
                output: &mut output,
                scratch: &mut [],
            };
            let what = format!("{what}, but");
            assert!(!dense_s8::dense_s8::<Plain<2>>(&mut call, weights), "{what} it is computed");
            assert_eq!(output, [99; 4], "{what} something is written");
        }
    }
}
