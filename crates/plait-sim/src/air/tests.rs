//! What radios do to each other on the air.

use plait_proto::time::{Duration, Instant};

use super::calibration::{capacity_bps, interferer_air, rate_scale, saturated, shares};
use super::mcs::Width;
use super::radio::tests::near;
use super::*;
use crate::packet::Way;
use crate::prng::Prng;
use crate::ratio::Ratio;

mod random;

/// A link of this width that carries so much alone.
fn carrying(width: Width, mbit: f64) -> RadioConfig {
    let config = near(width);
    RadioConfig { rate_scale: rate_scale(&config, mbit * 1e6).unwrap(), ..config }
}

fn ratio(share: f64) -> Ratio {
    Ratio::from_ppm((share * 1e6).round() as u32)
}

/// A medium of these links; `coupling` has for each pair who senses whom how much.
fn medium<P>(links: &[RadioConfig], coupling: &[(usize, usize, f64)]) -> Medium<P> {
    let radios: Vec<(RadioConfig, u64)> = links.iter().copied().zip(11..).collect();
    let mut medium = Medium::new(&radios);
    for (radio, from, share) in coupling {
        medium.set_coupling(Instant::ZERO, *radio, *from, ratio(*share));
    }
    medium
}

/// Share of its own capacity that each link carries while all always have something to send.
fn saturated_shares(links: &[RadioConfig], coupling: &[(usize, usize, f64)]) -> Vec<f64> {
    let time = Duration::from_secs(30);
    let mut medium = medium(links, coupling);
    let carried = saturated(&mut medium, time);
    let share = |(bytes, link): (u64, &RadioConfig)| {
        bytes as f64 * 8.0 / time.as_secs_f64() / capacity_bps(link)
    };
    carried.into_iter().zip(links).map(share).collect()
}

#[test]
fn two_saturated_radios_share_the_air_as_the_couplings_say() {
    let wide = [carrying(Width::Mhz80, 229.0), carrying(Width::Mhz80, 261.0)];
    let unequal = [carrying(Width::Mhz20, 61.9), carrying(Width::Mhz80, 256.0)];
    for (first, second) in [
        (0.3534, 0.0177),
        (0.2630, 0.1288),
        (0.1937, 0.0),
        (0.1651, 0.0086),
        (0.06, 0.0),
        (0.5, 0.5),
        (0.9, 0.1),
        (0.1, 0.8),
        (0.7, 0.7),
        (0.0, 1.0),
    ] {
        for links in [&wide, &unequal] {
            let found = saturated_shares(links, &[(0, 1, first), (1, 0, second)]);
            let expected = shares(first, second);
            // Within 2 %; what is left of no air at all is a matter of single frames.
            let close =
                |found: f64, expected: f64| (found - expected).abs() < 0.02 * expected + 0.006;
            assert!(
                close(found[0], expected.0) && close(found[1], expected.1),
                "{first} {second}: {found:?}, expected {expected:?}"
            );
        }
    }
}

#[test]
fn radios_that_sense_all_of_each_other_fill_the_air_once() {
    for count in [2, 3, 4] {
        let links = vec![carrying(Width::Mhz80, 200.0); count];
        let pairs: Vec<(usize, usize, f64)> = (0..count)
            .flat_map(|a| (0..count).filter(move |b| *b != a).map(move |b| (a, b, 1.0)))
            .collect();
        let found = saturated_shares(&links, &pairs);
        let sum: f64 = found.iter().sum();
        assert!((0.98..=1.005).contains(&sum), "{found:?}");
        let even = 1.0 / count as f64;
        assert!(found.iter().all(|share| (share - even).abs() < 0.02), "{found:?}");
    }
}

#[test]
fn the_law_holds_for_a_radio_that_has_less_to_send() {
    // The second offers a given share of its capacity; the first always sends.
    let links = [carrying(Width::Mhz80, 229.0), carrying(Width::Mhz80, 261.0)];
    for (offered, coupling) in [(0.2, 0.3534), (0.6, 0.3534), (0.4, 0.8)] {
        let mut medium = medium(&links, &[(0, 1, coupling)]);
        let time = Duration::from_secs(20);
        let gap = Duration::from_secs_f64(12_000.0 / 261e6 / offered);
        let found = with_stream(&mut medium, time, gap, (1, Way::Down));
        let share = found[0] as f64 * 8.0 / time.as_secs_f64() / 229e6;
        let expected = 1.0 - coupling * offered;
        assert!((share - expected).abs() < 0.02, "{offered} {coupling}: {share}, not {expected}");
    }
}

/// Bytes that each radio carries down while the first always sends down, and one direction of a
/// radio gets a packet in each gap.
fn with_stream(
    medium: &mut Medium<()>,
    time: Duration,
    gap: Duration,
    (radio, way): (usize, Way),
) -> Vec<u64> {
    let mut carried = vec![0; medium.count()];
    let (mut next, end) = (Instant::ZERO, Instant::ZERO + time);
    let mut now = Instant::ZERO;
    while now < end {
        let room = medium.config(0).queue_packets;
        while medium.waiting_packets(0, Way::Down) < room {
            medium.send(now, 0, Way::Down, 1500, ());
        }
        if next <= now {
            medium.send(now, radio, way, 1500, ());
            next += gap;
        }
        now = medium.next_event().map_or(next, |event| event.min(next)).max(now);
        for way in Way::BOTH {
            while let Some(arrival) = medium.poll(now, way) {
                carried[arrival.radio] += if way == Way::Down { arrival.bytes } else { 0 };
            }
        }
    }
    carried
}

#[test]
fn regression_what_arrived_one_way_does_not_wake_the_other() {
    let mut medium = medium(&[carrying(Width::Mhz80, 100.0)], &[]);
    medium.send(Instant::ZERO, 0, Way::Down, 1500, ());
    let later = Instant::ZERO + Duration::from_secs(1);
    assert!(medium.poll(later, Way::Up).is_none());
    assert_eq!(medium.next_event_of(Way::Up), None);
    assert_eq!(medium.next_event_of(Way::Down), medium.next_event());
    assert!(medium.next_event().is_some_and(|at| at < later));
}

#[test]
fn what_goes_up_is_taken_from_what_goes_down() {
    let links = [carrying(Width::Mhz80, 100.0)];
    let time = Duration::from_secs(10);
    let down_beside = |mbit: f64| {
        let gap = Duration::from_secs_f64(12_000.0 / mbit / 1e6);
        let carried = with_stream(&mut medium(&links, &[]), time, gap, (0, Way::Up));
        carried[0] as f64 * 8.0 / 1e6 / time.as_secs_f64()
    };
    let (little, much) = (down_beside(1.0), down_beside(40.0));
    assert!(little < 99.5 && little > 85.0, "{little}");
    // Small frames up cost more than their bytes: each has its preamble and its turn.
    assert!(much < 60.0 && much > 30.0, "{much}");
}

fn interferer(config: &RadioConfig, taken: f64) -> Interferer {
    let period = Duration::from_micros(588);
    let air = interferer_air(config, taken, period);
    let effect = Effect::Destroys;
    Interferer { radio: 0, way: Way::Down, period, air, effect, on: true, seed: 77 }
}

#[test]
fn an_interferer_takes_its_share() {
    for (mbit, taken) in [(229.0, 0.061), (261.0, 0.571), (253.0, 0.059), (195.0, 0.287)] {
        let links = [carrying(Width::Mhz80, mbit)];
        let mut medium = medium(&links, &[]);
        medium.add_interferer(interferer(&links[0], taken));
        let time = Duration::from_secs(20);
        let carried = saturated(&mut medium, time)[0];
        let share = carried as f64 * 8.0 / time.as_secs_f64() / (mbit * 1e6);
        assert!((share - (1.0 - taken)).abs() < 0.02 * (1.0 - taken), "{mbit} {taken}: {share}");
    }
}

/// Delays of packets sent at half of the capacity, in ascending order, and how many were given up.
fn delays_us(medium: &mut Medium<Instant>, gap: Duration) -> (Vec<u64>, u64) {
    let (mut now, mut next) = (Instant::ZERO, Instant::ZERO);
    let end = Instant::from_millis(5_000);
    let mut delays = Vec::new();
    while now < end {
        if next <= now {
            medium.send(now, 0, Way::Down, 1500, now);
            next += gap;
        }
        while let Some(arrival) = medium.poll(now, Way::Down) {
            delays.push(now.since(arrival.payload).as_micros() as u64);
        }
        now = medium.next_event().map_or(next, |event| event.min(next)).max(now);
    }
    delays.sort_unstable();
    (delays, medium.sender(0, Way::Down).given_up_packets)
}

#[test]
fn interference_shows_as_retries_and_delay_and_not_as_loss() {
    let links = [carrying(Width::Mhz80, 200.0)];
    let gap = Duration::from_micros(120);
    let mut clean = medium(&links, &[]);
    let (quiet, _) = delays_us(&mut clean, gap);
    let mut disturbed = medium(&links, &[]);
    disturbed.add_interferer(interferer(&links[0], 0.3));
    let (spread, given_up) = delays_us(&mut disturbed, gap);
    let p95 = |delays: &[u64]| delays[delays.len() * 95 / 100];
    assert_eq!(given_up, 0);
    let (clean, disturbed) = (clean.counters(0), disturbed.counters(0));
    assert_eq!(clean.lost_subframes, 0);
    assert!(disturbed.lost_subframes * 10 > disturbed.subframes, "{disturbed:?}");
    assert!(p95(&spread) > 2 * p95(&quiet), "{} and {}", p95(&quiet), p95(&spread));
}

#[test]
fn a_weak_interferer_lowers_the_scheme_and_a_weaker_one_less() {
    let config = near(Width::Mhz80);
    let run = |dbm: Option<f64>| {
        let mut medium = medium(&[config], &[]);
        if let Some(dbm) = dbm {
            let period = Duration::from_micros(588);
            medium.add_interferer(Interferer {
                radio: 0,
                way: Way::Down,
                period,
                air: period,
                effect: Effect::Power(dbm),
                on: true,
                seed: 1,
            });
        }
        let carried = saturated(&mut medium, Duration::from_secs(2))[0];
        let counters = medium.counters(0);
        (carried, counters.mcs_total as f64 / counters.subframes as f64)
    };
    let levels = [None, Some(-70.0), Some(-62.0), Some(-55.0), Some(-48.0)].map(run);
    assert!(levels.is_sorted_by(|a, b| a.0 > b.0 || a == b), "{levels:?}");
    assert!(levels[3].1 < levels[1].1 && levels[0].1 > 8.9, "{levels:?}");
    assert!(levels[4].0 < levels[0].0 / 4, "{levels:?}");
}

#[test]
fn less_power_carries_less_when_far_or_disturbed_and_as_much_when_near() {
    let carried = |config: RadioConfig, disturbed: bool| {
        let mut medium = medium(&[config], &[]);
        if disturbed {
            medium.add_interferer(Interferer {
                radio: 0,
                way: Way::Down,
                period: Duration::from_micros(588),
                air: Duration::from_micros(300),
                effect: Effect::Power(-60.0),
                on: true,
                seed: 1,
            });
        }
        saturated(&mut medium, Duration::from_secs(2))[0] as f64
    };
    let near = near(Width::Mhz80);
    let far = RadioConfig { path_loss_db: path_loss_db(25.0, near.centre_mhz), ..near };
    let low = |config: RadioConfig| RadioConfig { tx_power_dbm: 14.0, ..config };
    assert!(carried(low(far), false) < 0.95 * carried(far, false));
    assert!(carried(low(near), true) < 0.95 * carried(near, true));
    assert!((carried(low(near), false) / carried(near, false) - 1.0).abs() < 0.01);
}

#[test]
fn one_antenna_carries_no_more_than_the_better_link() {
    let links = [carrying(Width::Mhz80, 229.0), carrying(Width::Mhz80, 261.0)];
    let mut medium = medium(&links, &[(0, 1, 1.0), (1, 0, 1.0)]);
    let time = Duration::from_secs(20);
    let carried: u64 = saturated(&mut medium, time).iter().sum();
    let mbit = carried as f64 * 8.0 / 1e6 / time.as_secs_f64();
    assert!((230.0..261.0).contains(&mbit), "{mbit}");
}

#[test]
fn a_seed_decides_everything_and_polling_nothing() {
    let links = [carrying(Width::Mhz80, 229.0), carrying(Width::Mhz20, 60.0)];
    let run = |seed: u64, step: Duration| {
        let mut medium = Medium::new(&[(links[0], seed), (links[1], seed + 1)]);
        medium.set_coupling(Instant::ZERO, 0, 1, ratio(0.4));
        medium.set_coupling(Instant::ZERO, 1, 0, ratio(0.2));
        medium.add_interferer(interferer(&links[0], 0.2));
        let mut arrivals = Vec::new();
        let (mut now, mut number) = (Instant::ZERO, 0_u32);
        while now < Instant::from_millis(400) {
            if now.as_nanos().is_multiple_of(50_000) {
                for radio in 0..2 {
                    medium.send(now, radio, Way::Down, 1500, number);
                }
                number += 1;
            }
            while let Some(arrival) = medium.poll(now, Way::Down) {
                arrivals.push((arrival.due, arrival.radio, arrival.payload));
            }
            now += step;
        }
        arrivals.sort_unstable();
        arrivals
    };
    let seldom = run(9, Duration::from_micros(50));
    let often = run(9, Duration::from_micros(5));
    assert!(seldom.len() > 3_000);
    let known = seldom.len().min(often.len()) - 200;
    assert!(seldom[..known] == often[..known]);
    assert_ne!(seldom, run(10, Duration::from_micros(50)));
}
