//! Members that take each other's air.

use super::super::Air;
use super::super::trial::Seconds;
use super::*;
use crate::rng::Rng;
use crate::scheduler::by_path::ByPath;

const STEP: Duration = Duration::from_millis(5);
/// A controller follows what its path carries by this part of the way in each step.
const FOLLOWS: f64 = 0.3;

/// Two radios or links: what each carries alone, and which part of its air each loses to the other.
#[derive(Clone, Copy)]
struct Pair {
    mbit: [f64; 2],
    sigma: [f64; 2],
}

const ONE_ANTENNA: [f64; 2] = [1.0, 1.0];
/// Chance takes up to this part of the second one's air, which the first one gets as far as it
/// shares it, and as much of what the first does not share.
const CHANCE: f64 = 0.1;
/// Radios that take long turns: one has most of a tenth of a second, the other of the next.
const LONG_TURNS: f64 = 0.95;

impl Pair {
    /// What each carries while those are used: 003's law (`docs/algorithms/shared-air.md`); all the
    /// air is halved. `chance` takes a part of each one's air.
    fn carried(&self, used: [bool; 2], chance: [f64; 2]) -> [f64; 2] {
        let [a, b] = self.sigma;
        let shares = match used {
            [true, true] => {
                let second = if a * b == 1.0 { 0.5 } else { (1.0 - b) / (1.0 - a * b) };
                let second = second * (1.0 - chance[1]);
                [(1.0 - a * second) * (1.0 - (1.0 - a) * chance[0]), second]
            }
            [first, second] => [f64::from(u8::from(first)), f64::from(u8::from(second))],
        };
        [self.mbit[0] * shares[0], self.mbit[1] * shares[1]]
    }
}

/// The part of the bond that looks for shared air, with two members that always have enough to
/// send.
struct Bond {
    air: Air,
    paths: ByPath<PathMemory>,
    now: Instant,
    mbit: [f64; 2],
    delivered: [f64; 2],
    is_full: bool,
    chance: f64,
    rng: Rng,
}

impl Bond {
    fn new(pair: &Pair) -> Self {
        let mut paths: ByPath<PathMemory> = ByPath::default();
        let known = link(0, 1, 20).build();
        (0..2).for_each(|id| {
            let state = paths.touch(PathId(id));
            state.is_member = true;
            let mut rounds = 0..40;
            while state.trial.is_on() {
                let at = Instant::from_millis(100 * rounds.next().expect("a trial ends"));
                state.trial.follow(&at_quarter(known), at, true, true, &Seconds::default());
            }
        });
        let mbit = pair.carried([true, true], [CHANCE / 2.0; 2]);
        let now = Instant::from_millis(10_000);
        let rng = Rng::from_seed([7; 32]);
        Self {
            air: Air::default(),
            paths,
            now,
            mbit,
            delivered: [0.0; 2],
            is_full: true,
            chance: CHANCE,
            rng,
        }
    }

    fn is_used(&mut self) -> [bool; 2] {
        [0, 1].map(|id| !self.paths.touch(PathId(id)).air.is_off())
    }

    /// Goes on for so long. For how long each path was left, in milliseconds.
    fn run(&mut self, pair: &Pair, time: Duration) -> [u64; 2] {
        let until = self.now + time;
        let mut left = [0; 2];
        let mut chance = [self.chance / 2.0; 2];
        while self.now < until {
            self.now += STEP;
            let used = self.is_used();
            if self.now.since(Instant::ZERO).as_millis().is_multiple_of(100) {
                chance = [0, 1].map(|_| (self.rng.u64() % 1000) as f64 / 1000.0 * self.chance);
            }
            let carried = pair.carried(used, chance);
            let mut views = Vec::new();
            for id in 0..2 {
                // A path that is left is empty at once.
                self.mbit[id] += (carried[id] - self.mbit[id]) * FOLLOWS;
                self.mbit[id] *= f64::from(u8::from(used[id]));
                self.delivered[id] += self.mbit[id] * 1e6 / 8.0 * STEP.as_secs_f64();
                left[id] += u64::from(!used[id]) * STEP.as_millis() as u64;
                let mut path = link(id as u8, self.mbit[id].max(1.0) as u64, 20).build();
                path.delivered_bytes = self.delivered[id] as u64;
                views.push(path);
            }
            let view = View { now: self.now, paths: &views };
            self.air.follow(&view, &mut self.paths, self.is_full);
        }
        left
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_narrow_radio_leaves_one_antenna_to_the_wide_one() {
    let pair = Pair { mbit: [62.0, 256.0], sigma: ONE_ANTENNA };
    let mut bond = Bond::new(&pair);
    bond.run(&pair, seconds(8));
    assert_eq!(bond.is_used(), [false, true]);
    // It comes back after 8 s and 32 s, brings nothing, and leaves.
    let [left, _] = bond.run(&pair, seconds(60));
    assert!((58_500..59_000).contains(&left), "{left} ms");
    assert_eq!(bond.is_used(), [false, true]);
}

#[test]
fn the_narrow_radio_rests_whatever_the_latest_window_was() {
    let pair = Pair { mbit: [62.0, 256.0], sigma: ONE_ANTENNA };
    for seed in 0..20 {
        let rng = Rng::from_seed([seed; 32]);
        let mut bond = Bond { chance: LONG_TURNS, rng, ..Bond::new(&pair) };
        let [_, wide] = bond.run(&pair, seconds(8));
        assert_eq!((bond.is_used(), wide), ([false, true], 0), "seed {seed}");
    }
}

/// Half of 253 and 78 are less than 253, while 139 and 110 are about as much.
#[test]
fn a_radio_that_takes_more_than_it_carries_leaves_the_air() {
    for (mbit, sigma, used) in
        [([253.0, 78.0], [0.5, 0.0], [true, false]), ([253.0, 110.0], [0.45, 0.0], [true, true])]
    {
        let pair = Pair { mbit, sigma };
        let mut bond = Bond::new(&pair);
        bond.run(&pair, seconds(8));
        assert_eq!(bond.is_used(), used, "{mbit:?}");
    }
}

#[test]
fn links_that_share_nothing_are_hardly_disturbed() {
    for mbit in [[50.0, 20.0], [100.0, 5.0], [50.0, 50.0]] {
        let pair = Pair { mbit, sigma: [0.0, 0.0] };
        let left = Bond::new(&pair).run(&pair, seconds(60));
        assert!(left.iter().sum::<u64>() <= 200, "{mbit:?}: {left:?} ms of 60 s");
    }
}

/// What 003's radios do to each other: both together are the best.
#[test]
fn radios_that_lose_less_than_they_bring_stay() {
    let pair = Pair { mbit: [229.0, 261.0], sigma: [0.3534, 0.0177] };
    let mut bond = Bond::new(&pair);
    let left = bond.run(&pair, seconds(60));
    assert!(left.iter().sum::<u64>() <= 900, "{left:?}");
}

#[test]
fn coupling_that_begins_is_found_and_one_that_ends_is_forgotten() {
    let apart = Pair { mbit: [62.0, 256.0], sigma: [0.0, 0.0] };
    let coupled = Pair { sigma: ONE_ANTENNA, ..apart };
    let mut bond = Bond::new(&apart);
    bond.run(&apart, seconds(20));
    assert_eq!(bond.is_used(), [true, true]);
    // What chance did before was far more and has to fade first.
    bond.run(&coupled, seconds(12));
    assert_eq!(bond.is_used(), [false, true]);
    bond.run(&apart, seconds(10));
    assert_eq!(bond.is_used(), [true, true]);
}

#[test]
fn nothing_rests_while_little_is_sent() {
    let pair = Pair { mbit: [62.0, 256.0], sigma: ONE_ANTENNA };
    let mut bond = Bond::new(&pair);
    bond.is_full = false;
    assert_eq!(bond.run(&pair, seconds(20)), [0, 0]);
}

/// The other path is dead: there is nobody to leave the air to.
#[test]
fn a_path_that_rests_is_used_when_it_is_the_only_one() {
    let paths = [link(0, 62, 20).build(), link(1, 256, 20).build()];
    let mut case = Case::knowing(&paths);
    case.scheduler.paths.touch(PathId(0)).air = Airtime::off();
    assert_eq!(case.decide(&paths, bulk(PLENTY)), "1");
    assert_eq!(case.decide(&paths[..1], bulk(PLENTY)), "0");
}
