//! Rules of the packet filter for services behind the bond: at the provider, what is led there; at
//! the customer, what of it goes back.

use std::fmt::Write as _;
use std::net::IpAddr;

use plait_toml::forward::Protocols;

use crate::config::{Config, Forward};

/// Chains that lead the configured services to hosts behind the bond. The source of a packet stays.
pub(super) fn chains(config: &Config) -> String {
    let gateway = &config.gateway;
    let mut chains = String::new();
    if !config.forwards.is_empty() {
        chains.push_str("  chain prerouting {\n");
        chains.push_str("    type nat hook prerouting priority dstnat; policy accept;\n");
        let _ = writeln!(chains, "    iifname \"{}\" accept", gateway.tun);
        for port in gateway.listen_ports() {
            let _ = writeln!(chains, "    udp dport {port} accept");
        }
        let mut forwards: Vec<&Forward> = config.forwards.iter().collect();
        // The most particular first: ports of an address, ports, an address.
        forwards.sort_by_key(|forward| (forward.ports.is_none(), forward.address.is_none()));
        for forward in forwards {
            let _ = writeln!(chains, "    {}", rule(forward));
        }
        chains.push_str("  }\n");
    }
    chains
}

fn rule(forward: &Forward) -> String {
    let family = if forward.to.address.is_ipv4() { "ip" } else { "ip6" };
    let whither = match forward.address {
        Some(address) => format!("{family} daddr {address}"),
        None => format!("meta nfproto {} fib daddr type local", protocol(forward.to.address)),
    };
    let ports = forward.ports.as_ref().map(|ports| {
        let range = match ports.start() == ports.end() {
            true => ports.start().to_string(),
            false => format!("{}-{}", ports.start(), ports.end()),
        };
        match forward.protocols {
            Protocols::Tcp => format!(" tcp dport {range}"),
            Protocols::Udp => format!(" udp dport {range}"),
            Protocols::Both => format!(" meta l4proto {{ tcp, udp }} th dport {range}"),
        }
    });
    format!("{whither}{} dnat {family} to {}", ports.unwrap_or_default(), forward.to)
}

fn protocol(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ipv4" } else { "ipv6" }
}

/// Chains that mark the answers to what came out of the TUN device: connections have a mark of
/// conntrack, and the packets of their answers the same one, for [routing](super::answers).
pub(super) fn marking(tun: &str, mark: u32) -> String {
    format!(
        "  chain came {{\n    type filter hook prerouting priority mangle; policy accept;\n    \
         iifname \"{tun}\" ct state new ct mark 0 ct mark set {mark}\n    \
         iifname != \"{tun}\" ct direction reply ct mark {mark} meta mark set {mark}\n  }}\n  \
         chain answered {{\n    type route hook output priority mangle; policy accept;\n    \
         ct direction reply ct mark {mark} meta mark set {mark}\n  }}\n"
    )
}

#[cfg(test)]
mod tests {
    use plait_toml::forward::To;

    use super::*;

    #[test]
    fn a_service_is_led_to_its_host() {
        let forward = |ports: Option<(u16, u16)>, to: &str, address: Option<&str>| Forward {
            line: 1,
            protocols: Protocols::Both,
            ports: ports.map(|(low, high)| low..=high),
            to: To::parse(to).unwrap(),
            address: address.map(|text| text.parse().unwrap()),
        };
        let udp = Forward { protocols: Protocols::Udp, ..forward(Some((8, 9)), "10.0.0.1", None) };
        assert_eq!(
            rule(&udp),
            "meta nfproto ipv4 fib daddr type local udp dport 8-9 dnat ip to 10.0.0.1"
        );
        assert_eq!(
            rule(&forward(Some((443, 443)), "[fd99:7::20]:8443", Some("2001:db8::2"))),
            "ip6 daddr 2001:db8::2 meta l4proto { tcp, udp } th dport 443 dnat ip6 to \
             [fd99:7::20]:8443"
        );
        assert_eq!(
            rule(&forward(None, "10.0.0.1", Some("203.0.113.9"))),
            "ip daddr 203.0.113.9 dnat ip to 10.0.0.1"
        );
    }
}
