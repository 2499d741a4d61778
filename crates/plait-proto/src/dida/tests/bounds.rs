//! The bounds: flows, bytes, packets of a flow, time.

use super::*;

/// Bytes of an IPv4 ACK with one SACK block.
const ACK_BYTES: usize = 52;

#[test]
fn a_flow_that_holds_too_many_is_released() {
    let stats = golden(
        DidaConfig { held_packets_per_flow_max: 2, ..fixed() },
        "data 0-9     ->
         ack 1 [2-3]  -> 1
         ack 1 [2-4]  -> 1
         ack 1 [2-5]  -> 1
         ack 1 [2-6]  -> held
         ack 1 [2-7]  -> held
         ack 1 [2-8]  -> 1[2-6] 1[2-7] 1[2-8]
         ack 1 [2-9]  -> 1[2-9]
         wait 500     ->",
    );
    assert_eq!((stats.held_ends.overflowed, stats.gaps_given_up), (2, 1));
    assert_eq!(stats.forwarded.released_duplicate, 2);
}

#[test]
fn bounds_of_zero_hold_nothing() {
    let script = "data 0-9     ->
         ack 1        -> 1
         ack 1        -> 1
         ack 1        -> 1
         ack 1        -> 1
         wait 500     ->";
    let stats = golden(DidaConfig { held_packets_per_flow_max: 0, ..fixed() }, script);
    assert_eq!(stats.forwarded.unheld_duplicate, 1);
    golden(DidaConfig { held_bytes_max: 0, ..fixed() }, script);
    let stats = golden(DidaConfig { flows_max: 0, ..fixed() }, script);
    assert_eq!((stats.flows, stats.forwarded.unknown_flow, stats.data_segments), (0, 4, 9));
}

/// Several flows of one node, told apart by their ports.
struct Many {
    case: Case,
}

impl Many {
    fn new(config: DidaConfig) -> Self {
        Self { case: Case::new(config, false) }
    }

    fn of(&mut self, port: u16, line: &str) -> Vec<String> {
        self.case.flow = flow_of(false, port);
        self.case.line(line);
        core::mem::take(&mut self.case.up)
    }

    /// Four duplicates with SACK blocks, the last of them held.
    fn open_gap(&mut self, port: u16) {
        for line in ["data 0-9", "ack 1", "ack 1 [2-3]", "ack 1 [2-4]", "ack 1 [2-5]"] {
            self.of(port, line);
        }
        let gap = self.case.dida.table.peek(&flow_of(false, port));
        assert!(self.case.dida.table.flow(gap.expect("known")).gap.is_some());
    }
}

/// When all flows together keep too much, the gap whose hold ends first goes.
#[test]
fn the_bytes_of_all_flows_are_bounded() {
    let mut many = Many::new(DidaConfig { held_bytes_max: 3 * ACK_BYTES, ..fixed() });
    for port in 1..=3 {
        many.open_gap(port);
        many.case.wait(MS);
    }
    let stats = many.case.dida.stats();
    assert_eq!((stats.kept_now_bytes, stats.held_now), (3 * ACK_BYTES as u64, 3));
    assert_eq!(many.of(3, "ack 1 [2-6]"), ["1[2-5]", "held"], "of flow 1, then flow 3's");
    assert_eq!(many.of(1, "ack 1 [2-6]"), ["1[2-6]"], "flow 1 is left alone");
    assert_eq!(many.of(2, "ack 1 [2-6]"), ["1[2-5]", "1[2-6]"], "its own gap was the oldest");
    let stats = many.case.dida.stats();
    assert_eq!((stats.kept_peak_bytes, stats.held_ends.overflowed), (3 * ACK_BYTES as u64, 2));
}

/// The flow longest without a packet makes room, and what it held goes on.
#[test]
fn flows_are_bounded_oldest_first_out() {
    let mut many = Many::new(DidaConfig { flows_max: 2, ..fixed() });
    many.open_gap(1);
    many.open_gap(2);
    many.of(1, "ack 1 [2-6]");
    assert_eq!(many.of(3, "data 0-1"), ["1[2-5]"], "flow 2's");
    assert_eq!(many.of(2, "ack 1 [2-6]"), ["1[2-6]"], "it is not known any more");
    assert_eq!(many.of(1, "ack 1 [2-7]"), ["held"]);
    let stats = many.case.dida.stats();
    assert_eq!((stats.flows, stats.flows_total, stats.flows_evicted), (2, 3, 1));
    assert_eq!((stats.held_ends.evicted, stats.forwarded.unknown_flow), (1, 1));
}

#[test]
fn floods_from_clients_make_no_state() {
    let mut many = Many::new(fixed());
    for port in 1..=1000 {
        assert_eq!(many.of(port, "ack 7 [8-9]"), ["7[8-9]"]);
    }
    let stats = many.case.dida.stats();
    assert_eq!((stats.flows_total, stats.forwarded.unknown_flow), (0, 1000));
    assert_eq!(many.case.dida.poll_timeout(), None);
}

#[test]
fn idle_flows_are_forgotten() {
    let mut many = Many::new(DidaConfig { idle: Duration::from_secs(10), ..fixed() });
    many.of(1, "data 0-9");
    many.of(1, "wait 6000");
    many.of(2, "data 0-9");
    many.of(2, "wait 6000");
    assert_eq!(many.case.dida.stats().flows, 1);
    many.of(2, "ack 1");
    many.of(2, "wait 9999");
    assert_eq!(many.case.dida.stats().flows, 1, "an ACK keeps it");
    many.of(2, "wait 1");
    let stats = many.case.dida.stats();
    assert_eq!((stats.flows, stats.flows_idle), (0, 2));
    assert_eq!(many.case.dida.poll_timeout(), None);
}

#[test]
fn smaller_bounds_release_what_is_too_much() {
    let mut many = Many::new(fixed());
    for port in 1..=3 {
        many.open_gap(port);
        many.case.wait(MS);
    }
    let now = many.case.now;
    many.case.dida.reconfigure(now, DidaConfig { flows_max: 2, ..fixed() });
    many.case.dida.reconfigure(now, DidaConfig { held_bytes_max: ACK_BYTES, ..fixed() });
    many.case.drain();
    assert_eq!(many.case.up, ["1[2-5]", "1[2-5]"]);
    let stats = many.case.dida.stats();
    assert_eq!((stats.flows, stats.held_now, stats.kept_now_bytes), (2, 1, ACK_BYTES as u64));
}

/// What is not TCP, or hardly, goes on and makes no state.
#[test]
fn malformed_packets_go_on() {
    let mut case = Case::new(fixed(), false);
    case.line("data 0-9");
    let whole = acknowledgement(case.flow, 1, &["[2-3]"]);
    let mut fragment = whole.clone();
    fragment[6] = 0x20;
    let mut bad_options = whole.clone();
    bad_options[43] = 0;
    let short = whole[..30].to_vec();
    for packet in [Vec::new(), vec![0], short, fragment, bad_options] {
        let mut after = packet.clone();
        case.dida.handle_downstream(case.now, &packet);
        assert_eq!(case.dida.handle_upstream(case.now, &mut after), Upstream::Forward);
        assert_eq!(after, packet);
    }
    let stats = case.dida.stats();
    assert_eq!((stats.forwarded.not_tcp, stats.flows, stats.gaps), (5, 1, 0));
}

/// The measured delay difference is its client's, and lengthens the hold.
#[test]
fn the_hold_follows_the_clients_delay_difference() {
    let config = DidaConfig { hold: HoldPolicy::DelayDifference, ..DidaConfig::default() };
    let mut case = Case::new(config, true);
    case.data(0, 9);
    let hold = |case: &Case| {
        let estimate = case.dida.estimate(case.now, &case.flow).expect("known");
        estimate.hold_us
    };
    assert_eq!(hold(&case), 50_000, "half of the round trip that is assumed at first");
    case.dida.set_delay_difference(case.flow.destination, 23 * MS);
    case.dida.set_delay_difference(case.flow.source, 99 * MS);
    assert_eq!(hold(&case), 23_000);
    case.dida.forget_client(case.flow.destination);
    assert_eq!(hold(&case), 50_000);
}
