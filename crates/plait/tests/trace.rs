//! `plait trace` and `plait trace split` on a real MPTCP connection over two links.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "operations/setup.rs"]
mod setup;

/// Bytes that are sent: no multiple of a segment.
const BYTES: usize = 6_000_001;

/// Two hosts with two links of 40 Mbit/s, and MPTCP over both.
const LINKS: &str = r#"
unshare --net sleep 60 & far=$!
until_true eval '[ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]'
there() { nsenter -t $far -n "$@"; }
there ip link set lo up
for n in 1 2; do
    ip link add v$n type veth peer name w$n netns $far
    ip address add 10.$n.0.2/24 dev v$n; ip link set v$n up
    there ip address add 10.$n.0.1/24 dev w$n; there ip link set w$n up
    tc qdisc add dev v$n root tbf rate 40mbit burst 64k latency 50ms
    ip link set v$n gso_max_size 16000
    ip rule add from 10.$n.0.2 table $n; ip route add default via 10.$n.0.1 dev v$n table $n
done
for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done
there sh -c 'for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done'
echo 1 > /proc/sys/net/mptcp/enabled; there sh -c 'echo 1 > /proc/sys/net/mptcp/enabled'
ip mptcp limits set subflow 4; there ip mptcp limits set subflow 4
ip mptcp endpoint add 10.2.0.2 dev v2 subflow
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
role() { ROLE="$*" "$SELF" --exact a_role --nocapture; }
there env ROLE="serve" "$SELF" --exact a_role --nocapture > served.txt & server=$!
until_true grep -q ready served.txt
"#;

/// This program in a role of a script.
#[test]
fn a_role() {
    let Ok(role) = std::env::var("ROLE") else { return };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap();
    if role == "serve" {
        socket.bind(&SocketAddr::from(([0, 0, 0, 0], 5201)).into()).unwrap();
        socket.listen(1).unwrap();
        println!("\nready");
        // Subflows join by way of the listener: it stays.
        let listener = TcpListener::from(socket);
        let (mut stream, _) = listener.accept().unwrap();
        let mut content = Vec::new();
        stream.read_to_end(&mut content).unwrap();
        println!("\nreceived {}", content.len());
    } else {
        socket.connect(&SocketAddr::from(([10, 1, 0, 1], 5201)).into()).unwrap();
        let mut stream = TcpStream::from(socket);
        // The second subflow joins once the first one is known to both ends.
        stream.write_all(&[7]).unwrap();
        let joined = || {
            let subflows = plait_net::mptcp::subflows(&stream).unwrap().expect("MPTCP");
            subflows.iter().filter(|subflow| subflow.info.srtt_us > 0).count() == 2
        };
        for _ in 0..400 {
            if joined() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
        stream.write_all(&vec![7; BYTES - 1]).unwrap();
    }
}

/// Runs a script between the two hosts; nothing where there are no namespaces or no MPTCP.
fn run(namespaces: &[&str], script: &str) -> Option<String> {
    let own = std::env::current_exe().unwrap();
    let missing = "command -v ip tc >/dev/null && ip mptcp limits >/dev/null 2>&1 || \
                   { echo 'no MPTCP'; exit; }";
    let script = format!("SELF={}\n{missing}\n{LINKS}\n{script}", own.display());
    let text = setup::run_in(namespaces, &script)?;
    if text.starts_with("no MPTCP") {
        eprintln!("skipped: no MPTCP here");
        return None;
    }
    Some(text)
}

const USER: [&str; 2] = ["--user", "--map-root-user"];

fn records(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks a trace of the sender: two subflows of one connection, which carried everything.
fn check_trace(text: &str, source: &str) {
    let records = records(text);
    assert_eq!(records[0]["type"], "trace", "{text}");
    assert_eq!(records[0]["source"], source, "{text}");
    let last = records.last().unwrap();
    assert_eq!((&last["type"], &last["lost"]), (&"summary".into(), &0.into()), "{last}");
    assert!(last["core_percent"].as_f64().unwrap() > 0.0, "{last}");
    let of_sender =
        |record: &&Value| record["type"] == "sample" && record["remote"] == "10.1.0.1:5201";
    let samples: Vec<_> = records.iter().filter(of_sender).collect();
    let tokens: BTreeSet<_> = samples.iter().map(|one| one["token"].as_str()).collect();
    assert_eq!(tokens.len(), 1, "one connection: {tokens:?}");
    assert!(tokens.first().unwrap().is_some(), "with a token");
    let mut acked = BTreeMap::new();
    for sample in &samples {
        let local = sample["local"].as_str().unwrap().split(':').next().unwrap();
        acked.insert((local, sample["subflow"].as_u64()), sample["acked_bytes"].as_u64().unwrap());
        assert!(sample["cwnd"].as_u64().unwrap() > 0 && sample["mss_bytes"].as_u64().unwrap() > 0);
    }
    let subflows: Vec<_> = acked.keys().map(|(local, _)| *local).collect();
    assert_eq!(subflows, ["10.1.0.2", "10.2.0.2"], "{acked:?}");
    assert!(acked.values().all(|bytes| *bytes > BYTES as u64 / 10), "{acked:?}");
    assert!(acked.values().sum::<u64>() > BYTES as u64 * 9 / 10, "{acked:?}");
    // Windows change, and so do rates. A window that grows by bursts has few values.
    let values = |field: &str| samples.iter().filter_map(|one| one[field].as_u64()).collect();
    for (field, least) in [("cwnd", 2), ("srtt_us", 4), ("rate_bps", 4), ("send_window_bytes", 4)] {
        let values: BTreeSet<u64> = values(field);
        assert!(values.len() >= least, "{field}: {values:?}");
    }
}

const TRACED: &str = r#"
$PLAIT trace --json --port 5201 --every 0.02 $OPTIONS > trace.jsonl 2> trace.err & trace=$!
until_true grep -q source trace.jsonl
role send; wait $server; sleep 0.3; kill -INT $trace; wait $trace; echo "exit $?"
cat served.txt trace.err trace.jsonl
"#;

/// A connection's sender and receiver are both here, but only the sender's host is traced.
const DRAWN: &str = r#"
$PLAIT trace draw --html page.html trace.jsonl; echo "drawn $?"
echo "$(grep -c '<h2>Connection .*MPTCP, token' page.html) connection of MPTCP"
"#;

/// What a trace does on a full disk, with something else that takes its samples and without.
#[test]
fn a_full_disk_is_told_once() {
    let script = r#"
        mkdir full; mount -t tmpfs -o size=64k none full
        exec 3> full/rest; head -c 61440 /dev/zero >&3
        trace() { $PLAIT trace --every 0.001 --seconds 3 --source sock-diag "$@"; }
        trace --output full/one.jsonl > alone.txt 2>&1 & alone=$!
        trace --json --output full/two.jsonl > beside.txt 2> beside.err & beside=$!
        sleep 0.3; role send; wait $alone; echo "alone $?"; wait $beside; echo "beside $?"
        cat alone.txt; tail -n 1 beside.txt; cat beside.err"#;
    let Some(text) = run(&["--user", "--map-root-user", "--mount"], script) else { return };
    assert!(text.contains("alone 2\n") && text.contains("beside 0\n"), "{text}");
    let told = "the trace's file takes no more: No space left on device";
    assert_eq!(text.matches(told).count(), 2, "{text}");
    assert!(text.contains("help: make room on its disk"), "{text}");
    assert!(text.contains("{\"type\":\"summary\""), "{text}");
}

#[test]
fn sock_diag_tells_subflows_apart() {
    let script = format!("OPTIONS='--source sock-diag'\n{TRACED}\n{DRAWN}");
    let Some(text) = run(&USER, &script) else { return };
    assert!(text.contains("exit 0\n"), "{text}");
    assert!(text.contains("drawn 0\n1 connection of MPTCP\n"), "{text}");
    assert!(text.contains(&format!("received {BYTES}\n")), "{text}");
    check_trace(&text, "sock_diag");
}

/// BPF needs the rights of the machine's root.
#[test]
fn tcp_probe_tells_subflows_apart() {
    let script = format!(
        "$PLAIT trace --source tcp-probe --json --seconds 0.1 >probe.txt 2>&1 || {{\n\
         echo no probe; cat probe.txt; exit; }}\nOPTIONS='--source tcp-probe'\n{TRACED}"
    );
    let Some(text) = run(&[], &script) else { return };
    if text.contains("no probe") {
        eprintln!("skipped: {text}");
        return;
    }
    assert!(text.contains("exit 0\n"), "{text}");
    check_trace(&text, "tcp_probe");
}

#[test]
fn a_capture_holds_every_byte_once() {
    if Command::new("dumpcap").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: no dumpcap here");
        return;
    }
    let script = "
        dumpcap -q -i any -s 200 -B 8 -f tcp -w capture.pcapng 2> ng.err & ng=$!
        dumpcap -q -P -i any -s 200 -B 8 -f tcp -w capture.pcap 2> dump.err & dump=$!
        until_true grep -q File: ng.err; until_true grep -q File: dump.err
        role send; wait $server; sleep 0.5
        kill -INT $dump; wait $dump; kill -INT $ng; wait $ng
        for file in capture.pcapng capture.pcap; do
            $PLAIT trace split --json $file; echo \"exit $?\"
        done
        head -c 4000 capture.pcap > cut.pcap
        $PLAIT trace split --html page.html cut.pcap; echo \"cut $?\"
        $PLAIT trace split --port 9 capture.pcap > none.txt; echo \"none $?\"
        $PLAIT trace split dump.err; echo \"text $?\"
        grep -c '<svg' page.html";
    let Some(text) = run(&USER, script) else { return };
    assert!(text.contains("exit 0\n") && text.contains("none 1\n"), "{text}");
    assert!(text.contains("cut 2\n") && text.contains("is cut off: it ends within a packet"));
    assert!(text.contains("text 2\n") && text.contains("this is no capture"), "{text}");
    let records = records(&text);
    let connections: Vec<_> =
        records.iter().filter(|record| record["type"] == "connection").collect();
    let [connection, of_pcap] = connections[..] else { panic!("one connection each: {text}") };
    let own = |connection: &Value| connection["subflows"][0]["out"]["bytes"].clone();
    assert_eq!(own(connection), own(of_pcap), "both formats hold the same");
    assert_eq!(connection["mptcp"], true);
    assert_eq!(connection["data_out_bytes"], BYTES, "{connection}");
    let subflows = connection["subflows"].as_array().unwrap();
    assert_eq!(subflows.len(), 2, "{connection}");
    let bytes: Vec<_> = subflows.iter().map(|one| one["out"]["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.iter().sum::<u64>() >= BYTES as u64 && bytes.iter().all(|one| *one > 0));
    for subflow in subflows {
        let bins = subflow["out"]["bins"].as_array().unwrap();
        let sum: u64 = bins.iter().map(|bin| bin.as_u64().unwrap()).sum();
        assert_eq!(sum, subflow["out"]["bytes"].as_u64().unwrap());
    }
}
