//! A provider that does not answer, whose name does not resolve, or that has moved.

use super::run;

/// Host names stand for what `hosts` says.
const NAMES: &str = r#"
echo "" > hosts
mount --bind hosts /etc/hosts
names() { printf "$@" > hosts; }
named() { sed -i "s/^endpoint.*/endpoint = \"gw.test:7788\"/" b.toml; }
says() { status b --json | grep -q "$1"; }
"#;

fn output(script: &str) -> Option<String> {
    run(&format!("{NAMES}\n{script}"))
}

#[test]
fn regression_a_provider_that_does_not_answer_is_told_with_the_reason() {
    let script = r#"
        start b; b=$!
        # Right after another attempt the answer to it has not come yet.
        told() { $PLAIT status --socket b.sock > told; code=$?; grep -q 'nothing listens' told; }
        until_true told
        cat told; echo "exit $code"
        until_true logged b 'does not answer'
        grep 'does not answer' b.log
        until_true says '"count":[4-9]'
        $PLAIT watch --socket b.sock --count 1 --interval 0.1
        $PLAIT watch --socket b.sock --count 1 --interval 0.1 --json
        start a; until_true paths_up
        says '"trouble":null' && echo "ok over"
        says '"attempts":null' && echo "ok no attempts"
    "#;
    let Some(text) = output(script) else { return };
    let why = "127.0.0.1:7788 refused: nothing listens on the port (ICMP from 127.0.0.1)";
    // In the status, in the log, and in `watch` as text and as JSON.
    assert!(text.matches(why).count() >= 4, "{text}");
    for part in [
        "connecting\n",
        "  attempts ",
        ", to 127.0.0.1:7788 over one, two; the next in ",
        "\nlinks\n  one  lo: up, has 127.0.0.1; datagrams sent ",
        "\n  two  lo: up, ",
        "exit 1\n",
        "WARN ] peer ",
        "\"attempts\":{\"count\":",
        "ok over\n",
        "ok no attempts\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_send_that_fails_is_counted_by_link_and_told_once() {
    let script = r#"
        sed -i 's/127.0.0.1:7788/[2001:db8::9]:7788/' b.toml
        start b; b=$!
        until_true says '"failed_sends":[3-9]'
        $PLAIT status --socket b.sock
        echo "lines: $(grep -c 'cannot send' b.log)"
        grep 'cannot send' b.log
    "#;
    let Some(text) = output(script) else { return };
    let error = "Network is unreachable (os error 101)";
    assert!(
        text.contains(&format!("no answer: sending over two fails to [2001:db8::9]:7788: {error}"))
            || text.contains(&format!(
                "no answer: sending over one fails to [2001:db8::9]:7788: {error}"
            )),
        "{text}"
    );
    assert!(text.contains(" sends failed, the last 0 s ago to [2001:db8::9]:7788"), "{text}");
    assert!(text.contains("lines: 2\n"), "one for each link: {text}");
    assert!(
        text.contains(&format!("link one: cannot send to [2001:db8::9]:7788: {error}")),
        "{text}"
    );
}

#[test]
fn regression_a_name_that_does_not_resolve_is_asked_again() {
    let script = r#"
        named
        $PLAIT check b.toml; echo "exit $?"
        start a; start b; b=$!
        $PLAIT status --socket b.sock
        until_true says '"trouble":"cannot resolve'
        sleep 5
        echo "lines: $(grep -c 'gw.test:7788: cannot resolve' b.log)"
        names '127.0.0.1 gw.test\n'
        until_true paths_up && echo "ok found"
        logged b 'gw.test:7788 is 127.0.0.1:7788' && echo "ok told"
    "#;
    let Some(text) = output(script) else { return };
    for part in [
        "warning  b.toml:17: [[peer]] endpoint: cannot resolve \"gw.test\"",
        "0 errors, ",
        "exit 0\n",
        "  gw.test:7788 has no known address; cannot resolve \"gw.test\"",
        "lines: 1\n",
        "ok found\n",
        "ok told\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn regression_a_provider_that_moved_is_found_by_its_name() {
    let script = r#"
        named
        apart
        there ip address add 192.0.2.3/32 dev va
        there ip address add 192.0.2.4/32 dev va
        ip route add 192.0.2.0/24 dev vb 2>/dev/null
        # Nobody answers at the first address; the second goes away under a bond.
        names '192.0.2.9 gw.test\n'
        start_far; start b; b=$!
        until_true says '"trouble":"'
        names '192.0.2.3 gw.test\n'
        until_true paths_up && says '"remote":"192.0.2.3:7788"' && echo "ok never answered"
        there ip address del 192.0.2.3/32 dev va
        names '192.0.2.4 gw.test\n'
        until_true says '"state":"up","reason":"answers","remote":"192.0.2.4:7788"' &&
            echo "ok moved"
        says '"remote":"192.0.2.3' || until_true eval '! says "192.0.2.3"' && echo "ok left"
    "#;
    let Some(text) = output(script) else { return };
    for part in ["ok never answered\n", "ok moved\n", "ok left\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
