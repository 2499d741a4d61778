//! A LAN behind a customer's gateway (`[[lan]]`), with real gateways and hosts in network
//! namespaces: the LAN's host is set up by nothing but router advertisements and its own kernel.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod network;

use network::{play, run};

#[test]
fn a_role() {
    play();
}

/// The customer's LAN by `[[lan]]` alone; its host has an IPv4 address, as by DHCP, and no IPv6.
const LAN: &str = r#"
    at customer 'ip address flush dev lan scope global; ip link set lan down'
    at lan 'ip -6 address flush dev eth0 scope global; ip -6 route flush default'
    sed -i '/^forward/d' customer/gateway.toml
    cp customer/gateway.toml customer/without.toml
    cat >> customer/gateway.toml <<FILE
[[lan]]
interface = "lan"
prefixes = ["192.168.7.1/24", "fd99:7::1/64"]
dns = ["2001:db8::53"]
FILE
    # Everything about the customer's LAN that a gateway could change.
    host() {
        at customer 'ip -o address show dev lan scope global | tr -s " " | cut -d " " -f 4 | sort
            ip -o link show dev lan | grep -o "state [A-Z]*"
            cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding' | tr '\n' ' '
    }
    address() { at lan 'ip -6 address show dev eth0' | grep -q 'inet6 fd99:7:'; }
    router() { at lan 'ip -6 route show default' | grep -q '^default via fe80'; }
    no_router() { ! router; }
    role internet serve 9000 &
    until_true at internet 'ss -ltn 2>/dev/null | grep -q :9000 || sleep 0.3'
"#;

#[test]
fn a_lans_host_is_set_up_by_advertisements_and_reaches_the_internet() {
    let script = r#"
        echo "before: $(host)"
        at customer plait check gateway.toml | grep -F '[[lan]]'
        up provider; up customer
        until_true paths
        until_true address; until_true router
        echo "while: $(host)"
        echo "mtu: $(at lan 'cat /proc/sys/net/ipv6/conf/eth0/mtu')"
        at lan 'ip -6 route show default' | sed 's/fe80:[^ ]*/ROUTER/; s/expires [0-9]*sec/EXPIRES/'
        role lan connect '[2001:db8::1]:9000' | grep ^tcp
        role lan connect 203.0.113.1:9000 | grep ^tcp
        at lan 'ip link set eth0 down; ip link set eth0 up'
        begun=$(date +%s%N)
        until_true address; until_true router
        echo "asked: $(( ($(date +%s%N) - begun) / 1000000000 )) s"
        at customer plait status | grep '^lan '
        at customer plait status --json | grep -o '"lans":.*}]' | grep -o '"solicitations":[0-9]*'
        kill $up_customer; wait $up_customer
        until_true no_router; address && echo 'the prefix stays'
        echo "after: $(host)"
    "#;
    let Some(text) = run(&format!("{LAN}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("before: state DOWN 0 0 \n");
    has("[[lan]] advertise: router advertisements can be sent");
    has("lan gets 192.168.7.1/24, fd99:7::1/64; it is off, and is switched on");
    has("while: 192.168.7.1/24 fd99:7::1/64 state UP 1 1 \n");
    has("mtu: 1440\n");
    has("default via ROUTER dev eth0 proto ra metric 1024 EXPIRES");
    has("tcp fd99:7::");
    has("tcp 192.168.7.2\n");
    has("lan lan: 192.168.7.1/24, fd99:7::1/64; advertised as the default router: ");
    has("the prefix stays\n");
    has("after: state DOWN 0 0 \n");
    let number = |begin: &str| -> u64 {
        let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{begin}: {text}"));
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    // The kernel waits a second before it asks; at most 3.5 s later there is the answer.
    assert!(number("asked: ") <= 6, "{text}");
    assert!(number("\"solicitations\":") >= 1, "{text}");
}

#[test]
fn a_gateway_whose_bond_is_down_is_no_default_router_unless_traffic_goes_past_it() {
    let script = r#"
        up provider; up customer
        until_true paths; until_true address; until_true router
        role lan ask '[2001:db8::1]:9000' 9000 > /dev/null &
        sleep 0.5
        kill -9 $up_provider; wait $up_provider 2>/dev/null
        until_true no_router; address && echo 'the address stays'
        at customer plait status | grep '^lan '
        up provider
        until_true router; echo 'and again'
        kill $up_customer; wait $up_customer
        option customer 'when_down = "bypass"'
        up customer
        until_true paths; until_true router
        role lan ask '[2001:db8::1]:9000' 5000 > /dev/null &
        kill -9 $up_provider; wait $up_provider 2>/dev/null
        until_true grep -q 'IPv6 traffic goes over' customer/up.log
        sleep 3.5; router && echo 'past it'
    "#;
    let Some(text) = run(&format!("{LAN}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("the address stays\n");
    has("advertised as no router now: ");
    has("and again\n");
    has("past it\n");
}

#[test]
fn what_a_crashed_gateway_left_in_a_lan_is_taken_back_by_the_next_start() {
    let script = r#"
        at customer ip address add 198.51.100.7/24 dev lan
        before=$(host)
        up provider
        # With the rights of the service, and no others.
        nsenter -t $customer -n -m --wd=$here/customer setpriv --no-new-privs \
            --bounding-set -all,+net_admin,+net_raw plait up gateway.toml 2>>customer/up.log &
        up_customer=$!
        until_true paths; until_true router
        grep 'rights kept' customer/up.log
        during=$(host)
        kill -9 $up_customer; wait $up_customer 2>/dev/null
        [ "$(host)" = "$during" ] && echo 'crashed: all is left'
        up customer; until_true paths
        [ "$(host)" = "$during" ] && echo 'again: all is there'
        kill -9 $up_customer; wait $up_customer 2>/dev/null
        mv customer/without.toml customer/gateway.toml
        up customer; until_true paths
        [ "$(host)" = "$before" ] && echo 'without: all is as before'
        host
    "#;
    let Some(text) = run(&format!("{LAN}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("rights kept: CAP_NET_ADMIN, CAP_NET_RAW\n");
    has("crashed: all is left\n");
    has("again: all is there\n");
    has("without: all is as before\n");
    has("198.51.100.7/24 state DOWN 0 0 ");
}

#[test]
fn a_lan_follows_a_reload_and_an_interface_that_goes_and_comes() {
    let script = r#"
        up provider; up customer
        until_true paths; until_true router
        sed -i 's|fd99:7::1/64|fd99:8::1/64|' customer/gateway.toml
        at customer plait reload > /dev/null
        until_true at lan 'ip -6 address show dev eth0 | grep -q "inet6 fd99:8:"'
        until_true at lan 'ip -6 address show dev eth0 | grep -A 1 fd99:7: |
            grep -q "preferred_lft 0sec"'
        echo "while: $(host)"
        at customer ip link set lan down; sleep 0.5; echo "off: $(host | grep -o 'state [A-Z]*')"
        until_true at customer 'plait status | grep -q "lan lan: .* no carrier"'
        at customer ip link set lan up; until_true router
        at customer ip link delete lan
        until_true at customer 'plait status | grep -q "lan lan: .* no such interface"'
        cable lan eth0 192.168.7.2/24 fd99:70::2/64 customer lan 198.51.100.7/24 fd99:70::1/64
        until_true router
        echo "new: $(host)"
        mv customer/without.toml customer/gateway.toml
        at customer plait reload > /dev/null
        until_true no_router
        echo "none: $(host)" | grep -E '192.168.7.1|fd99:8:' || echo 'none of it is left'
    "#;
    let Some(text) = run(&format!("{LAN}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("while: 192.168.7.1/24 fd99:8::1/64 state UP 1 1 \n");
    has("off: state DOWN\n");
    has("new: 192.168.7.1/24 198.51.100.7/24 fd99:70::1/64 fd99:8::1/64 state UP 1 1 \n");
    has("none of it is left\n");
}

#[test]
fn a_router_is_set_up_by_one_option() {
    let script = r#"
        at customer plait setup customer --at 192.0.2.1 --lan-interface lan --yes --dry-run \
            --folder there | grep -A 3 '\[\[lan'
        word() { at provider plait setup provider --at 192.0.2.1 "$@" --yes --no-start --json \
            2>/dev/null | grep -o 'plait1[^"]*'; }
        invitation=$(word --name one --folder one --lan 192.168.8.0/24)
        at customer plait setup join $invitation --lan-interface lan --yes --dry-run \
            --folder there | grep -A 3 '\[\[lan'
        invitation=$(word --name two --folder two)
        at customer plait setup join $invitation --lan-interface lan --yes --dry-run; echo "$?"
        at customer 'ip address flush dev lan scope global'
        at customer plait setup customer --at 192.0.2.1 --lan-interface lan --yes --dry-run \
            --folder there | grep prefixes
    "#;
    let Some(text) = run(script) else { return };
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("interface = \"lan\"\n    prefixes = [\"192.168.7.1/24\", \"fd99:7::1/64\"]\n");
    has("interface = \"lan\"\n    prefixes = [\"192.168.8.1/24\"]\n");
    has("2\n");
    has("the invitation names no network behind this end");
    has("\n    prefixes = [\"10.");
}
