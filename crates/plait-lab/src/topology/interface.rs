//! Removes a customer's interface, brings it back, or changes its address.
//!
//! A device moved into another namespace is gone for its users, like an unplugged one; the emulator
//! keeps its own end.

use anyhow::Result;
use plait_net::netns::NetNs;

use super::{TUN_QUEUE_PACKETS, ip_batch, link_v4};

/// Namespace that holds a removed interface.
const AWAY: &str = "plait-server";
/// Host number of a link's other address at the customer: 10.N.0.5/30.
const OTHER_HOST: u8 = 5;

/// A customer's end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface<'a> {
    pub(crate) device: &'a str,
    /// N of its network 10.N.0.0/30.
    pub(crate) number: u8,
    /// Its index among the customer's links, from 0.
    pub(crate) place: usize,
    pub(crate) mtu: u32,
}

impl Interface<'_> {
    /// Removes it, with its addresses and routes.
    pub(crate) fn remove(&self, customer: &NetNs) -> Result<()> {
        ip_batch(customer, "", &[format!("link set dev {} netns {AWAY}", self.device)])
    }

    /// Brings it back from `away`, with its IPv4 address and routes, to the customer of this name.
    pub(crate) fn bring_back(&self, away: &NetNs, customer: &NetNs, name: &str) -> Result<()> {
        let Self { device, number, mtu, .. } = *self;
        ip_batch(away, "", &[format!("link set dev {device} netns {name}")])?;
        let here = link_v4(number, 1);
        let mut lines = vec![
            format!("link set dev {device} mtu {mtu} txqueuelen {TUN_QUEUE_PACKETS} up"),
            format!("addr add {here}/30 dev {device}"),
        ];
        lines.extend(self.default_routes());
        ip_batch(customer, "", &lines)
    }

    /// Replaces its IPv4 address, like a provider that renumbers.
    pub(crate) fn readdress(&self, customer: &NetNs, provider: &NetNs) -> Result<()> {
        let Self { device, number, .. } = *self;
        let (old, new) = (link_v4(number, 1), link_v4(number, OTHER_HOST));
        ip_batch(provider, "", &[format!("route add {new}/32 dev {device}")])?;
        let mut lines = vec![
            format!("rule add from {new} lookup {}", table(number)),
            format!("addr add {new}/30 dev {device}"),
            format!("addr del {old}/30 dev {device}"),
        ];
        lines.extend(self.default_routes());
        ip_batch(customer, "", &lines)
    }

    /// Lines that set the routes over it.
    fn default_routes(&self) -> [String; 2] {
        let Self { device, number, place, .. } = *self;
        let via = format!("default via {} dev {device}", link_v4(number, 2));
        [
            format!("route replace {via} metric {} onlink", place + 1),
            format!("route replace {via} table {} onlink", table(number)),
        ]
    }
}

/// The routing table of link `number`.
fn table(number: u8) -> u32 {
    100 + u32::from(number)
}
