//! Link models for the simulator and the lab. No system call, no clock: time is an argument and
//! randomness comes from a seed, so that one seed gives one run.
//!
//! - [`air`]: a medium that radio links share, as a state machine.
//! - [`link`]: one direction of a link, as a state machine.
//! - [`world`]: customer, provider, links and gateways in one event loop.
//! - [`app`]: the applications at both ends.
//! - [`hostile`]: an authenticated peer that seals whatever it likes.
//! - [`run`]: turns a scenario and a seed into metrics and series.
//! - [`ratio`]: probabilities as integers.
//! - [`search`]: every sequence of actions on two or three gateways, up to a depth.
//! - [`swarm`]: turns seeds into runs under random faults, with checkers.
//! - [`tcp`]: a TCP sender and receiver, segment by segment.
//! - [`prng`]: the seeded generator.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod air;
pub mod app;
pub mod error;
pub mod hostile;
pub mod link;
pub mod packet;
pub mod prng;
pub mod ratio;
pub mod run;
pub mod scenario;
pub mod search;
pub mod swarm;
pub mod tcp;
pub mod world;
