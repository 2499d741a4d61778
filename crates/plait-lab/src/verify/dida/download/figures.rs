//! The rows of dida.5.

use plait_proto::dida::DidaStats;

use super::cases::{Carrier, Case};
use super::course::{Course, File};
use super::{CLAIMED_MB, Measured, Shown, claims};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measure::{FETCH_CONGESTION, SenderView};

const SOURCE: &str = "issue 6, promise 5";

pub(super) fn of(measured: &Measured) -> Vec<Figure> {
    let mut figures = vec![sender_of_machine()];
    for shown in &measured.shown {
        figures.extend(shown.figures(shown.case.sizes_mb()));
    }
    figures.extend(claims::figures(measured));
    figures.extend(checks(measured));
    let late = measured.lateness.summary();
    let value = format!("{} / {} / {} us", late.mean_us, late.p99_us, late.max_us);
    figures.push(Figure::text("links' lateness: mean / 99th percentile / most", value));
    figures.push(Figure::count("runs on a machine that was too busy", measured.busy_runs));
    figures
}

/// Which TCP was measured.
fn sender_of_machine() -> Figure {
    let kernel = Machine::detect().kernel;
    let text = format!("Linux {kernel}, {FETCH_CONGESTION}, RACK-TLP; no SACK: RFC 6582");
    Figure::text("the sender", text)
}

impl Measured {
    /// The median time of a case's files of a size; `None` when a download of them failed.
    pub(super) fn median_s(&self, condition: &str, case: &str, size_mb: u64) -> Option<f64> {
        let is_it = |shown: &&Shown| shown.condition.name == condition && shown.case.name == case;
        let times = self.shown.iter().find(is_it)?.times_s(size_mb)?;
        times.get(times.len() / 2).copied()
    }
}

impl Shown {
    fn name(&self, of: &str) -> String {
        format!("{}: {}: {of}", self.condition.name, self.case.name)
    }

    fn files(&self, size_mb: u64) -> impl Iterator<Item = &File> {
        let files = self.courses.iter().flat_map(|course| &course.files);
        files.filter(move |file| file.size_mb == size_mb)
    }

    /// The times of all files of a size, sorted; `None` when one did not complete.
    fn times_s(&self, size_mb: u64) -> Option<Vec<f64>> {
        let time =
            |file: &File| file.fetched.is_complete().then_some(file.fetched.time.as_secs_f64());
        let mut times = self.files(size_mb).map(time).collect::<Option<Vec<f64>>>()?;
        times.sort_by(f64::total_cmp);
        Some(times)
    }

    fn figures(&self, sizes_mb: &[u64]) -> Vec<Figure> {
        let sizes: Vec<String> = sizes_mb.iter().map(u64::to_string).collect();
        let times: Vec<String> = sizes_mb.iter().map(|size| self.time_text(*size)).collect();
        let name = self.name(&format!("time of {} MB", sizes.join(", ")));
        let mut figures = vec![Figure::text(name, format!("{} s", times.join(", ")))];
        let largest = sizes_mb.last().copied().unwrap_or_default();
        if let Some(sender) = self.middle(largest).and_then(|file| file.fetched.sender) {
            let name = self.name(&format!("the sender of {largest} MB"));
            figures.push(Figure::text(name, sender_text(&sender)));
        }
        if let Some(text) = self.courses.last().and_then(Course::node_text) {
            figures.push(Figure::text(self.name("the node, all files"), text));
        }
        figures
    }

    /// `4.90 (4.71 to 5.22)`: median and spread.
    fn time_text(&self, size_mb: u64) -> String {
        match self.times_s(size_mb).as_deref() {
            None => "incomplete".into(),
            Some([]) => "not measured".into(),
            Some([one]) => format!("{one:.2}"),
            Some(times @ [least, .., most]) => {
                format!("{:.2} ({least:.2} to {most:.2})", times[times.len() / 2])
            }
        }
    }

    /// The file of a size with the median time.
    fn middle(&self, size_mb: u64) -> Option<&File> {
        let mut files: Vec<&File> = self.files(size_mb).collect();
        files.sort_by_key(|file| file.fetched.time);
        files.get(files.len() / 2).copied()
    }
}

fn sender_text(sender: &SenderView) -> String {
    let SenderView { info, counters } = sender;
    let percent = f64::from(info.total_retrans) * 1e2 / f64::from(info.data_segs_out.max(1));
    format!(
        "{} segments sent again ({percent:.1} %), {} of them in vain; {} recoveries, {} taken \
         back; {} timeouts; slow start ended by delay {} times; reordering seen {} times, up to {} \
         segments; window {} segments and round trip {} ms at the end",
        info.total_retrans,
        counters.dsacks,
        counters.recoveries,
        counters.undone,
        counters.timeouts,
        counters.slow_start_ends,
        info.reord_seen,
        info.reordering,
        info.snd_cwnd,
        info.srtt_us / 1000,
    )
}

impl Course {
    /// Counters of all nodes.
    fn stats(&self) -> impl Iterator<Item = &DidaStats> {
        self.nodes.iter().filter_map(|status| status.node.dida.as_ref())
    }

    fn node_text(&self) -> Option<String> {
        self.stats().next()?;
        let sum = |count: fn(&DidaStats) -> u64| self.stats().map(count).sum::<u64>();
        let passed = sum(|stats| {
            let (forwarded, ends) = (&stats.forwarded, &stats.held_ends);
            let at_once = forwarded.early_duplicate
                + forwarded.released_duplicate
                + forwarded.unheld_duplicate;
            at_once + ends.total() - ends.discarded
        });
        Some(format!(
            "{passed} duplicate ACKs reached the sender, {} were held and discarded, {} held and \
             sent when the hold ended; SACK blocks of {} ACKs kept back",
            sum(|stats| stats.held_ends.discarded),
            sum(|stats| stats.held_ends.expired),
            sum(|stats| stats.masked),
        ))
    }

    fn held_now(&self) -> u64 {
        self.stats().map(|stats| stats.held_now).sum()
    }
}

/// The bars: files, shares, and what is held when all is over.
fn checks(measured: &Measured) -> Vec<Figure> {
    let courses = || measured.shown.iter().flat_map(|shown| &shown.courses);
    let files = || courses().flat_map(|course| &course.files);
    let incomplete = files().filter(|file| !file.fetched.is_complete()).count();
    let changed = files().filter(|file| !file.fetched.is_intact).count();
    let held: u64 = courses().map(Course::held_now).sum();
    let name = format!("downloads that did not complete, of {}", files().count());
    let mut figures = vec![
        Figure::count(name, incomplete as u64).exactly(0.0, SOURCE),
        Figure::count("downloads that did not arrive byte for byte", changed as u64)
            .exactly(0.0, SOURCE),
        Figure::count("duplicate ACKs held when all downloads had ended", held)
            .exactly(0.0, SOURCE),
    ];
    for shown in &measured.shown {
        figures.extend(shown.share_check());
    }
    figures
}

impl Shown {
    /// The share of the primary that lies farthest from the middle of what was configured.
    fn share_check(&self) -> Option<Figure> {
        let Case { carrier, primary_percent, .. } = self.case;
        let (low, high) = (*primary_percent)?;
        debug_assert!(*carrier == Carrier::Node, "only a node has shares");
        let files = self.courses.iter().flat_map(|course| &course.files);
        let shares = files.filter(|file| file.size_mb >= CLAIMED_MB).map(File::primary_percent);
        let off = |share: &f64| (share - (low + high) / 2.0).abs();
        let worst = shares.max_by(|one, other| off(one).total_cmp(&off(other)))?;
        let name = self.name("share of the primary farthest from its aim");
        Some(Figure::number(name, worst, "%").within(Some(low), Some(high), SOURCE))
    }
}
