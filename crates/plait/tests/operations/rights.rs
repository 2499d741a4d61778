//! A gateway's rights: its user, its files, its sandbox.

use std::fs;

use super::{run, run_in};

/// A gateway with a user of its own, and its next start in folders that the user owns.
#[test]
fn regression_a_restart_gives_root_nothing_to_follow() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|proc| {
        use std::os::unix::fs::MetadataExt as _;
        proc.uid() == 0
    });
    if !is_root {
        eprintln!("skipped: not root");
        return;
    }
    let script = r#"
        chmod 755 .; chown nobody a.key
        sed -i 's/^tun.*/&\nuser = "nobody"/; s/a.sock/plait\/a.sock/' a.toml
        status() { $PLAIT status --socket plait/a.sock "$2"; }
        owners() { stat -c '%n %U' plait plait/a.json plait/a.sock victim; }
        echo secret > victim
        start a; a=$!
        owners
        grep -E '^(Uid|Seccomp):' /proc/$a/status
        kill -HUP $a; until_true logged a 'read again'
        kill $a; wait $a; echo "end $?"; ls plait
        ln -sf ../victim plait/a.json; ln -s ../victim plait/a.json.new
        start a; a=$!
        owners; cat victim
        kill $a; wait $a
        ln plait/a.json hard; ln -sf ../victim plait/a.sock
        $PLAIT up a.toml 2>&1 | grep error
    "#;
    let Some(text) = run_in(&[], script) else { return };
    let owners = "plait nobody\nplait/a.json nobody\nplait/a.sock nobody\nvictim root\n";
    assert!(text.starts_with(owners), "{text}");
    assert!(
        text.contains("Uid:\t65534\t65534\t65534\t65534\nSeccomp:\t2\nend 0\na.json\n"),
        "{text}"
    );
    assert!(text.contains("victim root\nsecret\n"), "{text}");
    assert!(text.contains("plait/a.sock exists and is no socket"), "{text}");
}

#[test]
fn a_sandbox_can_be_left_out_and_no_core_is_dumped() {
    let script = r#"
        sed -i 's/^tun.*/&\nsandbox = false/' a.toml
        start a; a=$!
        grep -E '^(NoNewPrivs|Seccomp):' /proc/$a/status
        grep 'Max core file size' /proc/$a/limits
        status a --json; grep sandbox a.log
        sed -i 's/^sandbox.*/nat = true/' a.toml
        kill -HUP $a; until_true logged a 'sandbox changed: a restart'
        kill $a; wait $a
        sed -i '/^nat/d' a.toml
        start a; a=$!
        sed -i 's/^tun.*/&\nnat = true/' a.toml
        kill -HUP $a; until_true logged a 'nat changed: a restart'
    "#;
    let Some(text) = run(script) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("NoNewPrivs:\t1\nSeccomp:\t0\n");
    has("sandbox: off, as the configuration says");
    has("\"sandbox\":[]");
    let core = text.lines().find(|line| line.starts_with("Max core")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{core}");
}
