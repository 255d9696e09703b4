//! What a door is given: at first what fits, then something else in one place after the other.

use crate::harness::{Factors, Guarded, Random, Scratch};
use netkit_core::op::{Conv2d, DepthwiseConv2d, Pool2d, Window};
use netkit_core::quant::{Multiplier, OutputStage};
use netkit_kernels::{Filter, FilterForm, FilterS8};
use std::fmt::Debug;
use std::ops::Range;

/// What no extent may be. The last is one whose square overflows.
const TOO_LARGE: [usize; 3] = [usize::MAX, usize::MAX / 2, 1 << (usize::BITS / 2 + 1)];

/// The largest that an extent of a window may be.
const LARGEST: usize = (1 << (usize::BITS / 2 - 1)) - 1;

/// A multiplier that leaves sums as they are.
pub(super) const ONE: Multiplier = Multiplier { multiplier: 1 << 30, shift: 1 };

pub(super) const STAGE: OutputStage = OutputStage { zero_point: 0, low: -128, high: 127 };

/// What is changed of a call that fits.
enum Turn {
    Nothing,
    /// The inputs that an output is the sum of are none.
    NoInputs,
    /// The change that this many others come before.
    One(usize),
    /// Any; with `empty` slices, whose lengths say nothing about the factors beside one that is 0.
    Any {
        random: Random,
        empty: bool,
    },
}

/// A change that was made.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) argument: &'static str,
    /// From what to what.
    #[allow(dead_code, reason = "to be read where a test fails")]
    values: String,
    /// Whether a door must refuse it, or may compute something.
    pub(super) refused: bool,
    /// Whether it is a number in the arithmetic that no file leads to: where overflows are checked, one may be found.
    pub(super) overflows: bool,
}

/// Hands a door its arguments, in whatever order it asks for them.
pub(super) struct Arguments {
    pub(super) form: FilterForm,
    turn: Turn,
    pub(super) changes: Vec<Change>,
}

impl Arguments {
    fn new(form: FilterForm, turn: Turn) -> Self {
        Self { form, turn, changes: Vec::new() }
    }

    /// All as it should be.
    pub(super) fn fitting(form: FilterForm) -> Self {
        Self::new(form, Turn::Nothing)
    }

    /// All but one, the `turn`th of all that there are to try.
    pub(super) fn wrong_in_one(form: FilterForm, turn: usize) -> Self {
        Self::new(form, Turn::One(turn))
    }

    /// All, of a layer whose outputs are sums of nothing.
    pub(super) fn without_inputs() -> Self {
        Self::new(FilterForm::File, Turn::NoInputs)
    }

    /// Some changes, and slices that all fit or are all empty.
    pub(super) fn any(form: FilterForm, mut random: Random) -> Self {
        let empty = random.below(2) == 0;
        Self::new(form, Turn::Any { random, empty })
    }

    /// `right`, or in its turn one of those that must be refused, or of those that may be computed.
    pub(super) fn offer<T: Copy + Debug>(
        &mut self,
        argument: &'static str,
        right: T,
        wrong: &[T],
        odd: &[T],
    ) -> T {
        let all = wrong.len() + odd.len();
        let at = match &mut self.turn {
            Turn::One(before) => {
                // Behind the change there are more to come than there can be.
                let at = *before;
                *before = at.wrapping_sub(all);
                at
            }
            Turn::Any { random, .. } => random.below(8 * all + 1),
            Turn::Nothing | Turn::NoInputs => all,
        };
        let Some(&value) = wrong.iter().chain(odd).nth(at) else { return right };
        self.change(argument, right, value, at < wrong.len())
    }

    fn change<T: Debug>(&mut self, argument: &'static str, right: T, value: T, refused: bool) -> T {
        let values = format!("{right:?} -> {value:?}");
        self.changes.push(Change { argument, values, refused, overflows: false });
        value
    }

    /// A number in the arithmetic, or one that no file leads to.
    pub(super) fn number<T: Copy + Debug>(
        &mut self,
        argument: &'static str,
        right: T,
        odd: &[T],
    ) -> T {
        let before = self.changes.len();
        let value = self.offer(argument, right, &[], odd);
        self.changes.iter_mut().skip(before).for_each(|change| change.overflows = true);
        value
    }

    /// A factor of the length of some slice.
    pub(super) fn size(&mut self, argument: &'static str, right: usize) -> usize {
        let none = match &mut self.turn {
            Turn::Any { random, empty: true } => random.below(2) == 0,
            Turn::NoInputs => ["in_channels", "in_features"].contains(&argument),
            _ => false,
        };
        if none {
            return self.change(argument, right, 0, true);
        }
        let [a, b, c] = TOO_LARGE;
        self.offer(argument, right, &[0, right - 1, right + 1, a, b, c], &[LARGEST])
    }

    fn window(&mut self, right: Window) -> Window {
        let mut window = right;
        let w = &mut window;
        for (name, field) in [("in_h", &mut w.in_h), ("in_w", &mut w.in_w), ("out_w", &mut w.out_w)]
        {
            *field = self.size(name, *field);
        }
        let [a, b, c] = TOO_LARGE;
        for (name, field) in [
            ("out_h", &mut w.out_h),
            ("kernel_h", &mut w.kernel_h),
            ("kernel_w", &mut w.kernel_w),
            ("stride_h", &mut w.stride_h),
            ("stride_w", &mut w.stride_w),
            ("dilation_h", &mut w.dilation_h),
            ("dilation_w", &mut w.dilation_w),
        ] {
            *field = self.offer(name, *field, &[0, a, b, c], &[*field + 1, LARGEST]);
        }
        for (name, field) in [("pad_top", &mut w.pad_top), ("pad_left", &mut w.pad_left)] {
            *field = self.offer(name, *field, &TOO_LARGE, &[0, *field + 1, LARGEST]);
        }
        window
    }

    pub(super) fn conv2d(&mut self, right: Conv2d) -> Conv2d {
        Conv2d {
            window: self.window(right.window),
            in_channels: self.size("in_channels", right.in_channels),
            out_channels: self.size("out_channels", right.out_channels),
        }
    }

    pub(super) fn depthwise(&mut self, right: DepthwiseConv2d) -> DepthwiseConv2d {
        DepthwiseConv2d {
            window: self.window(right.window),
            channels: self.size("channels", right.channels),
            multiplier: self.size("multiplier", right.multiplier),
        }
    }

    pub(super) fn pool(&mut self, right: Pool2d) -> Pool2d {
        Pool2d {
            window: self.window(right.window),
            channels: self.size("pool channels", right.channels),
        }
    }

    /// All rows but the first.
    pub(super) fn rows(&mut self, out_h: usize) -> Range<usize> {
        let ranges = [
            (out_h, 1),
            (1, out_h + 1),
            (2, out_h + 1),
            (1, out_h - 1),
            (usize::MAX - (out_h - 1), usize::MAX),
            (1, usize::MAX),
        ];
        let (start, end) = self.offer("rows", (1, out_h), &ranges, &[]);
        start..end
    }

    fn len(&mut self, argument: &'static str, right: usize) -> usize {
        let empty = match self.turn {
            Turn::Any { empty, .. } => empty,
            Turn::NoInputs => ["input", "filter"].contains(&argument),
            _ => false,
        };
        if empty {
            return 0;
        }
        self.offer(argument, right, &[0, right.saturating_sub(1), right + 1], &[])
    }

    pub(super) fn slice<T: bytemuck::Pod>(
        &mut self,
        argument: &'static str,
        len: usize,
        value: T,
    ) -> Guarded<T> {
        Guarded::new(&vec![value; self.len(argument, len)], 0)
    }

    pub(super) fn output<T: bytemuck::Pod>(&mut self, len: usize) -> Guarded<T> {
        Guarded::output(self.len("output", len), 0)
    }

    /// Scratch of a door that wants it aligned, or takes it as it is.
    pub(super) fn scratch(&mut self, bytes: usize, aligned: bool) -> Lent {
        if bytes == 0 {
            return Lent { memory: Scratch::new(0), start: 0 };
        }
        let misaligned = [(bytes, 1)];
        let (wrong, odd): (&[_], &[_]) =
            if aligned { (&misaligned, &[]) } else { (&[], &misaligned) };
        let wrong = [&[(0, 0), (bytes - 1, 0)], wrong].concat();
        let odd = [&[(bytes + 64, 0)], odd].concat();
        let (len, start) = self.offer("scratch", (bytes, 0), &wrong, &odd);
        Lent { memory: Scratch::new(len + start), start }
    }

    /// What a float layer with weights has beside its geometry.
    pub(super) fn layer_f32(
        &mut self,
        inputs: usize,
        weights: [usize; 2],
        channels: usize,
    ) -> LayerF32 {
        let [file, packed] = weights;
        let packs = self.form == FilterForm::Packed;
        LayerF32 {
            input: self.slice("input", inputs, 1.0),
            values: self.slice("filter", if packs { packed } else { file }, 1.0),
            scale: (!packs).then(|| self.slice("scale", channels, 1.0)),
            bias: self.slice("bias", channels, 1.0),
        }
    }

    /// What an int8 layer with weights has beside its geometry.
    pub(super) fn layer_s8(
        &mut self,
        inputs: usize,
        weights: [usize; 2],
        channels: usize,
    ) -> LayerS8 {
        let [file, packed] = weights;
        let form = self.form;
        let len = if form == FilterForm::Packed { packed } else { file };
        let factor = self.factor(ONE);
        let zero_point = self.number("input_zero_point", 0, &[i32::MIN, i32::MAX]);
        LayerS8 {
            form,
            input: self.slice("input", inputs, 1),
            zero_point,
            weights: self.slice("filter", len, 1),
            bias: self.slice("bias", channels, 1),
            multipliers: Factors::new(&vec![factor; self.len("multipliers", channels)], 0),
            stage: self.stage(),
        }
    }

    /// A multiplier, or one that [`Multiplier::from_real`] never makes.
    pub(super) fn factor(&mut self, right: Multiplier) -> Multiplier {
        let odd = [(i32::MIN, i32::MIN), (i32::MAX, i32::MAX), (-1, 31), (1, -32)];
        let odd = odd.map(|(multiplier, shift)| Multiplier { multiplier, shift });
        self.number("multiplier", right, &odd)
    }

    /// Where outputs lie, or nowhere.
    pub(super) fn stage(&mut self) -> OutputStage {
        let odd = [(i32::MIN, 127, -128), (i32::MAX, -128, -128), (0, 1, 0)];
        let odd = odd.map(|(zero_point, low, high)| OutputStage { zero_point, low, high });
        self.number("stage", STAGE, &odd)
    }
}

/// Scratch that may start at any address.
pub(super) struct Lent {
    memory: Scratch,
    start: usize,
}

impl Lent {
    pub(super) fn get(&mut self) -> &mut [u8] {
        &mut self.memory.get()[self.start..]
    }
}

pub(super) struct LayerF32 {
    pub(super) input: Guarded<f32>,
    values: Guarded<f32>,
    /// In file order only.
    scale: Option<Guarded<f32>>,
    pub(super) bias: Guarded<f32>,
}

impl LayerF32 {
    pub(super) fn filter(&self) -> Filter<'_> {
        let values = self.values.get();
        match &self.scale {
            Some(scale) => Filter::File { values, scale: Some(scale.get()) },
            None => Filter::Packed(values),
        }
    }
}

pub(super) struct LayerS8 {
    form: FilterForm,
    pub(super) input: Guarded<i8>,
    pub(super) zero_point: i32,
    weights: Guarded<i8>,
    pub(super) bias: Guarded<i32>,
    pub(super) multipliers: Factors,
    pub(super) stage: OutputStage,
}

impl LayerS8 {
    pub(super) fn filter(&self) -> FilterS8<'_> {
        match self.form {
            FilterForm::File => FilterS8::File(self.weights.get()),
            FilterForm::Packed => FilterS8::Packed(self.weights.get()),
        }
    }
}
