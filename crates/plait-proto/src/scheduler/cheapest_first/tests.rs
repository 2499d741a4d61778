use super::super::testing::{INTERACTIVE, PACKET, bulk, decide, path, plain_paths};
use super::*;

/// A flat 16 Mbit/s line at 30 ms beside a metered 50 Mbit/s link at 40 ms.
fn flat() -> super::super::testing::PathBuilder {
    path(0).rtt_ms(30).closed(16, 120_000)
}

fn metered() -> super::super::testing::PathBuilder {
    path(1).price(1).rtt_ms(40).closed(50, 500_000)
}

fn decided(paths: &[PathView], packet: PacketInfo) -> String {
    decide(&mut CheapestFirst::default(), paths, packet)
}

#[test]
fn the_cheapest_class_is_filled_first() {
    let quick_but_dear = path(1).price(1).rtt_ms(5).closed(50, 500_000).build();
    assert_eq!(decided(&[flat().build(), quick_but_dear], bulk(1 << 20)), "0");
}

#[test]
fn within_a_class_the_earliest_delivery_counts() {
    let paths = [flat().build(), path(1).rtt_ms(20).closed(16, 120_000).build(), metered().build()];
    assert_eq!(decided(&paths, PACKET), "1");
}

/// 16 Mbit/s carry 8000 bytes in the four milliseconds.
#[test]
fn it_overflows_when_four_milliseconds_of_the_cheap_class_wait() {
    let paths = [flat().ready_in_us(750).build(), metered().build()];
    assert_eq!(decided(&paths, bulk(6500)), "wait 750");
    assert_eq!(decided(&paths, bulk(6501)), "1");
    let paths = [flat().full().build(), metered().build()];
    assert_eq!(decided(&paths, bulk(0)), "wait 5000");
    assert_eq!(decided(&paths, bulk(60_000)), "1");
}

#[test]
fn a_cheap_path_whose_window_stays_shut_is_not_waited_for() {
    let mut scheduler = CheapestFirst::default();
    let paths = [flat().full().build(), metered().build()];
    // Its patience: 30 + 4·7.5 + 2·5 = 70 ms.
    let at = |ms| View { now: crate::time::Instant::from_millis(ms), paths: &paths };
    let mut waits = |ms| matches!(scheduler.pick(&at(ms), &PACKET), Decision::Wait { .. });
    assert_eq!([0, 35, 70, 71].map(&mut waits), [true, true, true, false]);
}

#[test]
fn interactive_packets_stay_in_the_cheapest_good_class() {
    assert_eq!(decided(&[flat().build(), metered().build()], INTERACTIVE), "0");
    let lossy = flat().loss_permille(COPIES_LOSS_PERMILLE).build();
    assert_eq!(decided(&[lossy, metered().build()], INTERACTIVE), "1");
    assert_eq!(decided(&[lossy], INTERACTIVE), "0");
}

#[test]
fn interactive_packets_wait_a_few_milliseconds_and_no_longer() {
    let ready_in = |us| [flat().ready_in_us(us).build(), metered().build()];
    assert_eq!(decided(&ready_in(5000), INTERACTIVE), "wait 5000");
    assert_eq!(decided(&ready_in(5001), INTERACTIVE), "1");
}

#[test]
fn without_room_anywhere_it_is_blocked_and_without_windows_it_never_waits() {
    let full = [flat().full().build(), metered().full().build()];
    assert_eq!(decided(&full, bulk(60_000)), "blocked");
    assert_eq!(decided(&full, INTERACTIVE), "blocked");
    assert_eq!(decided(&plain_paths(2), PACKET), "0");
}
