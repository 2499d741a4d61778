//! What `plait peer` and `plait path` change about running gateways: its effect on packets, in the
//! kernel, in the status and in the file.

use std::fs;

use super::{assert_seen, run, run_in};

/// A third gateway, which `a` does not know yet.
const THIRD: &str = r#"
    (umask 077; $PLAIT keygen > c.key); c=$($PLAIT pubkey < c.key)
    third() { sed 's/b.key/c.key/; s/10.99.0.2/10.99.0.3/; s/"pb"/"pc"/; s/b.sock/c.sock/
        s/b.json/c.json/' b.toml > c.toml; }
    peer() { $PLAIT peer "$@" --socket a.sock; }
    path() { $PLAIT path "$@" --socket b.sock; }
"#;

#[test]
fn a_peer_comes_and_goes_without_a_restart() {
    let script = r#"
        sed -i 's/^tun.*/&\nroutes = true/' a.toml
        apart; start_far; a=$!; start b; b=$!; until_true paths_up; third; start c
        peer add $c --allowed-ips 10.99.0.3/32,10.3.0.0/16 --keepalive 9
        until_true ping -c 1 -W 1 -I pc 10.99.0.1 && echo "ok it is reached"
        there ip route show dev pa | grep -q '^10.3.0.0/16' && echo "ok route"
        status b --json | grep -q '"handshakes":1,' && echo "ok the other bond is the same"
        peer list
        peer list --json | grep -q '"keepalive_s":9' && echo "ok json"
        peer add $c --allowed-ips 10.4.0.0/16; echo "same $?"
        peer add "$($PLAIT keygen | $PLAIT pubkey)" --allowed-ips 10.3.0.0/16; echo "prefix $?"
        peer add "$($PLAIT pubkey < a.key)"; echo "own $?"
        peer add AAAA; echo "key $?"
        $PLAIT peer add "$($PLAIT keygen | $PLAIT pubkey)" --socket b.sock; echo "calls $?"
        peer remove $c
        there ip route show dev pa | grep -q '^10.3.0.0/16' || echo "ok no route"
        ping -c 1 -W 1 -I pc 10.99.0.1 >/dev/null || echo "ok it is not reached"
        ping -c 1 -W 1 -I pb 10.99.0.1 >/dev/null && echo "ok the other one is"
        peer remove $c; echo "gone $?"
        peer remove "$($PLAIT pubkey < b.key)"; echo "only $?"
        for n in 1 2 3; do
            printf '[[peer]]\npublic_key = "%s"\nallowed_ips = "10.5.0.%s/32"\n' \
                "$($PLAIT keygen | $PLAIT pubkey)" $n
        done > many.toml
        peer add --from many.toml
        peer list --json | grep -o '10.5.0.[123]/32' | wc -l
        sed 's/10.5.0.1/10.6.0.1/; s/public_key/colour = 1\n&/' many.toml | peer add --from -
    "#;
    let Some(text) = run(&format!("{THIRD}{script}")) else { return };
    let effects = [
        "it is reached",
        "route",
        "the other bond is the same",
        "json",
        "no route",
        "it is not reached",
        "the other one is",
    ];
    assert_seen(&text, &effects);
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("added 1 peer, until the next reload or restart (--save writes it to the file, too)\n");
    has("=  up    calls  10.99.0.3/32, 10.3.0.0/16\n");
    for refused in ["same 2", "prefix 2", "own 2", "key 2", "calls 2", "gone 2", "only 2"] {
        has(&format!("{refused}\n"));
    }
    has("error: there is a peer with the key ");
    has("error: 10.3.0.0/16 belongs to the peer ");
    has("is the gateway's own key\n  help: give the other gateway's public key");
    has("error: public_key: not a key: 3 bytes instead of 32");
    has("has no endpoint and the gateway does not listen\n  help:");
    has("error: it is the only peer\n  help:");
    has("added 3 peers, until");
    has("error: -:2: [[peer]] colour: unknown option");
}

#[test]
fn a_path_is_put_down_and_up_and_changed() {
    let script = r#"
        apart; start_far; a=$!; start b; b=$!; until_true paths_up
        ping -q -i 0.01 -c 300 -I pb 10.99.0.1 > ping.txt & p=$!
        sleep 0.5; path down one
        path list --json | grep -q '"name":"one","price":0,"standby":false,"down":true' &&
            echo "ok at once"
        wait $p; grep -q ' 0% packet loss' ping.txt && echo "ok nothing is lost" || cat ping.txt
        status b --json | grep -q '"state":"down","reason":"down by command"' && echo "ok why"
        [ "$(status b --json | grep -o '"state":"up","reason"' | wc -l)" = 2 ] && echo "ok one left"
        [ "$(status a --json | grep -o '"name":"one"' | wc -l)" = 0 ] && echo "ok peer told"
        path down one; path up one; until_true paths_up && echo "ok up again"
        path price two 7
        until_true eval 'status a --json | grep -q "\"name\":\"two\"[^}]*\"price\":7"' &&
            echo "ok price"
        path standby two on
        until_true eval 'status b --json | grep -q "\"standby\":true"' && echo "ok standby"
        path standby two off; path quota two 1MB
        for burst in 1 2 3 4 5 6 7 8; do
            ping -q -c 300 -l 300 -W 0.1 -s 1200 -I pb 10.99.0.1 >/dev/null
        done
        until_true logged b 'quota spent' && echo "ok quota"
        path quota two none
        until_true eval 'status b --json | grep -q "\"standby\":true" || true' && echo "ok no quota"
        path price three 1; echo "absent $?"
        path quota two 20; echo "amount $?"
        $PLAIT path down one --socket a.sock; echo "none $?"
        path down two; path down one
        change b ''; until_true paths_up && echo "ok as the file says"
        status b --json | grep -q '"price":7' || echo "ok price of the file"
        path list
    "#;
    let Some(text) = run(&format!("{THIRD}{script}")) else { return };
    let effects = [
        "at once",
        "nothing is lost",
        "why",
        "one left",
        "peer told",
        "up again",
        "price",
        "standby",
        "quota",
        "no quota",
        "as the file says",
        "price of the file",
    ];
    assert_seen(&text, &effects);
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("warning: one was down already\n");
    has("warning: no other path has a link now: the bond is cut until `one` is up\n");
    has("absent 2\n");
    has("error: there is no path called \"three\"; there are: one, two\n");
    has("error: quota: \"20\" is not an amount of data\n");
    has("error: this gateway has no [[path]]\n");
    has("none 2\n");
    has("one  price 0\n  vb  up: has 192.0.2.2\n");
}

#[test]
fn a_change_is_saved_with_all_comments_or_refused() {
    let script = r#"
        sed -i 's/^\[\[peer\]\]/# The office.\n&/; s/^listen_port.*/& # as ever/' a.toml
        sed -i 's/^name = "two"/& # the dear one\nprice = 3  # cents/' b.toml
        chmod 640 a.toml
        new() { $PLAIT keygen | $PLAIT pubkey; }
        start a; a=$!; start b; b=$!; until_true paths_up
        cp a.toml before
        peer add $c --allowed-ips 10.99.0.3/32 --save
        diff before a.toml | grep -v '^[0-9]'
        stat -c 'mode %a' a.toml
        peer add "$(new)" --allowed-ips 10.99.0.4/32 --save && echo "ok again"
        change a ''; [ "$(peer list | wc -l)" = 3 ] && echo "ok after a reload"
        peer remove $c --save; grep -q 10.99.0.3 a.toml || echo "ok removed"
        path price two 4 --save; grep -c '^price = 4  # cents$' b.toml
        path down two --save; path quota two 20GB --save; path up two --save
        sed -n '/dear/,/^\[s/p' b.toml
        echo '# by hand' >> a.toml; cp a.toml before
        peer add "$(new)" --allowed-ips 10.99.0.5/32 --save; echo "changed $?"
        [ "$(peer list | wc -l)" = 2 ] && cmp before a.toml && echo "ok nothing changed"
        change a ''; chmod 440 a.toml
        peer add "$(new)" --allowed-ips 10.99.0.5/32 --save; echo "read-only $?"
        chmod 640 a.toml
        peer add "$(new)" --allowed-ips 10.99.0.5/32 --preshared-key-file absent.key --save
        echo "key $?"
        kill $a; wait $a
        mkdir small; mount -t tmpfs -o size=16k none small
        sed 's/"a.key"/"..\/a.key"/; s/"a.sock"/"..\/a.sock"/' a.toml > small/a.toml
        $PLAIT up small/a.toml 2>>a.log & a=$!; until_true answers a
        dd if=/dev/zero of=small/fill bs=4k 2>/dev/null; cp small/a.toml before
        peer add "$(new)" --allowed-ips 10.99.0.5/32 --save; echo "full $?"
        cmp before small/a.toml && ls -A small | tr '\n' ' '
        mount -o remount,ro small
        peer add "$(new)" --allowed-ips 10.99.0.5/32 --save; echo "fs $?"
        peer list | wc -l
    "#;
    let Some(text) = run(&format!("{THIRD}{script}")) else { return };
    let effects = ["again", "after a reload", "removed", "nothing changed"];
    assert_seen(&text, &effects);
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("added 1 peer, and saved in the file\n> \n> [[peer]]\n> public_key = \"");
    has("> allowed_ips = [\"10.99.0.3/32\"]\nmode 640\n");
    has("two has price 4, and saved in the file\n1\n");
    has("name = \"two\" # the dear one\nprice = 4  # cents\ninterface = \"lo\"\ndown = false\n\
         quota = \"20GB\"\n[scheduler]\n");
    has("a.toml was changed since the gateway read it\n  help: let the gateway read it first");
    has("changed 2\nok nothing");
    has("a.toml is read-only; nothing was changed\n  help: make it writable");
    has("read-only 2\n");
    has("error: cannot read the key file");
    has("key 2\n");
    has(
        "nothing was changed: No space left on device (os error 28)\n  help: make room on its disk",
    );
    has("full 2\na.toml fill ");
    has("may not be written; nothing was changed\n");
    has("fs 2\n2\n");
}

#[test]
fn nat_follows_peers() {
    let script = r#"
        command -v nft >/dev/null || { echo "no nft"; exit; }
        sed -i 's/^tun.*/&\nforward = true\nnat = ["lo"]/; s/, "fd99::2.128"//' a.toml
        start a; a=$!
        rules() { nft list table inet plait_pa | grep -o 'ip.* masquerade'; }
        host before
        peer add $c --allowed-ips 10.3.0.0/16,fd03::/64
        host after
        until_true eval 'rules | grep -q fd03' ; rules; echo --
        peer remove $c; until_true eval '! rules | grep -q fd03'; rules
    "#;
    let Some(text) = run(&format!("{THIRD}{script}")) else { return };
    if text.starts_with("no nft") {
        eprintln!("skipped: no nft here");
        return;
    }
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("before: 1 0 table inet plait_pa\n");
    has("after: 1 1 table inet plait_pa\n");
    let first = "ip saddr 10.99.0.2 oifname \"lo\" masquerade\n";
    let more = "ip saddr 10.3.0.0/16 oifname \"lo\" masquerade\n\
                ip6 saddr fd03::/64 oifname \"lo\" masquerade\n";
    has(&format!("{first}{more}--\n"));
    assert!(text.ends_with(first), "{text}");
}

#[test]
fn only_root_and_the_gateways_user_may_ask() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|proc| {
        use std::os::unix::fs::MetadataExt as _;
        proc.uid() == 0
    });
    if !is_root {
        eprintln!("skipped: not root");
        return;
    }
    let script = r#"
        start a; a=$!
        chmod 755 .; chmod 666 a.sock
        as() { setpriv --reuid $1 --regid $1 --clear-groups "$PLAIT" status --socket a.sock; }
        cp "$PLAIT" plait.bin; PLAIT=./plait.bin; chmod 755 plait.bin
        as 0 | head -1
        as 65534; echo "nobody $?"
        printf '{"version":1,"request":"peer-list"}\n' > ask
        command -v nc >/dev/null && setpriv --reuid 65534 --clear-groups nc -U -N a.sock < ask
        kill $a; wait $a
        chown nobody a.key; sed -i 's/^tun.*/&\nuser = "nobody"/; s/a.sock/plait\/a.sock/' a.toml
        $PLAIT up a.toml 2>>a.log & a=$!
        until_true eval '$PLAIT status --json --socket plait/a.sock | grep -q uptime'
        setpriv --reuid 65534 --regid 65534 --clear-groups sh -c \
            './plait.bin peer list --socket plait/a.sock'
        echo "its user $?"
    "#;
    let Some(text) = run_in(&[], script) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("nobody 2\n");
    assert!(!text.contains("its user 2"), "{text}");
    has("its user 0\n");
}
