//! Pools over the in-bounds taps of a window.

use super::conv2d::pixel_under;
use netkit_core::op::Pool2d;

/// The greatest tap, `−f32::MAX` if there is none.
pub fn max_pool2d_f32(pool: &Pool2d, input: &[f32], output: &mut [f32]) {
    let w = &pool.window;
    for oh in 0..w.out_h {
        for ow in 0..w.out_w {
            for c in 0..pool.channels {
                let mut max = -f32::MAX;
                for i in 0..w.kernel_h {
                    for j in 0..w.kernel_w {
                        let Some(pixel) = pixel_under(w, (oh, ow), (i, j)) else { continue };
                        let x = input[pixel * pool.channels + c];
                        if x > max {
                            max = x;
                        }
                    }
                }
                output[(oh * w.out_w + ow) * pool.channels + c] = max;
            }
        }
    }
}

/// The sum of the taps over their number, 0 if there is none.
pub fn average_pool2d_f32(pool: &Pool2d, input: &[f32], output: &mut [f32]) {
    let w = &pool.window;
    for oh in 0..w.out_h {
        for ow in 0..w.out_w {
            for c in 0..pool.channels {
                let (mut sum, mut count) = (0.0, 0);
                for i in 0..w.kernel_h {
                    for j in 0..w.kernel_w {
                        let Some(pixel) = pixel_under(w, (oh, ow), (i, j)) else { continue };
                        sum += f64::from(input[pixel * pool.channels + c]);
                        count += 1;
                    }
                }
                let mean = if count == 0 { 0.0 } else { sum / f64::from(count) };
                output[(oh * w.out_w + ow) * pool.channels + c] = mean as f32;
            }
        }
    }
}
