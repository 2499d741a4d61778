//! The commands, as texts.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use plait_proto::config::Prefix;

use super::{Kind, Marked, Own, RulesConfig};
use crate::proxy::ip::{PROTOCOL, shell, words};

const PREFIX: &str = "plait_proxy_";
/// A kernel without IPv6 lacks it.
const IPV6: &str = "/proc/sys/net/ipv6";

/// The name of the nft table, which allows fewer characters than names do.
pub(super) fn table_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    format!("{PREFIX}{}", name.chars().map(plain).collect::<String>())
}

/// Whether a table is of this kind.
pub(super) fn is_ours(table: &str) -> bool {
    table.strip_prefix(PREFIX).is_some_and(|name| table_name(name) == table)
}

/// Commands for nft that remove the table, whether it is there or not.
pub(super) fn removal(table: &str) -> String {
    format!("table inet {table}\ndelete table inet {table}\n")
}

/// Commands for nft that make the table again.
pub(super) fn nft(config: &RulesConfig) -> String {
    let table = table_name(&config.name);
    let mut text = removal(&table);
    let _ = writeln!(text, "table inet {table} {{");
    let port = config.port;
    match config.kind {
        Kind::Redirect { own_but } => {
            chain(&mut text, "prerouting", "nat hook prerouting priority dstnat");
            from_clients(&mut text, config);
            for which in clients(config) {
                let _ = writeln!(text, "    {which}{} redirect to :{port}", servers(config));
            }
            text.push_str("  }\n");
            if let Some(own) = own_but {
                from_own(&mut text, config, own);
            }
        }
        Kind::Tproxy { mark, .. } => {
            chain(&mut text, "prerouting", "filter hook prerouting priority mangle");
            from_clients(&mut text, config);
            let servers = servers(config);
            for which in clients(config) {
                let families = [
                    ("ipv4", "ip", format!("127.0.0.1:{port}")),
                    ("ipv6", "ip6", format!("[::1]:{port}")),
                ];
                for (family, ip, to) in families {
                    // A client's prefix names its family already.
                    let said = which.is_empty();
                    let other = !said && !which.starts_with(&format!("{ip} "));
                    let family =
                        if said { format!("meta nfproto {family} ") } else { String::new() };
                    if !other {
                        let _ = writeln!(
                            text,
                            "    {which}{family}{servers} tproxy {ip} to {to} meta mark set meta \
                             mark | {mark:#x} accept"
                        );
                    }
                }
            }
            text.push_str("  }\n");
        }
    }
    text.push_str("}\n");
    text
}

fn chain(text: &mut String, name: &str, hook: &str) {
    let _ = writeln!(text, "  chain {name} {{\n    type {hook}; policy accept;");
}

/// What is left alone, of what clients send.
fn from_clients(text: &mut String, config: &RulesConfig) {
    if !config.interfaces.is_empty() {
        let quoted: Vec<_> = config.interfaces.iter().map(|name| format!("\"{name}\"")).collect();
        let _ = writeln!(text, "    iifname != {{ {} }} return", quoted.join(", "));
    }
    exempt(text, config);
}

/// What this host's own programs send. NAT of packets on their way out has no name for its
/// priority.
fn from_own(text: &mut String, config: &RulesConfig, own: Own) {
    chain(text, "output", "nat hook output priority -100");
    let _ = match own {
        Own::User(user) => writeln!(text, "    meta skuid {user} return"),
        Own::Mark(mark) => writeln!(text, "    meta mark {mark:#x} return"),
    };
    exempt(text, config);
    let _ = writeln!(text, "    {} redirect to :{}", servers(config), config.port);
    text.push_str("  }\n");
}

/// Servers that are reached without the proxy, first of all this host itself.
fn exempt(text: &mut String, config: &RulesConfig) {
    text.push_str("    fib daddr type { local, broadcast, multicast } return\n");
    for (ip, prefixes) in by_family(&config.exempt) {
        let _ = writeln!(text, "    {ip} daddr {prefixes} return");
    }
}

/// A match for each family of the clients' addresses; one that matches all when none are named.
fn clients(config: &RulesConfig) -> Vec<String> {
    if config.clients.is_empty() {
        return vec![String::new()];
    }
    let matches = by_family(&config.clients);
    matches.into_iter().map(|(ip, prefixes)| format!("{ip} saddr {prefixes} ")).collect()
}

fn servers(config: &RulesConfig) -> String {
    if config.ports.is_empty() {
        return "meta l4proto tcp".to_owned();
    }
    let ports = config.ports.iter().map(|ports| match (ports.start(), ports.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    });
    format!("tcp dport {{ {} }}", ports.collect::<Vec<_>>().join(", "))
}

/// Sets of prefixes for nft, each with the family's name there. A family as a whole is a prefix
/// too, which sets know by its interval.
fn by_family(prefixes: &[Prefix]) -> Vec<(&'static str, String)> {
    let of = |is_of: fn(&IpAddr) -> bool| {
        let some = prefixes.iter().filter(move |prefix| is_of(&prefix.address));
        some.map(|prefix| format!("{}/{}", prefix.address, prefix.length)).collect::<Vec<_>>()
    };
    let families = [("ip", of(IpAddr::is_ipv4)), ("ip6", of(IpAddr::is_ipv6))];
    let named = families.into_iter().filter(|(_, some)| !some.is_empty());
    named.map(|(ip, some)| (ip, format!("{{ {} }}", some.join(", ")))).collect()
}

/// Commands of ip(8) that deliver marked packets to this host, whatever their destination; or that
/// end it.
pub(super) fn routing(marked: &Marked, action: &str) -> Vec<Vec<String>> {
    let Marked { mark, table } = marked;
    let mut families = vec!["-4"];
    if Path::new(IPV6).exists() {
        families.push("-6");
    }
    let of = |family: &str| {
        [
            format!(
                "{family} route {action} local default dev lo table {table} protocol {PROTOCOL}"
            ),
            format!(
                "{family} rule {action} priority {table} fwmark {mark:#x}/{mark:#x} lookup \
                 {table} protocol {PROTOCOL}"
            ),
        ]
    };
    families.into_iter().flat_map(of).map(|text| words(&text)).collect()
}

/// All commands for sh. They may be run again.
pub(super) fn text(config: &RulesConfig) -> String {
    let mut text = format!(
        "# Leads TCP connections to the proxy on port {}. Run it as root, with sh. It lasts until \
         the\n# host restarts, and may be run again at any time.\n",
        config.port
    );
    let lines = |text: &mut String, action: &str, begin: &str, end: &str| {
        if let Kind::Tproxy { mark, table } = config.kind {
            for command in routing(&Marked { mark, table }, action) {
                let _ = writeln!(text, "{begin}{}{end}", shell(&command));
            }
        }
    };
    // Of an earlier run.
    lines(&mut text, "delete", "", " 2>/dev/null");
    lines(&mut text, "add", "", "");
    let _ = write!(text, "nft -f - <<'END'\n{}END\n", nft(config));
    let _ = writeln!(text, "# To undo it all:");
    let _ = writeln!(text, "#   nft delete table inet {}", table_name(&config.name));
    lines(&mut text, "delete", "#   ", "");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix { address: text.parse().unwrap(), length }
    }

    fn config(kind: Kind) -> RulesConfig {
        RulesConfig {
            name: "lan".into(),
            kind,
            port: 8080,
            interfaces: vec!["eth0".into(), "br-lan".into()],
            ports: vec![80..=80, 443..=500],
            clients: vec![prefix("10.3.0.0", 24), prefix("fd03::", 64)],
            exempt: vec![prefix("192.168.0.0", 16)],
            state_file: "unused".into(),
        }
    }

    #[test]
    fn a_redirect_leaves_out_what_it_should() {
        let kind = Kind::Redirect { own_but: Some(Own::User(990)) };
        assert_eq!(
            nft(&config(kind)),
            "table inet plait_proxy_lan\ndelete table inet plait_proxy_lan\n\
             table inet plait_proxy_lan {\n  chain prerouting {\n    \
             type nat hook prerouting priority dstnat; policy accept;\n    \
             iifname != { \"eth0\", \"br-lan\" } return\n    \
             fib daddr type { local, broadcast, multicast } return\n    \
             ip daddr { 192.168.0.0/16 } return\n    \
             ip saddr { 10.3.0.0/24 } tcp dport { 80, 443-500 } redirect to :8080\n    \
             ip6 saddr { fd03::/64 } tcp dport { 80, 443-500 } redirect to :8080\n  }\n  \
             chain output {\n    type nat hook output priority -100; policy accept;\n    \
             meta skuid 990 return\n    \
             fib daddr type { local, broadcast, multicast } return\n    \
             ip daddr { 192.168.0.0/16 } return\n    \
             tcp dport { 80, 443-500 } redirect to :8080\n  }\n}\n"
        );
    }

    #[test]
    fn a_tproxy_marks_what_it_takes_and_the_text_tells_how_to_undo_it() {
        let mut config = config(Kind::Tproxy { mark: 0x10, table: 5290 });
        let both = nft(&config);
        for (ip, from, to) in
            [("ip", "10.3.0.0/24", "127.0.0.1:8080"), ("ip6", "fd03::/64", "[::1]:8080")]
        {
            let line = format!(
                "    {ip} saddr {{ {from} }} tcp dport {{ 80, 443-500 }} tproxy {ip} to {to} meta \
                 mark set meta mark | 0x10 accept\n"
            );
            assert!(both.contains(&line), "{line}{both}");
        }
        assert_eq!(both.matches("tproxy").count(), 2, "{both}");
        (config.clients, config.ports) = (Vec::new(), Vec::new());
        let all = text(&config);
        for line in [
            "    meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:8080",
            "\nip -4 rule add priority 5290 fwmark 0x10/0x10 lookup 5290 protocol 112\n",
            "\nip -4 route add local default dev lo table 5290 protocol 112\n",
            "\n#   nft delete table inet plait_proxy_lan\n",
            "\n#   ip -4 rule delete priority 5290 fwmark 0x10/0x10 lookup 5290 protocol 112\n",
        ] {
            assert!(all.contains(line), "{line}: {all}");
        }
    }

    #[test]
    fn only_our_tables_are_ours() {
        assert!(is_ours(&table_name("a b\"; flush")));
        for other in ["filter", "plait_plait0", "plait_proxy_x y", "plait_proxy_x;"] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
