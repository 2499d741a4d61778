//! A disk that is full, and one that may only be read.

use super::{assert_seen, run};

/// A small disk, and how it is filled to the last byte and emptied.
const DISK: &str = r#"
    mkdir small; mount -t tmpfs -o size=64k none small
    fill() { dd if=/dev/zero of=small/fill bs=1k 2>/dev/null; printf x > small/one 2>/dev/null
        rm -f small/one; }
    ping_b() { ping -q -c 3 -i 0.1 -W 1 -I pb 10.99.0.1; }
"#;

#[test]
fn a_full_disk_ends_no_bond_and_counts_are_written_once_there_is_room() {
    let script = r#"
        sed -i 's/^name = "two"/&\nquota = "100 MB"/; s/plait\/b.json/small\/b.json/' b.toml
        apart; start_far; a=$!; start b; b=$!; until_true paths_up; ping_b >/dev/null
        kill $b; wait $b; grep -q '"two"' small/b.json && echo "ok counted"
        cp small/b.json before; fill
        export PLAIT_KEYLOG=$PWD/small/keys
        start b; b=$!; until_true paths_up; ping_b | grep -q ' 0% packet loss' && echo "ok carries"
        unset PLAIT_KEYLOG
        # One more than the gateway's own attempts: the last at its end.
        kill $b; wait $b; echo "end $?"
        cmp before small/b.json && echo "ok nothing is cut"
        ls small | tr '\n' ' '; wc -c < small/keys
        grep -c 'cannot write the state file small/b.json: No space left' b.log
        grep 'cannot write the state' b.log | grep -q '(make room on its disk)' && echo "ok remedy"
        grep -c 'small/keys: keys are missing in it from here on: No space' b.log
        rm small/b.json; printf x > small/fill2 2>/dev/null; fill; : > b.log
        start b; b=$!; until_true paths_up; until_true logged b 'cannot write the state file'
        rm small/fill
        until_true test -s small/b.json && echo "ok written again"
        grep -c 'the state file small/b.json is written again' b.log
        grep -c 'cannot write' b.log
        ping_b | grep -q ' 0% packet loss' && echo "ok still carries"
    "#;
    let Some(text) = run(&format!("{DISK}{script}")) else { return };
    let effects =
        ["counted", "carries", "nothing is cut", "remedy", "written again", "still carries"];
    assert_seen(&text, &effects);
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("end 0\n");
    has("b.json fill keys 0\n1\nok remedy\n1\n");
    has("ok written again\n1\n1\n");
}

#[test]
fn keys_are_logged_whole_or_not_at_all() {
    let script = r#"
        mkdir tiny; mount -t tmpfs -o size=4k none tiny
        (umask 077; head -c 4000 /dev/zero | tr '\0' '\n' > tiny/keys)
        start a; a=$!; export PLAIT_KEYLOG=$PWD/tiny/keys
        start b; b=$!; unset PLAIT_KEYLOG; until_true paths_up
        grep -c . tiny/keys; wc -c < tiny/keys
        grep -c 'keys are missing in it from here on: No space left on device' b.log
        : > tiny/keys
        kill $a; wait $a; start a; a=$!
        until_true logged b 'keys are written again'
        grep -vcE '^PLAIT1_DIRECTION [0-9a-f]{6} [01] [0-9a-f]{64}$' tiny/keys
    "#;
    let Some(text) = run(script) else { return };
    // A line has 91 bytes: one fits, the next is not begun.
    assert_eq!(text, "1\n4091\n1\n0\n");
}

#[test]
fn a_read_only_disk_is_told_and_nothing_on_it_changes() {
    let script = r#"
        mkdir etc; mount -t tmpfs -o size=64k none etc
        sed 's/"plait\/b.json"/"..\/small\/b.json"/; s/b.sock/..\/b.sock/' b.toml > etc/b.toml
        cp b.key etc; mount -o remount,ro small; mount -o remount,ro etc
        apart; sed -n '/interface/p;/endpoint/p' b.toml > links
        mount -o remount,rw etc
        sed -i 's/127.0.0.1:7788/192.0.2.1:7788/; s/interface = "lo"/interface = "vb"/' etc/b.toml
        mount -o remount,ro etc
        start_far; a=$!; $PLAIT up etc/b.toml 2>>b.log & b=$!; until_true paths_up
        ping_b | grep -q ' 0% packet loss' && echo "ok carries"
        grep -q 'cannot write the state file etc/../small/b.json: Read-only' b.log &&
            echo "ok says so"
        grep -q 'read-only: mount it for writing)' b.log && echo "ok remedy"
        cp etc/b.toml before
        new=$($PLAIT keygen | $PLAIT pubkey)
        $PLAIT peer add $new --endpoint 192.0.2.1:7799 --save --socket b.sock; echo "peer $?"
        $PLAIT path price two 4 --save --socket b.sock; echo "price $?"
        [ "$($PLAIT peer list --socket b.sock | wc -l)" = 1 ] && echo "ok no peer"
        $PLAIT path list --socket b.sock | grep -q 'two  price 0' && echo "ok no price"
        cmp before etc/b.toml && [ "$(ls -A etc | tr '\n' ' ')" = "b.key b.toml " ] &&
            echo "ok no file"
        setup() { $PLAIT setup provider --at 192.0.2.1 --yes --no-start --folder "$@"; }
        setup etc; echo "setup $?"; setup etc/plait; echo "folder $?"
        kill $b; wait $b; echo "end $?"; ls -A small | wc -l
    "#;
    let Some(text) = run(&format!("{DISK}{script}")) else { return };
    let effects = ["carries", "says so", "remedy", "no peer", "no price", "no file"];
    assert_seen(&text, &effects);
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("may not be written; nothing was changed\n  help: make it writable");
    has("peer 2\n");
    has("price 2\n");
    has(
        "error: cannot write etc/plait0.key: Read-only file system (os error 30)\n  help: choose a",
    );
    has("error: cannot write etc/plait: Read-only file system (os error 30)\n  help: choose a");
    has("setup 2\n");
    has("folder 2\n");
    has("end 0\n0\n");
}

#[test]
fn a_full_disk_keeps_nothing_of_what_is_set_up() {
    let script = r#"
        setup() { $PLAIT setup provider --at 192.0.2.1 --yes --no-start --folder "$@"; }
        fill
        setup small; echo "full $?"; setup small/plait; echo "folder $?"
        ls -A small
        # Room for the key, and for nothing more.
        truncate -s -4096 small/fill; setup small; echo "key $?"; ls -A small
        rm small/fill
        setup small > /dev/full; echo "stdout $?"; ls -A small | wc -l
        setup small | true; ls -A small | wc -l
        (umask 077; $PLAIT keygen > /dev/full); echo "keygen $?"
        setup small >/dev/null; echo "room $?"; ls small | tr '\n' ' '
    "#;
    let Some(text) = run(&format!("{DISK}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("No space left on device (os error 28)\n  help: make room on the disk; nothing of this");
    has("full 2\n");
    has("folder 2\nfill\n");
    has("key 2\nfill\n");
    has("stdout 2\n0\n0\n");
    has("error: cannot print the invitation: No space left on device (os error 28)\n");
    has("error: cannot write the key to stdout; what is there is none: No space left on device");
    has("keygen 2\n");
    has("room 0\nplait0.key plait0.setup.json plait0.toml ");
}
