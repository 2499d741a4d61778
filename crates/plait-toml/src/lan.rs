//! `[[lan]]` of a gateway's file: a network whose hosts use this gateway as their router.

use std::net::Ipv6Addr;

use crate::form::{Flag, List, Parsed};
use crate::option::{Field, Options};
use crate::problem::Problem;
use crate::section::Section;
use crate::value::{Cidr, names};

/// Prefixes of one network, and name servers told there: an advertisement has room for them.
const PREFIXES_MAX: usize = 8;
const SERVERS_MAX: usize = 4;

/// `[[lan]]`: a network whose hosts use this gateway as their router.
#[derive(Clone, PartialEq, Debug)]
pub struct Lan {
    /// The interface into it.
    pub interface: String,
    /// This gateway's addresses there.
    pub prefixes: Vec<Cidr>,
    /// Whether the IPv6 prefixes are told to its hosts.
    pub advertise: bool,
    /// Name servers that are told with them.
    pub dns: Vec<Ipv6Addr>,
}

impl Default for Lan {
    fn default() -> Self {
        Self { interface: String::new(), prefixes: Vec::new(), advertise: true, dns: Vec::new() }
    }
}

/// The options of `[[lan]]`.
pub const LAN: Options<Lan> = &[
    &Field::new(
        "interface",
        "the interface into the network",
        Parsed { told: "name", read: names::device },
        |lan: &mut Lan| &mut lan.interface,
    )
    .required("interface = \"eth1\""),
    &Field::new(
        "prefixes",
        "this gateway's addresses there, with prefix length; it sets those that are missing",
        List { told: "text or list", read: Cidr::of_device },
        |lan: &mut Lan| &mut lan.prefixes,
    )
    .absent("required"),
    &Field::new(
        "advertise",
        "send router advertisements: hosts give themselves IPv6 addresses and a default route",
        Flag,
        |lan: &mut Lan| &mut lan.advertise,
    ),
    &Field::new(
        "dns",
        "name servers that the advertisements name",
        List { told: "IPv6 address or list", read: server },
        |lan: &mut Lan| &mut lan.dns,
    ),
];

fn server(text: &str) -> Result<Ipv6Addr, Problem> {
    let is_usable = |address: &Ipv6Addr| {
        !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
    };
    text.parse().ok().filter(is_usable).ok_or_else(|| {
        let text = format!("\"{text}\" is not an IPv6 address of a name server");
        let help = "write it as in \"2606:4700:4700::1111\"; hosts learn IPv4 servers by DHCP \
                    (docs/guide/lan.md)";
        Problem::new(text, help)
    })
}

/// Notes options of a `[[lan]]` that contradict each other.
pub fn check_lan(section: &Section<'_>, lan: &Lan) {
    let note = |option: &str, text: String, help: &str| {
        section.problem(option, Problem::new(text, help));
    };
    for (at, prefix) in lan.prefixes.iter().enumerate() {
        let bits = if prefix.address.is_ipv4() { 31 } else { 127 };
        if prefix.length < bits && !prefix.is_host() {
            let help = "write this gateway's own address in it, as in \"192.168.7.1/24\" or \
                        \"fd99:7::1/64\"";
            note("prefixes", format!("{prefix} is a network, not an address in one"), help);
        }
        if lan.prefixes[..at].iter().any(|other| other.address == prefix.address) {
            note("prefixes", format!("{} is there twice", prefix.address), "write it once");
        }
    }
    for (option, count, limit) in
        [("prefixes", lan.prefixes.len(), PREFIXES_MAX), ("dns", lan.dns.len(), SERVERS_MAX)]
    {
        if count > limit {
            note(option, format!("more than {limit} of them"), "write the most important ones");
        }
    }
    if !section.holds_any(&["prefixes"]) {
        section.missing("prefixes", "prefixes = [\"192.168.7.1/24\", \"fd99:7::1/64\"]");
    } else if section.is_right_so_far() && lan.prefixes.is_empty() {
        let help = "write this gateway's addresses there, as in \
                    `prefixes = [\"192.168.7.1/24\"]`";
        note("prefixes", "there is none".into(), help);
    }
    let tells = lan.advertise && lan.prefixes.iter().any(|prefix| prefix.address.is_ipv6());
    if section.is_right_so_far() && !lan.dns.is_empty() && !tells {
        let help = "add an IPv6 prefix and leave `advertise` on, or remove `dns`";
        note("dns", "has no effect: nothing is advertised there".into(), help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, LAN, Lan::default());
        }
    }

    #[test]
    fn only_ipv6_addresses_of_hosts_are_advertised_as_servers() {
        assert!(server("2001:db8::53").is_ok());
        for text in ["1.1.1.1", "::", "::1", "ff02::1", "fe80::1%eth1", "x"] {
            assert!(server(text).is_err(), "{text}");
        }
    }
}
