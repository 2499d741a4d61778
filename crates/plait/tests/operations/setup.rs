//! Two gateways in a network namespace of their own, and a script that does things to them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Two gateways that reach each other over the loopback device: `a` listens, `b` has two links.
const SETUP: &str = r#"
set -u
PATH=$PATH:/usr/sbin:/sbin
ip link set lo up
(umask 077; $PLAIT keygen > a.key; $PLAIT keygen > b.key)
cat > a.toml <<END
[gateway]
private_key_file = "a.key"
address = "10.99.0.1/24"
listen_port = 7788
tun = "pa"
control_socket = "a.sock"
state_file = "plait/a.json"
[[peer]]
public_key = "$($PLAIT pubkey < b.key)"
allowed_ips = ["10.99.0.2/32", "fd99::2/128"]
END
cat > b.toml <<END
[gateway]
private_key_file = "b.key"
address = "10.99.0.2/24"
tun = "pb"
control_socket = "b.sock"
state_file = "plait/b.json"
[[path]]
name = "one"
interface = "lo"
[[path]]
name = "two"
interface = "lo"
[scheduler]
algorithm = "round-robin"
[[peer]]
public_key = "$($PLAIT pubkey < a.key)"
endpoint = "127.0.0.1:7788"
allowed_ips = ["10.99.0.1/32"]
END
# Tries a command for a while.
until_true() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "never: $*"; cat *.log; exit 1; }
        sleep 0.05
    done
}
status() { $PLAIT status --socket $1.sock "$2"; }
answers() { status $1 --json | grep -q uptime; }
# Two paths, then two links.
paths_up() { [ "$(status b --json | grep -o '"state":"up","reason"' | wc -l)" = 4 ]; }
start() { $PLAIT up $1.toml 2>>$1.log & until_true answers $1; }
logged() { grep -q "$2" $1.log; }
# Puts `a` on another host, over one cable: then packets pass. Its programs run by `there`.
apart() {
    unshare --net sleep 60 & far=$!
    until_true eval '[ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]'
    ip link add vb type veth peer name va netns $far
    ip address add 192.0.2.2/24 dev vb; ip link set vb up
    there() { nsenter -t $far -n "$@"; }
    there sh -c 'ip link set lo up; ip address add 192.0.2.1/24 dev va; ip link set va up'
    sed -i 's/127.0.0.1:7788/192.0.2.1:7788/; s/interface = "lo"/interface = "vb"/' b.toml
    start_far() { nsenter -t $far -n $PLAIT up a.toml 2>>a.log & until_true answers a; }
}
# Puts a text in another's place, reloads, and waits until that is done.
change() {
    file=$1; shift
    sed -i "$@" $file.toml
    before=$(grep -c 'read again' $file.log)
    eval "kill -HUP \$$file"
    until_true eval '[ $(grep -c "read again" $file.log) -gt $before ]'
}
host() { echo "$1: $(cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding |
    tr '\n' ' ')$(nft list tables)"; }
"#;

/// Runs a script after [`SETUP`]; gives what it prints. Nothing when there are no namespaces here.
pub(super) fn run(script: &str) -> Option<String> {
    run_in(&["--user", "--map-root-user"], script)
}

/// The same, in these namespaces beside those of network and processes.
pub(super) fn run_in(namespaces: &[&str], script: &str) -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("plait-operations-{}-{count}", std::process::id());
    let folder: PathBuf = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    // With a namespace of process ids, nothing outlives the script.
    let output = Command::new("unshare")
        .args(namespaces)
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["timeout", "60", "sh", "-c", &format!("echo ready\n{SETUP}\n{script}")])
        .env("PLAIT", env!("CARGO_BIN_EXE_plait"))
        .env_remove("RUST_LOG")
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let _ = fs::remove_dir_all(&folder);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let Some(text) = text.strip_prefix("ready\n") else {
        let required = std::env::var_os("PLAIT_REQUIRE_NETNS").is_some_and(|value| value == "1");
        assert!(!required, "no namespaces here: {errors}");
        eprintln!("skipped: no namespaces here: {errors}");
        return None;
    };
    Some(format!("{text}{errors}"))
}
