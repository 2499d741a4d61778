//! Golden scripts: what goes in, and what goes on because of it.
//!
//! Each line is an operation and, behind an arrow, what went up because of it, in order. Sequence
//! numbers count segments of 1000 bytes from just below the wrap. `data 0-5` are five segments to
//! the client; `ack 3 [5-6]` is an ACK with a SACK block from the client, `win` and `len` change
//! its window and payload, and `fin`, `rst`, `syn`, `urg`, `signed` are what they say. `wait 50`
//! lets 50 ms pass. What goes up is written the same way; `held` is a packet that does not.

mod bounds;
mod random;

use core::fmt::Write as _;

use super::*;
use crate::wire::tcp::{SackBlock, TcpFlags, TcpSegment, TcpSeq};

const SEGMENT_BYTES: u32 = 1000;
const WINDOW: u16 = 500;
/// Segments 0 to 4 lie below the wrap of sequence numbers, the rest beyond.
const BASE: TcpSeq = TcpSeq(u32::MAX - 5000);
const MS: Duration = Duration::from_millis(1);

fn seq(segment: u32) -> TcpSeq {
    BASE.plus(segment * SEGMENT_BYTES)
}

fn flow_of(v6: bool, port: u16) -> TcpFlow {
    let (source, destination) = if v6 {
        (IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2]))
    } else {
        (IpAddr::from([192, 0, 2, 1]), IpAddr::from([10, 0, 0, 2]))
    };
    TcpFlow { source, destination, source_port: 443, destination_port: port }
}

/// A hold of 50 ms and otherwise the defaults.
fn fixed() -> DidaConfig {
    let sack = SackHandling::Mask;
    DidaConfig { hold: HoldPolicy::Fixed(50 * MS), sack, ..DidaConfig::default() }
}

fn literal() -> DidaConfig {
    DidaConfig {
        sack: SackHandling::Pass,
        on_gap_filled: GapFilled::Forward,
        released_until: ReleasedUntil::NextAck,
        ..fixed()
    }
}

struct Case {
    dida: Dida,
    now: Instant,
    flow: TcpFlow,
    /// What went up since the last look.
    up: Vec<String>,
}

impl Case {
    fn new(config: DidaConfig, v6: bool) -> Self {
        Self {
            dida: Dida::new(config),
            now: Instant::from_millis(1000),
            flow: flow_of(v6, 5000),
            up: Vec::new(),
        }
    }

    fn data(&mut self, from: u32, to: u32) {
        for segment in from..to {
            let payload = vec![0; SEGMENT_BYTES as usize];
            let packet = TcpSegment::new(self.flow, seq(segment), TcpSeq(1), &payload).to_packet();
            self.dida.handle_downstream(self.now, &packet);
        }
        self.drain();
    }

    fn up(&mut self, mut packet: Vec<u8>) {
        let upstream = self.dida.handle_upstream(self.now, &mut packet);
        self.drain();
        match upstream {
            Upstream::Forward => self.up.push(words(&packet)),
            Upstream::Held => self.up.push("held".to_owned()),
        }
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(due) = self.dida.poll_timeout().filter(|due| *due <= end) {
            self.now = due;
            self.dida.handle_timeout(due);
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(packet) = self.dida.poll_transmit() {
            self.up.push(words(&packet));
        }
    }

    fn line(&mut self, input: &str) {
        let tokens: Vec<&str> = input.split_whitespace().collect();
        match tokens[..] {
            ["data", range] => {
                let (from, to) = self::range(range);
                self.data(from, to);
            }
            ["wait", ms] => self.wait(Duration::from_millis(number(ms))),
            ["stop"] => {
                self.dida.release_all();
                self.drain();
            }
            ["syn-ack"] => {
                let flags = TcpFlags(TcpFlags::SYN | TcpFlags::ACK);
                let syn = TcpSegment { flags, ..TcpSegment::new(self.flow, seq(0), seq(0), &[]) };
                self.dida.handle_downstream(self.now, &syn.to_packet());
                self.drain();
            }
            ["ack", ack, ref rest @ ..] => self.up(acknowledgement(self.flow, number(ack), rest)),
            _ => panic!("no operation: {input}"),
        }
    }
}

fn number<T: core::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

fn range(text: &str) -> (u32, u32) {
    let (from, to) = text.split_once('-').expect("FROM-TO");
    (number(from), number(to))
}

/// A packet from the client.
fn acknowledgement(flow: TcpFlow, ack: u32, words: &[&str]) -> Vec<u8> {
    let mut blocks = Vec::new();
    let mut payload = Vec::new();
    let mut segment = TcpSegment::new(flow.reversed(), TcpSeq(1), seq(ack), &[]);
    segment.window = WINDOW;
    let mut is_signed = false;
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "win" => segment.window = number(words.next().expect("a window")),
            "len" => payload.resize(number(words.next().expect("a length")), 0),
            "fin" => segment.flags.0 |= TcpFlags::FIN,
            "rst" => segment.flags.0 |= TcpFlags::RST,
            "syn" => segment.flags.0 |= TcpFlags::SYN,
            "urg" => segment.flags.0 |= TcpFlags::URG,
            "signed" => is_signed = true,
            block => {
                let (left, right) = range(block.trim_matches(['[', ']']));
                blocks.push(SackBlock { left: seq(left), right: seq(right) });
            }
        }
    }
    let mut packet = TcpSegment { sack: &blocks, payload: &payload, ..segment }.to_packet();
    if is_signed {
        // Stands where the payload was: a signature of any value, as nobody checks it.
        assert!(payload.len() == 4 && blocks.is_empty());
        let at = packet.len() - 4;
        packet[at..].copy_from_slice(&[29, 4, 0, 0]);
        packet[at - 20 + 12] = 6 << 4;
    }
    packet
}

/// A packet from the client as scripts write it.
fn words(packet: &[u8]) -> String {
    let read = TcpPacket::read(packet).expect("what goes up is well formed");
    let segment = |seq: TcpSeq| seq.since(BASE) / SEGMENT_BYTES;
    let mut words = segment(read.ack()).to_string();
    for block in read.sack_blocks() {
        write!(words, "[{}-{}]", segment(block.left), segment(block.right)).expect("a text");
    }
    if read.window() != WINDOW {
        write!(words, "w{}", read.window()).expect("a text");
    }
    if read.payload_bytes() > 0 {
        write!(words, "+{}", read.payload_bytes()).expect("a text");
    }
    for (flag, name) in [
        (TcpFlags::FIN, "fin"),
        (TcpFlags::RST, "rst"),
        (TcpFlags::SYN, "syn"),
        (TcpFlags::URG, "urg"),
    ] {
        if read.flags().any(flag) {
            words.push_str(name);
        }
    }
    words
}

/// Runs a script over both versions of IP; every line must have the effect that it says.
fn golden(config: DidaConfig, script: &str) -> DidaStats {
    let run = |v6| {
        let mut case = Case::new(config, v6);
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (input, expected) = line.split_once("->").expect("INPUT -> OUTPUT");
            case.line(input);
            let found = core::mem::take(&mut case.up).join(" ");
            assert_eq!(found, expected.trim(), "after `{}` (IPv6: {v6})", input.trim());
        }
        case.dida.stats()
    };
    let (v4, v6) = (run(false), run(true));
    let DidaStats { kept_now_bytes, kept_peak_bytes, .. } = v4;
    assert_eq!(v4, DidaStats { kept_now_bytes, kept_peak_bytes, ..v6 }, "but for the headers");
    v4
}

fn ripening() -> DidaConfig {
    DidaConfig { sack: SackHandling::Ripen, ..fixed() }
}

#[test]
fn after_a_hold_the_sender_learns_what_was_received_a_holding_time_ago() {
    let stats = golden(
        ripening(),
        "data 0-20         ->
         ack 1             -> 1
         ack 1 [2-3]       -> 1
         ack 1 [2-4]       -> 1
         wait 10           ->
         ack 1 [6-7] [2-4] -> held
         wait 40           -> 1[2-4]
         ack 1 [6-8] [2-4] -> 1[2-4]
         wait 10           ->
         ack 1 [2-9]       -> 1[2-7]
         wait 49           ->
         wait 1            -> 1[2-9]
         ack 20            -> 20
         wait 500          ->",
    );
    assert_eq!((stats.held, stats.held_ends.expired, stats.gaps_expired), (1, 1, 1));
    assert_eq!((stats.masked, stats.ripened, stats.unmasked), (2, 2, 1));
    assert_eq!(stats.kept_now_bytes, 0);
}

#[test]
fn what_is_not_ripe_is_forgotten_when_the_gap_fills() {
    let stats = golden(
        ripening(),
        "data 0-20   ->
         ack 1       -> 1
         ack 1 [2-3] -> 1
         wait 50     -> 1[2-3]
         ack 1 [2-5] -> 1[2-3]
         ack 5       -> 5
         wait 500    ->",
    );
    assert_eq!((stats.unmasked, stats.kept_now_bytes), (1, 0), "the one of the gap alone");
}

#[test]
fn a_report_of_duplicates_is_told_alone() {
    let stats = golden(
        ripening(),
        "data 0-20         ->
         ack 5             -> 5
         ack 5 [2-3]       -> 5[2-3]
         ack 5 [2-3] [7-8] -> 5[2-3]
         wait 50           -> 5[2-3][7-8]",
    );
    assert_eq!((stats.held, stats.masked), (0, 1));
}

#[test]
fn duplicates_from_the_third_on_are_held_and_discarded_when_the_gap_fills() {
    let stats = golden(
        fixed(),
        "data 0-12 ->
         ack 1     -> 1
         ack 1     -> 1
         ack 1     -> 1
         ack 1     -> held
         ack 1     -> held
         wait 49   ->
         ack 8     -> 8
         wait 100  ->
         ack 8     -> 8
         ack 8     -> 8
         ack 8     -> held
         ack 12    -> 12",
    );
    assert_eq!((stats.held, stats.held_ends.discarded, stats.held_now), (3, 3, 0));
    assert_eq!((stats.gaps, stats.gaps_filled, stats.gap_max_us), (2, 2, 49_000));
    assert_eq!((stats.forwarded.advancing, stats.forwarded.early_duplicate), (3, 4));
}

#[test]
fn the_literal_form_forwards_what_was_held_before_the_ack_that_advances() {
    let stats = golden(
        literal(),
        "data 0-12       ->
         ack 1           -> 1
         ack 1 [2-3]     -> 1[2-3]
         ack 1 [2-4]     -> 1[2-4]
         ack 1 [2-5]     -> held
         ack 1 [2-6]     -> held
         ack 6           -> 1[2-5] 1[2-6] 6",
    );
    assert_eq!((stats.held_ends.forwarded, stats.held_ends.discarded, stats.masked), (2, 0, 0));
}

/// The timer starts with the third duplicate, or with what was masked before it.
#[test]
fn a_hold_ends_with_its_timer() {
    golden(
        fixed(),
        "data 0-12 ->
         ack 1     -> 1
         ack 1     -> 1
         wait 30   ->
         ack 1     -> 1
         ack 1     -> held
         wait 30   ->
         ack 1     -> held
         wait 19   ->
         wait 1    -> 1 1
         ack 1     -> 1
         wait 500  ->",
    );
    let stats = golden(
        fixed(),
        "data 0-12   ->
         ack 1       -> 1
         ack 1 [2-3] -> 1
         wait 30     ->
         ack 1 [2-4] -> 1
         ack 1 [2-5] -> held
         wait 19     ->
         wait 1      -> 1[2-5]
         ack 1 [2-6] -> 1[2-6]",
    );
    assert_eq!((stats.gaps_expired, stats.held_ends.expired, stats.unmasked), (1, 1, 0));
    assert_eq!((stats.forwarded.released_duplicate, stats.hold_us), (1, 50_000));
}

/// After an expiry nothing is held until all is acknowledged that had been sent by then.
#[test]
fn a_release_lasts_to_the_recovery_point() {
    golden(
        fixed(),
        "data 0-10   ->
         ack 1       -> 1
         ack 1 [2-3] -> 1
         wait 50     -> 1[2-3]
         data 10-20  ->
         ack 5 [6-7] -> 5[6-7]
         ack 5 [6-8] -> 5[6-8]
         ack 5 [6-9] -> 5[6-9]
         ack 5 [6-9] -> 5[6-9]
         ack 9       -> 9
         ack 10 [11-12] -> 10
         ack 10 [11-13] -> 10
         ack 10 [11-14] -> 10
         ack 10 [11-15] -> held",
    );
}

#[test]
fn the_literal_release_lasts_to_the_next_advance() {
    golden(
        DidaConfig { sack: SackHandling::Mask, ..literal() },
        "data 0-10   ->
         ack 1       -> 1
         ack 1       -> 1
         ack 1       -> 1
         ack 1       -> held
         wait 50     -> 1
         ack 1 [2-3] -> 1[2-3]
         ack 5 [6-7] -> 5
         ack 5 [6-8] -> 5
         ack 5 [6-9] -> 5
         ack 5 [6-9] -> held",
    );
}

/// An advancing ACK whose blocks show the next gap is masked, and its own timer begins.
#[test]
fn advancing_acks_do_not_betray_the_next_gap() {
    let stats = golden(
        fixed(),
        "data 0-20        ->
         ack 1 [2-3]      -> 1
         wait 40          ->
         ack 3 [4-6]      -> 3
         wait 40          ->
         ack 6 [7-8]      -> 6
         wait 49          ->
         wait 1           -> 6[7-8]
         ack 6 [7-9]      -> 6[7-9]",
    );
    assert_eq!((stats.masked, stats.unmasked), (3, 1));
    assert_eq!((stats.gaps, stats.gaps_filled, stats.gaps_expired), (3, 2, 1));
    assert_eq!(stats.forwarded.advancing, 3);
}

#[test]
fn what_was_masked_last_is_owed() {
    golden(
        fixed(),
        "data 0-20             ->
         ack 1                 -> 1
         ack 1 [2-3]           -> 1
         ack 1 [2-4]           -> 1
         wait 50               -> 1[2-4]",
    );
    // A window update that came after the last held duplicate knows more than it.
    golden(
        fixed(),
        "data 0-20             ->
         ack 1                 -> 1
         ack 1 [2-3]           -> 1
         ack 1 [2-4]           -> 1
         ack 1 [2-5]           -> held
         ack 1 [2-6] win 900   -> 1w900
         wait 50               -> 1[2-5] 1[2-6]w900",
    );
    golden(
        fixed(),
        "data 0-20             ->
         ack 1                 -> 1
         ack 1 [2-3]           -> 1
         ack 1 [2-4]           -> 1
         ack 1 [2-5] win 900   -> 1w900
         ack 1 [2-6] win 900   -> held
         wait 50               -> 1[2-6]w900",
    );
}

/// Data, flags, signatures, reports of duplicates and window updates go on at once, and none of
/// them counts as a duplicate.
#[test]
fn what_is_no_plain_duplicate_is_never_held() {
    let stats = golden(
        fixed(),
        "data 0-20               ->
         ack 3                   -> 3
         ack 3                   -> 3
         ack 3                   -> 3
         ack 3                   -> held
         ack 3 len 5             -> 3+5
         ack 3 len 5 [4-5]       -> 3[4-5]+5
         ack 3 fin               -> 3fin
         ack 3 syn               -> 3syn
         ack 3 urg               -> 3urg
         ack 3 rst               -> 3rst
         ack 3 len 4 signed      -> 3
         ack 3 [1-2]             -> 3[1-2]
         ack 3 [5-6] [4-7]       -> 3[5-6][4-7]
         ack 3 win 0             -> 3w0
         ack 3 win 800           -> 3w800
         ack 3                   -> 3
         ack 2 [4-5]             -> 2[4-5]
         ack 21                  -> 21
         ack 3                   -> held
         ack 4                   -> 4",
    );
    let forwarded = stats.forwarded;
    assert_eq!((forwarded.data, forwarded.flagged, forwarded.signed), (2, 4, 1));
    assert_eq!((forwarded.dsack, forwarded.window_update, forwarded.old), (2, 3, 1));
    assert_eq!((forwarded.beyond_sent, stats.held), (1, 2));
}

/// What acknowledges everything asks for nothing: the answer to a keep-alive, for instance.
#[test]
fn nothing_is_held_while_nothing_is_outstanding() {
    let stats = golden(
        fixed(),
        "data 0-5 ->
         ack 5    -> 5
         ack 5    -> 5
         ack 5    -> 5
         ack 5    -> 5
         data 5-9 ->
         ack 5    -> 5
         ack 5    -> 5
         ack 5    -> held",
    );
    assert_eq!(stats.forwarded.nothing_outstanding, 3);
}

/// Data of the client acknowledges too.
#[test]
fn data_of_the_client_fills_a_gap() {
    golden(
        fixed(),
        "data 0-9           ->
         ack 1              -> 1
         ack 1 [2-3]        -> 1
         ack 1 [2-4]        -> 1
         ack 1 [2-5]        -> held
         ack 5 len 7 [6-7]  -> 5[6-7]+7
         wait 100           ->
         ack 5 [6-7]        -> 5",
    );
}

#[test]
fn off_forwards_everything_as_it_is() {
    let stats = golden(
        DidaConfig { hold: HoldPolicy::Off, ..fixed() },
        "data 0-9     ->
         ack 1 [2-3]  -> 1[2-3]
         ack 1 [2-4]  -> 1[2-4]
         ack 1 [2-5]  -> 1[2-5]
         ack 1 [2-6]  -> 1[2-6]
         wait 500     ->",
    );
    assert_eq!((stats.gaps, stats.forwarded.unheld_duplicate), (0, 1));
}

/// The node may begin in the middle: no SYN, and an ACK that is older than all data seen.
#[test]
fn a_flow_is_met_in_the_middle() {
    let stats = golden(
        fixed(),
        "ack 3       -> 3
         data 9-12   ->
         ack 4       -> 4
         ack 4       -> 4
         ack 4       -> 4
         ack 4       -> held
         ack 9       -> 9",
    );
    assert_eq!((stats.forwarded.unknown_flow, stats.flows_total, stats.flows), (1, 1, 1));
}

/// An ACK of what was never sent teaches nothing, whenever it comes.
#[test]
fn a_forged_ack_changes_nothing() {
    let stats = golden(
        fixed(),
        "data 0-5         ->
         ack 999          -> 999
         ack 1            -> 1
         ack 6            -> 6
         ack 1            -> 1
         ack 1            -> 1
         ack 1            -> held
         ack 1200000      -> 1200000
         ack 5            -> 5",
    );
    assert_eq!((stats.forwarded.beyond_sent, stats.held_ends.discarded), (3, 1));
}

#[test]
fn a_new_connection_between_the_same_ports_begins_anew() {
    let stats = golden(
        fixed(),
        "data 0-9        ->
         ack 1           -> 1
         ack 1 [2-3]     -> 1
         ack 1 [2-4]     -> 1
         ack 1 [2-5]     -> held
         syn-ack         -> 1[2-5]
         ack 1           -> 1
         data 1500000-1500004 ->
         ack 1500001     -> 1500001
         data 0-4        ->
         ack 1           -> 1
         wait 500        ->",
    );
    assert_eq!((stats.flows_replaced, stats.flows, stats.held_ends.evicted), (2, 1, 1));
}

/// A packet that comes before an overdue timer was served finds it served.
#[test]
fn an_overdue_hold_ends_with_the_next_packet() {
    let mut case = Case::new(fixed(), false);
    for line in ["data 0-9", "ack 1", "ack 1", "ack 1", "ack 1"] {
        case.line(line);
    }
    case.now += 60 * MS;
    case.up.clear();
    case.line("ack 1");
    assert_eq!(case.up, ["1", "1"], "the held one first");
}

#[test]
fn retransmissions_are_counted_and_end_no_hold() {
    let stats = golden(
        fixed(),
        "data 0-9  ->
         ack 1     -> 1
         ack 1     -> 1
         ack 1     -> 1
         ack 1     -> held
         data 1-2  ->
         ack 1     -> held
         ack 9     -> 9",
    );
    assert_eq!((stats.data_segments, stats.retransmissions), (10, 1));
}

#[test]
fn a_stop_releases_everything() {
    let stats = golden(
        fixed(),
        "data 0-9     ->
         ack 1 [2-3]  -> 1
         ack 1 [2-4]  -> 1
         ack 1 [2-5]  -> 1
         ack 1 [2-6]  -> held
         stop         -> 1[2-6]
         ack 1 [2-7]  -> 1[2-7]",
    );
    assert_eq!((stats.held_ends.stopped, stats.held_now, stats.kept_now_bytes), (1, 0, 0));
}
