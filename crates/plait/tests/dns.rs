//! The host's resolver asks through the bond (`[dns]`), with real gateways and hosts in network
//! namespaces. /etc is a copy of its own at the customer; programs that tell other resolvers are
//! replaced by ones that write down what they are told.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod network;

use std::net::{IpAddr, UdpSocket};

use network::{play, run};

#[test]
fn a_role() {
    match std::env::var("ROLE").as_deref() {
        Ok("names") => answer_names(),
        _ => play(),
    }
}

/// A name server that knows of every name one thing: the IPv4 address of whoever asks.
fn answer_names() {
    let socket = UdpSocket::bind(("203.0.113.53", 53)).unwrap();
    let mut buffer = [0; 512];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        let IpAddr::V4(asker) = from.ip() else { continue };
        // The header, and the question: a name, type and class.
        let end = 12 + buffer[12..length].iter().position(|byte| *byte == 0).unwrap() + 5;
        let is_for_ipv4 = buffer[end - 3] == 1;
        let mut answer = buffer[..end].to_vec();
        (answer[2], answer[3]) = (0x81, 0x80);
        answer[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_for_ipv4), 0, 0, 0, 0]);
        if is_for_ipv4 {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            answer.extend(asker.octets());
        }
        socket.send_to(&answer, from).unwrap();
    }
}

/// The customer with a `[dns]`, and an /etc of its own.
const DNS: &str = r#"
    cp customer/gateway.toml customer/without.toml
    cat >> customer/gateway.toml <<FILE
[dns]
servers = ["203.0.113.53"]
FILE
    cp customer/gateway.toml customer/with.toml
    mkdir customer/etc; cp -a /etc/. customer/etc 2>/dev/null
    at customer mount --bind etc /etc
    rm -f customer/etc/resolv.conf
    conf=customer/etc/resolv.conf
    at internet ip address add 203.0.113.53/24 dev eth0
    asks() { grep -q '^nameserver 203.0.113.53' $conf; }
    asks_not() { ! asks; }
    # The gateway and the process beside it.
    kill_all() {
        kill -9 $up_customer $(ps -o pid= --ppid $up_customer)
        wait $up_customer 2>/dev/null
    }
    # In place of a program: writes down its arguments, and what it reads.
    fake() {
        printf '#!/bin/sh\necho "%s $*" >> %s/told\n%s\n' $1 $here "${2:-}" > bin/$1
        chmod +x bin/$1
    }
    told() { grep -q -- "$1" told; }
"#;

#[test]
fn a_plain_file_is_replaced_while_the_bond_carries_and_put_back_whatever_happens() {
    let script = r#"
        command -v resolvconf > /dev/null && { echo 'another resolvconf'; exit; }
        printf 'nameserver 192.0.2.99\nsearch lan\n# mine' > $conf; chmod 640 $conf
        cp -p $conf before
        same() { cmp -s $conf before && [ $(stat -c %a $conf) = 640 ]; }
        role internet names & sleep 0.3
        at customer plait check gateway.toml | grep -F '[dns]'
        up provider; up customer
        until_true paths; until_true asks
        grep -v '^#' $conf
        echo "asked from: $(at customer getent ahostsv4 who.example | head -n 1 | cut -d ' ' -f 1)"
        at customer plait status | grep '^dns: '
        at customer plait status --json | grep -o '"dns":{[^}]*}'
        echo "unblock: $(at customer plait unblock 2>&1 | head -n 1)"
        kill -9 $up_provider; wait $up_provider 2>/dev/null
        role customer ask 203.0.113.1:9 1500 > /dev/null; asks && echo 'hold: stays'
        kill $up_customer; wait $up_customer
        same && echo 'ended: as before'
        up provider; up customer; until_true asks
        kill -9 $up_customer; wait $up_customer 2>/dev/null
        until_true same; echo 'killed: as before'
        up customer; until_true asks; kill_all
        asks && echo 'both killed: left'
        at customer plait unblock; echo "$?"; same && echo 'unblock: as before'
        at customer plait unblock; echo "$?"
        up customer; until_true asks; kill_all; asks && echo 'both killed: left again'
        cp customer/without.toml customer/gateway.toml
        up customer; until_true same; echo 'next start: as before'
        kill $up_customer; wait $up_customer
        ls customer/etc/ | grep -c resolv.conf
    "#;
    let Some(text) = run(&format!("{DNS}{script}")) else { return };
    if text.starts_with("another resolvconf") {
        eprintln!("skipped: this machine has a resolvconf");
        return;
    }
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("[dns]: the host's resolver is told by /etc/resolv.conf\n");
    has("nameserver 203.0.113.53\nsearch lan\n");
    has("asked from: 10.99.0.2\n");
    has("dns: the host asks 203.0.113.53, by /etc/resolv.conf\n");
    has("\"in_use\":true");
    has("unblock: plait: error: a gateway still runs with plait0\n");
    for stage in ["hold: stays", "ended: as before", "killed: as before", "both killed: left"] {
        has(&format!("{stage}\n"));
    }
    has("/etc/resolv.conf is as it was before plait0\n0\nunblock: as before\n");
    has("nothing was in force\n1\nboth killed: left again\nnext start: as before\n1\n");
}

#[test]
fn systemd_resolved_is_told_and_goes_back_while_traffic_goes_past_the_bond() {
    let script = r#"
        at customer 'mkdir -p /run/systemd/resolve
            echo "nameserver 127.0.0.53" > /run/systemd/resolve/stub-resolv.conf
            ln -s /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf'
        echo "missing: $(at customer plait check gateway.toml | grep -F -A 1 '[dns]')"
        fake resolvectl
        at customer plait check gateway.toml | grep -F '[dns]'
        option customer 'when_down = "bypass"'
        up provider; up customer
        until_true paths; until_true told 'default-route plait0 yes'
        role customer ask 203.0.113.1:9000 6000 > /dev/null &
        kill -9 $up_provider; wait $up_provider 2>/dev/null
        until_true told 'revert plait0'
        until_true eval 'at customer plait status | grep "^dns: .* without the bond"'
        at customer plait status | grep '^dns: '
        echo back >> told
        up provider
        until_true eval '[ $(grep -c "dns plait0" told) = 2 ]'
        kill $up_customer; wait $up_customer
        cat told; rm told
        echo 'domains = ["corp.example", "lan"]' >> customer/gateway.toml
        up customer; until_true told 'default-route'
        sed -i 's/203.0.113.53/203.0.113.54/' customer/gateway.toml
        at customer plait reload > /dev/null
        until_true eval 'at customer plait status | grep "^dns: .*203.0.113.54"'
        at customer plait status | grep '^dns: '
        kill $up_customer; wait $up_customer
        echo split; cat told
    "#;
    let Some(text) = run(&format!("{DNS}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("systemd-resolved serves this host, and its program resolvectl is missing");
    has("[dns]: the host's resolver is told by systemd-resolved\n");
    has("dns: the host asks whom it asked without the bond, by systemd-resolved\n");
    let all = "resolvectl dns plait0 203.0.113.53\nresolvectl domain plait0 ~.\n\
               resolvectl default-route plait0 yes\n";
    has(&format!("{all}resolvectl revert plait0\nback\n{all}resolvectl revert plait0\n"));
    let split = |server: &str| {
        format!(
            "resolvectl dns plait0 {server}\nresolvectl domain plait0 ~corp.example ~lan\n\
             resolvectl default-route plait0 no\n"
        )
    };
    let (first, second) = (split("203.0.113.53"), split("203.0.113.54"));
    has(&format!("split\n{first}{second}resolvectl revert plait0\n"));
    has("dns: the host asks 203.0.113.54 for corp.example, lan, by systemd-resolved\n");
}

#[test]
fn resolvconf_is_told_and_what_a_crash_left_is_taken_back() {
    let script = r#"
        echo 'nameserver 192.0.2.99' > $conf
        fake resolvconf 'entries=/run/resolvconf/interfaces
            case $1 in
                --version) echo openresolv 3.13.2 ;;
                -a) mkdir -p $entries; cat > $entries/$2 ;;
                -d) rm $entries/$2 ;;
            esac'
        at customer plait check gateway.toml | grep -F '[dns]'
        entry() { at customer cat /run/resolvconf/interfaces/plait0.plait; }
        no_entry() { ! entry; }
        up provider; up customer
        until_true paths; until_true entry; entry
        kill $up_customer; wait $up_customer; entry 2>/dev/null || echo 'ended: gone'
        up customer; until_true entry; kill_all; entry > /dev/null && echo 'killed: left'
        cp customer/without.toml customer/gateway.toml
        up customer; until_true no_entry; echo 'next start: gone'
        kill $up_customer; wait $up_customer
        (cat customer/with.toml; echo 'domains = ["corp.example"]') > customer/gateway.toml
        up customer; until_true entry; entry; kill_all
        at customer plait unblock; entry 2>/dev/null || echo 'unblock: gone'
        grep -v version told
    "#;
    let Some(text) = run(&format!("{DNS}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("[dns]: the host's resolver is told by openresolv\n");
    has("nameserver 203.0.113.53\nended: gone\nkilled: left\nnext start: gone\n");
    has("nameserver 203.0.113.53\ndomain corp.example\n");
    has("resolvconf is as it was before plait0\nunblock: gone\n");
    has("resolvconf -a plait0.plait -m 0 -x\nresolvconf -d plait0.plait\n");
    has("resolvconf -a plait0.plait -p\nresolvconf -d plait0.plait\n");
}

#[test]
fn a_gateway_that_cannot_tell_the_resolver_does_not_start() {
    let script = r#"
        command -v resolvconf > /dev/null && { echo 'another resolvconf'; exit; }
        at customer 'mkdir /run/other; touch /run/other/resolv.conf
            ln -s /run/other/resolv.conf /etc/resolv.conf'
        up customer; wait $up_customer; echo "$?"; cat customer/up.log
        rm $conf; echo 'nameserver 192.0.2.99' > $conf
        echo 'domains = ["corp.example"]' >> customer/gateway.toml
        at customer plait check gateway.toml | grep -F -A 1 '[dns]'
        printf '# plait-dns gone0\n# plait-was 1\n#|nameserver 192.0.2.99\n' > $conf
        cp customer/with.toml customer/gateway.toml
        at customer plait check gateway.toml | grep -F -A 1 '[dns]'
        at customer plait unblock gone0; cat $conf
    "#;
    let Some(text) = run(&format!("{DNS}{script}")) else { return };
    if text.starts_with("another resolvconf") {
        eprintln!("skipped: this machine has a resolvconf");
        return;
    }
    let has = |part: &str| assert!(text.contains(part), "no {part:?} in: {text}");
    has("2\nplait: error: gateway.toml:");
    has("/etc/resolv.conf leads to /run/other/resolv.conf: another program manages it");
    has("install systemd-resolved or openresolv");
    has("/etc/resolv.conf cannot ask some servers for some domains only");
    has("/etc/resolv.conf belongs to the gateway of gone0");
    has("/etc/resolv.conf is as it was before gone0\nnameserver 192.0.2.99\n");
}
