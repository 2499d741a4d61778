//! A second gateway where there is one: it is told who is in its way, and takes nothing away.

use std::os::unix::fs::MetadataExt as _;

use super::{assert_seen, run};

#[test]
fn a_second_gateway_names_the_first_and_disturbs_nothing() {
    let script = r#"
        command -v nft >/dev/null || { echo "no nft"; exit; }
        sed -i 's/^tun.*/&\nforward = true\nnat = ["lo"]/' a.toml
        apart; start_far; a=$!; start b; b=$!; until_true paths_up
        state() { there nft list ruleset; there cat /proc/sys/net/ipv4/ip_forward
            there ip -4 -o address; cat plait/a.json; stat -c '%i' a.sock; }
        state > before
        ping -q -i 0.02 -c 150 -W 1 -I pb 10.99.0.1 > ping.txt & p=$!
        # What the second one has of its own is never the reason.
        second() { sed "s/10.99.0.1.24/10.98.0.1\/24/; $1" a.toml > c.toml
            there $PLAIT up c.toml; echo "$2 $?"; }
        own_port='s/7788/7799/'; own_name='s/"pa"/"pc"/'; own_socket='s/a.sock/c.sock/'
        own_state='s/plait.a.json/plait\/c.json/'
        there $PLAIT up a.toml; echo "file $?"
        second "$own_port;$own_socket;$own_state" device
        second "$own_name;$own_socket;$own_state" port
        second "$own_name;$own_port;$own_state" socket
        second "$own_name;$own_port;$own_socket" state
        wait $p; grep -q ' 0% packet loss' ping.txt && echo "ok nothing is lost" || cat ping.txt
        state | diff before - && echo "ok all is there"
        answers a && echo "ok it answers"; [ -e c.sock ] || echo "ok no other socket"
        echo "by process $a"
        kill $a; wait $a; there nft list tables; there cat /proc/sys/net/ipv4/ip_forward
    "#;
    let Some(text) = run(script) else { return };
    if text.starts_with("no nft") {
        eprintln!("skipped: no nft here");
        return;
    }
    let effects = ["nothing is lost", "all is there", "it answers", "no other socket"];
    assert_seen(&text, &effects);
    let pid = text.lines().find_map(|line| line.strip_prefix("by process ")).unwrap();
    let by = format!(" up a.toml` (process {pid})\n  help: stop that");
    for (what, said) in [
        ("file", "an interface called pa exists already"),
        ("device", "an interface called pa exists already"),
        ("port", "UDP port 7788 is in use"),
        ("socket", "a.sock belongs to another running plait"),
        ("state", "the state file plait/a.json belongs to another running plait"),
    ] {
        assert!(text.contains(&format!("{what} 2\n")), "{what}: {text}");
        let told = text.lines().any(|line| line.contains("error: ") && line.contains(said));
        assert!(told, "{what}: {text}");
    }
    // Others may not look into a process of root's.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    assert!(!is_root || text.matches(&by).count() == 5, "{by}: {text}");
    assert!(text.contains(&format!("by process {pid}\n0\n")), "{text}");
}

/// Both may find all free; then one of them gets each thing.
#[test]
fn two_that_start_at_once_leave_one_that_works() {
    let script = r#"
        for round in 1 2 3 4 5; do
            $PLAIT up a.toml 2>first & x=$!
            $PLAIT up a.toml 2>second & y=$!
            until_true eval '! kill -0 $x 2>/dev/null || ! kill -0 $y 2>/dev/null'
            until_true answers a; sleep 0.1
            answers a && ip -br link | grep -q '^pa' && test -S a.sock && echo "one works"
            cat first second | grep -c 'error:'
            kill $x $y 2>/dev/null; wait $x; wait $y
            ls a.sock 2>/dev/null; ip -br link | grep '^pa'
        done
    "#;
    let Some(text) = run(script) else { return };
    assert_eq!(text, "one works\n1\n".repeat(5), "{text}");
}
