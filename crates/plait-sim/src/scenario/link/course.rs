//! `course`: a rate that varies like recorded ones, generated from a number, the same in every run.

use std::sync::Arc;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;
use plait_toml::{Bounds, Section};

use super::Capacity;
use crate::link::{RateSteps, Trace};
use crate::prng::Prng;

/// How long each rate holds.
const STEP_MS: u32 = 20;
const STEPS_PER_S: u32 = 1000 / STEP_MS;
/// The time after which a course repeats: longer than most runs.
const LENGTH_S: u32 = 90;
/// Bits that a trace's opportunity carries, at the IP layer.
const OPPORTUNITY_BITS: u64 = 1500 * 8;

/// The kind of link whose rate is imitated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Mobile,
    Satellite,
    Shared,
    Fades,
}

const KINDS: [(&str, Kind); 4] = [
    ("mobile", Kind::Mobile),
    ("satellite", Kind::Satellite),
    ("shared", Kind::Shared),
    ("fades", Kind::Fades),
];

/// Reads `course = { kind, number }` for a link of this nominal rate. `None` without it, or when a
/// problem was noted.
pub(super) fn read(section: &mut Section<'_>, nominal: Rate) -> Option<Capacity> {
    if !section.holds_any(&["course"]) {
        section.know(&["course"]);
        return None;
    }
    section.no_effect(
        &["trace", "rate_steps", "rate_repeat_s"],
        "course",
        "links without a course",
    );
    let mut course = section.single("course");
    for (key, example) in [("kind", "kind = \"mobile\""), ("number", "number = 1")] {
        if !course.holds_any(&[key]) {
            course.missing(key, example);
        }
    }
    let kind = course.choice("kind", &KINDS);
    let number: Option<u32> = course.integer("number", (1, 1_000_000), "");
    let fades = Fades::read(&mut course, kind == Some(Kind::Fades));
    course.finish();
    let (kind, number) = (kind?, number?);
    let steps = LENGTH_S * STEPS_PER_S;
    let permille = match kind {
        Kind::Fades => return Some(fades.course(number, nominal)),
        Kind::Mobile => mobile(number, steps),
        Kind::Satellite => satellite(number, steps),
        Kind::Shared => shared(number, steps),
    };
    Some(trace(nominal, &permille))
}

/// Turns shares of the nominal rate, in thousandths, into sending opportunities.
fn trace(nominal: Rate, permille: &[u32]) -> Capacity {
    let mut times_ms = Vec::new();
    let mut saved_bits = 0;
    let kbit = nominal.bits_per_second() / 1000;
    for (step, permille) in permille.iter().enumerate() {
        for ms in 0..STEP_MS {
            saved_bits += kbit * u64::from(*permille) / 1000;
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
/// nominal rate, pulled towards nine tenths of it; sometimes a handover of 60 to 200 ms.
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

/// A level for each 15 s, from 0.6 to 1.4 of the nominal rate, with a tenth of noise, and 100 ms of
/// silence at each change: as users of low-orbit satellites see when the satellite changes.
fn satellite(number: u32, steps: u32) -> Vec<u32> {
    let mut prng = Prng::new(0x4c45_4f00 + u64::from(number));
    let (epoch, silence) = (15 * STEPS_PER_S, STEPS_PER_S / 10);
    // Courses change at different times.
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

/// The nominal rate, or a share of it while a fade lasts; both times are exponential.
#[derive(Clone, Copy, Debug)]
struct Fades {
    /// Mean time between fades.
    clear_s: f64,
    /// Mean time of a fade.
    fade_s: f64,
    /// What is left of the rate in a fade.
    left: f64,
}

impl Fades {
    /// The time after which fades repeat: so long that seeds may begin at times of their own.
    const LENGTH_S: f64 = 3600.0;

    fn read(course: &mut Section<'_>, is_meant: bool) -> Self {
        const TIME: Bounds = Bounds::new(0.1, 600.0, "seconds");
        if !is_meant {
            let belongs_to = "kind = \"fades\"";
            course.no_effect(&["clear_s", "fade_s", "left"], "another kind", belongs_to);
        }
        Self {
            clear_s: course.number("clear_s", TIME).unwrap_or(10.0),
            fade_s: course.number("fade_s", TIME).unwrap_or(10.0),
            left: course.number("left", Bounds::new(0.0, 1.0, "")).unwrap_or(0.0),
        }
    }

    fn course(self, number: u32, nominal: Rate) -> Capacity {
        let mut prng = Prng::new(0x4641_4400 + u64::from(number));
        let mut draw = |mean_s: f64| {
            // From (0, 1], on a grid of 2^53 steps; no shorter than the shortest time of a rate.
            let uniform = ((prng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            (-uniform.ln() * mean_s).max(f64::from(STEP_MS) / 1000.0)
        };
        let left = nominal.bits_per_second() as f64 * self.left;
        let (low, mut at_s) = (Rate::from_bits_per_second(left as u64), 0.0);
        let mut steps = Vec::new();
        while at_s < Self::LENGTH_S {
            steps.push((Duration::from_secs_f64(at_s), nominal));
            at_s += draw(self.clear_s);
            steps.push((Duration::from_secs_f64(at_s), low));
            at_s += draw(self.fade_s);
        }
        let period = Duration::from_secs_f64(at_s);
        let steps = RateSteps::new(Instant::ZERO, nominal, steps, Some(period));
        let steps = steps.expect("each step is later than the one before, and before the period");
        let mean = steps.mean_over(period);
        Capacity::Steps { steps: Arc::new(steps), mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fades_have_their_share_of_the_time() {
        let fades = Fades { clear_s: 6.0, fade_s: 3.0, left: 0.25 };
        let means = [1, 2].map(|number| {
            let Capacity::Steps { mean, .. } = fades.course(number, Rate::from_mbit(12)) else {
                panic!("fades are steps");
            };
            mean.bits_per_second() as f64 / 1e6
        });
        // 12 Mbit/s two thirds of the time, 3 in the rest: 9.
        assert!(means.iter().all(|mean| (8.3..9.7).contains(mean)), "{means:?}");
        assert!(means[0] != means[1]);
    }

    fn mean(permille: &[u32]) -> f64 {
        permille.iter().map(|share| f64::from(*share)).sum::<f64>() / permille.len() as f64
    }

    #[test]
    fn made_courses_keep_near_their_rate_and_do_not_repeat_each_other() {
        for course in [mobile, satellite, shared] {
            let means = [1, 2, 3, 4].map(|number| mean(&course(number, 4500)));
            assert!(means.iter().all(|mean| (550.0..1300.0).contains(mean)), "{means:?}");
            assert!(means[0] != means[1], "{means:?}");
            assert_eq!(course(1, 4500), course(1, 4500));
        }
    }

    #[test]
    fn a_course_becomes_as_many_opportunities_as_its_mean_rate_has() {
        let permille = shared(1, 4500);
        let nominal = Rate::from_bits_per_second(20_000_000);
        let found = trace(nominal, &permille).mean_rate().bits_per_second() as f64;
        let due = 20_000.0 * mean(&permille);
        assert!((found / due - 1.0).abs() < 0.002, "{found} of {due}");
    }
}
