//! ECN through the bond (RFC 6040; spec E-1 to E-4).

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, number, packet};
use plait_proto::drop_reason::DropReason;
use plait_proto::time::Duration;
use plait_proto::wire::ecn::Ecn;

fn with(ecn: Ecn, number: u32) -> Vec<u8> {
    let mut packet = packet(CUSTOMER, 7, number);
    ecn.write(&mut packet);
    packet
}

/// What becomes of packets with these fields when the links' routers write `rewrites` outside.
fn through(rewrites: Option<Ecn>, fields: &[Ecn]) -> (Pair, Vec<(u32, Ecn)>) {
    let mut pair = Pair::connected(Setup::default());
    for link in &mut pair.links {
        link.rewrites = rewrites;
    }
    let packets: Vec<_> = (0..).zip(fields).map(|(n, ecn)| with(*ecn, n)).collect();
    pair.send(CUSTOMER, &packets);
    pair.run_for(Duration::from_secs(1));
    let delivered = pair.delivered[PROVIDER].iter();
    let delivered = delivered.map(|packet| (number(packet), Ecn::of(packet))).collect();
    (pair, delivered)
}

const FIELDS: [Ecn; 4] = [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1, Ecn::Ce];

/// Spec E-1, E-2: outside what is inside, and inside it stays.
#[test]
fn fields_come_through_links_that_leave_them_alone() {
    let (pair, delivered) = through(None, &FIELDS);
    assert_eq!(delivered, [(0, Ecn::Ect0), (1, Ecn::NotEct), (2, Ecn::Ect1), (3, Ecn::Ce)]);
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::MarkedNotEct), 0);
}

/// Spec E-2, E-3.
#[test]
fn a_mark_on_the_way_reaches_the_inner_packet() {
    let (pair, delivered) = through(Some(Ecn::Ce), &FIELDS);
    let marked = [(0, Ecn::Ce), (2, Ecn::Ce), (3, Ecn::Ce)];
    assert_eq!(delivered, marked, "a transport without ECN is told by a loss");
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::MarkedNotEct), 1);
    let status = pair.sides[CUSTOMER].drop_count(DropReason::BadControl);
    assert_eq!(status, 0, "control datagrams mind no mark");
}

/// Spec E-3: it is not acknowledged, and so counts as lost on its path.
#[test]
fn what_was_dropped_for_its_mark_is_as_good_as_lost() {
    let mut pair = Pair::connected(Setup::default());
    pair.links[0].rewrites = Some(Ecn::Ce);
    let packets: Vec<_> = (0..20).map(|n| with(Ecn::NotEct, n)).collect();
    pair.send(CUSTOMER, &packets);
    pair.run_for(Duration::from_millis(200));
    let delivered: Vec<_> = pair.delivered[PROVIDER].iter().map(|p| number(p)).collect();
    assert_eq!(delivered, (0..20).filter(|n| n % 2 == 1).collect::<Vec<_>>());
    assert_eq!(pair.sides[PROVIDER].drop_count(DropReason::MarkedNotEct), 10);
    let status = pair.sides[PROVIDER].status(pair.now);
    let received: Vec<u64> =
        status.peers[0].paths.iter().map(|path| path.received_packets).collect();
    assert_eq!(received, [0, 10]);
}

/// Spec E-2: control datagrams are sent Not-ECT; a router that marks them marks whatever passes.
/// All its data was dropped and acknowledged, so that nothing showed it.
#[test]
fn regression_a_middlebox_that_marks_everything_is_no_black_hole() {
    for links in [1, 2] {
        let mut pair = Pair::connected(Setup { links, ..Setup::default() });
        pair.links[0].rewrites = Some(Ecn::Ce);
        for n in 0..500 {
            pair.send(CUSTOMER, &[with([Ecn::NotEct, Ecn::Ect0][n as usize % 2], n)]);
            pair.run_for(Duration::from_millis(10));
        }
        pair.run_for(Duration::from_millis(100));
        let delivered = &pair.delivered[PROVIDER];
        assert!(delivered.len() > 450, "{} of 500 over {links} links", delivered.len());
        let late = delivered.iter().filter(|packet| number(packet) >= 250);
        assert!(late.clone().all(|packet| Ecn::of(packet) != Ecn::Ce), "its marks mean nothing");
        assert_eq!(late.count(), 250);
    }
}

/// Spec E-2: Not-ECT outside leaves the inner field.
#[test]
fn links_that_clear_the_field_lose_no_mark_of_before() {
    let (_, delivered) = through(Some(Ecn::NotEct), &FIELDS);
    assert_eq!(delivered, [(0, Ecn::Ect0), (1, Ecn::NotEct), (2, Ecn::Ect1), (3, Ecn::Ce)]);
}

/// Spec E-1.
#[test]
fn a_run_ends_where_the_field_changes() {
    let mut pair = Pair::connected(Setup { links: 1, ..Setup::default() });
    let fields = [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::NotEct, Ecn::NotEct, Ecn::Ect0];
    for (number, ecn) in (0..).zip(fields) {
        pair.sides[CUSTOMER].handle_packet(pair.now, &with(ecn, number));
    }
    let mut runs = Vec::new();
    while let Some(send) = pair.sides[CUSTOMER].poll_transmit() {
        let size = send.segment_size.unwrap_or(send.contents.len());
        runs.push((send.ecn, send.contents.len() / size));
    }
    assert_eq!(runs, [(Ecn::Ect0, 2), (Ecn::NotEct, 3), (Ecn::Ect0, 1)]);
}
