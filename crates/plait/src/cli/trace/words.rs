//! A trace's words: samples as lines and rows, and what it cost.

use std::time::Duration;

use plait_trace::course::Course;
use plait_trace::sample::Sample;
use serde::Serialize;

use crate::cli::format::{bytes, milliseconds};

/// What a trace was, at its end.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) seconds: f64,
    pub(super) samples: u64,
    pub(super) samples_per_second: f64,
    /// Processor time of this program and of what the kernel ran for it, of one core.
    pub(super) core_percent: f64,
    /// Samples that nobody took in time.
    pub(super) lost: u64,
}

impl Summary {
    pub(super) fn new(time: Duration, samples: u64, processor: Duration, lost: u64) -> Self {
        let seconds = time.as_secs_f64().max(1e-9);
        Self {
            seconds,
            samples,
            samples_per_second: samples as f64 / seconds,
            core_percent: processor.as_secs_f64() / seconds * 100.0,
            lost,
        }
    }

    pub(super) fn sentence(&self) -> String {
        let lost = match self.lost {
            0 => String::new(),
            lost => format!("; {lost} samples were lost"),
        };
        format!(
            "{} samples in {:.1} s, {:.0} per second; the trace took {:.1} % of a core{lost}",
            self.samples, self.seconds, self.samples_per_second, self.core_percent
        )
    }
}

/// Figures of a sample, in the order of [`COLUMNS`].
fn figures(sample: &Sample) -> [String; 7] {
    [
        sample.cwnd.to_string(),
        sample.ssthresh.map_or_else(|| "-".into(), |segments| segments.to_string()),
        bytes(sample.send_window_bytes.into()),
        milliseconds(Some(sample.srtt_us.into())),
        megabits(sample.rate_bps),
        sample.retransmits.to_string(),
        bytes(sample.acked_bytes),
    ]
}

/// A column of figures.
struct Column {
    head: &'static str,
    /// In characters, without the space before it.
    width: usize,
    /// Where the screen is narrow, the lowest is left out first.
    rank: u8,
}

impl Column {
    const fn new(head: &'static str, width: usize, rank: u8) -> Self {
        Self { head, width, rank }
    }
}

const COLUMNS: [Column; 7] = [
    Column::new("cwnd", 6, 5),
    Column::new("ssthresh", 8, 2),
    Column::new("window", 8, 1),
    Column::new("srtt ms", 7, 6),
    Column::new("Mbit/s", 8, 7),
    Column::new("retrans", 7, 4),
    Column::new("acked", 8, 3),
];

/// Which columns have room in so many characters.
fn fitting(room: usize) -> [bool; COLUMNS.len()] {
    let mut is_shown = [true; COLUMNS.len()];
    for lowest in 1.. {
        let shown = COLUMNS.iter().zip(is_shown).filter(|(_, is_shown)| *is_shown);
        let needed: usize = shown.map(|(column, _)| column.width + 1).sum();
        if needed <= room {
            break;
        }
        for (column, is_shown) in COLUMNS.iter().zip(&mut is_shown) {
            *is_shown &= column.rank > lowest;
        }
    }
    is_shown
}

fn megabits(bps: u64) -> String {
    format!("{}.{:02}", bps / 1_000_000, bps % 1_000_000 / 10_000)
}

fn ends(sample: &Sample) -> String {
    format!("{} > {}", sample.local, sample.remote)
}

/// A sample as a line of its own.
pub(super) fn line(sample: &Sample) -> String {
    let token = sample.token.map_or_else(String::new, |token| format!(" token {token:08x}"));
    let figures =
        COLUMNS.iter().zip(figures(sample)).map(|(column, it)| format!(" {} {it}", column.head));
    format!("{:.3} {}{token}{}\n", sample.at_s, ends(sample), figures.collect::<String>())
}

/// The live table of a screen so wide: a row per socket, subflows below their connection; and the
/// columns for which there is no room.
pub(super) fn table(
    groups: &[Vec<&Course>],
    screen_width: usize,
) -> (Vec<String>, Vec<&'static str>) {
    let width = |sample: &Sample| ends(sample).len() + if sample.token.is_some() { 2 } else { 0 };
    let all = || groups.iter().flatten();
    let wide = all().map(|course| width(&course.latest)).max().unwrap_or_default().max(10);
    let is_shown = fitting(screen_width.saturating_sub(wide));
    let columns = |figures: [String; 7]| -> String {
        let shown = COLUMNS.iter().zip(figures).zip(is_shown).filter(|(_, is_shown)| *is_shown);
        let cell = |((column, figure), _): ((&Column, String), bool)| {
            let width = column.width;
            format!(" {figure:>width$}")
        };
        shown.map(cell).collect()
    };
    let heads = COLUMNS.each_ref().map(|column| column.head.to_owned());
    let mut lines = vec![format!("{:wide$}{}", "connection", columns(heads))];
    for group in groups {
        let token = group[0].latest.token;
        lines.extend(token.map(|token| format!("MPTCP, token {token:08x}")));
        for course in group {
            let indent = if token.is_some() { "  " } else { "" };
            let name = format!("{indent}{}", ends(&course.latest));
            lines.push(format!("{name:wide$}{}", columns(figures(&course.latest))));
        }
    }
    let hidden = COLUMNS.iter().zip(is_shown).filter(|(_, is_shown)| !is_shown);
    (lines, hidden.map(|(column, _)| column.head).collect())
}

#[cfg(test)]
mod tests {
    use plait_trace::course::Courses;

    use super::*;

    fn sample(socket: u64, token: Option<u32>) -> Sample {
        let text = format!(
            "{{\"at_s\":1.5,\"socket\":{socket},\"local\":\"10.0.0.1:5\",\"remote\":\"10.0.0.2:8\",\
             \"cwnd\":10,\"ssthresh\":null,\"send_window_bytes\":65535,\"srtt_us\":20500,\
             \"rate_bps\":5250000,\"retransmits\":3,\"mss_bytes\":1448,\"acked_bytes\":7}}"
        );
        Sample { token, ..serde_json::from_str(&text).unwrap() }
    }

    #[test]
    fn a_line_names_its_figures() {
        let expected = "1.500 10.0.0.1:5 > 10.0.0.2:8 token 000000ab cwnd 10 ssthresh - \
                        window 65.5 kB srtt ms 20.5 Mbit/s 5.25 retrans 3 acked 7 B\n";
        assert_eq!(line(&sample(1, Some(0xab))), expected);
    }

    #[test]
    fn subflows_stand_below_their_connection() {
        let mut courses = Courses::default();
        for (socket, token) in [(1, Some(7)), (2, None), (3, Some(7))] {
            courses.take(sample(socket, token));
        }
        let (lines, hidden) = table(&courses.by_connection(), 100);
        assert_eq!(hidden, [""; 0]);
        let begins: Vec<_> = lines.iter().map(|line| &line[..10]).collect();
        assert_eq!(begins, ["connection", "MPTCP, tok", "  10.0.0.1", "  10.0.0.1", "10.0.0.1:5"]);
        assert!(lines[2..].iter().all(|line| line.len() == lines[0].len()), "{lines:?}");
    }

    #[test]
    fn a_narrow_screen_has_the_columns_that_tell_most() {
        let mut courses = Courses::default();
        courses.take(sample(1, None));
        for (width, hidden) in [
            (82, &[][..]),
            (81, &["window"]),
            (60, &["ssthresh", "window", "acked"]),
            (30, &["cwnd", "ssthresh", "window", "srtt ms", "Mbit/s", "retrans", "acked"]),
        ] {
            let (lines, left_out) = table(&courses.by_connection(), width);
            assert_eq!(left_out, hidden, "{width}");
            assert!(lines.iter().all(|line| line.len() <= width), "{lines:?}");
        }
    }

    #[test]
    fn the_cost_is_that_of_a_core() {
        let summary = Summary::new(Duration::from_secs(4), 100, Duration::from_millis(100), 0);
        let expected = "100 samples in 4.0 s, 25 per second; the trace took 2.5 % of a core";
        assert_eq!(summary.sentence(), expected);
        let summary = Summary::new(Duration::ZERO, 0, Duration::ZERO, 9);
        assert!(summary.sentence().ends_with("; 9 samples were lost"));
    }
}
