//! Services behind the bond, reached at the provider's addresses, with real gateways and hosts in
//! network namespaces: `[[forward]]` and `return_by_bond`.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod network;

use network::{play, run};

#[test]
fn a_role() {
    play();
}

/// Services of the LAN host, and what the internet is answered: under which address it was seen.
const SERVICES: &str = r#"
    for port in 9000 8005; do role lan serve $port & done
    at provider ip address add 203.0.113.9/24 dev eth0
    cat >> provider/gateway.toml <<FILE
[[forward]]
ports = "443"
to = "192.168.7.2:9000"
[[forward]]
protocol = "tcp"
ports = "443"
to = "[fd99:7::2]:9000"
[[forward]]
protocol = "udp"
ports = "8000-8010"
to = "192.168.7.2"
[[forward]]
address = "203.0.113.9"
to = "192.168.7.2"
FILE
    tcp() { echo "$1: $(role internet connect $2 | grep ^tcp)"; }
    udp() { echo "$1: $(role internet ask $2 400 | grep ^seen | cut -d ' ' -f 2)"; }
"#;

#[test]
fn services_are_reached_at_the_provider_with_the_clients_address() {
    let script = r#"
        up provider; up customer
        until_true paths
        tcp port 203.0.113.2:443
        udp port 203.0.113.2:443
        tcp v6 '[2001:db8::2]:443'
        udp v6 '[2001:db8::2]:443'
        udp range 203.0.113.2:8005
        tcp range 203.0.113.2:8005
        tcp address 203.0.113.9:9000
        udp address 203.0.113.9:8005
        at provider plait check gateway.toml | grep -A 1 '\[\[forward'
        sed -i 's/ports = "443"/ports = "444"/' provider/gateway.toml
        at provider plait reload > /dev/null; sleep 0.5
        tcp moved 203.0.113.2:444
        tcp old 203.0.113.2:443
        kill -9 $up_provider; wait $up_provider 2>/dev/null
        sed -i '/^.*forward\]\]/,$d' provider/gateway.toml
        echo "crashed: $(at provider nft list tables)"
        up provider; until_true grep -q 'is up; inner MTU' provider/up.log; until_true paths
        sleep 0.5; echo "started: $(at provider nft list tables)"
    "#;
    let Some(text) = run(&format!("{SERVICES}{script}")) else { return };
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(": ")).collect();
    let expected = [
        "port: tcp 203.0.113.1",
        "port: 203.0.113.1",
        "v6: tcp 2001:db8::1",
        "range: 203.0.113.1",
        "range: tcp no answer: connection refused",
        "address: tcp 203.0.113.1",
        "address: 203.0.113.1",
        "moved: tcp 203.0.113.1",
        "old: tcp no answer: connection refused",
        "crashed: table inet plait_plait0",
    ];
    for line in expected {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    assert!(text.contains("v6: \n") && text.contains("started: \n"), "{text}");
}

#[test]
fn answers_go_back_into_the_bond_whatever_the_routes_say() {
    let script = r#"
        sed -i '/^routes/d; s/^forward = true/&\nreturn_by_bond = true/' customer/gateway.toml
        role customer serve 9001 &
        cat >> provider/gateway.toml <<FILE
[[forward]]
ports = "9001"
to = "10.99.0.2"
FILE
        # As most networks do with addresses that are not their own.
        at provider 'nft add table inet spoofed
            nft "add chain inet spoofed in { type filter hook prerouting priority -400; }"
            nft add rule inet spoofed in iifname { dsl, lte } \
                ip saddr { 192.168.7.0/24, 10.99.0.2 } drop
            nft add rule inet spoofed in iifname { dsl, lte } ip6 saddr fd99:7::/64 drop'
        at customer 'echo 1 > /proc/sys/net/ipv4/conf/default/rp_filter'
        up provider; up customer
        until_true paths
        tcp lan 203.0.113.2:443
        udp lan 203.0.113.2:443
        tcp v6 '[2001:db8::2]:443'
        tcp own 203.0.113.2:9001
        # All is set up anew.
        sed -i 's/^return_by_bond.*/&\nnat = ["lo"]/' customer/gateway.toml
        at customer plait reload > /dev/null; sleep 0.5
        tcp again 203.0.113.2:443
        echo "elsewhere: $(at customer ip route get 203.0.113.1 | grep -o 'dev dsl')"
        kill -9 $up_customer; wait $up_customer 2>/dev/null
        sed -i '/^return_by_bond/d' customer/gateway.toml
        up customer; until_true paths
        echo "rules: $(at customer 'ip rule; ip -6 rule' | grep -c fwmark)"
        tcp without 203.0.113.2:443
    "#;
    let Some(text) = run(&format!("{SERVICES}{script}")) else { return };
    for line in [
        "lan: tcp 203.0.113.1",
        "lan: 203.0.113.1",
        "v6: tcp 2001:db8::1",
        "own: tcp 203.0.113.1",
        "again: tcp 203.0.113.1",
        "elsewhere: dev dsl",
        "rules: 0",
        "without: tcp no answer: timed out",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
}
