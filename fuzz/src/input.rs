//! Bytes as a source of decisions.

/// What is left of a target's input. Once it is used up every decision is zero, so that a shorter
/// input is a simpler case.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of `data`.
    pub const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// Whether everything is used up.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// The next two bytes, high one first.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    /// The next eight bytes, high one first.
    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(core::array::from_fn(|_| self.u8()))
    }

    /// A decision with one bit.
    pub fn flag(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    /// A place among `length`, zero when there is none.
    pub fn index(&mut self, length: usize) -> usize {
        usize::from(self.u16()) % length.max(1)
    }

    /// One of `choices`.
    pub fn pick<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[usize::from(self.u8()) % N]
    }

    /// The next `length` bytes, or as many as are left.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
