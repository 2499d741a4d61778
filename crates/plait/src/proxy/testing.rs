//! Runs a shell script in network namespaces of its own. The script starts this test program again
//! (`$SELF`) for what no other program does: see the tests called `a_role`.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What scripts have. `host NAME` makes a host, `at NAME …` does something there, and `cable` ties
/// two: host, device, address, twice.
const SETUP: &str = r#"
set -u
PATH=$PATH:/usr/sbin:/sbin
ip link set lo up
until_true() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "never: $*"; cat *.log; exit 1; }
        sleep 0.05
    done
}
host() {
    : > $1.log
    unshare --net sh -c 'ip link set lo up; : > "$0.made"; exec sleep 100' $1 & eval "$1=$!"
    until_true test -e $1.made
}
at() { eval "pid=\$$1"; shift; nsenter -t $pid -n "$@"; }
cable() {
    eval "a=\$$1; b=\$$4"
    ip link add name $2 netns $a type veth peer name $5 netns $b
    at $1 ip address add $3 dev $2; at $1 ip link set $2 up
    at $4 ip address add $6 dev $5; at $4 ip link set $5 up
}
# Plays a role of a test: host, module, role and its words.
role() {
    on=$1; module=$2; shift 2
    at $on env PROXY_ROLE="$*" $SELF --exact $module::a_role --nocapture
}
said() { grep -v '^$\|^running\|^test ' ; }
"#;

/// Gives what the script prints. Nothing when there are no namespaces here, or no program `needed`.
pub(super) fn run(script: &str, needed: &str) -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("plait-proxy-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let check = format!(
        "PATH=$PATH:/usr/sbin:/sbin; command -v {needed} >/dev/null || \
         {{ echo 'no {needed} here' >&2; exit; }}; echo ready"
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        // With a namespace of process ids, nothing outlives the script.
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["timeout", "60", "sh", "-c", &format!("{check}\n{SETUP}\n{script}")])
        .env("SELF", std::env::current_exe().unwrap())
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

/// The words of the role that a script asked this process to play.
pub(super) fn role() -> Option<Vec<String>> {
    let role = std::env::var("PROXY_ROLE").ok()?;
    Some(role.split_whitespace().map(str::to_owned).collect())
}
