//! The plait protocol: sans-IO, deterministic. No clock, no socket, no thread, no unsafe.
//!
//! Start at [`endpoint`]: it holds the peers and their handshakes. An established association is a
//! [`bond`], made of [`ingress`] (the way out) and [`egress`] (the way in). Everything else
//! computes and knows nothing of its callers.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod allowed_ips;
pub mod bond;
pub mod config;
pub mod congestion;
pub mod dida;
pub mod drop_reason;
pub mod egress;
pub mod endpoint;
pub mod feedback;
pub mod flow;
pub mod fq_codel;
pub mod ingress;
pub mod output;
pub mod path;
pub mod resequencer;
pub mod rng;
pub mod scheduler;
pub mod seq;
pub mod session;
pub mod stats;
pub mod steer;
pub mod time;
pub mod units;
mod window_set;
mod wipe;
pub mod wire;
