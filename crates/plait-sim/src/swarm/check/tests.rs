use super::*;
use plait_proto::config::{LossDetection, RekeyLimits};
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::Algorithm;

fn bonds(order: Order, late: LatePolicy) -> [BondConfig; 2] {
    let bond = BondConfig {
        scheduler: Algorithm::MinRtt.into(),
        congestion: None,
        order,
        unordered: plait_proto::wire::dscp::Dscps::default(),
        resequencer: ResequencerConfig { late, ..ResequencerConfig::default() },
        loss_detection: LossDetection::Known,
        report_interval: Duration::from_millis(50),
        inner_mtu: 1440,
        rekey: RekeyLimits::default(),
        release: None,
    };
    [bond.clone(), bond]
}

fn ledger(order: Order, late: LatePolicy) -> Ledger {
    Ledger::new(0, 2, &bonds(order, late), 1)
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn checker(result: Result<(), Violation>) -> &'static str {
    result.expect_err("a violation").checker
}

#[test]
fn what_was_sent_may_come_out_once() {
    let mut ledger = ledger(Order::Flow, LatePolicy::Drop);
    let packet = ledger.send(at(0), 0, 300).to_vec();
    assert_eq!(packet.len(), 300);
    ledger.delivered(at(1), &packet).unwrap();
    assert_eq!(checker(ledger.delivered(at(2), &packet)), "duplicate");
}

#[test]
fn a_changed_a_foreign_and_an_unsent_packet_are_seen() {
    let mut ledger = ledger(Order::Flow, LatePolicy::Drop);
    let packet = ledger.send(at(0), 0, 300).to_vec();
    for place in [0, 21, 30, 40, 299] {
        let mut changed = packet.clone();
        changed[place] ^= 1;
        assert_eq!(checker(ledger.delivered(at(1), &changed)), "conservation");
    }
    assert_eq!(checker(ledger.delivered(at(1), &packet[..299])), "conservation");
    assert_eq!(checker(ledger.delivered(at(1), &[])), "conservation");
    let mut other = Ledger::new(1, 2, &bonds(Order::Flow, LatePolicy::Drop), 1);
    let wrong_way = other.send(at(0), 0, 300).to_vec();
    assert_eq!(checker(ledger.delivered(at(1), &wrong_way)), "conservation");
}

#[test]
fn order_is_held_where_it_was_asked_for() {
    let cases = [
        (Order::Flow, LatePolicy::Drop, 0, true),
        (Order::Flow, LatePolicy::Drop, 1, false),
        (Order::Bond, LatePolicy::Drop, 1, true),
        (Order::Flow, LatePolicy::Deliver, 0, false),
        (Order::None, LatePolicy::Drop, 0, false),
    ];
    for (order, late, second_flow, is_wrong) in cases {
        let mut ledger = ledger(order, late);
        let first = ledger.send(at(0), 0, 100).to_vec();
        let second = ledger.send(at(0), second_flow, 100).to_vec();
        ledger.delivered(at(1), &second).unwrap();
        let result = ledger.delivered(at(1), &first);
        assert_eq!(result.is_err(), is_wrong, "{order:?} {late:?} flow {second_flow}");
    }
}

#[test]
fn a_packet_out_of_the_past_is_seen() {
    let mut ledger = ledger(Order::None, LatePolicy::Drop);
    let packet = ledger.send(at(0), 0, 100).to_vec();
    assert_eq!(checker(ledger.delivered(at(30_000), &packet)), "waiting");
    ledger.send(at(60_000), 0, 100);
    assert_eq!(checker(ledger.delivered(at(60_000), &packet)), "conservation");
}

#[test]
fn missing_packets_are_counted_within_their_span() {
    let mut ledger = ledger(Order::None, LatePolicy::Drop);
    for ms in [0, 10, 20, 30] {
        ledger.send(at(ms), 0, 100);
    }
    assert_eq!(ledger.missing(at(10), at(20)), 2);
}

#[test]
fn a_timer_that_stands_still_is_seen() {
    let mut watch = TimerWatch::default();
    for _ in 0..4 {
        watch.called(at(1)).unwrap();
    }
    assert_eq!(checker(watch.called(at(1))), "timer");
    let mut watch = TimerWatch::default();
    let hasty = (0..60).try_for_each(|step| watch.called(Instant::from_nanos(1000 + step)));
    assert_eq!(checker(hasty), "timer");
}

#[test]
fn chatter_is_held_against_the_load() {
    let mut chatter = Chatter { taken: 100, out: 1000, ..Chatter::default() };
    assert_eq!(checker(chatter.close(at(0), 2, 3, 0)), "chatter");
    let mut chatter = Chatter { taken: 1000, out: 1000, ..Chatter::default() };
    chatter.close(at(0), 2, 3, 0).unwrap();
    assert_eq!((chatter.out, chatter.last), (0, [1000, 0]));
}
