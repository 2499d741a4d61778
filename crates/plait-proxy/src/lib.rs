//! plait's proxy: turns MPTCP on the access side into TCP towards servers that know only that, and
//! TCP of plain clients into MPTCP towards another proxy. Two of them make a bond for TCP without a
//! tunnel.
//!
//! A connection's way, in file order: `accept` takes it; one of the `ways` in learns where it
//! wants to go; `policy` says whether it may; `dial` connects to the server, or to the next proxy;
//! `relay` carries bytes between the two, in the kernel. `registry` knows what is open, [`status`]
//! tells it.
//!
//! Nothing here knows plait's own protocol, and the bond does not need this crate.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod accept;
pub mod config;
pub mod convert;
mod dial;
mod plain_servers;
mod policy;
mod refusal;
mod registry;
mod relay;
mod server;
mod session;
mod shared;
mod sockets;
pub mod status;
mod target;
mod users;
mod ways;

pub use refusal::Refusal;
pub use server::{Proxy, Reloader, StartError, Stop};
pub use target::{Host, Target};
pub use users::{Users, UsersError};
