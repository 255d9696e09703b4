//! Lines the runner reads back, put together without `core::fmt`.

use crate::Board;

/// A line under construction: a kind, a name, then values.
///
/// Characters gather in a small buffer, so that a console whose every write stops the emulator is asked seldom.
pub struct Report<'a, B: Board> {
    board: &'a mut B,
    buffer: [u8; 120],
    filled: usize,
}

impl<'a, B: Board> Report<'a, B> {
    /// Prints one line of int8 values.
    pub fn i8(board: &'a mut B, name: &str, values: &[i8]) {
        let mut line = Self::start(board, "i8 ", name);
        for &value in values {
            line.decimal(value.into());
        }
        line.finish();
    }

    /// Prints one line of floats as the eight hexadecimal digits of their bit patterns.
    pub fn f32(board: &'a mut B, name: &str, values: &[f32]) {
        let mut line = Self::start(board, "f32 ", name);
        for &value in values {
            line.hexadecimal(value.to_bits());
        }
        line.finish();
    }

    /// Prints a number about `name` that is not compared: `# NAME KEY VALUE`.
    pub fn remark(board: &'a mut B, name: &str, key: &str, value: i32) {
        let mut line = Self::start(board, "# ", name);
        line.byte(b' ');
        line.text(key);
        line.decimal(value);
        line.finish();
    }

    /// Prints the name of a step of the region `region`: its place, operator, and part of the layer if that has several.
    pub fn step(board: &'a mut B, region: &str, step: &netkit::Step) {
        let mut line = Self::start(board, "# ", region);
        line.byte(b'/');
        line.byte(b'0' + (step.index / 10 % 10) as u8);
        line.byte(b'0' + (step.index % 10) as u8);
        line.byte(b'-');
        line.text(step.operator);
        if !step.part.is_empty() && step.part != step.operator {
            line.byte(b'-');
            line.text(step.part);
        }
        line.text(" step");
        line.decimal(step.index as i32);
        line.finish();
    }

    fn start(board: &'a mut B, kind: &str, name: &str) -> Self {
        let mut line = Self { board, buffer: [0; 120], filled: 0 };
        line.text(kind);
        line.text(name);
        line
    }

    fn finish(mut self) {
        self.byte(b'\n');
        self.flush();
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.byte(byte);
        }
    }

    fn decimal(&mut self, value: i32) {
        self.byte(b' ');
        if value < 0 {
            self.byte(b'-');
        }
        let mut digits = [0; 10];
        let mut rest = value.unsigned_abs();
        let mut count = 0;
        for digit in &mut digits {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        for &digit in digits.iter().take(count).rev() {
            self.byte(digit);
        }
    }

    fn hexadecimal(&mut self, bits: u32) {
        self.byte(b' ');
        for nibble in (0..8).rev() {
            let digit = (bits >> (4 * nibble)) as u8 & 15;
            self.byte(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.filled == self.buffer.len() {
            self.flush();
        }
        if let Some(slot) = self.buffer.get_mut(self.filled) {
            *slot = byte;
            self.filled += 1;
        }
    }

    fn flush(&mut self) {
        if let Some(text) = self.buffer.get(..self.filled) {
            self.board.write(text);
        }
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::Report;
    use crate::Board;
    use std::string::String;
    use std::vec::Vec;

    struct Paper(Vec<u8>);

    impl Board for Paper {
        fn write(&mut self, text: &[u8]) {
            self.0.extend_from_slice(text);
        }

        fn mark_step() {}

        fn measure(&mut self, _: &str, body: impl FnOnce()) {
            body();
        }
    }

    fn printed(report: impl FnOnce(&mut Paper)) -> String {
        let mut paper = Paper(Vec::new());
        report(&mut paper);
        String::from_utf8(paper.0).unwrap()
    }

    #[test]
    fn prints_extremes() {
        assert_eq!(
            printed(|p| Report::i8(p, "x", &[-128, -10, 0, 7, 127])),
            "i8 x -128 -10 0 7 127\n"
        );
        assert_eq!(
            printed(|p| Report::f32(p, "y", &[1.0, -0.0, f32::MAX])),
            "f32 y 3f800000 80000000 7f7fffff\n"
        );
        assert_eq!(
            printed(|p| Report::remark(p, "z", "bytes", i32::MIN)),
            "# z bytes -2147483648\n"
        );
    }

    #[test]
    fn lines_longer_than_the_buffer_come_out_whole() {
        let line = printed(|p| Report::i8(p, "long", &[-100; 200]));
        assert_eq!(line.matches(" -100").count(), 200);
        assert!(line.ends_with("-100\n"));
    }
}
