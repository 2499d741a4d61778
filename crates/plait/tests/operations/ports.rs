//! Networks that let nothing through to a port: each path finds an open one, on its link alone.

use super::{assert_seen, run};

/// `a` listens on three ports, on another host; `b` reaches it over two cables. What a network
/// lets through, `block` and `pass` say, by the cable's far end.
const CABLES: &str = r#"
    command -v nft >/dev/null || { echo "no nft"; exit; }
    sed -i 's/^listen_port.*/&\nmore_ports = [443, 4500]/' a.toml
    sed -i 's/^endpoint.*/&\nmore_ports = [443, 4500]/' b.toml
    apart
    ip link add wb type veth peer name wa netns $far
    ip address add 198.51.100.2/24 dev wb; ip link set wb up
    there sh -c 'ip address add 198.51.100.1/24 dev wa; ip link set wa up'
    ip route add 192.0.2.1 dev wb metric 9
    sed -i '/"two"/,/interface/s/"vb"/"wb"/' b.toml
    there nft 'add table inet net; add chain inet net in { type filter hook input priority 0; }'
    block() { there nft add rule inet net in iifname $1 udp dport $2 drop; }
    pass() { there nft flush chain inet net in; }
    remote() { status b --json | sed 's/"state":"/\n&/g' |
        grep -o "\"up\",\"reason\":\"[^\"]*\",\"remote\":\"[^\"]*\",\"tried_ports\":[^]]*" |
        sed 's/.*"remote":"//; s/","tried_ports":\[/ not /' | tr '\n' ';'; }
    ping_b() { ping -q -i 0.05 -c ${1:-20} -W 1 -I pb 10.99.0.1; }
"#;

fn run_cables(script: &str) -> Option<String> {
    let text = run(&format!("{CABLES}{script}"))?;
    if text.starts_with("no nft") {
        let required = std::env::var_os("PLAIT_REQUIRE_NETNS").is_some_and(|value| value == "1");
        assert!(!required, "no nft here");
        eprintln!("skipped: no nft here");
        return None;
    }
    Some(text)
}

#[test]
fn each_link_finds_the_port_that_its_network_lets_through() {
    let script = r#"
        block va 7788; block va 4500
        start_far; a=$!; start b; b=$!; until_true paths_up
        echo "first $(remote)"
        $PLAIT status --socket b.sock | grep -q '192.0.2.1:443.*port 7788 did not answer' &&
            echo "ok told"
        ping_b | grep -q ' 0% packet loss' && echo "ok carries"
        # The open port is blocked in mid-life, and the first one opened.
        pass; block va 443; ping_b 200 > ping.txt & p=$!
        until_true eval 'remote | grep -q "192.0.2.1:\(7788\|4500\) not [0-9,]*443"' &&
            echo "ok moved"
        paths_up && echo "ok both"
        wait $p; echo "lost $(grep -oE '[0-9.]+% packet loss' ping.txt)"
        # What works is remembered: a path that comes again leads there at once.
        before=$(remote); $PLAIT path down one --socket b.sock; $PLAIT path up one --socket b.sock
        until_true paths_up; [ "$(remote)" = "$before" ] && echo "ok remembered"
        # The other link never had a reason to leave its port.
        remote | grep -q '192.0.2.1:7788 not ;' && echo "ok alone"
        status b --json | grep -q '"handshakes":1,' && echo "ok one session"
        status a --json | grep -q '"remote":"198.51.100.2' && echo "ok followed"
        echo "last $before"; cat b.log
    "#;
    let Some(text) = run_cables(script) else { return };
    let effects = ["told", "carries", "moved", "both", "remembered", "alone", "one session"];
    assert_seen(&text, &effects);
    assert!(text.contains("first 192.0.2.1:443 not 7788;192.0.2.1:7788 not ;\n"), "{text}");
    // In an open loop, what was on its way on the path that went silent is lost.
    let lost = text.lines().find_map(|line| line.strip_prefix("lost ")?.split_once('%'));
    assert!(lost.is_some_and(|(share, _)| share.parse::<f64>().unwrap() < 5.0), "{text}");
}

#[test]
fn a_single_link_gets_through_and_comes_back() {
    let script = r#"
        sed -i '/"two"/i down = true' b.toml
        block va 7788
        start_far; a=$!; start b; b=$!
        one_up() { [ "$(status b --json | grep -o '"state":"up","reason"' | wc -l)" = 2 ]; }
        until_true one_up; echo "first $(remote)"
        ping_b | grep -q ' 0% packet loss' && echo "ok carries"
        pass; block va 443; block va 4500; ping_b 60 >/dev/null & p=$!
        until_true eval 'remote | grep -q ":7788"' && echo "ok moved"
        until_true ping_b 1; ping_b | grep -q ' 0% packet loss' && echo "ok carries again"
        # A provider that starts again is asked first at the port that worked.
        kill -9 $a; wait $a 2>/dev/null; start_far; a=$!
        until_true eval 'ping_b 1 | grep -q " 0% packet loss"' && echo "ok after its restart"
        cat b.log
    "#;
    let Some(text) = run_cables(script) else { return };
    assert_seen(&text, &["carries", "moved", "carries again", "after its restart"]);
    assert!(text.contains("first 192.0.2.1:443 not "), "{text}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let script = r#"
        sed -i 's/^listen_port.*/&\nmore_ports = [443, 4500]/' a.toml
        start a
        sed 's/7788/7799/; s/"pa"/"pc"/; s/a.sock/c.sock/; s/a.json/c.json/' a.toml > c.toml
        $PLAIT up c.toml; echo "taken $?"
        status a --json | grep -c '"listening":{'
        ss -uln | grep -cE ':(7788|443|4500) '
    "#;
    let Some(text) = run(script) else { return };
    assert!(
        text.contains("error: c.toml:1: [gateway] more_ports: UDP port 443 is in use"),
        "{text}"
    );
    assert!(text.starts_with("taken 2\n1\n3\n"), "{text}");
}

#[test]
fn a_running_gateway_is_not_in_its_own_way() {
    let script = r#"
        sed -i 's/^listen_port.*/&\nmore_ports = [443]\nmeasure = true/' a.toml
        sed -i 's/^measure.*/&\nmetrics = "127.0.0.1:9789"/' a.toml
        start a; a=$!
        echo "up $($PLAIT up a.toml >/dev/null 2>&1; echo $?)"
        $PLAIT check a.toml > check.txt; echo "check $?"
        grep -c "the running gateway, process $a, keeps" check.txt
        # Another one's are, though it has the same control socket.
        sed 's/"pa"/"pc"/' a.toml > c.toml
        $PLAIT check c.toml > check-c.txt; echo "other $?"
        grep -c "^error.*process $a" check-c.txt
        # Nor is an address that this host does not have its own.
        sed 's/127.0.0.1:9789/192.0.2.99:9789/' a.toml > d.toml
        $PLAIT check d.toml > check-d.txt; echo "address $?"; grep -c '^error' check-d.txt
        cat check.txt check-c.txt check-d.txt
    "#;
    let Some(text) = run(script) else { return };
    // Its device, two UDP ports, control socket, state file and metrics.
    assert!(text.starts_with("up 2\ncheck 0\n6\nother 2\n4\naddress 2\n1\n"), "{text}");
}
