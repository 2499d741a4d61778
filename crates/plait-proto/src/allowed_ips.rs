//! Which inner addresses belong to which peer.

use core::net::IpAddr;

use crate::config::Prefix;
use crate::drop_reason::DropReason;
use crate::wire::ip::Inner;

impl Prefix {
    /// Whether the prefix holds the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let difference = network.to_bits() ^ address.to_bits();
                difference.checked_shr(32 - u32::from(self.length.min(32))).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let difference = network.to_bits() ^ address.to_bits();
                difference.checked_shr(128 - u32::from(self.length.min(128))).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// One peer's prefixes.
#[derive(Clone, Debug, Default)]
pub struct Prefixes(Vec<Prefix>);

impl Prefixes {
    /// These prefixes.
    pub fn new(prefixes: &[Prefix]) -> Self {
        Self(prefixes.to_vec())
    }

    /// Refuses a packet whose source does not belong to the peer.
    ///
    /// # Errors
    /// [`DropReason::SourceNotAllowed`].
    pub fn check_source(&self, inner: &Inner) -> Result<(), DropReason> {
        if self.0.iter().any(|prefix| prefix.contains(inner.source)) {
            Ok(())
        } else {
            Err(DropReason::SourceNotAllowed)
        }
    }

    /// Length of the longest prefix that holds the address.
    pub fn longest_match(&self, address: IpAddr) -> Option<u8> {
        self.0.iter().filter(|prefix| prefix.contains(address)).map(|prefix| prefix.length).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix { address: text.parse().expect("an address"), length }
    }

    #[test]
    fn prefixes_hold_what_they_should() {
        let v4 = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert!(prefix("0.0.0.0", 0).contains(v4("203.0.113.9")));
        assert!(!prefix("0.0.0.0", 0).contains(v4("2001:db8::1")));
        assert!(prefix("10.1.2.0", 24).contains(v4("10.1.2.255")));
        assert!(!prefix("10.1.2.0", 24).contains(v4("10.1.3.0")));
        assert!(prefix("10.1.2.3", 32).contains(v4("10.1.2.3")));
        assert!(!prefix("10.1.2.3", 32).contains(v4("10.1.2.2")));
        assert!(prefix("2001:db8::", 32).contains(v4("2001:db8:ffff::1")));
        assert!(prefix("::", 0).contains(v4("2001:db8::1")));
        assert!(!prefix("fd00::1", 128).contains(v4("fd00::2")));
    }

    #[test]
    fn the_longest_prefix_is_found() {
        let prefixes = Prefixes::new(&[prefix("0.0.0.0", 0), prefix("10.0.0.0", 8)]);
        assert_eq!(prefixes.longest_match(IpAddr::from([10, 1, 1, 1])), Some(8));
        assert_eq!(prefixes.longest_match(IpAddr::from([11, 1, 1, 1])), Some(0));
    }
}
