//! Reads handwritten digits with a network that became part of this program when it was compiled.
//!
//! ```sh
//! cargo run --release --example digits
//! ```

use std::time::{Duration, Instant};

// The whole integration: the file becomes a type, its weights become constants.
netkit::model!(
    /// Reads a digit from 28×28 pixels.
    Digits = "models/mnist_cnn.nk"
);

/// The first 1,000 test digits of MNIST: 28 rows of 28 pixels each, 0 is background and 255 is ink.
static IMAGES: &[u8] = include_bytes!("../models/digits/images.u8");
/// What each of them is.
static LABELS: &[u8] = include_bytes!("../models/digits/labels.u8");

/// Digits shown as text.
const SHOWN: usize = 3;

fn main() {
    let mut model = Digits::new_boxed();
    let (images, _) = IMAGES.as_chunks::<{ Digits::INPUT_LEN }>();

    let mut correct = 0;
    let mut elapsed = Duration::ZERO;
    for (index, (image, &label)) in images.iter().zip(LABELS).enumerate() {
        let input = image.map(|pixel| f32::from(pixel) / 255.0);
        let started = Instant::now();
        let scores = model.forward(&input);
        elapsed += started.elapsed();
        let (digit, score) = best(&scores);
        correct += usize::from(digit == usize::from(label));
        if index < SHOWN {
            println!("{}", drawing(image));
            println!("This is a {digit} ({:.1} % sure), and it is a {label}.\n", 100.0 * score);
        }
    }

    println!("time per image: {:.1} µs", elapsed.as_secs_f64() * 1e6 / images.len() as f64);
    println!("multiply-accumulates: {}", Digits::MACS);
    println!("arena: {} bytes, {} of them scratch", Digits::ARENA_BYTES, Digits::SCRATCH_BYTES);
    println!("weights: {} bytes", Digits::WEIGHT_BYTES);
    println!("accuracy: {correct}/{}", images.len());
}

/// The digit with the highest score.
fn best(scores: &[f32]) -> (usize, f32) {
    let mut best = (0, f32::MIN);
    for (digit, &score) in scores.iter().enumerate() {
        if score > best.1 {
            best = (digit, score);
        }
    }
    best
}

/// An image as text, two rows of pixels a line, so that it keeps its proportions.
fn drawing(image: &[u8]) -> String {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    let mut text = String::new();
    for rows in image.chunks_exact(2 * 28) {
        let (upper, lower) = rows.split_at(28);
        for (&a, &b) in upper.iter().zip(lower) {
            let ink = (usize::from(a) + usize::from(b)) / 2;
            text.push(SHADES[(ink * SHADES.len()) / 256]);
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text.trim_matches('\n').to_owned()
}
