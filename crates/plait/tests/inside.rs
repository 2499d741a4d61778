//! Other tunnels inside the bond, with real gateways in network namespaces: WireGuard between a
//! host of the LAN and one of the internet, and IPsec between the gateways. Each carries a download
//! while a path of the bond is cut.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod network;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use network::{play, run};

/// A download goes on within this time when one of two paths is cut.
const PAUSE_MAX_MS: u64 = 2000;

#[test]
fn a_role() {
    if let Ok(role) = std::env::var("ROLE")
        && let Some(question) = role.strip_prefix("uapi ")
    {
        return uapi(question);
    }
    play();
}

/// Tells wireguard-go what to do: its socket, and the lines, with commas in between.
fn uapi(question: &str) {
    let (device, lines) = question.split_once(' ').unwrap();
    let mut socket = UnixStream::connect(format!("/run/wireguard/{device}.sock")).unwrap();
    write!(socket, "set=1\n{}\n\n", lines.replace(',', "\n")).unwrap();
    let mut answer = [0; 64];
    let length = socket.read(&mut answer).unwrap();
    println!("\nuapi {}", String::from_utf8_lossy(&answer[..length]).trim());
}

/// What both tests need: packets in pieces on their way out of the bond and into it, a download.
const SETUP: &str = r#"
    cat > pieces.nft <<RULES
table inet pieces {
  chain in {
    type filter hook prerouting priority -450;
    iifname "plait0" ip frag-off & 0x3fff != 0 counter
    iifname "plait0" ip6 nexthdr 44 counter
  }
}
RULES
    for name in customer provider; do cp pieces.nft $name; at $name nft -f pieces.nft; done
    pieces() {
        for name in customer provider; do
            at $name nft list chain inet pieces in | grep -o 'packets [0-9]*' | cut -d ' ' -f 2
        done | paste -s -d + | sed 's/.*/echo $((&))/' | sh
    }
    # A download of so many seconds, with a path cut in the first half.
    download() {
        role $1 receive $2 6000 > download & wait_for=$!
        sleep 1.5; at provider ip link set ${3:-dsl} down
        wait $wait_for
        at provider ip link set ${3:-dsl} up
        grep -E '^(received|no download)' download
    }
    # The largest packet that passes whole, of two sizes.
    fits() {
        for size in $3 $(($3 + 1)); do
            at $1 ping -M do -c 2 -i 0.2 -W 1 -s $((size - 28)) $2 > ping.log 2>&1 &&
                echo "$size fits" ||
                echo "$size does not: $(grep -o -m 1 'mtu[=: ]*[0-9]*' ping.log | tr -dc 0-9)"
        done
    }
"#;

/// What a download came to.
fn downloads(text: &str) -> Vec<(u64, u64, u64, bool)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("received "));
    let read = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        (number(0), number(2), number(4), words[6] == "true")
    };
    lines.map(read).collect()
}

fn assert_downloads(text: &str, count: usize) {
    let all = downloads(text);
    assert_eq!(all.len(), count, "{text}");
    for (bytes, late, pause_ms, sound) in all {
        assert!(bytes > 10_000_000 && late > 3_000_000, "{bytes} {late}: {text}");
        assert!(sound && pause_ms < PAUSE_MAX_MS, "{pause_ms} {sound}: {text}");
    }
}

/// wireguard-go, or nothing with the reason printed.
fn wireguard_go() -> Option<PathBuf> {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_plait")).with_file_name("../tools/wireguard");
    let program = std::env::var_os("WIREGUARD_GO").map_or(built, PathBuf::from);
    let found = std::fs::canonicalize(&program).ok();
    if found.is_none() {
        eprintln!("skipped: no wireguard-go at {}: scripts/wireguard-go", program.display());
    }
    found
}

#[test]
fn wireguard_inside_the_bond_carries_a_download_while_a_path_is_cut() {
    let Some(program) = wireguard_go() else { return };
    let script = r#"
        hex() { base64 -d | od -An -v -tx1 | tr -d ' \n'; }
        for name in lan internet; do
            (umask 077; plait keygen > $name/wg.key)
            plait pubkey < $name/wg.key | hex > $name/wg.public
            at $name "mkdir -p /run/wireguard; ip link set lo up"
            eval "pid=\$$name"
            nsenter -t $pid -n -m $WIREGUARD -f wg0 > $name/wg.log 2>&1 &
            until_true at $name test -S /run/wireguard/wg0.sock
        done
        role internet uapi wg0 private_key=$(hex < internet/wg.key),listen_port=51820,public_key=$(
            cat lan/wg.public),allowed_ip=10.50.0.2/32 | grep uapi
        role lan uapi wg0 private_key=$(hex < lan/wg.key),public_key=$(
            cat internet/wg.public),allowed_ip=10.50.0.1/32 | grep uapi
        peer() {
            role lan uapi wg0 public_key=$(cat internet/wg.public),endpoint=$1 | grep uapi
            until_true at lan ping -c 1 -W 1 10.50.0.1
        }
        at internet 'ip address add 10.50.0.1/24 dev wg0; ip link set wg0 mtu 1420 up'
        at lan 'ip address add 10.50.0.2/24 dev wg0; ip link set wg0 mtu 1420 up'
        mtu() { at internet ip link set wg0 mtu $1; at lan ip link set wg0 mtu $1; }
        up provider; up customer
        until_true paths
        role internet send 9100 & sleep 0.2
        peer 203.0.113.1:51820
        mtu 1380
        download lan 10.50.0.1:9100
        echo "pieces at 1380: $(pieces)"
        fits lan 10.50.0.1 1380
        until_true paths
        # Packets in pieces arrive, too, and are counted.
        at lan ping -c 100 -i 0.01 -s 2500 -q 203.0.113.1 | grep -o '[0-9.]*% packet loss'
        echo "pieces of pings: $(pieces)"
        # The same by IPv6, whose header is longer.
        peer '[2001:db8::1]:51820'
        mtu 1360; before=$(pieces)
        download lan 10.50.0.1:9100 lte
        echo "pieces at 1360: $(($(pieces) - before))"
        fits lan 10.50.0.1 1360
        # Nothing of it went beside the bond.
        at customer plait status --json | grep -o '"inner_delivered_bytes":[0-9]*' | head -n 1
    "#;
    let text = run(&format!("WIREGUARD={}\n{SETUP}{script}", program.display()));
    let Some(text) = text else { return };
    eprintln!("{text}");
    assert_eq!(text.matches("uapi errno=0").count(), 4, "{text}");
    let lines: Vec<_> = text.lines().collect();
    for line in [
        "pieces at 1380: 0",
        "1380 fits",
        "1381 does not: 1380",
        "pieces at 1360: 0",
        "1360 fits",
        "1361 does not: 1360",
    ] {
        assert!(lines.contains(&line), "{line}: {text}");
    }
    assert!(lines.contains(&"0% packet loss"), "{text}");
    assert!(!lines.contains(&"pieces of pings: 0"), "the count counts nothing: {text}");
    assert_downloads(&text, 2);
}

#[test]
fn ipsec_inside_the_bond_carries_a_download_while_a_path_is_cut() {
    let script = r#"
        key=0x00112233445566778899aabbccddeeff00112233
        # Both directions of a tunnel: own address, the other's, own number.
        ipsec() {
            at $1 "ip xfrm state add src $2 dst $3 proto esp spi $4 reqid 1 mode tunnel \
                    aead 'rfc4106(gcm(aes))' $key 128 &&
                ip xfrm state add src $3 dst $2 proto esp spi $5 reqid 1 mode tunnel \
                    aead 'rfc4106(gcm(aes))' $key 128 &&
                ip xfrm policy add src $6 dst $7 dir out \
                    tmpl src $2 dst $3 proto esp reqid 1 mode tunnel &&
                ip xfrm policy add src $7 dst $6 dir in \
                    tmpl src $3 dst $2 proto esp reqid 1 mode tunnel &&
                ip address add $6/32 dev lo"
        }
        if ! ipsec customer 10.99.0.2 10.99.0.1 0x1 0x2 10.50.0.2 10.50.0.1 2> xfrm.log; then
            echo "no ESP: $(head -n 1 xfrm.log)"; exit
        fi
        ipsec provider 10.99.0.1 10.99.0.2 0x2 0x1 10.50.0.1 10.50.0.2
        up provider; up customer
        until_true paths
        at customer ip route add 10.50.0.1/32 dev plait0 src 10.50.0.2
        at provider ip route add 10.50.0.2/32 dev plait0 src 10.50.0.1
        role provider send 9100 & sleep 0.2
        download customer 10.50.0.1:9100
        echo "pieces: $(pieces)"
        fits customer 10.50.0.1 1386
        echo "esp: $(at customer ip -s xfrm state | grep -c 'proto esp')"
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    if let Some(reason) = text.lines().find(|line| line.starts_with("no ESP: ")) {
        eprintln!("skipped: {reason}");
        return;
    }
    eprintln!("{text}");
    assert_downloads(&text, 1);
    for line in ["pieces: 0", "1386 fits"] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    assert!(text.contains("1387 does not") && !text.contains("esp: 0"), "{text}");
}
