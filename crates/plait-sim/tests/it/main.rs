//! Whole tunnels over modelled links, in virtual time.

mod tunnel;
mod udp;
