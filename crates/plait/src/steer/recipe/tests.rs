use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;
use crate::steer::config::testing::parse;

const BOTH: &str = "[node]\n[[client]]\nname = \"phone\"\n\
                    address = \"10.1.0.1\"\naddress6 = \"fd01::1\"\n\
                    [[client.attachment]]\nname = \"lte\"\n\
                    [[client.attachment]]\nname = \"wifi\"\n\
                    address = \"10.2.0.1\"\naddress6 = \"fd02::1\"\n";

fn recipe(toml: &str, kind: Kind) -> String {
    let config = parse(toml).unwrap();
    text(&config, &config.clients.iter().collect::<Vec<_>>(), &[kind])
}

/// The commands, without comments.
fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn the_rule_of_nftables_rewrites_both_families_before_tracking() {
    let text = recipe(BOTH, Kind::Nftables);
    let lines = lines(&text);
    let start = lines.iter().position(|line| *line == "nft -f - <<'END'").unwrap();
    assert_eq!(
        lines[start + 3..start + 12],
        [
            "table inet plait_client {",
            "  chain back {",
            "    type filter hook prerouting priority raw; policy accept;",
            "    ip daddr 10.2.0.1 udp dport 68 accept",
            "    ip daddr 10.2.0.1 ip daddr set 10.1.0.1",
            "    ip6 daddr fd02::1 icmpv6 type { nd-router-advert, nd-neighbor-solicit, \
             nd-neighbor-advert } accept",
            "    ip6 daddr fd02::1 ip6 daddr set fd01::1",
            "  }",
            "}",
        ]
    );
    assert!(text.contains("dev \"$if0\" src 10.1.0.1 table 5210\n"), "{text}");
    assert!(text.contains("echo 2 > \"/proc/sys/net/ipv4/conf/$if1/rp_filter\"\n"), "{text}");
}

#[test]
fn the_rule_of_iptables_is_nat_in_a_zone() {
    let text = recipe(BOTH, Kind::Iptables);
    for line in [
        "iptables -w -t raw -A PREROUTING -i \"$if1\" -d 10.2.0.1 -m comment --comment plait \
         -j CT --zone 5210 || {",
        "iptables -w -t nat -A PREROUTING -i \"$if1\" -d 10.2.0.1 -m comment --comment plait \
         -j DNAT --to-destination 10.1.0.1",
        "ip6tables -w -t nat -A PREROUTING -i \"$if1\" -d fd02::1 -m comment --comment plait \
         -j DNAT --to-destination fd01::1",
    ] {
        assert!(lines(&text).contains(&line), "{line}\n{text}");
    }
    assert!(!text.contains("settings put"), "{text}");
}

#[test]
fn a_phone_keeps_both_radios_up_and_routes_by_its_own_tables() {
    let text = recipe(BOTH, Kind::Android);
    let lines = lines(&text);
    assert!(lines.contains(&"settings put global mobile_data_always_on 1"), "{text}");
    assert!(
        lines.contains(
            &"ip -4 rule add pref 5213 fwmark 0x0/0x10000 iif lo lookup \
              $((1000 + $(ip -o link show dev \"$if0\" | cut -d : -f 1)))"
        ),
        "{text}"
    );
}

#[test]
fn a_family_that_only_the_primary_has_needs_nothing() {
    let v4_only = BOTH.replace("\naddress6 = \"fd02::1\"", "");
    for kind in Kind::ALL {
        let text = recipe(&v4_only, kind);
        assert!(!text.contains("fd01::1") && !text.contains(" -6 "), "{text}");
    }
    let alone = &BOTH[..BOTH.find("[[client.attachment]]\nname = \"wifi\"").unwrap()];
    for kind in Kind::ALL {
        assert_eq!(lines(&recipe(alone, kind)), Vec::<&str>::new());
    }
}

#[test]
fn every_recipe_is_one_that_a_shell_reads() {
    let third = format!(
        "{BOTH}[[client.attachment]]\nname = \"it's; a \\\"mesh\\\" $(no)\"\n\
         address = \"10.4.0.1\"\n"
    );
    for kind in Kind::ALL {
        let text = recipe(&third, kind);
        let mut shell = Command::new("sh")
            .arg("-n")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = shell.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
        assert!(!lines(&text).iter().any(|line| line.contains("$(no)")), "{text}");
    }
}
