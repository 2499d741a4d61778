//! Each controller's fixed-point core against the controller of the same name in `plait-proto`, on
//! the same recorded events. The core runs outside the kernel, in the program `replay.c`.
//!
//! A segment has 1024 bytes here, which are the core's units, so both sides count alike.
//! `whitehaul` and `edinburgh` know only whole factors: both sides agree to the last unit. The
//! others compute growth in `f64` here and in 2^-24 or 2^-30 there: a window may then grow one
//! acknowledgement earlier or later, so for that long it may differ by a segment. `illinois`
//! forgets with each growth what was left over, so there the segment may stay until a reduction.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use plait_proto::congestion::{
    AckSample, Algorithm, Controller, ControllerConfig, Episode, Loss, PacketState, Phase, Rto,
    Sent, Sibling, Spurious, Start,
};
use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;
use proptest::prelude::*;

const SEGMENT: u64 = 1024;
/// A larger window is answered with a loss, so that it stays in the core's bounds.
const WINDOW_MAX: u64 = 40_000 * SEGMENT;
/// One case in which the two stay a segment apart to its end is more than a thousandth of 10^5
/// events.
const CASES: u32 = 300;
const EVENTS_PER_CASE: usize = 1_000;

/// What happens next to a sender.
#[derive(Clone, Debug)]
enum Event {
    Ack(Ack),
    /// What part of the window, in 256ths, was in flight at the loss.
    Loss {
        flight: u8,
    },
    /// Whether nothing is taken to be in flight any more.
    Timeout {
        is_new: bool,
        all_lost: bool,
    },
    Spurious,
}

#[derive(Clone, Debug)]
struct Ack {
    wait_us: u32,
    /// Part of what is in flight, in 256ths.
    part: u8,
    rtt_us: Option<u32>,
    srtt_us: u32,
    app_limited: bool,
    siblings: Vec<(u32, u32, u32)>,
}

fn ack() -> impl Strategy<Value = Ack> {
    // A queue of a few milliseconds, of many, and times that make no sense.
    let rtt_us =
        prop_oneof![20_000..25_000u32, 20_000..140_000u32, 20_000..22_000u32, 1..5_000_000u32];
    let rtt = prop::option::weighted(0.95, rtt_us);
    let window = prop_oneof![1..200u32 * 1024, 1..20_000_000u32];
    let srtt = || prop_oneof![15_000..60_000u32, 15_000..60_000u32, 0..2_000_000u32];
    let gap = prop_oneof![Just(0u32), 1..100_000_000u32];
    let siblings = prop::collection::vec((window, srtt(), gap), 0..4);
    let wait = prop_oneof![10 => 100..30_000u32, 1 => 0..12_000_000u32];
    (wait, any::<u8>(), rtt, srtt(), prop::bool::weighted(0.05), siblings).prop_map(
        |(wait_us, part, rtt_us, srtt_us, app_limited, siblings)| Ack {
            wait_us,
            part: part / 4,
            rtt_us,
            srtt_us,
            app_limited,
            siblings,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let timeout = any::<(bool, bool)>();
    let timeout = timeout.prop_map(|(is_new, all_lost)| Event::Timeout { is_new, all_lost });
    prop_oneof![
        200 => ack().prop_map(Event::Ack),
        4 => any::<u8>().prop_map(|flight| Event::Loss { flight }),
        1 => timeout,
        1 => Just(Event::Spurious),
    ]
}

/// A sender that keeps its window full.
struct Sender {
    controller: Box<dyn Controller>,
    now_us: u64,
    sent: u64,
    acked: u64,
    phase: Phase,
    /// What had been sent when the episode began.
    episode_end: u64,
    record: String,
    windows: Vec<(u64, u64)>,
}

impl Sender {
    fn new(algorithm: Algorithm) -> Self {
        Self {
            controller: ControllerConfig::from(algorithm).build(Start::ten_segments(SEGMENT)),
            now_us: 0,
            sent: 0,
            acked: 0,
            phase: Phase::Open,
            episode_end: 0,
            record: String::new(),
            windows: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_us * 1_000)
    }

    fn in_flight(&self) -> u64 {
        self.sent - self.acked
    }

    fn take(&mut self, event: &Event) {
        let window = self.controller.window();
        match event {
            Event::Ack(_) if window > WINDOW_MAX => self.lose(window),
            Event::Ack(ack) => self.acknowledge(ack),
            Event::Loss { flight } => self.lose(window * u64::from(*flight) / 256),
            Event::Timeout { is_new, all_lost } => self.time_out(*is_new, *all_lost),
            Event::Spurious => {
                self.controller.on_spurious(&Spurious { now: self.now(), window_bytes: 0 });
                self.phase = Phase::Open;
                self.note("U");
            }
        }
    }

    fn note(&mut self, line: &str) {
        self.record.push_str(line);
        self.record.push('\n');
        self.windows.push((self.controller.window(), self.controller.ssthresh()));
    }

    fn fill(&mut self) {
        let room = self.controller.window().max(SEGMENT).saturating_sub(self.in_flight());
        let bytes = room / SEGMENT * SEGMENT;
        if bytes > 0 {
            let in_flight_bytes = self.in_flight() + bytes;
            self.sent += bytes;
            self.controller.on_sent(&Sent { now: self.now(), bytes, in_flight_bytes });
        }
    }

    fn acknowledge(&mut self, ack: &Ack) {
        self.fill();
        self.now_us += u64::from(ack.wait_us);
        let segments = self.in_flight() / SEGMENT * u64::from(ack.part) / 256 + 1;
        let acked_bytes = (segments.min(4_000) * SEGMENT).min(self.in_flight());
        self.acked += acked_bytes;
        if self.acked >= self.episode_end {
            self.phase = Phase::Open;
        }
        let micros = |us: u32| Duration::from_micros(us.into());
        let known = |us: u32| (us > 0).then(|| micros(us));
        let siblings = ack.siblings.iter().map(|&(window, srtt, gap)| Sibling {
            window_bytes: window.into(),
            in_flight_bytes: window.into(),
            srtt: known(srtt),
            delivery_rate: Rate::ZERO,
            loss_gap_bytes: gap.into(),
        });
        let siblings: Vec<_> = siblings.collect();
        let newest = PacketState { sent_bytes_total: self.acked, ..PacketState::default() };
        self.controller.on_ack(&AckSample {
            now: self.now(),
            acked_bytes,
            newest,
            in_order: None,
            rtt: ack.rtt_us.map(micros),
            way_back_excess: None,
            srtt: known(ack.srtt_us),
            min_rtt: None,
            in_flight_bytes: self.in_flight(),
            lost_bytes: 0,
            delivery_rate: Rate::ZERO,
            rate_is_app_limited: false,
            app_limited: ack.app_limited,
            phase: self.phase,
            siblings: &siblings,
        });
        let phase = match self.phase {
            Phase::Open => 0,
            Phase::FastRecovery => 1,
            Phase::RtoRecovery => 2,
        };
        let rtt = ack.rtt_us.map_or(-1, i64::from);
        let mut line = format!(
            "A {} {acked_bytes} {} {} {rtt} {} {phase} {} {}",
            self.now_us,
            self.acked as u32,
            self.sent as u32,
            ack.srtt_us,
            u8::from(ack.app_limited),
            siblings.len(),
        );
        for (window, srtt, gap) in &ack.siblings {
            write!(line, " {window} {srtt} {gap}").expect("a text takes all");
        }
        self.note(&line);
    }

    fn lose(&mut self, flight_bytes: u64) {
        self.controller.on_loss(&Loss { now: self.now(), flight_bytes });
        (self.phase, self.episode_end) = (Phase::FastRecovery, self.sent);
        self.note(&format!("L {flight_bytes}"));
    }

    fn time_out(&mut self, is_new: bool, all_lost: bool) {
        let flight_bytes = self.in_flight();
        let in_flight_bytes = if all_lost { 0 } else { flight_bytes / 2 / SEGMENT * SEGMENT };
        let episode = if is_new { Episode::New } else { Episode::Continued };
        let now = self.now();
        self.controller.on_rto(&Rto { now, flight_bytes, in_flight_bytes, episode });
        (self.phase, self.episode_end) = (Phase::RtoRecovery, self.sent);
        let is_new = u8::from(is_new);
        self.note(&format!("T {flight_bytes} {in_flight_bytes} {is_new} {}", self.sent as u32));
    }
}

/// The program around the cores, made once.
fn replay() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let status = Command::new("cc")
            .args(["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(here.join("bpf"))
            .arg("-o")
            .arg(&at)
            .arg(here.join("tests/replay.c"))
            .status();
        assert!(status.expect("cc runs").success(), "replay.c compiles");
        at
    })
}

/// Windows and ssthresh of the core after each event.
fn replayed(name: &str, record: &str) -> Vec<(u64, u64)> {
    let mut child = Command::new(replay())
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("it was piped");
    let record = record.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(record.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("it does not panic").expect("the program reads all");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("numbers");
    let pair = |line: &str| {
        let (window, ssthresh) = line.split_once(' ')?;
        Some((window.parse().ok()?, ssthresh.parse().ok()?))
    };
    text.lines().map(|line| pair(line).expect("two numbers")).collect()
}

/// Of the events of all cases, how many left windows of a different number of segments, and the
/// largest difference, in units.
#[derive(Debug, Default)]
struct Differences {
    events: u64,
    different: u64,
    most: u64,
}

/// Runs both sides on these events.
fn both_sides(algorithm: Algorithm, events: &[Event]) -> (Sender, Vec<(u64, u64)>) {
    let mut sender = Sender::new(algorithm);
    for event in events {
        sender.take(event);
    }
    let core = replayed(algorithm.name(), &sender.record);
    (sender, core)
}

/// Runs both sides on random events.
fn compare(algorithm: Algorithm) -> Differences {
    let differences = std::cell::RefCell::new(Differences::default());
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() };
    let events = prop::collection::vec(event(), EVENTS_PER_CASE);
    let result = proptest::test_runner::TestRunner::new(config).run(&events, |events| {
        let (sender, core) = both_sides(algorithm, &events);
        prop_assert_eq!(core.len(), sender.windows.len(), "an answer to every event");
        let mut sum = differences.borrow_mut();
        for (at, (ours, theirs)) in sender.windows.iter().zip(&core).enumerate() {
            let apart = ours.0.abs_diff(theirs.0);
            prop_assert!(
                apart <= SEGMENT,
                "event {}: {:?} here and {:?} there, after {:?}",
                at,
                ours,
                theirs,
                sender.record.lines().nth(at)
            );
            let in_slow_start = |pair: &(u64, u64)| pair.0 < pair.1;
            sum.events += 1;
            sum.most = sum.most.max(apart);
            let differ = ours.0 / SEGMENT != theirs.0 / SEGMENT
                || in_slow_start(ours) != in_slow_start(theirs);
            sum.different += u64::from(differ);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
    let sum = differences.into_inner();
    println!("{algorithm}: {sum:?}");
    assert!(sum.events >= u64::from(CASES) * EVENTS_PER_CASE as u64);
    sum
}

/// Both sides agree to the last unit.
fn assert_same(algorithm: Algorithm) {
    let sum = compare(algorithm);
    assert_eq!((sum.different, sum.most), (0, 0), "{algorithm}: {sum:?}");
}

/// A window differs by a segment at most, after so many events in a thousand at most.
fn assert_alike(algorithm: Algorithm, per_mille_max: u64) {
    let sum = compare(algorithm);
    assert!(sum.different * 1_000 <= sum.events * per_mille_max, "{algorithm}: {sum:?}");
}

#[test]
fn whitehaul_is_the_same() {
    assert_same(Algorithm::WhiteHaul);
}

#[test]
fn edinburgh_is_the_same() {
    assert_same(Algorithm::Edinburgh);
}

#[test]
fn illinois_is_alike() {
    assert_alike(Algorithm::Illinois, 10);
}

#[test]
fn lia_is_alike() {
    assert_alike(Algorithm::Lia, 1);
}

#[test]
fn olia_is_alike() {
    assert_alike(Algorithm::Olia, 1);
}

#[test]
fn balia_is_alike() {
    assert_alike(Algorithm::Balia, 1);
}

/// An acknowledgement that ended slow start with much of it left was counted with the share that
/// the flow had before: after two timeouts, with a whole window still on its way.
#[test]
fn regression_what_slow_start_leaves_counts_with_the_window_that_it_left() {
    let ack = |part, siblings| {
        let (rtt_us, app_limited) = (Some(20_000), false);
        Event::Ack(Ack { wait_us: 1_000, part, rtt_us, srtt_us: 20_000, app_limited, siblings })
    };
    let timeout = || Event::Timeout { is_new: true, all_lost: true };
    let mut events = vec![ack(63, Vec::new()); 25];
    events.extend([timeout(), ack(0, Vec::new()), timeout(), ack(63, vec![(20_480, 20_000, 0)])]);
    for algorithm in [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia] {
        let (sender, core) = both_sides(algorithm, &events);
        let windows = |pairs: &[(u64, u64)]| pairs.iter().map(|pair| pair.0).collect::<Vec<_>>();
        assert_eq!(windows(&sender.windows), windows(&core), "{algorithm}");
    }
}
