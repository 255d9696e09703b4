//! Element-wise functions on vectors, from polynomials of our own: no `std`, no `libm`, the same on
//! every platform up to the last places that fused multiply-add changes.

use crate::simd::{ROUND, Simd};
use netkit_core::op::Activation;

/// Whether an activation is a comparison or two, cheap enough to be part of every register tile.
pub(crate) const fn is_simple(activation: Activation) -> bool {
    matches!(
        activation,
        Activation::None | Activation::Relu | Activation::Relu6 | Activation::LeakyRelu(_)
    )
}

/// The activation of each lane.
#[inline(always)]
pub(crate) fn apply<S: Simd>(simd: S, activation: Activation, x: S::Vector) -> S::Vector {
    match activation {
        Activation::Sigmoid => sigmoid(simd, x),
        Activation::Tanh => tanh(simd, x),
        Activation::Silu => silu(simd, x),
        Activation::Gelu => gelu(simd, x),
        _ => apply_simple(simd, activation, x),
    }
}

/// The activation of each lane, if [`is_simple`]; else the lane as it is.
#[inline(always)]
pub(crate) fn apply_simple<S: Simd>(simd: S, activation: Activation, x: S::Vector) -> S::Vector {
    match activation {
        Activation::Relu => simd.max(x, simd.splat(0.0)),
        // In this order NaN stays NaN, as in `x < 0 ? 0 : x > 6 ? 6 : x`.
        Activation::Relu6 => simd.min(simd.splat(6.0), simd.max(simd.splat(0.0), x)),
        Activation::LeakyRelu(alpha) => {
            let scaled = simd.mul(x, simd.splat(alpha));
            simd.select_greater(x, simd.splat(0.0), x, scaled)
        }
        _ => x,
    }
}

/// Below this, `e^x` is 0: the result and all smaller ones would need more than one step of scaling.
const EXP_MIN: f32 = -86.98;
/// Above this, `e^x` is infinite.
const EXP_MAX: f32 = 88.722_84;

/// `e^x`, within 2 ULP for results of at least `2^−125`; smaller ones are 0. NaN stays NaN.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    let result = exp_beside_one(simd, x);
    let result = simd.select_greater(simd.splat(EXP_MIN), x, simd.splat(0.0), result);
    simd.select_greater(x, simd.splat(EXP_MAX), simd.splat(f32::INFINITY), result)
}

/// `e^x` for where 1 is added to it: what is less than about `2^−125` is about that, and what is infinite by less than a
/// third of a per cent may be the greatest float, whose inverse is as good as 0. NaN stays NaN.
#[inline(always)]
fn exp_beside_one<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    // e^x = 2^n · e^r with n = round(x / ln 2), |r| ≤ ln 2 / 2; ln 2 in two parts, the first with few
    // enough bits that n times it is exact.
    let bounded = simd.min(simd.splat(89.0), simd.max(simd.splat(EXP_MIN), x));
    let t = simd.mul_add(bounded, simd.splat(core::f32::consts::LOG2_E), simd.splat(ROUND));
    let n = simd.sub(t, simd.splat(ROUND));
    let r = simd.mul_add(n, simd.splat(-0.693_359_4), bounded);
    let r = simd.mul_add(n, simd.splat(2.121_944_4e-4), r);
    let mut p = simd.splat(EXP_POLYNOMIAL[0]);
    for &coefficient in &EXP_POLYNOMIAL[1..] {
        p = simd.mul_add(p, r, simd.splat(coefficient));
    }
    simd.scale(p, n)
}

/// `2^x` for where 1 is added to it, as [`exp_beside_one`].
#[inline(always)]
fn exp2_beside_one<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    let (r, n) = simd.split_integer(x);
    let mut p = simd.splat(EXP2_POLYNOMIAL[0]);
    for &coefficient in &EXP2_POLYNOMIAL[1..] {
        p = simd.mul_add(p, r, simd.splat(coefficient));
    }
    simd.scale(p, n)
}

/// `e^r` on |r| ≤ ln 2 / 2, highest power first: minimax for the relative error (3.2e-9 before rounding
/// the coefficients), the last two held at 1.
const EXP_POLYNOMIAL: [f32; 7] =
    [0.001_395_049_2, 0.008_368_889, 0.041_666_206, 0.166_665_18, 0.5, 1.0, 1.0];

/// `2^r` on |r| ≤ 1/2, highest power first: minimax for the relative error (1.6e-8 with the coefficients rounded).
#[allow(clippy::approx_constant, reason = "a coefficient near ln 2 that is not ln 2")]
const EXP2_POLYNOMIAL: [f32; 7] =
    [1.534_581_2e-4, 1.339_993_1e-3, 9.618_489e-3, 5.550_328_6e-2, 0.240_226_46, 0.693_147_2, 1.0];

/// `1 / (1 + e^−x)`
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    let one = simd.splat(1.0);
    simd.div(one, simd.add(one, exp_beside_one(simd, simd.sub(simd.splat(0.0), x))))
}

/// `x / (1 + e^−x)`
#[inline(always)]
pub(crate) fn silu<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    simd.div(x, simd.add(simd.splat(1.0), exp_beside_one(simd, simd.sub(simd.splat(0.0), x))))
}

/// `0.5 · x · (1 + tanh(u))` with `u = 0.79788456 · (x + 0.044715 · x³)`, as `x / (1 + e^−2u)`, which
/// is the same and loses nothing where the sum cancels.
#[inline(always)]
pub(crate) fn gelu<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    // To the base 2: its logarithm needs no product to be reduced.
    const FACTOR: f64 = -2.0 * 0.797_884_56 * core::f64::consts::LOG2_E;
    let square = simd.mul(x, x);
    let factor =
        simd.mul_add(square, simd.splat((FACTOR * 0.044_715) as f32), simd.splat(FACTOR as f32));
    simd.div(x, simd.add(simd.splat(1.0), exp2_beside_one(simd, simd.mul(x, factor))))
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(simd: S, x: S::Vector) -> S::Vector {
    // Near 0 an odd polynomial; elsewhere 1 − 2 / (e^2|x| + 1) with the sign of x.
    const SMALL: f32 = 0.625;
    let zero = simd.splat(0.0);
    let one = simd.splat(1.0);
    let two = simd.splat(2.0);
    let negated = simd.sub(zero, x);
    let magnitude = simd.select_greater(zero, x, negated, x);
    let e = exp_beside_one(simd, simd.mul(magnitude, two));
    let large = simd.sub(one, simd.div(two, simd.add(e, one)));
    let large = simd.select_greater(zero, x, simd.sub(zero, large), large);
    let square = simd.mul(x, x);
    let mut p = simd.splat(TANH_POLYNOMIAL[0]);
    for &coefficient in &TANH_POLYNOMIAL[1..] {
        p = simd.mul_add(p, square, simd.splat(coefficient));
    }
    let small = simd.mul_add(simd.mul(p, square), x, x);
    simd.select_greater(simd.splat(SMALL), magnitude, small, large)
}

/// `(tanh(x) / x − 1) / x²` in powers of `x²`, highest first, on |x| < 0.625: minimax for
/// the relative error of tanh (4.2e-9 before rounding the coefficients).
const TANH_POLYNOMIAL: [f32; 5] =
    [-0.005_717_045, 0.020_650_588, -0.053_743_497, 0.133_314_91, -0.333_332_84];
