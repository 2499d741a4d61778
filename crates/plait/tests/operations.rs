//! What a running gateway does about its configuration, its host and its state, in a network
//! namespace of its own: real processes, real `nft`.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "operations/control.rs"]
mod control;
#[path = "operations/hooks.rs"]
mod hooks;
#[path = "operations/observe.rs"]
mod observe;
#[path = "operations/ports.rs"]
mod ports;
#[path = "operations/reload.rs"]
mod reload;
#[path = "operations/runtime.rs"]
mod runtime;
#[path = "operations/service.rs"]
mod service;
#[path = "operations/setup.rs"]
mod setup;
#[path = "operations/terminal.rs"]
mod terminal;
#[path = "operations/unanswered.rs"]
mod unanswered;

#[path = "operations/rights.rs"]
mod rights;

use setup::{run, run_in};

/// The script says `ok WHAT` for each effect that it saw.
fn assert_seen(text: &str, effects: &[&str]) {
    for effect in effects {
        assert!(text.contains(&format!("ok {effect}\n")), "{effect}: {text}");
    }
    assert!(!text.contains("never:"), "{text}");
}

#[test]
fn forwarding_and_nat_are_undone_at_exit_and_after_a_crash() {
    let script = r#"
        command -v nft >/dev/null || { echo "no nft"; exit; }
        host before
        sed -i 's/^tun.*/&\nforward = true\nnat = ["lo"]/' a.toml
        start a; pid=$!
        host running
        nft list table inet plait_pa | grep -o 'ip.* masquerade'
        kill $pid; wait $pid; host stopped
        start a; pid=$!
        kill -9 $pid; wait $pid 2>/dev/null; host crashed
        sed -i '/^forward/d; /^nat/d' a.toml
        start a; host unasked
    "#;
    let Some(text) = run(script) else { return };
    if text.starts_with("no nft") {
        let required = std::env::var_os("PLAIT_REQUIRE_NETNS").is_some_and(|value| value == "1");
        assert!(!required, "no nft here");
        eprintln!("skipped: no nft here");
        return;
    }
    assert_eq!(
        text,
        "before: 0 0 \nrunning: 1 1 table inet plait_pa\n\
         ip saddr 10.99.0.2 oifname \"lo\" masquerade\n\
         ip6 saddr fd99::2 oifname \"lo\" masquerade\n\
         stopped: 0 0 \ncrashed: 1 1 table inet plait_pa\nunasked: 0 0 \n"
    );
}

#[test]
fn nat_without_nft_is_refused_with_a_remedy() {
    let script = r#"
        sed -i 's/^tun.*/&\nnat = true/' a.toml
        mkdir bin; ln -s "$PLAIT" bin/plait
        for folder in /usr/sbin /sbin; do mount -t tmpfs none $folder; done
        PATH=$PWD/bin plait up a.toml
        PATH=$PWD/bin plait check a.toml
    "#;
    let Some(text) = run(script) else { return };
    let help = "help: install it (Debian and Ubuntu: package nftables)";
    let error = "plait: error: nat: the program nft is missing, which [gateway] nat needs\n  help:";
    assert!(text.contains(error) && text.contains(help), "{text}");
    assert!(text.contains("error    nat: the program nft is missing"), "{text}");
}

#[test]
fn sighup_takes_a_sound_configuration_and_keeps_the_bond() {
    let script = r#"
        start a; a=$!; start b; b=$!
        until_true paths_up
        ping -c 1 -W 1 -I pb 10.99.0.1 >/dev/null
        sed -i 's/10.99.0.1.32/10.99.0.0\/24/; s/round-robin/redundant/; s/pb"/pb9"/' b.toml
        kill -HUP $b; until_true logged b 'read again'
        kill -HUP $a; until_true logged a 'read again'
        echo 'colour = "red"' >> b.toml
        kill -HUP $b; until_true logged b 'the old configuration stays'
        ping -c 1 -W 1 -I pb 10.99.0.77 >/dev/null
        status b --json
        grep -E 'ERROR|WARN|is made|is gone' b.log
        grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs|^Seccomp:' /proc/$b/status
        kill $a $b; wait $a; echo "a $?"; wait $b; echo "b $?"
        ls
    "#;
    let Some(text) = run(script) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("\"scheduler\":\"redundant\"");
    // Before and after: counted by one and the same bond.
    has("\"inner_sent_packets\":2,");
    has("[gateway] tun changed: a restart is needed for it to have an effect");
    has("b.toml:19: [[peer]] colour: unknown option (known here:");
    assert_eq!(text.matches("is made").count(), 1, "{text}");
    assert_eq!(text.matches("is gone").count(), 0, "{text}");
    // CAP_NET_ADMIN and CAP_NET_RAW.
    for set in ["CapPrm", "CapEff", "CapBnd"] {
        has(&format!("{set}:\t0000000000003000"));
    }
    has("NoNewPrivs:\t1");
    has("Seccomp:\t2");
    has("\"sandbox\":[\"landlock\",\"seccomp\"]");
    has("a 0\nb 0\n");
    assert!(!text.contains(".sock\n"), "{text}");
}

#[test]
fn a_spent_quota_makes_a_path_stand_by_over_a_restart() {
    let script = r#"
        sed -i 's/^name = "two"/&\nquota = "1 MB"/' b.toml
        start a; start b; b=$!
        until_true paths_up
        # In small bursts: the device's queue holds 500 packets.
        for burst in 1 2 3 4 5 6 7 8; do
            ping -q -c 300 -l 300 -W 0.1 -s 1200 -I pb 10.99.0.1 >/dev/null
        done
        until_true logged b 'quota spent'
        status b --json
        kill $b; wait $b
        echo; echo "restarted"
        start b; b=$!
        until_true paths_up
        sleep 0.2
        status b --json
        sed -i 's/1 MB/100 MB/' b.toml
        kill -HUP $b; until_true logged b 'read again'
        echo; echo "raised"
        status b --json
    "#;
    let Some(text) = run(script) else { return };
    let (first, rest) = text.split_once("restarted").expect(&text);
    let (second, third) = rest.split_once("raised").expect(&text);
    for (text, reasons, standby) in [(first, 1, 1), (second, 1, 1), (third, 0, 0)] {
        assert_eq!(text.matches(" of 1 MB this month\"").count(), reasons, "{text}");
        assert_eq!(text.matches("\"standby\":true").count(), standby, "{text}");
    }
}
