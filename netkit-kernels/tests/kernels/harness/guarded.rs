//! Slices at chosen places: at any misalignment between canaries, or against pages that may not be touched.

use netkit_core::quant::Multiplier;
use std::cell::Cell;
use std::ops::Range;

const CANARY: u8 = 0xA5;
const MARGIN: usize = 192;

/// Where the values of a [`Guarded`] lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the misalignment that the test asks for, canaries on both sides.
    Misaligned,
    /// The last value is the last of a page, and touching the next page ends the process.
    BeforeGuardPage,
    /// The first value is the first of a page, and touching the page before ends the process.
    BehindGuardPage,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Misaligned) };
}

impl Place {
    /// Every place that this platform has.
    pub(crate) const ALL: &[Self] = if cfg!(all(unix, not(miri))) {
        &[Self::Misaligned, Self::BeforeGuardPage, Self::BehindGuardPage]
    } else {
        &[Self::Misaligned]
    };

    /// Runs a test with all its guarded slices here.
    pub(crate) fn put(self, test: impl FnOnce()) {
        PLACE.set(self);
        test();
        PLACE.set(Self::Misaligned);
    }
}

/// A copy of some values, and what keeps kernels from touching anything else.
pub(crate) struct Guarded<T> {
    memory: Memory<T>,
    start: usize,
    len: usize,
}

enum Memory<T> {
    Heap(Vec<T>),
    #[cfg(all(unix, not(miri)))]
    Pages(pages::Pages),
}

impl<T: bytemuck::Pod> Guarded<T> {
    /// `offset` elements past a multiple of 64 bytes, where the place lets the test choose.
    pub(crate) fn new(values: &[T], offset: usize) -> Self {
        let mut guarded = Self::place(values.len(), offset, align_of::<T>());
        guarded.get_mut().copy_from_slice(values);
        guarded
    }

    /// `len` elements with anything in them. Where the place is the end of a page, they end as near to it as
    /// `alignment` (in bytes) allows.
    fn place(len: usize, offset: usize, alignment: usize) -> Self {
        match PLACE.get() {
            Place::Misaligned => Self::on_heap(len, offset),
            #[cfg(all(unix, not(miri)))]
            place => Self::in_pages(len, place, alignment),
            #[cfg(not(all(unix, not(miri))))]
            _ => {
                let _ = alignment;
                Self::on_heap(len, offset)
            }
        }
    }

    fn on_heap(len: usize, offset: usize) -> Self {
        let margin = MARGIN / size_of::<T>();
        let canary: T = bytemuck::pod_read_unaligned(&[CANARY; 16][..size_of::<T>()]);
        let memory = vec![canary; len + 3 * margin];
        let start =
            margin + memory[margin..].as_ptr().align_offset(64) + offset % (64 / size_of::<T>());
        Self { memory: Memory::Heap(memory), start, len }
    }

    #[cfg(all(unix, not(miri)))]
    fn in_pages(len: usize, place: Place, alignment: usize) -> Self {
        let pages = pages::Pages::new(len * size_of::<T>());
        let room = pages.bytes().len() / size_of::<T>();
        let step = alignment / size_of::<T>();
        let start = if place == Place::BeforeGuardPage { (room - len) / step * step } else { 0 };
        let mut guarded = Self { memory: Memory::Pages(pages), start, len };
        let margins = guarded.margins();
        for margin in margins {
            bytemuck::cast_slice_mut(&mut guarded.all_mut()[margin]).fill(CANARY);
        }
        guarded
    }

    /// `len` canaries, for an output: what a kernel does not write stands out.
    pub(crate) fn output(len: usize, offset: usize) -> Self {
        let canary: T = bytemuck::pod_read_unaligned(&[CANARY; 16][..size_of::<T>()]);
        Self::new(&vec![canary; len], offset)
    }

    fn all(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(memory) => memory,
            #[cfg(all(unix, not(miri)))]
            Memory::Pages(pages) => bytemuck::cast_slice(pages.bytes()),
        }
    }

    pub(crate) fn get(&self) -> &[T] {
        &self.all()[self.start..self.start + self.len]
    }

    fn all_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(memory) => memory,
            #[cfg(all(unix, not(miri)))]
            Memory::Pages(pages) => bytemuck::cast_slice_mut(pages.bytes_mut()),
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut [T] {
        let values = self.start..self.start + self.len;
        &mut self.all_mut()[values]
    }

    /// What lies before and behind the values, as far as canaries do.
    fn margins(&self) -> [Range<usize>; 2] {
        let margin = MARGIN / size_of::<T>();
        let end = self.start + self.len;
        [self.start.saturating_sub(margin)..self.start, end..self.all().len().min(end + margin)]
    }

    /// Fails if a kernel wrote before or behind its output.
    #[track_caller]
    pub(crate) fn check(&self) {
        for (margin, side) in self.margins().into_iter().zip(["before the start", "behind the end"])
        {
            let bytes: &[u8] = bytemuck::cast_slice(&self.all()[margin]);
            assert!(bytes.iter().all(|&byte| byte == CANARY), "written {side}");
        }
    }
}

/// The factors of an int8 layer, as every other slice of it lies.
pub(crate) struct Factors(Guarded<i32>);

impl Factors {
    pub(crate) fn new(factors: &[Multiplier], offset: usize) -> Self {
        let words: Vec<i32> = factors.iter().flat_map(|f| [f.multiplier, f.shift]).collect();
        Self(Guarded::new(&words, offset))
    }

    pub(crate) fn get(&self) -> &[Multiplier] {
        const { assert!(size_of::<Multiplier>() == 8 && align_of::<Multiplier>() == 4) }
        let words = self.0.get();
        // SAFETY: a `Multiplier` is `repr(C)` and two integers, as many as `words` holds, and is no more aligned than they.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() / 2) }
    }
}

/// Memory between two pages that may not be touched.
#[cfg(all(unix, not(miri)))]
mod pages {
    use std::cell::RefCell;
    use std::ptr::NonNull;

    /// Pages that can be used, with a guard page before and one behind.
    pub(super) struct Pages {
        base: NonNull<u8>,
        /// Without the guard pages.
        len: usize,
    }

    thread_local! {
        /// Mappings that are not in use: making one costs more than most tests.
        static SPARE: RefCell<Vec<Pages>> = const { RefCell::new(Vec::new()) };
    }

    fn page() -> usize {
        // SAFETY: a query without arguments in memory.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).expect("a page size")
    }

    impl Pages {
        /// At least `bytes` bytes.
        pub(super) fn new(bytes: usize) -> Self {
            let len = bytes.next_multiple_of(page()).max(page());
            let spare = SPARE.with_borrow_mut(|spare| {
                let at = spare.iter().position(|pages| pages.len == len)?;
                Some(spare.swap_remove(at))
            });
            spare.unwrap_or_else(|| Self::map(len))
        }

        fn map(len: usize) -> Self {
            let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANON);
            let total = len + 2 * page();
            // SAFETY: a new anonymous mapping overlaps nothing.
            let base = unsafe { libc::mmap(std::ptr::null_mut(), total, protection, flags, -1, 0) };
            assert_ne!(base, libc::MAP_FAILED, "no memory for {total} bytes");
            let base = NonNull::new(base.cast::<u8>()).expect("a mapping");
            // SAFETY: one page into a mapping that is two pages longer than `len`.
            let base = unsafe { base.add(page()) };
            // SAFETY: these pages are this mapping's, and nothing refers to them yet.
            let result = unsafe {
                libc::mprotect(base.as_ptr().cast(), len, libc::PROT_READ | libc::PROT_WRITE)
            };
            assert_eq!(result, 0, "pages that cannot be made usable");
            Self { base, len }
        }

        pub(super) fn bytes(&self) -> &[u8] {
            // SAFETY: `len` readable bytes, zeroed by the system or written since, that `self` owns.
            unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
        }

        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            // SAFETY: as above, and writable; the borrow of `self` is exclusive.
            unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
        }
    }

    /// Pages are kept until the process ends.
    impl Drop for Pages {
        fn drop(&mut self) {
            let pages = Self { base: self.base, len: self.len };
            // A thread that ends has no list any more; its mappings end with the process.
            let pages = std::mem::ManuallyDrop::new(pages);
            let _ = SPARE.try_with(|spare| {
                if let Ok(mut spare) = spare.try_borrow_mut() {
                    spare.push(std::mem::ManuallyDrop::into_inner(pages));
                }
            });
        }
    }
}

/// Scratch of exactly the size the workspace functions say, aligned as they say, full of NaN.
pub(crate) struct Scratch(Guarded<u8>);

impl Scratch {
    pub(crate) fn new(bytes: usize) -> Self {
        let mut memory = Guarded::place(bytes, 0, netkit_kernels::workspace::ALIGNMENT);
        memory.get_mut().fill(0xFF);
        Self(memory)
    }

    pub(crate) fn get(&mut self) -> &mut [u8] {
        self.0.get_mut()
    }

    #[track_caller]
    pub(crate) fn check(&self) {
        self.0.check();
    }
}
