//! Samples of what the links carried during a measurement.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::emulator::{Emulator, Way};
use crate::topology::Topology;

/// Time that a sample covers: several round trips, so that changes of a flow show.
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// Series in Mbit/s by full name, as a scenario's run has them; each sample covers [`INTERVAL`].
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct OverTime {
    pub(crate) series: BTreeMap<String, Vec<Option<f64>>>,
}

impl OverTime {
    /// The series up to this time; later samples are from the measuring program's shutdown.
    pub(crate) fn within(&self, time: Duration) -> BTreeMap<String, Vec<Option<f64>>> {
        let samples = time.as_nanos() / INTERVAL.as_nanos();
        let samples = usize::try_from(samples).expect("a measurement has few samples");
        let cut = |(name, series): (&String, &Vec<Option<f64>>)| {
            (name.clone(), series.iter().copied().take(samples).collect())
        };
        self.series.iter().map(cut).collect()
    }

    /// Adds a series in bits per second.
    pub(crate) fn add(&mut self, name: &str, bps: &[u64]) {
        let samples = bps.iter().map(|bps| Some(*bps as f64 / 1e6)).collect();
        self.series.insert(name.to_owned(), samples);
    }
}

/// Does `work` and counts meanwhile what each link delivers towards the customer, at the IP layer.
pub(crate) fn watch<T>(topology: &Topology, work: impl FnOnce() -> T) -> (T, OverTime) {
    let links: Vec<(&str, &Emulator)> =
        topology.customer().links.iter().map(|link| (link.spec.name, &link.emulator)).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| count(&links, &is_over));
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        (result, watcher.join().expect("counting does not panic"))
    })
}

fn count(links: &[(&str, &Emulator)], is_over: &AtomicBool) -> OverTime {
    let bytes = || -> Vec<u64> {
        links.iter().map(|(_, emulator)| emulator.delivered_bytes(Way::Down)).collect()
    };
    let start = Instant::now();
    let (mut before, mut at) = (bytes(), start);
    let mut samples = vec![Vec::new(); links.len()];
    for next in (1_u32..).map(|number| start + INTERVAL * number) {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        // A sample may be late, so its rate is computed over the time it really covers.
        let (now, reached) = (bytes(), Instant::now());
        let seconds = reached.duration_since(at).as_secs_f64();
        for ((samples, now), before) in samples.iter_mut().zip(&now).zip(&before) {
            samples.push(((now - before) as f64 * 8.0 / seconds) as u64);
        }
        (before, at) = (now, reached);
    }
    let mut over_time = OverTime::default();
    for ((name, _), samples) in links.iter().zip(&samples) {
        over_time.add(&format!("link_throughput.{name}"), samples);
    }
    over_time
}
