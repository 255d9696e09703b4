//! Slices at chosen misalignments with canaries on both sides.

const CANARY: u8 = 0xA5;
const MARGIN: usize = 192;

/// A copy of some values, `offset` elements past a multiple of 64 bytes, between canaries.
pub(crate) struct Guarded<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: bytemuck::Pod> Guarded<T> {
    pub(crate) fn new(values: &[T], offset: usize) -> Self {
        let margin = MARGIN / size_of::<T>();
        let canary: T = bytemuck::pod_read_unaligned(&[CANARY; 16][..size_of::<T>()]);
        let mut memory = vec![canary; values.len() + 3 * margin];
        let start =
            margin + memory[margin..].as_ptr().align_offset(64) + offset % (64 / size_of::<T>());
        memory[start..start + values.len()].copy_from_slice(values);
        Self { memory, start, len: values.len() }
    }

    /// `len` canaries, for an output: what a kernel does not write stands out.
    pub(crate) fn output(len: usize, offset: usize) -> Self {
        let canary: T = bytemuck::pod_read_unaligned(&[CANARY; 16][..size_of::<T>()]);
        Self::new(&vec![canary; len], offset)
    }

    pub(crate) fn get(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn get_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Fails if a kernel wrote before or behind its output.
    #[track_caller]
    pub(crate) fn check(&self) {
        let before: &[u8] = bytemuck::cast_slice(&self.memory[..self.start]);
        let behind: &[u8] = bytemuck::cast_slice(&self.memory[self.start + self.len..]);
        assert!(before.iter().all(|&b| b == CANARY), "written before the start");
        assert!(behind.iter().all(|&b| b == CANARY), "written behind the end");
    }
}

/// Scratch of exactly the size the workspace functions say, aligned as they say, full of NaN.
pub(crate) struct Scratch(Guarded<u8>);

impl Scratch {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Guarded::new(&vec![0xFF; bytes], 0))
    }

    pub(crate) fn get(&mut self) -> &mut [u8] {
        self.0.get_mut()
    }

    #[track_caller]
    pub(crate) fn check(&self) {
        self.0.check();
    }
}
