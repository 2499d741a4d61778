//! Links that are named by what stays of their interface, with real gateways in network namespaces:
//! the names of two interfaces are swapped while the gateway runs.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod network;

use network::{play, run};

#[test]
fn a_role() {
    play();
}

/// The customer's links by identity; what its paths carry, at the provider.
const SETUP: &str = r#"
    at customer 'ip link set dsl address 02:00:00:00:00:01
        ip link set lte address 02:00:00:00:00:02'
    role internet serve 9000 & role internet serve 9001 & sleep 0.2
    links() { at customer plait status | grep -E '^  (one|two)  .* = '; }
    at provider 'nft add table inet seen
        nft "add chain inet seen in { type filter hook prerouting priority -400; }"
        nft "add counter inet seen dsl; add counter inet seen lte"
        nft add rule inet seen in iifname dsl udp dport 7788 counter name dsl
        nft add rule inet seen in iifname lte udp dport 7788 counter name lte'
    count() {
        at provider nft list counter inet seen $1 | grep -o 'packets [0-9]*' | cut -d ' ' -f 2
    }
    # What a second of questions from the LAN adds to each link.
    carried() {
        dsl=$(count dsl); lte=$(count lte)
        udp lan 203.0.113.1:9000 1000
        echo "$1: dsl $(($(count dsl) - dsl)) lte $(($(count lte) - lte))"
    }
    swap() {
        at customer 'ip link set dsl down; ip link set lte down
            ip link set dsl name other; ip link set lte name dsl; ip link set other name lte
            ip link set dsl up; ip link set lte up
            ip address add fd01::2/64 dev lte nodad; ip address add fd02::2/64 dev dsl nodad
            ip route add default via 10.1.0.1 metric 10; ip route add default via 10.2.0.1 metric 20
            ip route add default via fd01::1 metric 10; ip route add default via fd02::1 metric 20'
    }
"#;

/// How much each link carried.
fn carried(text: &str, name: &str) -> [u64; 2] {
    let line = text.lines().find(|line| line.starts_with(&format!("{name}: dsl ")));
    let words: Vec<&str> = line.unwrap_or_else(|| panic!("{name}: {text}")).split(' ').collect();
    [words[2].parse().unwrap(), words[4].parse().unwrap()]
}

#[test]
fn each_path_follows_its_hardware_address() {
    let script = r#"
        sed -i 's/^interface = "dsl"/link = "mac:02:00:00:00:00:01"\nname = "one"/
            s/^interface = "lte"/link = "mac:02:00:00:00:00:02"\nname = "two"\nstandby = true/' \
            customer/gateway.toml
        cat >> customer/gateway.toml <<FILE
[[beside]]
ports = "9001"
over = "mac:02:00:00:00:00:02"
FILE
        at customer plait check gateway.toml | grep -A 1 'link: '
        up provider; up customer
        until_true paths; sleep 0.5
        links; carried before; udp lan 203.0.113.1:9001
        swap
        until_true sh -c "nsenter -t $customer -n -m plait status | grep 'one  .*01 = lte: up'"
        until_true paths; sleep 0.5
        # What goes beside the bond takes a link that comes back a moment later.
        until_true sh -c "nsenter -t $customer -n -m plait status | grep 'now IPv4 dsl'"
        links; carried after; udp lan 203.0.113.1:9001
        # Another interface with the same address.
        at customer 'ip link add br0 type bridge; ip link set br0 address 02:00:00:00:00:01'
        until_true grep -q 'br0 have mac:02:00:00:00:00:01 in common' customer/up.log
        at customer plait status | grep -E '^  one  '
        at customer plait check gateway.toml | grep 'in common'
        at customer ip link delete br0
        until_true paths
        links
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    for part in [
        "mac:02:00:00:00:00:01 is dsl has 10.1.0.2",
        "  one  mac:02:00:00:00:00:01 = dsl: up, has 10.1.0.2",
        "  two  mac:02:00:00:00:00:02 = lte: up, has 10.2.0.2",
        "  one  mac:02:00:00:00:00:01 = lte: up, has 10.1.0.2",
        "  two  mac:02:00:00:00:00:02 = dsl: up, has 10.2.0.2",
        "  one  mac:02:00:00:00:00:01: absent, lte and br0 have mac:02:00:00:00:00:01 in common",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("lan 203.0.113.1:9001: 10.2.0.2 ").count(), 2, "{text}");
    assert_eq!(text.matches("lan 203.0.113.1:9000: 192.168.7.2 ").count(), 2, "{text}");
    for name in ["before", "after"] {
        let [dsl, lte] = carried(&text, name);
        assert!(dsl > 30 && lte < dsl / 3, "{name}: {dsl} {lte}: {text}");
    }
}

#[test]
fn a_path_follows_its_place_on_the_bus() {
    let script = r#"
        sed -i 's/^interface = "dsl"/link = "bus:0000:00:1f.6"\nname = "one"/
            s/^interface = "lte"/link = "bus:1-1.4"\nname = "two"\nstandby = true/' \
            customer/gateway.toml
        # As the kernel describes hardware, which these have not.
        at customer 'mount -t tmpfs none /sys; mkdir -p /sys/class/net/dsl /sys/class/net/lte
            mkdir -p /sys/devices/pci0000:00/0000:00:1f.6 /sys/devices/usb1/1-1/1-1.4/1-1.4:1.0
            ln -s /sys/devices/pci0000:00/0000:00:1f.6 /sys/class/net/dsl/device
            ln -s /sys/devices/usb1/1-1/1-1.4/1-1.4:1.0 /sys/class/net/lte/device'
        up provider; up customer
        until_true paths; sleep 0.5
        links; carried before
        at customer 'cd /sys/class/net; mv dsl other; mv lte dsl; mv other lte'
        swap
        until_true sh -c "nsenter -t $customer -n -m plait status | grep 'one  .*1f.6 = lte: up'"
        until_true paths; sleep 0.5
        links; carried after
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    for part in [
        "  one  bus:0000:00:1f.6 = dsl: up, has 10.1.0.2",
        "  two  bus:1-1.4 = lte: up, has 10.2.0.2",
        "  one  bus:0000:00:1f.6 = lte: up, has 10.1.0.2",
        "  two  bus:1-1.4 = dsl: up, has 10.2.0.2",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for name in ["before", "after"] {
        let [dsl, lte] = carried(&text, name);
        assert!(dsl > 30 && lte < dsl / 3, "{name}: {dsl} {lte}: {text}");
    }
}
