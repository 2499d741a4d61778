//! Programs that were started from a terminal, and the end of that terminal.

use super::run;

/// `on_terminal NAME COMMAND` runs a command with a terminal of its own; `close NAME` takes the
/// terminal away, and `ends NAME` says whether the command ends within two seconds.
const TERMINAL: &str = r#"
export TERM=xterm
on_terminal() {
    name=$1; before=; shift
    # With a session of its own no signal comes, and nothing but the terminal tells.
    [ $1 = unsignalled ] && { before="setsid --wait"; shift; }
    mkfifo $name.keys; sleep 100 > $name.keys &
    # The inner shell has the number that the command will have.
    echo "echo \$\$ > $name.pid; exec $*" > $name.sh
    script -qfec "stty rows 24 cols 80; exec $before sh $name.sh" /dev/null \
        < $name.keys > $name.seen 2>&1 &
    eval "$name=$!"
    until_true test -s $name.pid
    eval "${name}_child=$(cat $name.pid)"
}
close() { eval "kill -9 \$$1"; }
runs() { eval "[ -e /proc/\${$1_child}/exe ]"; }
ends() {
    for try in $(seq 40); do
        runs $1 || { echo "ok $1"; return; }
        sleep 0.05
    done
    echo "still runs: $1"
}
"#;

fn assert_seen(script: &str, effects: &[&str]) {
    let Some(text) = run(&format!("{TERMINAL}\n{script}")) else { return };
    for effect in effects {
        assert!(text.contains(&format!("ok {effect}\n")), "{effect}: {text}");
    }
}

#[test]
fn regression_watch_ends_with_its_terminal() {
    let script = r#"
        start a
        on_terminal foreground $PLAIT watch --socket a.sock
        on_terminal alone unsignalled $PLAIT watch --socket a.sock
        for name in foreground alone; do
            until_true grep -q 'q end' $name.seen
            runs $name && echo "ok $name runs"
            close $name
        done
        ends foreground; ends alone
    "#;
    assert_seen(script, &["foreground runs", "alone runs", "foreground", "alone"]);
}

#[test]
fn regression_up_ends_with_its_terminal() {
    let script = r#"
        on_terminal a $PLAIT up a.toml
        on_terminal b unsignalled $PLAIT up b.toml
        until_true paths_up
        close a; close b
        ends a; ends b
        ip link show pa >/dev/null 2>&1 || echo "ok nothing left"
        ls a.sock 2>/dev/null || echo "ok no socket left"
    "#;
    assert_seen(script, &["a", "b", "nothing left", "no socket left"]);
}

#[test]
fn sighup_ends_what_has_a_terminal_and_reloads_what_has_none() {
    let script = r#"
        on_terminal a $PLAIT up a.toml
        start b; b=$!
        until_true paths_up
        change b 's/round-robin/redundant/'
        status b --json | grep -q '"scheduler":"redundant"' && echo "ok service"
        kill -HUP $a_child
        ends a
    "#;
    assert_seen(script, &["service", "a"]);
}

#[test]
fn the_command_reload_reloads_wherever_the_gateway_was_started_and_tells_a_mistake() {
    let script = r#"
        start a
        on_terminal b $PLAIT up b.toml
        until_true paths_up
        sed -i 's/round-robin/redundant/' b.toml
        $PLAIT reload --socket b.sock && status b --json | grep -q '"scheduler":"redundant"' &&
            echo "ok reloaded"
        echo 'colour = "red"' >> b.toml
        $PLAIT reload b.toml 2>&1; echo "exit $?"
        $PLAIT reload --socket b.sock 2>&1
        echo "exit $?"; runs b && echo "ok runs on"
    "#;
    let Some(text) = run(&format!("{TERMINAL}\n{script}")) else { return };
    assert!(text.contains("reloaded; the log says") && text.contains("ok reloaded\n"), "{text}");
    let why = "error: the old configuration stays: b.toml:19: [[peer]] colour: unknown option";
    assert!(text.contains(why), "{text}");
    assert!(text.contains("exit 2\n") && text.contains("ok runs on\n"), "{text}");
}
