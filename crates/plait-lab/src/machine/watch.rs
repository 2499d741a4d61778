//! Detects whether the machine kept programs waiting during a measurement.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// If a program that was ready to run waited longer than this, the machine may have caused the
/// result.
const HELD_UP_MAX: Duration = Duration::from_millis(25);
/// The largest share of processor time that a virtual machine's host may take away.
const STOLEN_MAX: f64 = 0.05;
/// Beyond either of these, gateways consider their links silent and pings come too late.
const BEARABLE_DELAY_MAX: Duration = Duration::from_millis(100);
const BEARABLE_STOLEN_MAX: f64 = 0.2;
const SLEEP: Duration = Duration::from_millis(1);

/// The processors' time since the machine's start, in ticks, as in proc_stat(5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CpuTime {
    all: u64,
    stolen: u64,
}

impl CpuTime {
    /// Zero where the kernel does not report it.
    pub(crate) fn now() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(stat: &str) -> Self {
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
        let ticks = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.flat_map(str::parse).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or_default() }
    }

    /// The share stolen between two moments.
    pub(crate) fn stolen_until(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all).max(1);
        later.stolen.saturating_sub(self.stolen) as f64 / all as f64
    }
}

/// Threads that sleep and measure how late they wake, one for each processor.
#[derive(Debug)]
pub(crate) struct Watch {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Duration>>,
    began: CpuTime,
}

/// Observations of the machine.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Interruption {
    /// Longest time for which a program that was ready to run waited.
    pub(crate) longest: Duration,
    /// Share of processor time that a virtual machine's host took away.
    pub(crate) stolen: f64,
}

impl Watch {
    pub(crate) fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let thread = |_| {
            let ends = Arc::clone(&ends);
            std::thread::spawn(move || longest_delay(&ends))
        };
        Self { threads: (0..processors).map(thread).collect(), ends, began: CpuTime::now() }
    }

    pub(crate) fn end(self) -> Interruption {
        self.ends.store(true, Ordering::Relaxed);
        let delays = self.threads.into_iter().map(|thread| {
            thread.join().expect("a thread that sleeps and looks at the clock does not panic")
        });
        let longest = delays.max().unwrap_or_default();
        Interruption { longest, stolen: self.began.stolen_until(CpuTime::now()) }
    }
}

fn longest_delay(ends: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !ends.load(Ordering::Relaxed) {
        let start = Instant::now();
        std::thread::sleep(SLEEP);
        longest = longest.max(start.elapsed().saturating_sub(SLEEP));
    }
    longest
}

impl Interruption {
    /// Whether the machine may have caused a standstill measured meanwhile.
    pub(crate) fn spoils(&self) -> bool {
        self.longest > HELD_UP_MAX || self.stolen > STOLEN_MAX
    }

    /// Whether the machine may have caused a failure of something that needs no speed.
    pub(crate) fn excuses(&self) -> bool {
        self.longest > BEARABLE_DELAY_MAX || self.stolen > BEARABLE_STOLEN_MAX
    }
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (longest, percent) = (self.longest.as_millis(), self.stolen * 1e2);
        write!(f, "programs waited up to {longest} ms, the host took {percent:.0} % of the time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_read_and_compared() {
        let at = |stat: &str| CpuTime::parse(stat);
        let before = at("cpu  100 0 100 600 0 0 0 200 50 0\ncpu0 1 2 3\n");
        let after = at("cpu  150 0 150 650 0 0 0 250 90 0\n");
        assert_eq!(before, CpuTime { all: 1000, stolen: 200 });
        assert!((before.stolen_until(after) - 0.25).abs() < 1e-9);
        assert!((at("").stolen_until(at("")) - 0.0).abs() < 1e-9);
    }

    #[test]
    fn either_kind_of_interruption_spoils() {
        let seen = |ms, stolen| Interruption { longest: Duration::from_millis(ms), stolen };
        let spoils = |ms, stolen| seen(ms, stolen).spoils();
        assert!(!spoils(20, 0.04) && spoils(30, 0.0) && spoils(1, 0.06));
        let excuses = |ms, stolen| seen(ms, stolen).excuses();
        assert!(!excuses(90, 0.15) && excuses(110, 0.0) && excuses(1, 0.25));
    }

    #[test]
    fn a_watch_ends() {
        let watch = Watch::start();
        std::thread::sleep(Duration::from_millis(5));
        assert!(watch.end().to_string().contains("programs waited up to"));
    }
}
