//! Random numbers that are the same on every machine: integers, and floats made from them exactly.

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform in `low..high`, up to rounding.
    pub(crate) fn uniform(&mut self, low: f32, high: f32) -> f32 {
        // 24 bits are what a float holds.
        let unit = (self.next() >> 40) as f32 / 16_777_216.0;
        low + (high - low) * unit
    }

    /// `count` values around 0 with this standard deviation, uniformly distributed: there is no large
    /// one, and no logarithm that another machine might round otherwise.
    pub(crate) fn spread(&mut self, count: usize, deviation: f32) -> Vec<f32> {
        let limit = deviation * 3f32.sqrt();
        (0..count).map(|_| self.uniform(-limit, limit)).collect()
    }
}
