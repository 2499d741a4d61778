//! Radios with loads by chance.

use super::*;

/// One packet that somebody gets: when, which radio, which way, how long.
type Given = (Instant, usize, Way, u64);

/// Loads of `radios` radios, in order of time.
fn loads(prng: &mut Prng, radios: usize, count: usize) -> Vec<Given> {
    let mut now = Instant::ZERO;
    (0..count)
        .map(|_| {
            // Bursts and pauses.
            let gap_us = if prng.up_to(9) == 0 { prng.up_to(8_000) } else { prng.up_to(60) };
            now += Duration::from_micros(gap_us);
            let radio = prng.up_to(radios as u64 - 1) as usize;
            let way = Way::BOTH[prng.up_to(1) as usize];
            (now, radio, way, 60 + prng.up_to(1_440))
        })
        .collect()
}

fn config(prng: &mut Prng) -> RadioConfig {
    let width = Width::ALL[prng.up_to(2) as usize].1;
    carrying(width, 20.0 + prng.up_to(280) as f64)
}

/// Everything that arrives, as (due, radio, way, number); `watch` sees the medium after each step.
fn drive(
    medium: &mut Medium<usize>,
    loads: &[Given],
    mut watch: impl FnMut(&Medium<usize>),
) -> Vec<(Instant, usize, Way, usize)> {
    let mut arrivals = Vec::new();
    let mut left = loads.iter().enumerate().peekable();
    loop {
        let load = left.peek().map(|(_, load)| load.0);
        let Some(now) = medium.next_event().into_iter().chain(load).min() else { break };
        while let Some((number, (_, radio, way, bytes))) = left.next_if(|(_, load)| load.0 <= now) {
            medium.send(now, *radio, *way, *bytes, number);
        }
        for way in Way::BOTH {
            while let Some(arrival) = medium.poll(now, way) {
                assert_eq!(arrival.due, now, "nothing arrives before it was told");
                arrivals.push((arrival.due, arrival.radio, way, arrival.payload));
            }
        }
        watch(medium);
    }
    arrivals
}

#[test]
fn radios_that_sense_all_of_each_other_are_never_on_the_air_together() {
    for seed in 0..40 {
        let mut prng = Prng::new(seed);
        let count = 2 + prng.up_to(2) as usize;
        let links: Vec<RadioConfig> = (0..count).map(|_| config(&mut prng)).collect();
        let pairs: Vec<(usize, usize, f64)> =
            (0..count * count).map(|n| (n / count, n % count, 1.0)).collect();
        let mut medium = medium(&links, &pairs);
        let loads = loads(&mut prng, count, 3_000);
        drive(&mut medium, &loads, |medium| {
            let sending = (0..count).filter(|radio| medium.on_air(*radio).is_some()).count();
            assert!(sending <= 1, "seed {seed}");
        });
    }
}

#[test]
fn radios_that_sense_nothing_do_as_if_they_were_alone() {
    for seed in 0..40 {
        let mut prng = Prng::new(seed);
        let count = 2 + prng.up_to(2) as usize;
        let links: Vec<(RadioConfig, u64)> =
            (0..count).map(|_| (config(&mut prng), prng.next_u64())).collect();
        let loads = loads(&mut prng, count, 2_000);
        let together = drive(&mut Medium::new(&links), &loads, |_| {});
        for (radio, link) in links.iter().enumerate() {
            let numbers: Vec<usize> =
                (0..loads.len()).filter(|number| loads[*number].1 == radio).collect();
            let as_the_only_one = |number: &usize| {
                let (at, _, way, bytes) = loads[*number];
                (at, 0, way, bytes)
            };
            let own: Vec<Given> = numbers.iter().map(as_the_only_one).collect();
            let found = drive(&mut Medium::new(&[*link]), &own, |_| {});
            let found: Vec<(Instant, Way, usize)> =
                found.into_iter().map(|(due, _, way, n)| (due, way, numbers[n])).collect();
            let expected: Vec<(Instant, Way, usize)> = together
                .iter()
                .filter(|arrival| arrival.1 == radio)
                .map(|(due, _, way, n)| (*due, *way, *n))
                .collect();
            assert!(found == expected, "seed {seed}, radio {radio}");
        }
    }
}

#[test]
fn packets_arrive_in_order_and_none_is_lost_without_being_counted() {
    for seed in 0..40 {
        let mut prng = Prng::new(seed);
        let count = 1 + prng.up_to(3) as usize;
        let links: Vec<RadioConfig> = (0..count)
            .map(|_| RadioConfig {
                retries_max: prng.up_to(4) as u32,
                queue_packets: 5 + prng.up_to(300),
                ..config(&mut prng)
            })
            .collect();
        let share = |prng: &mut Prng| prng.up_to(100) as f64 / 100.0;
        let pairs: Vec<(usize, usize, f64)> =
            (0..count * count).map(|n| (n / count, n % count, share(&mut prng))).collect();
        let mut medium = medium(&links, &pairs);
        let period = Duration::from_micros(600);
        for radio in 0..count {
            let air = period.mul_f64(share(&mut prng) * 0.9);
            let effect = Effect::Destroys;
            let way = Way::BOTH[prng.up_to(1) as usize];
            medium.add_interferer(Interferer { radio, way, period, air, effect, on: true, seed });
        }
        let loads = loads(&mut prng, count, 3_000);
        let arrivals = drive(&mut medium, &loads, |_| {});
        for radio in 0..count {
            for way in Way::BOTH {
                let of: Vec<usize> = arrivals
                    .iter()
                    .filter(|arrival| arrival.1 == radio && arrival.2 == way)
                    .map(|arrival| arrival.3)
                    .collect();
                assert!(of.is_sorted_by(|a, b| a < b), "seed {seed}");
                let sender = medium.sender(radio, way);
                let dropped = sender.dropped_queue_packets + sender.given_up_packets;
                assert_eq!(sender.in_packets, of.len() as u64 + dropped, "seed {seed}");
                assert_eq!(medium.waiting_bytes(radio, way), 0);
            }
        }
    }
}
