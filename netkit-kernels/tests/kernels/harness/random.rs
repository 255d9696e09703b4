//! A small generator with a seed: the same inputs on every machine.

/// How many random cases a test tries that tries `usual` on a machine of its own. `NETKIT_RANDOM_SHARE`, a number, divides
/// them for machines that are emulated; of the cases that are listed one by one none is left out.
pub(crate) fn random_cases(usual: usize) -> usize {
    let share = std::env::var("NETKIT_RANDOM_SHARE").unwrap_or_default();
    match share.parse() {
        Ok(share) if share > 0 => usual.div_ceil(share),
        _ => usual,
    }
}

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In `0..bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// One of a few.
    pub(crate) fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// In −1..1.
    pub(crate) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Bytes of one of the kinds that go wrong: any, the two ends, one end only.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<i8> {
        let kind = self.below(8);
        let byte = |random: &mut Self| match kind {
            0 => i8::MIN,
            1 => i8::MAX,
            2 => random.choose(&[i8::MIN, i8::MAX]),
            _ => random.next() as i8,
        };
        (0..len).map(|_| byte(self)).collect()
    }

    pub(crate) fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.float()).collect()
    }
}
