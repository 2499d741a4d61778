//! The exhaustive search: every sequence of actions on two or three real endpoints, up to a depth
//! and a number of faults. What is searched and what is left out: `docs/guide/search.md`.
//!
//! A state is the list of actions that leads to it, replayed from the start: the core cannot be
//! copied. Two states with one [fingerprint](World::fingerprint) count as one. The search itself,
//! breadth first, is the caller's; this is what it asks: [`Branches::enabled`], [`Branches::look`],
//! which gives a fingerprint, and, of every state that is new, [`World::heal`].

mod action;
mod branches;
mod fingerprint;
mod gateway;
mod network;
mod setup;
#[cfg(test)]
mod tests;
mod world;

pub use action::{Action, NotAnAction, sentence};
pub use branches::Branches;
pub use setup::Setup;
pub use world::{Violation, World};
