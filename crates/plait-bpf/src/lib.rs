//! Programs of plait's that run in the kernel: congestion controllers as `struct_ops`, and what
//! chooses and traces them. Only this crate needs clang and libelf.
//!
//! - [`object`]: compiled programs, opened and loaded
//! - [`trace`]: what the kernel's TCP does, told by its tracepoint
//! - [`error`]: what the machine lacks, and what works without it

#![forbid(unsafe_code)]

pub mod error;
pub mod object;
pub mod trace;

pub use error::Error;
