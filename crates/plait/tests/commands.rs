//! The commands as a user meets them: output, exit codes, manners.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use plait_proto::resequencer::{Released, ResequencerStats};
use plait_proto::stats::{EndpointStatus, PathState, PathStatus, PeerStatus};

/// RFC 7748 §6.1, Bob's keys in base64.
const BOB_PRIVATE: &str = "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os=";
const BOB_PUBLIC: &str = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";

fn plait(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).env_remove("RUST_LOG");
    command
}

fn run(args: &[&str], input: &str) -> Output {
    let mut child = plait(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A path of its own in the temporary directory.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("plait-{}-{name}", std::process::id()))
}

#[test]
fn pubkey_agrees_with_rfc_7748() {
    let output = run(&["pubkey"], &format!("{BOB_PRIVATE}\n"));
    assert_eq!(text(&output.stdout), format!("{BOB_PUBLIC}\n"));
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    let output = run(&["pubkey", "--json"], BOB_PRIVATE);
    assert_eq!(text(&output.stdout), format!("{{\"public_key\":\"{BOB_PUBLIC}\"}}\n"));
}

#[test]
fn pubkey_refuses_what_is_no_key() {
    for (input, why) in [("", "empty"), ("?\n", "not base64"), ("AAAA", "3 bytes instead of 32")] {
        let output = run(&["pubkey"], input);
        let expected = format!(
            "plait: error: stdin does not hold a private key: {why}\n  \
             help: pipe a private key in: plait pubkey < gateway.key\n"
        );
        assert_eq!(text(&output.stderr), expected);
        assert_eq!((text(&output.stdout), output.status.code()), ("", Some(2)));
    }
}

#[test]
fn keygen_makes_a_new_key_each_time() {
    let keys = [run(&["keygen"], ""), run(&["keygen"], "")];
    assert_ne!(keys[0].stdout, keys[1].stdout);
    for output in keys {
        assert_eq!(text(&output.stdout).len(), 45, "44 characters and a line's end");
        assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
        let private = text(&output.stdout);
        assert_eq!(run(&["pubkey"], private).status.code(), Some(0));
    }
}

#[test]
fn keygen_in_json_has_both_halves() {
    let output = run(&["keygen", "--json"], "");
    let pair: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).unwrap();
    let public = run(&["pubkey"], &pair["private_key"]).stdout;
    assert_eq!(text(&public).trim(), pair["public_key"]);
}

#[test]
fn keygen_warns_when_others_can_read_the_file() {
    let path = temporary("exposed.key");
    for (mode, warns) in [(0o644, true), (0o600, false)] {
        let file = File::create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let output = plait(&["keygen"]).stdout(file).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let warned = text(&output.stderr).starts_with("plait: warning: every user of this machine");
        assert_eq!(warned, warns, "{mode:o}: {}", text(&output.stderr));
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn help_and_mistakes_have_their_own_streams_and_codes() {
    let output = run(&["--help"], "");
    assert_eq!(output.status.code(), Some(0));
    for word in ["keygen", "pubkey", "check", "up", "status", "measure", "Examples:", "Exit codes:"]
    {
        assert!(text(&output.stdout).contains(word), "{word}");
    }
    let output = run(&["chek"], "");
    let expected = "plait: error: unrecognized subcommand 'chek'";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
    assert_eq!((text(&output.stdout), output.status.code()), ("", Some(2)));
    assert_eq!(run(&[], "").status.code(), Some(2));
    assert!(text(&run(&["--version"], "").stdout).starts_with("plait "));
}

#[test]
fn controllers_that_cannot_be_loaded_are_told_with_a_remedy() {
    let output = run(&["cc", "load", "nonsense"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("help: "), "{}", text(&output.stderr));
    let output = run(&["cc", "use", "default"], "");
    assert_eq!(output.status.code(), Some(2), "a namespace always has one");
    let output = run(&["cc", "use", "lia", "--on", "lo"], "");
    assert_eq!(output.status.code(), Some(2), "an interface of no cgroup");
    let help = run(&["cc", "--help"], "");
    assert!(text(&help.stdout).contains("WO2021250377A1"), "the note on WhiteHaul's patent");
}

#[cfg(not(feature = "bpf"))]
#[test]
fn a_build_without_programs_says_so_and_lists_the_kernels_own() {
    let output = run(&["cc", "list", "--json"], "");
    assert_eq!(output.status.code(), Some(0));
    let last = text(&output.stdout).lines().last().map(str::to_owned).unwrap_or_default();
    assert!(last.contains(r#""can_load":false"#), "{last}");
    let output = run(&["cc", "load", "lia"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--features bpf"), "{}", text(&output.stderr));
}

#[test]
fn a_closed_pipe_is_quiet() {
    for args in [&["keygen"][..], &["check", "/nonexistent.toml", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = plait(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)), "{args:?}");
    }
}

/// A gateway's control socket that gives its answers one after the other, and is then gone.
struct Gateway {
    socket: PathBuf,
    thread: JoinHandle<Vec<String>>,
}

impl Gateway {
    fn answering(name: &str, answers: Vec<String>) -> Self {
        let socket = temporary(name);
        let listener = UnixListener::bind(&socket).unwrap();
        let file = socket.clone();
        let thread = thread::spawn(move || {
            let serve = |answer: String| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = String::new();
                BufReader::new(&stream).read_line(&mut request).unwrap();
                writeln!(stream, "{answer}").unwrap();
                request
            };
            let requests = answers.into_iter().map(serve).collect();
            fs::remove_file(file).unwrap();
            requests
        });
        Self { socket, thread }
    }

    /// What the command says, and what it asked for.
    fn asked_for(self, command: &str, more: &[&str]) -> (Output, Vec<String>) {
        let socket = self.socket.to_str().unwrap();
        let output = run(&[&[command, "--socket", socket], more].concat(), "");
        (output, self.thread.join().unwrap())
    }

    fn asked_by(self, command: &str, more: &[&str]) -> Output {
        let (output, requests) = self.asked_for(command, more);
        assert!(requests.iter().all(|request| request == "status\n"), "{requests:?}");
        output
    }

    fn status(self, more: &[&str]) -> Output {
        self.asked_by("status", more)
    }
}

fn path(name: &str, state: PathState, reason: &str) -> PathStatus {
    PathStatus {
        id: 0,
        name: name.into(),
        state,
        reason: reason.into(),
        remote: "192.0.2.1:7788".into(),
        tried_ports: Vec::new(),
        price: 0,
        weight: None,
        srtt_us: None,
        min_rtt_us: None,
        window_bytes: None,
        pacing_rate_bps: None,
        capacity_bps: 0,
        delivery_rate_bps: 0,
        jitter_us: None,
        delay_excess_us: None,
        loss_ratio: 0.0,
        mtu_bytes: None,
        standby: false,
        metered: false,
        in_use: state == PathState::Up,
        in_flight_bytes: 0,
        control_packets: 0,
        rescued_packets: 0,
        sent_packets: 0,
        sent_bytes: 0,
        received_packets: 0,
        received_bytes: 0,
        delivered_bytes: 0,
        lost_packets: 0,
        late_packets: 0,
        reported_lost_packets: 0,
    }
}

fn peer(state: &str) -> PeerStatus {
    let dsl = PathStatus {
        price: 1,
        weight: Some(50),
        srtt_us: Some(13_270),
        min_rtt_us: Some(12_900),
        delivery_rate_bps: 48_200_000,
        sent_packets: 1000,
        sent_bytes: 1_440_000,
        received_bytes: 999,
        reported_lost_packets: 3,
        jitter_us: Some(840),
        loss_ratio: 0.0123,
        mtu_bytes: Some(1500),
        metered: true,
        delay_excess_us: Some(24_100),
        rescued_packets: 31,
        ..path("dsl", PathState::Up, "answers")
    };
    let lte = path("lte", PathState::Silent, "no answer for 2 s");
    let lte = PathStatus { standby: true, ..lte };
    PeerStatus {
        backlog: None,
        attempts: None,
        public_key: BOB_PUBLIC.into(),
        state: state.into(),
        trouble: None,
        scheduler: "min-rtt".into(),
        session_age_s: Some(75),
        handshakes: 2,
        cipher: Some("AES-256-GCM".into()),
        wire: Some("1.1".into()),
        release: Some("0.2.0".into()),
        inner_mtu_bytes: Some(1440),
        inner_sent_packets: 1000,
        inner_sent_bytes: 1_400_000,
        inner_delivered_packets: 7,
        inner_delivered_bytes: 700,
        paths: vec![dsl, lte],
        resequencer: ResequencerStats {
            at_once: 90,
            waited: 10,
            waiting_total_us: 45_000,
            waiting_max_us: 12_340,
            waiting_now_packets: 1,
            released: Released { in_order: 7, known_lost: 1, timer: 1, overflow: 0 },
            given_up: 2,
            ..ResequencerStats::default()
        },
    }
}

fn answer(peers: Vec<PeerStatus>) -> String {
    let drops = BTreeMap::from([("bad-tag".to_owned(), 4)]);
    let endpoint = EndpointStatus { public_key: BOB_PUBLIC.into(), peers, drops };
    let mut answer = serde_json::to_value(endpoint).unwrap();
    answer["tun"] = "plait0".into();
    answer["uptime_s"] = 3720.into();
    answer.to_string()
}

#[test]
fn status_is_a_readable_table() {
    let output = Gateway::answering("table.sock", vec![answer(vec![peer("up")])]).status(&[]);
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    let expected = format!(
        "\
plait0  up for 1 h 2 min  public key {BOB_PUBLIC}

peer {BOB_PUBLIC}  up
  session of 1 min 15 s, AES-256-GCM; handshakes 2; scheduler min-rtt; carries packets of \
         up to 1440 bytes; runs plait 0.2.0, wire 1.1
  inner packets: sent 1000 (1.4 MB), delivered 7 (700 B)
  path  state   use  price  weight  rtt ms  jitter  min ms  loss %         rate    sent  \
         received  lost
  dsl   up      yes      1      50    13.2     0.8    12.9     1.2  48.2 Mbit/s  1.4 MB     \
         999 B     3
    to 192.0.2.1:7788, mtu 1500, metered, 24.1 ms behind the quickest, 31 packets rescued: answers
  lte   silent   no      0       -       -       -       -     0.0   0.0 kbit/s     0 B       \
         0 B     0
    to 192.0.2.1:7788, standby: no answer for 2 s
  resequencer: delivered at once 90, waited 10 (mean 5.0 ms, longest 12.3 ms, now 1)
    released: in order 7, known lost 1, timer 1, overflow 0
    given up 2; late: dropped 0, delivered 0; duplicates 0

drops
  bad-tag             4  The datagram does not authenticate.
"
    );
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn status_counts_what_was_lost_and_came_twice_as_overhead() {
    let lossy = |delivered_bytes| {
        let mut peer = peer("up");
        peer.paths.truncate(1);
        let came = PathStatus {
            received_packets: 900,
            received_bytes: 2_160_000,
            ..peer.paths[0].clone()
        };
        peer.paths[0] = PathStatus { delivered_bytes, lost_packets: 110, late_packets: 10, ..came };
        answer(vec![peer])
    };
    let answers = [2_000_000, 999_999].map(lossy);
    let told = "  received 1.200 bytes for each inner byte delivered (dsl 1.200)\n";
    let names = ["overhead.sock", "little.sock"];
    let outputs =
        [0, 1].map(|at| Gateway::answering(names[at], vec![answers[at].clone()]).status(&[]));
    let tells = outputs.map(|output| text(&output.stdout).contains(told));
    assert_eq!(tells, [true, false], "with little, acknowledgements are most of it");
}

#[test]
fn status_says_no_when_a_bond_is_not_up() {
    let peers = vec![peer("up"), peer("connecting")];
    let output = Gateway::answering("down.sock", vec![answer(peers)]).status(&[]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn status_in_json_is_the_gateways_own_answer() {
    let answer = answer(vec![peer("up")]);
    let output = Gateway::answering("json.sock", vec![answer.clone()]).status(&["--json"]);
    assert_eq!(text(&output.stdout), format!("{answer}\n"));
}

#[test]
fn status_names_an_odd_answer_and_an_absent_gateway() {
    let output = Gateway::answering("odd.sock", vec!["{}".into()]).status(&[]);
    assert!(text(&output.stderr).contains("answers oddly: missing field"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
    let output = Gateway::answering("mute.sock", vec![String::new()]).status(&[]);
    assert!(text(&output.stderr).contains(": it hung up without an answer"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
    let output = run(&["status", "--socket", "/nonexistent.sock"], "");
    assert_eq!(
        text(&output.stderr),
        "plait: error: cannot ask the gateway behind /nonexistent.sock: \
         No such file or directory (os error 2)\n  \
         help: is the gateway running? start it with `plait up CONFIG`\n"
    );
    assert_eq!(output.status.code(), Some(2));
}

/// Answers with a bond that has sent `sent_bytes` over its first path.
fn answer_after(sent_bytes: u64) -> String {
    let mut peer = peer("up");
    peer.paths[0].sent_bytes = sent_bytes;
    answer(vec![peer])
}

#[test]
fn watch_without_a_terminal_prints_a_line_for_each_path_and_waits_for_the_gateway() {
    let answers = vec![answer_after(0), answer_after(1_000_000), answer_after(1_000_000)];
    let gateway = Gateway::answering("watch.sock", answers);
    let output = gateway.asked_by("watch", &["--interval", "0.1", "--count", "3"]);
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(1)), "it went away");
    let lines: Vec<_> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 3 + 3 + 1, "{lines:#?}");
    assert!(lines[0].contains("plait0  peer 3p7bfXt9wbTT  up  out "), "{}", lines[0]);
    assert!(lines[1].contains("  dsl  up  out ") && lines[1].contains("share 100 %"));
    assert!(lines[2].ends_with("  no answer for 2 s; to 192.0.2.1:7788, standby"), "{}", lines[2]);
    assert!(lines[4].contains("  dsl  up  out 0.0 kbit/s"), "{}", lines[4]);
    assert!(lines[6].contains("  no answer: cannot ask the gateway behind "), "{}", lines[6]);
}

#[test]
fn watch_in_json_prints_a_record_per_tick() {
    let answers = vec![answer_after(0), answer_after(1_000_000), answer_after(1_000_000)];
    let gateway = Gateway::answering("watch-json.sock", answers);
    let output = gateway.asked_by("watch", &["--json", "--interval", "0.1", "--count", "2"]);
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    let records: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2);
    let dsl = |tick: usize| &records[tick]["peers"][0]["paths"][0];
    assert!(dsl(0)["out_bps"].as_u64().unwrap() > 0, "{}", dsl(0));
    assert_eq!((&dsl(0)["share"], &dsl(1)["out_bps"]), (&1.0.into(), &0.into()));
}

#[test]
fn watch_refuses_an_interval_of_nothing() {
    let output = run(&["watch", "--socket", "/nonexistent.sock", "--interval", "0"], "");
    assert!(text(&output.stderr).contains("expected 0.1 to 3600 seconds"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn status_tells_of_a_running_measurement() {
    let mut with_one = answer(vec![peer("up")]);
    let one = format!(
        r#","measurements":[{{"peer":"{BOB_PUBLIC}","role":"serves","remaining_s":61}}]}}"#
    );
    with_one.replace_range(with_one.len() - 1.., &one);
    let output = Gateway::answering("measured.sock", vec![with_one]).status(&[]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("\n  the peer measures, for 1 min 1 s more at most\n"), "{stdout}");
}

/// Runs `plait measure` against a gateway with this peer; it must fail before anything more is
/// asked for.
fn refused(name: &str, peer: PeerStatus, more: &[&str]) -> String {
    let output = Gateway::answering(name, vec![answer(vec![peer])]).asked_by("measure", more);
    assert_eq!((text(&output.stdout), output.status.code()), ("", Some(2)), "{output:?}");
    text(&output.stderr).to_owned()
}

/// Two paths that carry data, neither metered.
fn both_up() -> PeerStatus {
    let mut peer = peer("up");
    for (id, path) in (0..).zip(&mut peer.paths) {
        (path.id, path.state) = (id, PathState::Up);
        (path.standby, path.metered) = (false, false);
    }
    peer
}

#[test]
fn measure_says_what_is_missing_before_it_begins() {
    let errors = refused("measure-down.sock", peer("connecting"), &[]);
    assert!(errors.contains(" is connecting, not up\n  help: wait until"), "{errors}");
    let errors = refused("measure-path.sock", both_up(), &["--path", "wlan"]);
    assert!(
        errors.ends_with("there is no path wlan\n  help: the bond's paths are: dsl, lte\n"),
        "{errors}"
    );
    let errors = refused("measure-silent.sock", peer("up"), &["--path", "lte"]);
    assert!(errors.contains("path lte is silent: no answer for 2 s\n  help: "), "{errors}");
    let errors = refused("measure-peer.sock", both_up(), &["--peer", "AAAA"]);
    assert!(errors.contains("no peer has this key\n  help: the peers are: 3p7b"), "{errors}");
    let errors = refused("measure-clean.sock", both_up(), &["--clean", "/nonexistent.json"]);
    assert!(errors.contains("/nonexistent.json is no earlier measurement: "), "{errors}");
}

#[test]
fn measure_announces_what_it_takes_and_asks_before_metered_paths() {
    let mut metered = both_up();
    metered.paths[1].metered = true;
    let errors = refused("measure-metered.sock", metered.clone(), &["--max-bytes", "200 MB"]);
    let lines: Vec<_> = errors.lines().collect();
    assert!(lines[0].ends_with("dsl and lte each alone, all at once, then the bond; download"));
    assert_eq!(lines[1], "takes 1 min 3 s and up to 200.0 MB over all links, at most");
    assert_eq!(lines[2], "plait: error: path lte is metered, and nobody can be asked");
    assert!(lines[3].contains("--yes"), "{errors}");
    // A path that stands by is neither measured nor used.
    metered.paths[1].standby = true;
    let old = r#"{"error":"unknown request: expected status"}"#.to_owned();
    let gateway = Gateway::answering("measure-old.sock", vec![answer(vec![metered]), old]);
    let (output, requests) = gateway.asked_for("measure", &["--seconds", "2"]);
    let errors = text(&output.stderr);
    assert_eq!(requests[1], format!("measure begin {BOB_PUBLIC} 19\n"));
    assert!(errors.contains("\ntakes 19 s and up to 1.0 GB"), "{errors}");
    assert!(errors.contains("\npath lte is left out: it stands by\n"), "{errors}");
    assert!(errors.contains("help: it may be another version of plait"), "{errors}");
}

#[test]
fn measure_refuses_times_and_amounts_that_make_no_sense() {
    for arguments in [["--seconds", "0"], ["--seconds", "41"], ["--max-bytes", "1 kB"]] {
        let output = run(&["measure", "--socket", "/x", arguments[0], arguments[1]], "");
        assert!(text(&output.stderr).contains(arguments[0]), "{output:?}");
        assert_eq!(output.status.code(), Some(2));
    }
    let output = run(&["measure", "--bonded-only", "--path", "dsl"], "");
    assert!(text(&output.stderr).contains("cannot be used with"), "{output:?}");
}
