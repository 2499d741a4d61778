//! What becomes of the host's traffic while the bond is down, with real gateways and hosts in
//! network namespaces: `when_down`.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod network;

use network::{play, run};

/// Traffic has to go on within this time.
const GAP_MAX_MS: u64 = 2000;

#[test]
fn a_role() {
    play();
}

/// The runs of answers under one address: the address, the first time and the last, in
/// milliseconds.
fn runs(text: &str) -> Vec<(String, u64, u64)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("seen "));
    let run = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].to_owned(), words[1].parse().unwrap(), words[2].parse().unwrap())
    };
    lines.map(run).collect()
}

/// The longest time without an answer between two runs.
fn longest_gap_ms(runs: &[(String, u64, u64)]) -> u64 {
    runs.windows(2).map(|pair| pair[1].1 - pair[0].2).max().unwrap_or(u64::MAX)
}

#[test]
fn traffic_goes_past_a_bond_that_is_down_and_back() {
    let script = r#"
        option customer 'when_down = "bypass"'
        up provider; up customer
        until_true paths
        role internet serve 9000 & sleep 0.2
        for from in lan customer; do
            role $from ask 203.0.113.1:9000 14000 > $from.v4 &
            role $from ask [2001:db8::1]:9000 14000 > $from.v6 &
        done
        sleep 2
        kill -9 $up_provider
        sleep 3
        echo "status: $(at customer plait status | grep 'when down')"
        # The preferred link takes everything and brings nothing back.
        at provider 'nft add table inet dead
            nft "add chain inet dead in { type filter hook prerouting priority -400; }"
            nft add rule inet dead in iifname dsl drop'
        sleep 3
        echo "status: $(at customer plait status | grep 'when down')"
        at customer ip route show proto 112
        role lan connect 203.0.113.1:9000 | grep tcp
        at provider nft delete table inet dead
        up provider
        sleep 6
        echo "status: $(at customer plait status | grep 'when down')"
        until_true sh -c '[ $(cat *.v? | grep -c asked) = 4 ]'
        for from in lan customer; do for ip in v4 v6; do
            echo "of $from $ip"; cat $from.$ip
        done; done
        echo "of nobody"
        echo "left: $(at customer 'ip route show proto 112; ip -6 route show proto 112')"
        kill $up_customer; wait $up_customer
        echo "stopped: $(at customer nft list tables)"
        grep -E 'when_down|traffic' customer/up.log
    "#;
    let Some(text) = run(script) else { return };
    let part = |begin: &str| {
        let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{begin}: {text}"));
        rest.split("\nof ").next().unwrap().to_owned()
    };
    for (who, own, out) in [
        ("lan v4", "192.168.7.2", ["10.1.0.2", "10.2.0.2"]),
        ("lan v6", "fd99:7::2", ["fd01::2", "fd02::2"]),
        ("customer v4", "10.99.0.2", ["10.1.0.2", "10.2.0.2"]),
        ("customer v6", "fd99::2", ["fd01::2", "fd02::2"]),
    ] {
        let runs = runs(&part(&format!("of {who}\n")));
        let seen: Vec<&str> = runs.iter().map(|(address, ..)| address.as_str()).collect();
        assert_eq!(
            (seen.first().copied(), seen.last().copied()),
            (Some(own), Some(own)),
            "{who}: {text}"
        );
        assert!(out.iter().all(|out| seen.contains(out)), "{who}: {seen:?} {text}");
        eprintln!("{who}: {runs:?}");
        assert!(longest_gap_ms(&runs) < GAP_MAX_MS, "{who}: {runs:?} {text}");
    }
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("status: when down: bypass; the bond is down: traffic goes past it, IPv4 over dsl, IPv6");
    has("status: when down: bypass; the bond is down: traffic goes past it, IPv4 over lte, IPv6");
    has("192.0.0.0/2 via 10.2.0.1 dev lte");
    has("tcp 10.2.0.2\n");
    has("status: when down: bypass; the bond carries the traffic\n");
    has("left: \n");
    has("stopped: \n");
}

#[test]
fn a_bypass_that_crashed_is_undone_by_the_next_start() {
    let script = r#"
        option customer 'when_down = "bypass"'
        at provider 'nft add table inet dead
            nft "add chain inet dead in { type filter hook prerouting priority -400; }"
            nft add rule inet dead in iifname dsl drop'
        up provider; up customer
        until_true paths 1
        role customer ask 203.0.113.1:9000 6000 > /dev/null &
        kill -9 $up_provider
        until_true grep -q 'IPv4 traffic goes over lte' customer/up.log
        left() { echo "$1: $(at customer "nft list tables; ip route show proto 112" | wc -l)"; }
        kill -9 $up_customer; wait $up_customer 2>/dev/null; left crashed
        sed -i '/^when_down/d' customer/gateway.toml
        up customer; until_true grep -q 'is up; inner MTU' customer/up.log; sleep 0.2; left started
    "#;
    let Some(text) = run(script) else { return };
    assert_eq!(text, "crashed: 5\nstarted: 0\n");
}

/// What the provider's side of the links sees beside plait's datagrams and neighbour discovery.
const SEEN: &str = r#"
    cat > provider/seen.nft <<RULES
table inet seen { chain in { type filter hook prerouting priority -400;
    iifname != { "dsl", "lte" } accept
    udp dport 7788 accept
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit,
        mld2-listener-report } accept
    counter
  }
}
RULES
    at provider nft -f seen.nft
    seen() { echo "$1: $(at provider nft list chain inet seen in | grep -o 'packets [0-9]*')"; }
    # Everybody asks for so long: new connections and old.
    noise() {
        for from in lan customer; do
            role $from ask 203.0.113.1:9000 $1 > /dev/null &
            role $from ask [2001:db8::1]:9000 $1 > /dev/null &
            at $from 'for i in 1 2 3 4 5 6 7 8; do
                for to in 203.0.113.1 2001:db8::1 10.1.0.1 10.2.0.1 fd01::1; do
                    ping -c 1 -W 0.1 $to
                done
            done' > /dev/null 2>&1 &
            role $from connect 203.0.113.1:9000 > /dev/null &
        done
    }
"#;

#[test]
fn a_kill_switch_keeps_everything_in_until_it_is_lifted() {
    let script = r#"
        option customer 'when_down = "block"'
        option customer 'block_allows = ["192.168.7.0/24", "fd99:7::/64"]'
        role internet serve 9000 & sleep 0.2
        up provider; up customer
        until_true grep -q 'nothing leaves outside' customer/up.log
        noise 4000
        until_true paths
        echo "lan: $(at lan ping -c 1 -W 1 192.168.7.1 | grep -o '1 received')"
        sleep 1; seen running
        kill -9 $up_provider; sleep 1.5; seen down
        at customer plait status | grep 'when down'
        kill -9 $up_customer; wait $up_customer 2>/dev/null
        sleep 1; seen crashed
        up provider; up customer; noise 3000
        until_true paths
        role lan ask 203.0.113.1:9000 500
        seen restarted
        echo "unblock: $(at customer plait unblock 2>&1 | head -n 1)"
        kill $up_customer; wait $up_customer
        echo "stopped: $(at customer nft list tables)"
        option customer 'block_stays = true'
        up customer
        until_true paths
        # Counts anew: it was lifted.
        at provider 'nft delete table inet seen; nft -f seen.nft'
        kill $up_customer; wait $up_customer
        noise 1000
        sleep 1; seen stays
        at customer plait unblock; echo "$?"
        at customer plait unblock; echo "$?"
        at customer ping -c 1 -W 1 10.1.0.1 > /dev/null
        seen lifted
    "#;
    let Some(text) = run(&format!("{SEEN}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    for stage in ["running", "down", "crashed", "restarted", "stays"] {
        has(&format!("{stage}: packets 0\n"));
    }
    has("lan: 1 received\n");
    has("when down: block; nothing leaves outside the bond\n");
    has("seen 192.168.7.2 ");
    has("unblock: plait: error: a gateway still runs with plait0\n");
    has("stopped: \n");
    has("plait-block_plait0 is lifted\n0\nnothing was in force\n1\n");
    assert!(!text.contains("lifted: packets 0\n"), "the count counts nothing: {text}");
}
