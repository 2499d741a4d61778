//! Link models for the simulator and the lab. No system call, no clock: time is an argument and
//! randomness comes from a seed, so that one seed gives one run.
//!
//! - [`link`]: one direction of a link, as a state machine.
//! - [`ratio`]: probabilities as integers.
//! - [`tcp`]: a TCP sender and receiver, segment by segment.
//! - [`prng`]: the seeded generator.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod link;
pub mod prng;
pub mod ratio;
pub mod scenario;
pub mod tcp;
