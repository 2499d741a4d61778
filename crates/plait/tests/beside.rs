//! What goes beside the bond, over a named link or the best one, with real gateways and hosts in
//! network namespaces: `[[beside]]`. The server tells each client the address that it sees: that of
//! a link, or the client's own, which only the bond brings there.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod network;

use network::{play, run};

#[test]
fn a_role() {
    play();
}

/// Servers, and what they answer; counters of what comes to the provider by each bare link.
const SETUP: &str = r#"
    for port in 9000 9001 9002 9003 9004 9005 9006; do role internet serve $port & done
    sleep 0.3
    # A rule for the customer's file.
    rule() { printf '[[beside]]\n%s\n' "$1" >> customer/gateway.toml; }
    tcp() { echo "$1 $2: $(role $1 connect $2 | grep ^tcp)"; }
    v4=203.0.113.1; v6='[2001:db8::1]'
    in_force() {
        at customer nft list table inet plait-beside_plait0 | grep -q "oifname \"$1\" counter"
    }
    counted() {
        at customer nft list counter inet plait-beside_plait0 rule0 | grep -o 'packets [0-9]*' |
            cut -d ' ' -f 2
    }
    cat > provider/bare.nft <<RULES
table inet bare {
  chain in { type filter hook prerouting priority -400;
    udp dport 7788 accept
    meta l4proto { tcp, udp } th dport 9000-9006 jump which
  }
  chain which {
    iifname "dsl" counter comment "dsl"
    iifname "lte" counter comment "lte"
  }
}
RULES
    at provider nft -f bare.nft
    bare() {
        echo "bare $1: $(at provider nft list chain inet bare which | grep "comment \"$1\"" |
            grep -o 'packets [0-9]*')"
    }
"#;

#[test]
fn each_rule_leads_what_it_names_over_its_link_and_nothing_else() {
    let script = r#"
        rule 'ports = ["9001"]
over = "lte"'
        rule 'dscp = ["ef"]
over = "lte"'
        rule 'domains = ["bank.example"]
ports = "9003"
over = "dsl"'
        rule 'ports = "9004-9005"
protocol = "udp"'
        rule 'sources = ["192.168.7.2", "fd99:7::/64"]
destinations = ["203.0.113.0/24", "2001:db8::1"]
ports = "9006"
protocol = "tcp"
over = "lte"'
        printf '203.0.113.1 bank.example\n2001:db8::1 bank.example\n' > customer/hosts
        at customer mount --bind hosts /etc/hosts
        at lan 'nft add table inet dye
            nft "add chain inet dye out { type filter hook output priority 0; }"
            nft add rule inet dye out udp dport 9002 ip dscp set ef
            nft add rule inet dye out udp dport 9002 ip6 dscp set ef'
        # A strict filter would drop the answers.
        at customer 'echo 1 > /proc/sys/net/ipv4/conf/lte/rp_filter'
        at customer plait check gateway.toml | grep 'beside' | sed 's/^/check /'
        up provider; up customer
        until_true paths; until_true in_force lte
        until_true sh -c 'nsenter -t '$customer' -n -m plait status | grep "bank.example: 203"'
        for ip in $v4 $v6; do
            udp lan $ip:9000; udp customer $ip:9000
        done
        bare dsl; bare lte
        for ip in $v4 $v6; do
            udp lan $ip:9001; tcp lan $ip:9001; udp customer $ip:9001; tcp customer $ip:9001
            udp lan $ip:9002
            udp lan $ip:9003
            udp lan $ip:9004; tcp lan $ip:9004; udp customer $ip:9005
            tcp lan $ip:9006; udp lan $ip:9006
        done
        tcp customer $v4:9006
        at customer plait status | grep -A 8 '^beside'
        at customer plait status --json | grep -o '"beside":.*"listening"' |
            grep -o '"packets":[0-9]*' | head -n 1
        # The counter at the far end, and the one of the rule.
        at provider 'nft delete table inet bare; nft -f bare.nft'
        before=$(counted)
        udp lan $v4:9001 > /dev/null
        after=$(counted)
        bare dsl; bare lte
        echo "counted $((after - before))"
        kill $up_customer; wait $up_customer
        echo "stopped: $(at customer 'nft list tables; ip rule; ip -6 rule' |
            grep -E 'plait|fwmark')"
        echo "filter: $(at customer cat /proc/sys/net/ipv4/conf/lte/rp_filter)"
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    let expected = [
        "lan 203.0.113.1:9000: 192.168.7.2 ",
        "customer 203.0.113.1:9000: 10.99.0.2 ",
        "lan [2001:db8::1]:9000: fd99:7::2 ",
        "customer [2001:db8::1]:9000: fd99::2 ",
        "bare dsl: packets 0",
        "bare lte: packets 0",
        "lan 203.0.113.1:9001: 10.2.0.2 ",
        "lan 203.0.113.1:9001: tcp 10.2.0.2",
        "customer 203.0.113.1:9001: 10.2.0.2 ",
        "customer 203.0.113.1:9001: tcp 10.2.0.2",
        "lan [2001:db8::1]:9001: fd02::2 ",
        "lan [2001:db8::1]:9001: tcp fd02::2",
        "customer [2001:db8::1]:9001: fd02::2 ",
        "customer [2001:db8::1]:9001: tcp fd02::2",
        "lan 203.0.113.1:9002: 10.2.0.2 ",
        "lan [2001:db8::1]:9002: fd02::2 ",
        "lan 203.0.113.1:9003: 10.1.0.2 ",
        "lan [2001:db8::1]:9003: fd01::2 ",
        "lan 203.0.113.1:9004: 10.1.0.2 ",
        "lan 203.0.113.1:9004: tcp 192.168.7.2",
        "customer 203.0.113.1:9005: 10.1.0.2 ",
        "lan [2001:db8::1]:9004: fd01::2 ",
        "lan 203.0.113.1:9006: tcp 10.2.0.2",
        "lan 203.0.113.1:9006: 192.168.7.2 ",
        "lan [2001:db8::1]:9006: tcp fd02::2",
        "customer 203.0.113.1:9006: tcp 10.99.0.2",
        "stopped: ",
        "filter: 1",
    ];
    for line in expected {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    for part in [
        "to ports 9001: over lte; now IPv4 lte, IPv6 lte; ",
        "    bank.example: 203.0.113.1, 2001:db8::1\n",
        "by udp, to ports 9004-9005: over the best link; now IPv4 dsl, IPv6 dsl; ",
        "check ok",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let number = |begin: &str| -> u64 {
        let line = text.lines().rfind(|line| line.starts_with(begin));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).expect(begin)
    };
    assert!(number("bare lte: ") > 5, "{text}");
    assert_eq!(number("bare lte: "), number("counted "), "{text}");
    assert_eq!(number("bare dsl: "), 0, "{text}");
    assert!(!text.contains("\"packets\":0"), "{text}");
}

#[test]
fn traffic_of_a_link_that_is_down_goes_into_the_bond_or_nowhere_and_comes_back() {
    let script = r#"
        rule 'ports = "9001"
over = "lte"'
        rule 'ports = "9002"
over = "lte"
else = "block"'
        rule 'ports = "9003"'
        sed -i 's/^endpoint/keepalive_s = 1\n&/' customer/gateway.toml
        up provider; up customer
        until_true paths; until_true in_force lte
        for from in lan customer; do
            for port in 9001 9002; do role $from ask $v4:$port 9000 > $from.$port & done
        done
        role lan ask $v4:9003 9000 > lan.9003 &
        sleep 2
        at provider ip link set lte down
        sleep 3
        at customer plait status | grep -A 4 '^beside'
        at provider ip link set lte up
        until_true sh -c '[ $(cat *.900? | grep -c asked) = 5 ]'
        for file in *.900?; do
            echo "$file: $(grep ^seen $file | cut -d ' ' -f 2 | tr '\n' ' ')"
            grep ^seen $file | sed "s/^seen/at $file/"
        done
        # A link that has a carrier and leads nowhere: the bond notices.
        until_true paths
        at provider 'nft add table inet dead
            nft "add chain inet dead in { type filter hook prerouting priority -450; }"
            nft add rule inet dead in iifname lte drop'
        until_true sh -c "nsenter -t $customer -n -m plait status | grep '9001: .*IPv4 bond'"
        echo "dead: $(udp lan $v4:9001) $(udp lan $v4:9002)"
        at provider nft delete table inet dead
        until_true sh -c "nsenter -t $customer -n -m plait status | grep '9001: .*IPv4 lte'"
        echo "alive: $(udp lan $v4:9001)"
        # The best link: the other one, once this is dead.
        at provider ip link set dsl down
        sleep 1
        udp lan $v4:9003
        grep 'beside (' customer/up.log
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    for line in [
        "lan.9001: 10.2.0.2 192.168.7.2 10.2.0.2 ",
        "customer.9001: 10.2.0.2 10.99.0.2 10.2.0.2 ",
        "lan.9002: 10.2.0.2 ",
        "customer.9002: 10.2.0.2 ",
        "lan.9003: 10.1.0.2 ",
        "dead: lan 203.0.113.1:9001: 192.168.7.2  lan 203.0.113.1:9002: ",
        "alive: lan 203.0.113.1:9001: 10.2.0.2 ",
        "lan 203.0.113.1:9003: 10.2.0.2 ",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    assert!(text.contains("9001: over lte; now IPv4 bond, IPv6 bond; "), "{text}");
    assert!(text.contains("9002: over lte; now IPv4 blocked, IPv6 blocked; "), "{text}");
    eprintln!("{text}");
}

#[test]
fn the_kill_switch_lets_the_rules_through_and_nothing_else() {
    let script = r#"
        option customer 'when_down = "block"'
        option customer 'block_allows = ["192.168.7.0/24", "fd99:7::/64"]'
        rule 'ports = "9001"
over = "lte"'
        up provider; up customer
        until_true paths; until_true in_force lte
        kill -9 $up_provider; sleep 1
        for from in lan customer; do
            udp $from $v4:9001; udp $from $v6:9001
            udp $from $v4:9000; udp $from $v6:9000
        done
        bare dsl
        echo "other $(role lan connect $v4:9000 | grep ^tcp)"
        kill -9 $up_customer; wait $up_customer 2>/dev/null
        echo "crashed: $(udp lan $v4:9000)"
        sed -i '/^.*beside\]\]/,$d' customer/gateway.toml
        up provider; up customer
        until_true paths; sleep 0.3
        echo "left: $(at customer 'nft list tables; ip rule; ip -6 rule; ip route show table all' |
            grep -E 'beside|fwmark|proto 112')"
        udp lan $v4:9001
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    for line in [
        "lan 203.0.113.1:9001: 10.2.0.2 ",
        "lan [2001:db8::1]:9001: fd02::2 ",
        "customer 203.0.113.1:9001: 10.2.0.2 ",
        "customer [2001:db8::1]:9001: fd02::2 ",
        "lan 203.0.113.1:9000: ",
        "lan [2001:db8::1]:9000: ",
        "customer 203.0.113.1:9000: ",
        "customer [2001:db8::1]:9000: ",
        "bare dsl: packets 0",
        "other tcp no answer: timed out",
        "crashed: lan 203.0.113.1:9000: ",
        "left: ",
        "lan 203.0.113.1:9001: 192.168.7.2 ",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
}

#[test]
fn a_bypass_leaves_the_rules_alone_and_a_reload_changes_them() {
    let script = r#"
        option customer 'when_down = "bypass"'
        rule 'ports = "9001"
over = "lte"'
        up provider; up customer
        until_true paths; until_true in_force lte
        for from in lan customer; do role $from ask $v4:9001 6000 > $from.9001 & done
        sleep 1.5
        kill -9 $up_provider
        sleep 2.5
        at customer plait status | grep 'when down'
        up provider
        until_true sh -c '[ $(cat *.9001 | grep -c asked) = 2 ]'
        for file in *.9001; do
            echo "$file: $(grep ^seen $file | cut -d ' ' -f 2 | tr '\n' ' ')"
        done
        until_true paths
        # Other rules, while it runs.
        sed -i 's/ports = "9001"/ports = "9002"/
            s/over = "lte"/over = "dsl"/' customer/gateway.toml
        kill -HUP $up_customer; until_true in_force dsl
        udp lan $v4:9001; udp lan $v4:9002
        sed -i '/^.*beside\]\]/,$d' customer/gateway.toml
        kill -HUP $up_customer
        until_true sh -c '! nsenter -t '$customer' -n nft list tables | grep beside'
        udp lan $v4:9002
        echo "left: $(at customer 'ip rule; ip -6 rule; ip route show table all' |
            grep -E 'fwmark|proto 112')"
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    for line in [
        "lan.9001: 10.2.0.2 ",
        "customer.9001: 10.2.0.2 ",
        "lan 203.0.113.1:9001: 192.168.7.2 ",
        "lan 203.0.113.1:9002: 10.1.0.2 ",
        "lan 203.0.113.1:9002: 192.168.7.2 ",
        "left: ",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    assert!(text.contains("when down: bypass; the bond is down: traffic goes past it"), "{text}");
}

#[test]
fn answers_to_what_came_by_the_bond_go_back_into_it() {
    let script = r#"
        role lan serve 9000 & role customer serve 9001 &
        cat >> provider/gateway.toml <<FILE
[[forward]]
ports = "443"
to = "192.168.7.2:9000"
[[forward]]
ports = "444"
to = "10.99.0.2:9001"
FILE
        # As most networks do with addresses that are not their own.
        at provider 'nft add table inet spoofed
            nft "add chain inet spoofed in { type filter hook prerouting priority -400; }"
            nft add rule inet spoofed in iifname { dsl, lte } \
                ip saddr { 192.168.7.0/24, 10.99.0.2 } drop'
        rule 'sources = ["192.168.7.2", "10.99.0.2"]
over = "lte"'
        up provider; up customer
        until_true paths; until_true in_force lte
        udp internet 203.0.113.2:443; tcp internet 203.0.113.2:443
        udp internet 203.0.113.2:444; tcp internet 203.0.113.2:444
        bare lte
        udp lan $v4:9000; tcp lan $v4:9000; udp customer $v4:9000
    "#;
    let Some(text) = run(&format!("{SETUP}{script}")) else { return };
    for line in [
        "internet 203.0.113.2:443: 203.0.113.1 ",
        "internet 203.0.113.2:443: tcp 203.0.113.1",
        "internet 203.0.113.2:444: 203.0.113.1 ",
        "internet 203.0.113.2:444: tcp 203.0.113.1",
        "bare lte: packets 0",
        "lan 203.0.113.1:9000: 10.2.0.2 ",
        "lan 203.0.113.1:9000: tcp 10.2.0.2",
        "customer 203.0.113.1:9000: 10.2.0.2 ",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
}
