//! Int8 pooling (section 8.5).

use super::conv2d::pixel_under;
use netkit_core::op::Pool2d;

/// The values under the window of one output pixel and channel.
fn values<'a>(
    pool: &'a Pool2d,
    input: &'a [i8],
    pixel: (usize, usize),
    channel: usize,
) -> impl Iterator<Item = i8> + 'a {
    let w = &pool.window;
    let taps = (0..w.kernel_h).flat_map(move |i| (0..w.kernel_w).map(move |j| (i, j)));
    taps.filter_map(move |tap| pixel_under(w, pixel, tap))
        .map(move |under| input[under * pool.channels + channel])
}

fn pool2d(pool: &Pool2d, output: &mut [i8], of: impl Fn((usize, usize), usize) -> i8) {
    for oh in 0..pool.window.out_h {
        for ow in 0..pool.window.out_w {
            for c in 0..pool.channels {
                output[(oh * pool.window.out_w + ow) * pool.channels + c] = of((oh, ow), c);
            }
        }
    }
}

/// Maximum over the in-bounds taps of each window; −128 where there is none.
pub fn max_pool2d_s8(pool: &Pool2d, input: &[i8], output: &mut [i8]) {
    pool2d(pool, output, |pixel, c| values(pool, input, pixel, c).max().unwrap_or(i8::MIN));
}

/// Rounded mean of the in-bounds taps of each window; 0 where there is none.
pub fn average_pool2d_s8(pool: &Pool2d, input: &[i8], output: &mut [i8]) {
    pool2d(pool, output, |pixel, c| {
        let sum: i64 = values(pool, input, pixel, c).map(i64::from).sum();
        let count = values(pool, input, pixel, c).count() as i64;
        let half = if sum > 0 { count / 2 } else { -(count / 2) };
        if count == 0 { 0 } else { ((sum + half) / count) as i8 }
    });
}
