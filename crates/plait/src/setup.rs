//! Sets up one end of a bond on a machine, and prints the one command for the other end.
//!
//! Whoever begins makes the keys of both ends: the other end's private key is in the
//! [`invitation`], which is therefore a secret until it is used, and is kept nowhere on
//! this machine. What is to be done is a list of [steps](mod@step), which can be shown instead of
//! done, and undone later.

mod ask;
mod end;
mod guest;
mod invitation;
mod links;
mod networks;
mod step;

pub(crate) use ask::Questions;
pub(crate) use end::{End, Role};
pub(crate) use guest::invite;
pub(crate) use invitation::Invitation;
pub(crate) use links::{links_to, public_address};
pub(crate) use networks::{Networks, router_of};
pub(crate) use step::{Place, Plan, undo};
