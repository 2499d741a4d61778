//! A customer's interface that goes, comes back, or gets another address.
//!
//! A device that is moved into another namespace is gone for those who used it, just as one that is
//! unplugged; the emulator keeps its end of it.

use anyhow::Result;

use super::{TUN_QUEUE_PACKETS, Topology, customer_name, ip_batch, link_v4};

/// Namespace in which a removed interface waits.
const AWAY: &str = "plait-server";
/// Host number of a link's other address at the customer: 10.N.0.5/30.
const OTHER_HOST: u8 = 5;

impl Topology {
    /// Takes the first customer's interface away, with its addresses and routes.
    pub(crate) fn remove_interface(&self, name: &str) -> Result<()> {
        ip_batch(&self.customer().netns, "", &[format!("link set dev {name} netns {AWAY}")])
    }

    /// Brings a removed interface back, with its IPv4 address and routes.
    pub(crate) fn return_interface(&self, name: &str) -> Result<()> {
        let back = format!("link set dev {name} netns {}", customer_name(0));
        ip_batch(&self.server, "", &[back])?;
        let link = self.link(name)?;
        let (mtu, here) = (link.spec.mtu, link_v4(link.number, 1));
        let mut lines = vec![
            format!("link set dev {name} mtu {mtu} txqueuelen {TUN_QUEUE_PACKETS} up"),
            format!("addr add {here}/30 dev {name}"),
        ];
        lines.extend(self.default_routes(name)?);
        ip_batch(&self.customer().netns, "", &lines)
    }

    /// Gives the first customer's interface another IPv4 address in place of its own, as a provider
    /// does that renumbers.
    pub(crate) fn change_address(&self, name: &str) -> Result<()> {
        let link = self.link(name)?;
        let number = link.number;
        let (old, new) = (link_v4(number, 1), link_v4(number, OTHER_HOST));
        ip_batch(&self.provider, "", &[format!("route add {new}/32 dev {name}")])?;
        let mut lines = vec![
            format!("rule add from {new} lookup {}", table(number)),
            format!("addr add {new}/30 dev {name}"),
            format!("addr del {old}/30 dev {name}"),
        ];
        lines.extend(self.default_routes(name)?);
        ip_batch(&self.customer().netns, "", &lines)
    }

    /// Lines that set the routes over a link.
    fn default_routes(&self, name: &str) -> Result<[String; 2]> {
        let number = self.link(name)?.number;
        let position = self.customer().links.iter().take_while(|link| link.spec.name != name);
        let metric = position.count() + 1;
        let via = format!("default via {} dev {name}", link_v4(number, 2));
        Ok([
            format!("route replace {via} metric {metric} onlink"),
            format!("route replace {via} table {} onlink", table(number)),
        ])
    }
}

/// The routing table of link `number`.
fn table(number: u8) -> u32 {
    100 + u32::from(number)
}
