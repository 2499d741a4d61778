//! A running proxy on loopback: real sockets, every way in, and what goes wrong.

#![allow(clippy::unwrap_used, reason = "a test fails where what it needs is missing")]

#[path = "proxy/ends.rs"]
mod ends;
#[path = "proxy/refusals.rs"]
mod refusals;
#[path = "proxy/reload.rs"]
mod reload;
#[path = "proxy/site.rs"]
mod site;
#[path = "proxy/ways.rs"]
mod ways;
