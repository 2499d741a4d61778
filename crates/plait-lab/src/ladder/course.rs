//! How a link's rate goes in time: courses that are made, the same in every run, in the manner of
//! recorded ones.

use std::sync::Arc;

use plait_proto::time::Duration;
use plait_proto::units::Rate;
use plait_sim::link::Trace;
use plait_sim::prng::Prng;
use plait_sim::scenario::link::Capacity;

use super::rung::Course;

/// A rate holds for this long.
const STEP_MS: u32 = 20;
const STEPS_PER_S: u32 = 1000 / STEP_MS;
/// After this time a course begins again: longer than any run.
const LENGTH_S: u32 = 90;
/// Worlds need this long to open the bond; their traces begin before that, scenarios after.
const LEAD_S: u32 = 1;
/// What an opportunity of a trace carries, at the IP layer.
const OPPORTUNITY_BITS: u64 = 1500 * 8;

/// The capacity of a link of this nominal rate.
pub(super) fn capacity(course: Course, kbit: u32) -> Capacity {
    let steps = LENGTH_S * STEPS_PER_S;
    match course {
        Course::Steady | Course::Dies { .. } => {
            Capacity::Fixed(Rate::from_bits_per_second(u64::from(kbit) * 1000))
        }
        Course::Mobile(number) => trace(kbit, &mobile(number, steps)),
        Course::Satellite(number) => trace(kbit, &satellite(number, steps)),
        Course::Shared(number) => trace(kbit, &shared(number, steps)),
        Course::Falls { to_permille, from_s, until_s } => {
            let low = (from_s + LEAD_S) * STEPS_PER_S..(until_s + LEAD_S) * STEPS_PER_S;
            let share = |step| if low.contains(&step) { to_permille } else { 1000 };
            trace(kbit, &(0..steps).map(share).collect::<Vec<u32>>())
        }
    }
}

/// How long the link is dead, since the scenario's start.
pub(super) fn outage(course: Course) -> Option<(Duration, Duration)> {
    let seconds = |s: u32| Duration::from_secs(s.into());
    match course {
        Course::Dies { from_s, until_s } => Some((seconds(from_s), seconds(until_s))),
        _ => None,
    }
}

/// Shares of the nominal rate in a thousand, turned into opportunities to send.
fn trace(kbit: u32, permille: &[u32]) -> Capacity {
    let mut times_ms = Vec::new();
    let mut saved_bits = 0;
    for (step, permille) in permille.iter().enumerate() {
        for ms in 0..STEP_MS {
            saved_bits += u64::from(kbit) * u64::from(*permille) / 1000;
            while saved_bits >= OPPORTUNITY_BITS {
                saved_bits -= OPPORTUNITY_BITS;
                times_ms.push(step as u32 * STEP_MS + ms);
            }
        }
    }
    // The last time is the trace's length.
    times_ms.push(permille.len() as u32 * STEP_MS);
    let trace = Trace::new(times_ms).expect("times were made in order, and the last is above zero");
    Capacity::Trace(Arc::new(trace))
}

/// A level that moves every 100 ms by up to a quarter of itself, between a fifth and 1.6 of the
/// nominal rate, drawn back towards nine tenths of it; now and then a handover of 60 to 200 ms.
fn mobile(number: u32, steps: u32) -> Vec<u32> {
    let mut prng = Prng::new(0x4c54_4500 + u64::from(number));
    let (mut level, mut silent) = (900_u64, 0);
    let mut shares = Vec::new();
    for step in 0..steps {
        if step % (STEPS_PER_S / 10) == 0 {
            let target = (level * 31 + 900) / 32;
            let factor = 750 + prng.up_to(500);
            level = (target * factor / 1000).clamp(200, 1600);
        }
        if prng.up_to(u64::from(12 * STEPS_PER_S)) == 0 {
            silent = 3 + prng.up_to(7);
        }
        shares.push(if silent > 0 { 0 } else { level as u32 });
        silent = silent.saturating_sub(1);
    }
    shares
}

/// A level for each 15 s, from 0.6 to 1.4 of the nominal rate, a tenth of noise on it, and 100 ms
/// of silence at each change: what users of low satellites see when they are given another one.
fn satellite(number: u32, steps: u32) -> Vec<u32> {
    let mut prng = Prng::new(0x4c45_4f00 + u64::from(number));
    let (epoch, silence) = (15 * STEPS_PER_S, STEPS_PER_S / 10);
    // Not every course changes at the same time.
    let offset = prng.up_to(u64::from(epoch) - 1) as u32;
    let mut level = 1000;
    let mut shares = Vec::new();
    for step in 0..steps {
        let at = (step + offset) % epoch;
        if at == 0 || step == 0 {
            level = 600 + prng.up_to(800);
        }
        let noise = 900 + prng.up_to(200);
        shares.push(if at < silence { 0 } else { (level * noise / 1000) as u32 });
    }
    shares
}

/// The whole rate, or from a fifth to a half of it while neighbours send; each for 0.2 to 2 s.
fn shared(number: u32, steps: u32) -> Vec<u32> {
    let mut prng = Prng::new(0x5749_4600 + u64::from(number));
    let (mut share, mut left) = (1000, 0);
    let mut shares = Vec::new();
    for _ in 0..steps {
        if left == 0 {
            left = u64::from(STEPS_PER_S) / 5 + prng.up_to(u64::from(STEPS_PER_S) * 9 / 5);
            share = if share == 1000 { 200 + prng.up_to(300) as u32 } else { 1000 };
        }
        left -= 1;
        shares.push(share);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opportunities(capacity: &Capacity, from_s: u32, until_s: u32) -> usize {
        let Capacity::Trace(trace) = capacity else { unreachable!("made as a trace") };
        let within = (from_s * 1000)..(until_s * 1000);
        trace.opportunities_ms().iter().filter(|ms| within.contains(ms)).count()
    }

    #[test]
    fn a_fall_is_where_and_as_deep_as_it_says() {
        let course = Course::Falls { to_permille: 100, from_s: 10, until_s: 20 };
        let falls = capacity(course, 12_000);
        assert_eq!(opportunities(&falls, 5, 6), 1000);
        assert_eq!(opportunities(&falls, 12, 13), 100);
        assert_eq!(opportunities(&falls, 22, 23), 1000);
    }

    #[test]
    fn made_courses_keep_near_their_rate_and_do_not_repeat_each_other() {
        for course in [Course::Mobile, Course::Satellite, Course::Shared] {
            let rates = [1, 2, 3, 4].map(|number| {
                let mean = capacity(course(number), 20_000).mean_rate();
                mean.bits_per_second() as f64 / 20e6
            });
            assert!(rates.iter().all(|rate| (0.55..1.3).contains(rate)), "{rates:?}");
            assert!(rates[0] != rates[1], "{rates:?}");
        }
    }

    #[test]
    fn a_course_is_the_same_every_time() {
        assert_eq!(capacity(Course::Mobile(1), 5000), capacity(Course::Mobile(1), 5000));
    }
}
