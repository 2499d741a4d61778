//! Programs of plait's that run in the kernel: congestion controllers as `struct_ops`, and what
//! chooses and traces them. Only this crate needs clang and libelf.
//!
//! What is loaded is pinned below [`pins::ROOT`], each with a record of who loaded it and when, so
//! that it outlives the process that did it and can be found and removed by another.
//!
//! - [`controller`]: the controllers there are
//! - [`congestion`]: loads them, unloads them, says what is loaded
//! - [`choose`]: which sockets of a cgroup get which controller
//! - [`support`]: what the machine offers
//! - [`pins`]: where things are kept, and their records
//! - [`object`]: compiled programs, opened and loaded
//! - [`trace`]: what the kernel's TCP does, told by its tracepoint
//! - [`error`]: what the machine lacks, and what works without it

#![forbid(unsafe_code)]

pub mod choose;
pub mod congestion;
pub mod controller;
pub mod error;
pub mod object;
pub mod pins;
pub mod support;
pub mod trace;

pub use controller::Controller;
pub use error::{Error, InUse};
