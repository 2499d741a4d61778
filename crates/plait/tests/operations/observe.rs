//! What others may see of a running gateway: its metrics, and its keys when somebody asks for them.

use super::run;

#[test]
fn metrics_are_served_and_nothing_else() {
    let script = r#"
        sed -i 's/^tun.*/&\nmetrics = "127.0.0.1:9788"/' a.toml
        start a; a=$!
        url=http://127.0.0.1:9788
        code() { name=$1; shift; curl -s -o /dev/null -w "$name %{http_code}\n" "$@"; }
        code get $url/metrics; code head -I $url/metrics; code post -X POST $url/metrics
        code root $url/; code other $url/other
        curl -s $url/metrics | grep -E '^plait_(build_info|peers.state="up")'
        curl -s $url/metrics | tail -n 1
        # Who says nothing, or more than fits a head, keeps nobody else from being answered.
        for mute in 1 2 3 4 5 6 7 8 9 10 11 12; do
            bash -c 'exec 3<>/dev/tcp/127.0.0.1/9788; sleep 9' &
        done
        code long -H "X: $(head -c 30000 /dev/zero | tr '\0' a)" $url/metrics
        sleep 0.2; code beside $url/metrics
        sed 's/"pa"/"pc"/' a.toml > c.toml; $PLAIT check c.toml | grep metrics
    "#;
    let Some(text) = run(script) else { return };
    let codes = "get 200\nhead 200\npost 405\nroot 200\nother 404\n";
    assert!(text.starts_with(codes), "{text}");
    for part in ["plait_build_info{version=", "plait_peers{state=\"up\"} 0", "# EOF"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("long 431\nbeside 200\n"), "{text}");
    let taken = "error    c.toml:6: [gateway] metrics: cannot listen on 127.0.0.1:9788: Address";
    assert!(text.contains(taken), "{text}");
}

#[test]
fn metrics_asked_for_all_the_time_delay_no_packet() {
    let script = r#"
        sed -i 's/^tun.*/&\nmetrics = "127.0.0.1:9788"/' a.toml
        apart; start_far; a=$!; start b; b=$!; until_true paths_up
        ping -q -i 0.01 -c 300 -W 1 -I pb 10.99.0.1 > ping.txt & p=$!
        # One after the other, far more often than every 10 ms.
        there curl -s $(yes http://127.0.0.1:9788/metrics | head -n 600) | grep -c '^# EOF'
        wait $p; grep -o ' 0% packet loss' ping.txt || cat ping.txt
        status a --json | grep -c '"uptime_s"'
    "#;
    let Some(text) = run(script) else { return };
    assert_eq!(text, "600\n 0% packet loss\n1\n");
}

#[test]
fn an_address_for_all_to_read_is_warned_of_unless_it_is_meant() {
    let script = r#"
        try() { sed "s/^tun.*/&\nmetrics = \"$1\"${2-}/" a.toml > c.toml; echo "$1"
            $PLAIT check c.toml | grep -A1 metrics; }
        try 0.0.0.0:9788; try 0.0.0.0:9788 '\nmetrics_open = true'; try 10.99.0.1:9788
        try 192.0.2.99:9788 '\nmetrics_open = true'
    "#;
    let Some(text) = run(script) else { return };
    assert_eq!(text.matches("can read how much each peer sends").count(), 1, "{text}");
    assert!(text.contains("10.99.0.1:9788\nok "), "{text}");
    assert!(text.contains("this machine does not have the address"), "{text}");
}

#[test]
fn keys_are_written_only_when_the_environment_asks_for_it() {
    let script = r#"
        start a; a=$!
        export PLAIT_KEYLOG=$PWD/keys
        start b; b=$!
        unset PLAIT_KEYLOG
        until_true paths_up
        stat -c '%a' keys; grep -cE '^PLAIT1_DIRECTION [0-9a-f]{6} [01] [0-9a-f]{64}$' keys
        grep -o 'WARN.*the keys of all sessions' b.log | grep -o 'the keys.*'
        status b --json | grep -o '"key_log":"[^"]*keys"' | grep -o key_log
        $PLAIT status b.toml | grep -o 'can read this gateway.s traffic'
        status a --json | grep -c key_log
        kill $b; wait $b
        ln -s victim link
        PLAIT_KEYLOG=link $PLAIT up b.toml 2>&1 | grep -o 'cannot write the log of keys link'
        ls victim 2>/dev/null
    "#;
    let Some(text) = run(script) else { return };
    let expected = "600\n2\nthe keys of all sessions\nkey_log\ncan read this gateway's traffic\n0\n\
                    cannot write the log of keys link\n";
    assert_eq!(text, expected);
}
