//! The machine against links of every size.

use proptest::prelude::*;

use super::*;

const UP: Circumstances =
    Circumstances { up: true, metered: false, probe_timeout: Duration::from_millis(60) };
const RTT: Duration = Duration::from_millis(30);

/// A path whose link lets datagrams of up to `limit` bytes through.
struct Path {
    mtu: PathMtu,
    limit: u32,
    /// Small datagrams are answered.
    alive: bool,
    now: Instant,
    probes: Vec<u32>,
}

impl Path {
    fn new(max: u32, limit: u32) -> Self {
        let now = Instant::from_millis(1000);
        Self { mtu: PathMtu::new(max), limit, alive: true, now, probes: Vec::new() }
    }

    /// Runs for some time, with data all the while or without.
    fn run(&mut self, time: Duration, with: Circumstances, data: bool) {
        let end = self.now + time;
        for _ in 0..10_000 {
            if data {
                self.mtu.on_data(self.now);
            }
            let due = self.mtu.poll_timeout(self.now, with);
            let Some(due) = due.filter(|due| *due <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(due);
            if let Some(probe) = self.mtu.due(self.now, with) {
                self.probes.push(probe.size);
                if self.alive && probe.size <= self.limit {
                    self.now += RTT;
                    assert!(self.mtu.echo(self.now, probe.id));
                } else if self.alive {
                    self.mtu.on_heard();
                }
            }
        }
        panic!("the machine is never done: {:?}", self.mtu);
    }

    fn run_seconds(&mut self, seconds: u64) {
        self.run(Duration::from_secs(seconds), UP, true);
    }
}

/// Spec M-3: the largest useful size is probed first.
#[test]
fn one_probe_does_on_a_link_that_carries_all() {
    let mut path = Path::new(1500, 1500);
    assert_eq!((path.mtu.size(), path.mtu.hoped(), path.mtu.known()), (1280, 1500, None));
    path.run(Duration::from_secs(7200), UP, false);
    assert_eq!((path.mtu.size(), path.mtu.known(), path.probes), (1500, Some(1500), vec![1500]));
}

/// Spec M-2, M-3: three probes unanswered refuse a size; then 1280, then sizes between.
#[test]
fn a_likely_size_is_found() {
    let mut path = Path::new(1500, 1420);
    path.run_seconds(10);
    assert_eq!((path.mtu.size(), path.mtu.hoped()), (1420, 1420));
    assert_eq!(path.probes[..4], [1500, 1500, 1500, 1280]);
    assert!(path.mtu.is_limited());
}

/// Spec M-3: 1280, 1024, 576.
#[test]
fn a_link_below_the_base_is_found() {
    let mut path = Path::new(1500, 1100);
    path.run_seconds(10);
    assert!((1085..=1100).contains(&path.mtu.size()), "{}", path.mtu.size());
    let mut path = Path::new(1500, 100);
    path.run_seconds(30);
    assert_eq!((path.mtu.size(), path.mtu.known()), (576, None));
}

/// Spec M-3: every minute while data flows.
#[test]
fn data_is_confirmed_and_silence_is_not() {
    let mut path = Path::new(1500, 1500);
    path.run_seconds(590);
    assert_eq!(path.probes.len(), 1 + 9, "{:?}", path.probes);
    path.run(Duration::from_secs(3600), UP, false);
    assert!(path.probes.len() <= 11, "only what data flowed before asks for one");
}

#[test]
fn a_metered_path_waits_for_data() {
    let metered = Circumstances { metered: true, ..UP };
    let mut path = Path::new(1500, 1500);
    path.run(Duration::from_secs(60), metered, false);
    assert!(path.probes.is_empty());
    path.run(Duration::from_secs(1), metered, true);
    assert_eq!(path.probes, [1500]);
}

/// Spec M-3: three large datagrams lost.
#[test]
fn a_black_hole_is_left() {
    let mut path = Path::new(1500, 1500);
    path.run_seconds(3);
    path.limit = 1300;
    path.mtu.on_large_loss(path.now, SUSPICIOUS_LOSSES - 1);
    path.run(Duration::from_secs(2), UP, true);
    assert_eq!(path.probes.len(), 1, "a few losses are no reason");
    path.mtu.on_large_loss(path.now, SUSPICIOUS_LOSSES);
    path.run(Duration::from_secs(1), UP, true);
    assert!(path.mtu.size() <= 1300, "{}", path.mtu.size());
    path.run_seconds(8);
    assert!((1284..=1300).contains(&path.mtu.size()), "{}", path.mtu.size());
}

#[test]
fn loss_that_is_not_of_size_costs_few_probes() {
    let mut path = Path::new(1500, 1500);
    for _ in 0..100 {
        path.run(Duration::from_millis(100), UP, true);
        path.mtu.on_large_loss(path.now, 5);
    }
    assert!((4..=7).contains(&path.probes.len()), "{}", path.probes.len());
    assert_eq!(path.mtu.size(), 1500);
}

/// Spec M-3: after ten minutes.
#[test]
fn a_larger_size_is_looked_for_later() {
    let mut path = Path::new(1500, 1400);
    path.run_seconds(590);
    assert_eq!(path.mtu.size(), 1400);
    path.limit = 1500;
    path.run_seconds(30);
    assert_eq!(path.mtu.size(), 1500);
}

/// Spec M-3.
#[test]
fn a_path_that_comes_back_is_confirmed() {
    let mut path = Path::new(1500, 1500);
    path.run_seconds(3);
    path.limit = 1280;
    path.mtu.on_use(false);
    path.run(Duration::from_secs(60), Circumstances { up: false, ..UP }, true);
    assert_eq!(path.probes.len(), 1, "nothing is probed on a path that is not in use");
    path.mtu.on_use(true);
    path.run(Duration::from_secs(6), UP, false);
    assert_eq!(path.mtu.size(), 1280);
}

#[test]
fn a_path_that_flaps_because_of_a_black_hole_leaves_it() {
    let mut path = Path::new(1500, 1500);
    path.run_seconds(3);
    path.limit = 1300;
    for _ in 0..8 {
        path.mtu.on_use(false);
        path.run(Duration::from_millis(50), Circumstances { up: false, ..UP }, true);
        path.mtu.on_heard();
        path.mtu.on_use(true);
        path.run(Duration::from_millis(100), UP, true);
    }
    assert_eq!(path.mtu.size(), 1280);
}

#[test]
fn a_dead_path_keeps_its_size() {
    let mut path = Path::new(1500, 1400);
    path.run_seconds(10);
    path.alive = false;
    path.mtu.on_large_loss(path.now, SUSPICIOUS_LOSSES);
    path.run(Duration::from_millis(1500), UP, true);
    path.mtu.on_use(false);
    path.run(Duration::from_secs(30), Circumstances { up: false, ..UP }, true);
    path.alive = true;
    path.mtu.on_use(true);
    path.run(Duration::from_secs(1), UP, true);
    assert_eq!((path.mtu.size(), path.mtu.phase), (1400, Phase::Done));
    path.alive = false;
    path.mtu.on_use(true);
    path.run(Duration::from_secs(9), UP, true);
    assert!(path.mtu.size() < 1400, "not for ever");
}

/// Spec M-2: an echo of any of a size's probes.
#[test]
fn a_late_echo_counts_and_a_foreign_one_does_not() {
    let mut path = Path::new(1500, 0);
    let first = path.mtu.due(path.now, UP).expect("the first probe is due at once");
    path.now += Duration::from_millis(250);
    let second = path.mtu.due(path.now, UP).expect("it is repeated");
    assert_eq!((second.id, second.size, second.repeated), (first.id, first.size, true));
    assert!(!path.mtu.echo(path.now, first.id + 1));
    assert!(path.mtu.echo(path.now, first.id));
    assert!(!path.mtu.echo(path.now, first.id), "once");
    path.mtu.forget();
    assert_eq!((path.mtu.size(), path.mtu.hoped(), path.mtu.known()), (1280, 1500, None));
    let fresh = path.mtu.due(path.now, UP).expect("it begins anew");
    assert_ne!(fresh.id, first.id);
}

proptest! {
    #[test]
    fn every_limit_is_found_soon(max in 600_u32..9100, limit in 576_u32..9100) {
        let mut path = Path::new(max, limit);
        path.run_seconds(20);
        let best = limit.min(max);
        let size = path.mtu.size();
        prop_assert!(size <= best, "{size} of {best}");
        prop_assert!(size + STEP_MIN >= best, "{size} of {best}");
        prop_assert_eq!(path.mtu.known(), Some(size));
    }

    #[test]
    fn whatever_happens_the_size_is_sound(
        max in 600_u32..2000,
        steps in proptest::collection::vec((0_u8..6, 0_u64..3000, 500_u32..2000), 1..80),
    ) {
        let mut path = Path::new(max, max);
        for (kind, millis, limit) in steps {
            match kind {
                0 => path.limit = limit,
                1 => path.mtu.on_use(limit % 2 == 0),
                2 => path.mtu.on_large_loss(path.now, limit % 5),
                3 => path.alive = limit % 3 > 0,
                _ => path.run(Duration::from_millis(millis), UP, kind == 4),
            }
            prop_assert!(path.mtu.size() <= max && path.mtu.hoped() <= max);
            prop_assert!(path.mtu.size() >= 576);
        }
    }
}
