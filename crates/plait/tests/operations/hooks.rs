//! Hooks of running gateways: real programs, a real web server, and what `plait status` says.

use super::run;

/// A program that writes what it is told to a place where the gateway may write.
const TOLD: &str = r#"
    mkdir -p plait; cat > told <<'END'
#!/bin/sh
echo "$PLAIT_EVENT ${PLAIT_PATH:--} ${PLAIT_REASON:--}" >> "$1"
END
    chmod 755 told
    hook() { printf '[[hook]]\non = [%s]\n%s\n' "$1" "$2" >> b.toml; }
    hooks() { status b --json | sed 's/.*"hooks"://'; }
"#;

#[test]
fn hooks_are_told_of_paths_bonds_quotas_and_peers() {
    let script = r#"
        hook '"path-up", "path-down", "bond-up", "bond-down", "quota-spent", "peer-new"' \
            "command = [\"$PWD/told\", \"$PWD/plait/told.txt\"]
per_minute_max = 1000"
        sed -i 's/^name = "two"/&\nquota = "1 MB"/' b.toml
        start a; a=$!; start b; b=$!; until_true paths_up
        for burst in 1 2 3 4 5 6 7 8; do
            ping -q -c 300 -l 300 -W 0.1 -s 1200 -I pb 10.99.0.1 >/dev/null
        done
        until_true logged b 'quota spent'
        $PLAIT path down one --socket b.sock
        new=$($PLAIT keygen | $PLAIT pubkey)
        $PLAIT peer add $new --allowed-ips 10.4.0.0/16 --endpoint 127.0.0.1:7799 --socket b.sock
        until_true grep -q 'path-down one down by command' plait/told.txt
        $PLAIT path up one --socket b.sock; until_true paths_up
        kill -9 $a
        ping -q -c 20 -i 0.1 -I pb 10.99.0.1 >/dev/null
        until_true grep -q 'path-down .* nothing comes back' plait/told.txt
        sort -u plait/told.txt
        hooks
    "#;
    let Some(text) = run(&format!("{TOLD}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("\nbond-up - -\n");
    has("path-up one -\npath-up two -\n");
    has("quota-spent two quota spent: ");
    has("peer-new - -\n");
    has("path-down one down by command\n");
    has("\"failed\":0,\"timed_out\":0,\"left_out\":0,\"last_error\":null");
}

#[test]
fn a_hook_that_hangs_fails_or_floods_delays_no_packet() {
    let script = r#"
        printf '#!/bin/sh\nsleep 88 & wait\n' > hangs; chmod 755 hangs
        hook '"peer-new"' "command = \"$PWD/hangs\"
timeout_s = 1
per_minute_max = 1000"
        hook '"peer-new"' 'command = "/nowhere/told"
per_minute_max = 5'
        start a; a=$!; start b; b=$!; until_true paths_up
        for n in $(seq 200); do
            printf '[[peer]]\npublic_key = "%s"\nendpoint = "127.0.0.1:7799"\n' \
                "$($PLAIT keygen | $PLAIT pubkey)"
        done > many.toml
        before=$(date +%s%N)
        $PLAIT peer add --from many.toml --socket b.sock >/dev/null 2>&1; echo "added $?"
        status b --json >/dev/null
        [ $(( ($(date +%s%N) - before) / 1000000 )) -lt 900 ] && echo "ok nobody waits"
        until_true eval 'hooks | grep -q "\"timed_out\":[1-9]"'; hooks; grep -c 'hook on' b.log
        sleep 2; echo "sleeps $(ps -eo args= | grep -c '^sleep 88')"
        $PLAIT status --socket b.sock; kill $b; wait $b; echo "end $?"
    "#;
    let Some(text) = run(&format!("{TOLD}{script}")) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("added 0\nok nobody waits\n");
    has("\"command\":\"/nowhere/told\",\"webhook\":null,\"done\":0,\"failed\":5,\"timed_out\":0,\
         \"left_out\":195,\"last_error\":\"cannot run /nowhere/told: No such file");
    has("on peer-new: done 0, failed 5, timed out 0, left out 195: cannot run /nowhere/told");
    has("end 0\n");
    // One hook after the other: what a killed one had started is gone.
    assert!(text.contains("sleeps 0\n") || text.contains("sleeps 1\n"), "{text}");
}

#[test]
fn a_webhook_is_told_and_one_that_never_answers_is_given_up() {
    let script = r#"
        hook '"bond-up"' 'webhook = "http://127.0.0.1:8901/told?key=secret"'
        hook '"bond-up"' 'webhook = "http://127.0.0.1:8902/"
timeout_s = 1'
        cat > serve.py <<'END'
import socket, threading, time
def serve(port, answer):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port)); s.listen()
    while True:
        c, _ = s.accept(); c.settimeout(0.3)
        asked = b""
        try:
            while True:
                part = c.recv(4096)
                if not part: break
                asked += part
        except OSError: pass
        if answer:
            open("asked", "wb").write(asked); c.sendall(b"HTTP/1.1 204 X\r\n\r\n"); c.close()
        else: time.sleep(60)
for port, answer in ((8901, True), (8902, False)):
    threading.Thread(target=serve, args=(port, answer)).start()
END
        command -v python3 >/dev/null || { echo "no python3"; exit; }
        python3 serve.py & server=$!
        until_true python3 -c 'import socket; socket.create_connection(("127.0.0.1", 8901)).close()'
        start a; a=$!; start b; b=$!; until_true paths_up
        until_true eval 'hooks | grep -q "\"done\":1"'
        until_true eval 'hooks | grep -q "\"timed_out\":1"'
        cat asked; echo; hooks; grep -c secret b.log
        kill $server
    "#;
    let Some(text) = run(&format!("{TOLD}{script}")) else { return };
    if text.starts_with("no python3") {
        eprintln!("skipped: no python3 here");
        return;
    }
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("POST /told?key=secret HTTP/1.1\r\n");
    has("{\"event\":\"bond-up\",\"time_s\":");
    has("\"webhook\":\"127.0.0.1:8901\",\"done\":1");
    has("\"webhook\":\"127.0.0.1:8902\",\"done\":0,\"failed\":0,\"timed_out\":1");
    has("took longer than 1 s\"");
    assert!(!text.contains("key=secret\","), "{text}");
}
