//! What a kernel or a machine may lack: each is named with a remedy, or done without and told.

use super::{assert_seen, lacking, run};

#[test]
fn without_random_numbers_nothing_is_made_and_it_is_said_why() {
    let script = r#"
        (lacking randomness $PLAIT up a.toml) >/dev/null; echo "up $?"
        ip -br link | grep -c pa
        (lacking randomness $PLAIT keygen) > out; echo "keygen $?"
        grep -c '=$' out
        (lacking randomness $PLAIT setup provider --at 192.0.2.1 --yes --no-start --folder made) \
            >/dev/null; echo "setup $?"; ls made
        (lacking randomness-yet timeout 1 $PLAIT up a.toml) 2>early >/dev/null; echo "early $?"
        cut -d ' ' -f 2- early
        (lacking randomness-yet timeout 1 $PLAIT keygen) > out 2>early; echo "key $?"
        cat early; grep -c '=$' out
    "#;
    let Some(text) = run(&format!("{}{script}", lacking::script())) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    let error = "error: the kernel gives no random numbers: Function not implemented (os error \
                 38)\n  help: plait needs the system call getrandom";
    assert_eq!(text.matches(error).count(), 3, "{text}");
    has("up 2\n0\nkeygen 2\n0\nsetup 2\n");
    has("early 124\nWARN ] the kernel has no random numbers yet: waiting for them\n");
    has("key 124\nplait: note: the kernel has no random numbers yet: waiting for them\n0\n");
    assert!(text.contains("'made'"), "nothing was made: {text}");
}

#[test]
fn an_old_kernel_carries_without_what_it_lacks() {
    let script = r#"
        apart; start_far; a=$!
        (lacking landlock,udp-offload,tun-offload $PLAIT up b.toml) >/dev/null 2>>b.log & b=$!
        until_true paths_up
        ping -q -c 20 -i 0.02 -s 1400 -W 1 -I pb 10.99.0.1 | grep -q ' 0% packet loss' &&
            echo "ok carries"
        for what in 'sandbox: no landlock: the kernel has no Landlock' \
            'this kernel cannot send UDP in batches' 'the TUN device pb takes single packets'
        do
            [ "$(grep -c "$what" b.log)" = 1 ] && echo "ok $what"
        done
        status b --json | grep -q '"sandbox":\["seccomp"\]' && echo "ok status"
        cat b.log
    "#;
    let Some(text) = run(&format!("{}{script}", lacking::script())) else { return };
    let effects = [
        "carries",
        "sandbox: no landlock: the kernel has no Landlock",
        "this kernel cannot send UDP in batches",
        "the TUN device pb takes single packets",
        "status",
    ];
    assert_seen(&text, &effects);
}

#[test]
fn a_machine_without_a_tun_device_says_so() {
    let script = r#"
        unshare -m sh -c 'mount -t tmpfs none /dev/net; $PLAIT up a.toml; echo "absent $?"
            : > /dev/net/tun; $PLAIT up a.toml; echo "no device $?"'
        ls
    "#;
    let Some(text) = run(script) else { return };
    let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
    has("error: /dev/net/tun: no TUN device on this machine\n  help: load the driver with");
    has("absent 2\n");
    has("error: no TUN device pa: /dev/net/tun is missing: load the tun module");
    has("no device 2\n");
    assert!(!text.contains(".sock\n"), "{text}");
}

#[test]
fn a_kernel_without_a_packet_filter_is_named_by_each_option_that_needs_one() {
    let script = r#"
        mkdir bin none; cat > bin/nft <<'END'
#!/bin/sh
[ "$1" = --version ] && exit
echo "netlink: Error: cache initialization failed: Protocol not supported" >&2; exit 1
END
        chmod 755 bin/nft
        for folder in /usr/sbin /sbin; do mount -t tmpfs none $folder; done
        try() { sed "s/^tun.*/&\n$1/; ${3-}" a.toml > c.toml
            [ -z "${2-}" ] || printf "$2" >> c.toml
            PATH=$PWD/bin:$PATH $PLAIT up c.toml; echo "refused $?"
            ln -s $PLAIT none/plait 2>/dev/null; PATH=$PWD/none $PLAIT up c.toml; echo "none $?"; }
        try 'forward = true\nnat = true'
        try 'return_by_bond = true'
        try 'routes = true\nwhen_down = "bypass"' '' 's/"10.99.0.2.32"/"0.0.0.0\/0"/'
        try 'when_down = "block"'
        try 'forward = true' '[[forward]]\nto = "10.99.0.2"\nports = "443"\n'
        /bin/ls *.sock plait 2>/dev/null
    "#;
    let Some(text) = run(script) else { return };
    assert_eq!(text.matches("refused 2\n").count(), 5, "{text}");
    assert_eq!(text.matches("none 2\n").count(), 5, "{text}");
    let refused = "nft refused: netlink: Error: cache initialization failed: Protocol not";
    assert_eq!(text.matches(refused).count(), 5, "{text}");
    assert_eq!(text.matches("  help: the kernel needs nf_tables").count(), 5, "{text}");
    assert!(!text.contains(".sock\n"), "nothing is left: {text}");
    assert_eq!(text.matches("error: ").count(), 10, "{text}");
    let absent = "the program nft is missing, which";
    assert_eq!(text.matches(absent).count(), 5, "{text}");
    assert_eq!(text.matches("  help: install it").count(), 5, "{text}");
}
