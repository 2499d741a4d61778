//! A medium that several radio links share, decided frame by frame on the air. The simulator drives
//! it with virtual time, the lab's emulator with real time. The model, its formulas and sources:
//! `shared-air.md` in `docs/algorithms`.
//!
//! Contract, as of [`crate::link::Link`]: [`Medium::send`] puts a packet in, [`Medium::poll`] takes
//! out what has arrived, until it returns `None`; [`Medium::next_event`] says when to poll again.
//! Times given must not decrease. What happens on the air does not depend on how often it is
//! polled.
//!
//! - [`Medium`]: radio links side by side, and how much each senses of the others.
//! - [`RadioConfig`]: one of them; [`Mode`], [`Aggregate`]: how it sends.
//! - [`Interferer`]: a foreign transmitter beside one receiver.
//! - [`calibration`]: capacities, and what a share of the air needs.

mod aggregate;
pub mod calibration;
mod counters;
mod coupling;
mod interferer;
mod mcs;
mod medium;
mod radio;
mod rate_control;
mod sender;

pub use aggregate::Aggregate;
pub use counters::AirCounters;
pub use coupling::estimate as estimate_coupling;
pub use interferer::{Effect, Interferer};
pub use mcs::{Mcs, Mode, Standard, Width};
pub use medium::Medium;
pub use radio::{RadioConfig, path_loss_db};
pub use sender::{Arrival, SenderCounters};

#[cfg(test)]
mod tests;
