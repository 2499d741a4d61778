//! Linux I/O for plait: TUN, UDP batches, netlink, namespaces. Knows nothing of the protocol.
//!
//! Packets and datagrams pass through two traits, [`tun::TunPort`] and [`udp::UdpPort`], each with
//! an in-memory twin in [`memory`]. Every `unsafe` block of the workspace is in this crate.

#![warn(missing_docs)]

pub mod batch;
pub mod checksum;
pub mod clock;
pub mod entry;
pub mod icmp;
pub mod machine;
pub mod memory;
pub mod mptcp;
pub mod netlink;
pub mod netns;
pub mod rights;
pub mod sandbox;
pub mod sock_diag;
pub mod tcp;
pub mod terminal;
pub mod tun;
pub mod udp;

mod sys;
