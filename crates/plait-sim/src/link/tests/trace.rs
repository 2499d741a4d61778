//! A link that follows a trace.

use super::*;

fn link(opportunities_ms: &[u32]) -> Link<u32> {
    let mut link = Link::new(config(), 1);
    let trace = Trace::new(opportunities_ms.to_vec()).unwrap();
    link.set_service(ms(0), Service::Trace(Arc::new(trace)));
    link
}

/// Delays count from here.
fn left(out: &[(Instant, u32)]) -> Vec<(u64, u32)> {
    out.iter().map(|(due, n)| (due.as_nanos() / 1_000_000 - 10, *n)).collect()
}

#[test]
fn full_packets_leave_one_per_opportunity() {
    let mut link = link(&[0, 3, 3, 10]);
    (0..6).for_each(|n| {
        link.send(ms(0), 1500, n);
    });
    assert_eq!(left(&drain(&mut link)), [(3, 0), (3, 1), (10, 2), (10, 3), (13, 4), (13, 5)]);
}

#[test]
fn small_packets_share_an_opportunity_with_their_framing() {
    let mut link = link(&[5]);
    // 376 bytes with framing: four fill 1504 bytes.
    (0..5).for_each(|n| {
        link.send(ms(0), 372, n);
    });
    assert_eq!(left(&drain(&mut link)), [(5, 0), (5, 1), (5, 2), (5, 3), (10, 4)]);
}

#[test]
fn a_long_packet_needs_several_and_leaves_the_rest_to_the_next() {
    let mut link = link(&[5]);
    link.send(ms(0), 1600, 0);
    link.send(ms(0), 1400, 1);
    link.send(ms(0), 1400, 2);
    // 1604 = 1504 + 100; then 1404 bytes of the second opportunity are left, enough for the next
    // packet.
    assert_eq!(left(&drain(&mut link)), [(10, 0), (10, 1), (15, 2)]);
}

#[test]
fn opportunities_without_a_packet_are_lost() {
    let mut link = link(&[5, 5, 5]);
    link.send(ms(0), 100, 0);
    assert_eq!(left(&drain(&mut link)), [(5, 0)]);
    for n in 1..4 {
        link.send(ms(35), 1500, n);
    }
    link.send(ms(35), 100, 4);
    assert_eq!(left(&drain(&mut link)), [(40, 1), (40, 2), (40, 3), (45, 4)], "not those at 35");
}

#[test]
fn a_configuration_changes_around_the_trace() {
    let mut link = link(&[7]);
    link.send(ms(0), 1500, 0);
    link.reconfigure(ms(3), LinkConfig { rate: Rate::from_mbit(1000), ..config() });
    assert_eq!(left(&drain(&mut link)), [(7, 0)]);
    link.send(ms(20), 1500, 1);
    link.set_service(ms(20), Service::Fixed(Rate::from_mbit(12)));
    assert_eq!(left(&drain(&mut link)), [(21, 1)]);
    assert_eq!(link.config().rate, Rate::from_mbit(12));
}

#[test]
fn what_a_long_packet_has_used_stays_used() {
    let mut link = link(&[5]);
    link.send(ms(0), 3000, 0);
    link.set_service(ms(7), Service::Fixed(Rate::from_mbit(12)));
    // 3004 - 1504 = 1500 bytes at 12 Mbit/s.
    assert_eq!(left(&drain(&mut link)), [(8, 0)]);
}

#[test]
fn the_mean_rate_is_that_of_full_packets() {
    let service = link(&[0, 5, 5, 10]).service().clone();
    assert_eq!(service.rate_at(ms(0)), Rate::from_bits_per_second(4_800_000));
}
