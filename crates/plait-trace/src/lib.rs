//! What TCP connections and MPTCP subflows did: samples of their senders, captures split into
//! subflows, and plots of both. Makes no system calls: sources of samples, files and screens are
//! the program's.
//!
//! - [`sample`]: what a sender's TCP was like at one moment; [`filter`]: which connections count
//! - [`course`]: many samples, thinned so that they always fit into memory
//! - [`capture`]: packets of a pcap or pcapng file; [`segment`]: a packet as a TCP segment
//! - [`split`]: segments to subflows and connections, with their bytes over time
//! - [`bins`], [`ranges`]: sums over time, and which numbers were seen, both bounded
//! - [`page`]: a self-contained HTML page of either, with [`plot`]s

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bins;
pub mod capture;
pub mod course;
pub mod filter;
pub mod page;
pub mod plot;
pub mod ranges;
pub mod sample;
pub mod segment;
pub mod split;
