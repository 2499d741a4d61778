//! The exhaustive search: every sequence of actions on two or three real endpoints, up to a depth
//! and a number of faults. For its scope see `docs/guide/search.md`.
//!
//! A state is the list of actions that leads to it, replayed from the start: the core cannot be
//! copied. Two states with the same [fingerprint](World::fingerprint) count as one. The caller does
//! the search itself, breadth first. It calls [`Branches::enabled`], [`Branches::look`], which
//! returns a fingerprint, and, for every new state, [`World::heal`].

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
