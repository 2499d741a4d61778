//! Overwriting the stack after work with secrets.
//!
//! Libraries wipe what they own, hardly ever what they had in variables on the way. Those variables
//! lie below the caller's frame and stay there until something else happens to need the place.

use core::hint::black_box;

/// Runs `work`, then overwrites `BYTES` of the stack below here, where `work` and all that it
/// called had their variables. What it gives back must hold no secret outside of boxes.
pub(crate) fn on_wiped_stack<const BYTES: usize, T>(work: impl FnOnce() -> T) -> T {
    let result = below(work);
    wipe_below::<BYTES>();
    result
}

#[inline(never)]
fn below<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn wipe_below<const BYTES: usize>() {
    let mut stack = [0_u8; BYTES];
    black_box(&mut stack);
}
