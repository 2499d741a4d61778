//! Every option of the guide's list is reloaded on running gateways, and its effect looked at: in
//! the kernel, in the status, or by a packet that passes.

use super::run;

/// The script says `ok WHAT` for each effect that it saw.
fn assert_seen(script: &str, effects: &[&str]) {
    let Some(text) = run(script) else { return };
    for effect in effects {
        assert!(text.contains(&format!("ok {effect}\n")), "{effect}: {text}");
    }
    assert!(!text.contains("never:"), "{text}");
}

#[test]
fn regression_routes_follow_a_reload() {
    let script = r#"
        routes() { (ip -4 route show dev pb; ip -6 route show dev pb) | grep static | tr -s ' '; }
        sed -i 's/^tun.*/&\nroutes = true/; s/^address = .*/address = "10.99.0.2\/24"/' b.toml
        start a; a=$!; start b; b=$!
        until_true paths_up
        routes | grep -q '^10.99.0.1 ' && echo "ok at the start"
        # Rights were given up long ago.
        grep -q 'CapEff:.0000000000003000' /proc/$b/status && echo "ok rights"
        change b 's/^allowed_ips.*/allowed_ips = ["10.99.0.1\/32", "192.0.2.0\/24", "fd99::\/64"]/'
        routes | grep -q '^192.0.2.0/24 ' && routes | grep -q '^fd99::/64 ' && echo "ok added"
        status b --json | grep -q '"handshakes":1' && echo "ok the same bond"
        change b 's/"192.0.2.0\/24", //'
        routes | grep -q '^192.0.2.0/24 ' || echo "ok removed"
        change b 's/"fd99::/"0.0.0.0\/0", "fd99::/'
        [ $(routes | grep -c '/1 ') = 2 ] && echo "ok halves"
        # The prefix of the own address is there already, through the device itself.
        change b 's/"0.0.0.0\/0", /"10.99.0.0\/24", /'
        grep -q ERROR b.log || echo "ok own prefix"
        change b 's/^routes.*/routes = false/'
        [ -z "$(routes)" ] && echo "ok switched off"
        change b 's/^routes.*/routes = true/'
        routes | grep -q '^10.99.0.1 ' && echo "ok switched on"
    "#;
    let effects = ["at the start", "rights", "added", "the same bond", "removed", "halves"];
    let rest = ["own prefix", "switched off", "switched on"];
    assert_seen(script, &[&effects[..], &rest].concat());
}

#[test]
fn a_route_that_exists_stops_a_start_with_a_remedy_and_at_a_reload_the_rest_is_set() {
    let script = r#"
        sed -i 's/^tun.*/&\nroutes = true/' b.toml
        ip route add 192.0.2.0/24 dev lo
        start a; a=$!; start b; b=$!
        until_true paths_up
        change b 's/"10.99.0.1.32"/"192.0.2.0\/24", &, "198.51.100.0\/24"/'
        grep ERROR b.log
        ip route show dev pb | grep -q '^198.51.100.0/24' && echo "ok the rest"
        ip route show dev lo | grep -q '^192.0.2.0/24' && echo "ok untouched"
        ip route del 192.0.2.0/24
        change b 's/quota/&/'
        ip route show dev pb | grep -q '^192.0.2.0/24' && echo "ok tried again"
        kill $b; wait $b
        ip route add 192.0.2.0/24 dev lo
        $PLAIT up b.toml; echo "exit $?"
    "#;
    let Some(text) = run(script) else { return };
    assert!(text.contains("there is a route to 192.0.2.0/24 already through lo"), "{text}");
    // At the start `check` found it.
    assert!(text.contains("there is a route to 192.0.2.0/24 over lo already"), "{text}");
    assert_eq!(text.matches("or remove it with `ip route del`").count(), 2, "{text}");
    for effect in ["ok the rest\n", "ok untouched\n", "ok tried again\n", "exit 2\n"] {
        assert!(text.contains(effect), "{effect}: {text}");
    }
}

#[test]
fn each_option_of_a_path_is_reloaded() {
    let script = r#"
        start a; a=$!; start b; b=$!
        until_true paths_up
        path() { status b --json | grep -o '"name":"'$1'","state":"[a-z]*","reason":.*' |
            sed 's/"paths".*//' | grep -q "$2"; }
        two() { sed "/^name = \"two\"/,/^\[/ { /^$1 =/d; s/^name.*/&\n$1 = $2/ }" b.toml > new &&
            cat new > b.toml; change b ''; }
        two price 7; until_true path two '^[^}]*"price":7' && echo "ok price"
        two standby true; until_true path two '^[^}]*"standby":true' && echo "ok standby"
        two metered true; until_true path two '^[^}]*"metered":true' && echo "ok metered"
        two metered false; until_true path two '^[^}]*"metered":false' && echo "ok metered off"
        two standby false; until_true path two '^[^}]*"standby":false' && echo "ok standby off"
        change b 's/round-robin/fixed/'
        two weight 9; until_true path two '^[^}]*"weight":9' && echo "ok weight"
        # The peer knows it, too.
        until_true eval 'status a --json | grep -q "\"name\":\"two\"[^}]*\"price\":7"' &&
            echo "ok peer told"
        two quota '"1 MB"'
        for burst in 1 2 3 4 5 6 7 8; do
            ping -q -c 300 -l 300 -W 0.1 -s 1200 -I pb 10.99.0.1 >/dev/null
        done
        until_true logged b 'quota spent' && echo "ok quota"
        two quota '"100 MB"'; until_true path two '^[^}]*"standby":false' && echo "ok quota raised"
        two quota_day 3 && echo "ok quota_day"
        change b 's/^name = "two"/name = "second"/'; until_true path second 'up' && echo "ok name"
        printf '[[path]]\nname = "three"\naddress = "127.0.0.1"\n' >> b.toml
        change b ''; until_true path three 'up' && echo "ok path added"
        sed -i '/^name = "three"/,$d' b.toml; sed -i '$d' b.toml
        change b ''; until_true eval '! path three up' && echo "ok path removed"
        status b --json | grep -q '"handshakes":1,' && echo "ok the same bond"
    "#;
    let first = ["price", "standby", "metered", "metered off", "standby off", "weight"];
    let rest = ["peer told", "quota", "quota raised", "quota_day", "name", "path added"];
    let last = ["path removed", "the same bond"];
    assert_seen(script, &[&first[..], &rest, &last].concat());
}

#[test]
fn each_option_of_a_peer_and_of_bonds_is_reloaded() {
    let script = r#"
        apart; there ip address add 192.0.2.3/24 dev va
        start_far; a=$!; start b; b=$!
        until_true paths_up
        says() { status b --json | grep -q "$1"; }
        change b 's/round-robin/redundant/'; says '"scheduler":"redundant"' && echo "ok scheduler"
        printf '[congestion]\nalgorithm = "cubic"\n' >> b.toml
        change b ''; says '"congestion":"cubic"' && echo "ok congestion"
        printf '[resequencer]\norder = "bond"\n' >> b.toml
        change b ''; logged b 'ERROR' || echo "ok resequencer"
        there ip address add 10.99.0.9/32 dev pa
        ping -c 1 -W 1 10.99.0.9 >/dev/null || echo "ok not allowed"
        change b 's/^allowed_ips.*/allowed_ips = ["10.99.0.1\/32", "10.99.0.9\/32"]/'
        ping -c 1 -W 1 10.99.0.9 >/dev/null && echo "ok allowed_ips"
        change b 's/^endpoint.*/&\nkeepalive_s = 1/'
        sent() { status b --json | grep -o '"control_packets":[0-9]*' | head -n 1 | tr -dc 0-9; }
        before=$(sent); sleep 4; [ $(($(sent) - before)) -ge 3 ] && echo "ok keepalive_s"
        change b 's/192.0.2.1:7788/192.0.2.3:7788/'
        until_true says '"remote":"192.0.2.3:7788"' && until_true paths_up && echo "ok endpoint"
        before=$(status b --json | grep -o '"handshakes":[0-9]*')
        (umask 077; $PLAIT keygen > psk)
        change a 's/^allowed_ips/preshared_key_file = "psk"\n&/'
        change b 's/^allowed_ips/preshared_key_file = "psk"\n&/'
        until_true eval '[ "$(status b --json | grep -o "\"handshakes\":[0-9]*")" != "$before" ]'
        ping -c 1 -W 1 10.99.0.1 >/dev/null && echo "ok preshared_key_file"
        logged b 'is gone' || echo "ok the same bond"
        cp a.toml both
        other=$($PLAIT keygen | $PLAIT pubkey)
        change a "s|^public_key.*|public_key = \"$other\"|"
        until_true logged b 'is gone' && echo "ok peer removed"
        cp both a.toml; change a ''; until_true paths_up && echo "ok peer added"
    "#;
    let first = ["scheduler", "congestion", "resequencer", "not allowed", "allowed_ips"];
    let rest = [
        "keepalive_s",
        "endpoint",
        "preshared_key_file",
        "the same bond",
        "peer removed",
        "peer added",
    ];
    assert_seen(script, &[&first[..], &rest].concat());
}

#[test]
fn forwarding_is_switched_on_and_off_by_a_reload_and_what_needs_a_restart_is_said() {
    let script = r#"
        start a; a=$!
        change a 's/^tun.*/&\nforward = true/'
        [ "$(cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding |
            tr '\n' ' ')" = "1 1 " ] && echo "ok forward"
        change a 's/^forward.*/forward = false/'
        [ "$(cat /proc/sys/net/ipv4/ip_forward)" = 0 ] && echo "ok forward off"
        change a 's/^tun.*/tun = "px"/; s/^address.*/address = "10.97.0.1\/24"/
            s/^listen_port.*/&\nmtu = 1400\nmeasure = true\nmeasure_port = 99\nuser = "x"/
            s/^listen_port.*/&\nmetrics = "127.0.0.1:9788"/
            s/^control_socket.*/control_socket = "c.sock"/; s/^state_file.*/state_file = "c.json"/'
        for option in tun address mtu control_socket state_file user measure_port measure \
            metrics; do
            logged a "\[gateway\] $option changed: a restart is needed" && echo "ok $option"
        done
    "#;
    let restart = ["tun", "address", "mtu", "control_socket", "state_file", "user", "measure_port"];
    let others = ["forward", "forward off", "measure", "metrics"];
    assert_seen(script, &[&others[..], &restart].concat());
}

#[test]
fn measuring_may_be_forbidden_and_allowed_again_by_a_reload() {
    let script = r#"
        sed -i 's/^tun.*/&\nmeasure = true/' a.toml
        apart; start_far; a=$!; start b; b=$!
        until_true paths_up
        measure() { timeout 20 $PLAIT measure --socket b.sock --path two --seconds 1 >out 2>&1; }
        change a 's/^measure.*/measure = false/'
        measure || grep -q 'does not let this peer measure' out && echo "ok forbidden"
        change a 's/^measure.*/measure = true/'
        logged a 'measure changed' || echo "ok no restart"
        measure && echo "ok allowed"
    "#;
    assert_seen(script, &["forbidden", "no restart", "allowed"]);
}
