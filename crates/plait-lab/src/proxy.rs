//! Real proxies, and clients that come to a server by way of them.

mod client;
mod open;
mod process;
mod web;

pub(crate) use client::{Came, Route};
pub(crate) use open::open_to_all;
pub(crate) use process::{HeldRules, ProxyProcess, hold_rules};
pub(crate) use web::{ByteServer, sum_of};
