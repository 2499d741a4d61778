//! `plait-lab holding-time`: 000's holding time under given conditions. Formulas and their sources
//! are in `plait_proto::dida::holding_time`.

mod page;

use anyhow::Result;
use plait_proto::dida::high_speed::{alpha, beta};
use plait_proto::dida::holding_time::{
    self, Conditions, OperatingRange, SUPREMUM_RTT, Timeout, longest, max_holding_time, net_growth,
    optimum, optimum_as_printed, optimum_with_floor, stricter_bound,
};
use serde::Serialize;

use crate::cli::HoldingTimeArgs;
use crate::figure::{Figure, Summary};
use crate::output::{Align, Output, Table, Verdict};
use crate::report::PageFile;

const SECOND_MS: f64 = 1e3;
/// Linux's TCP_RTO_MIN, the least that is added to the smoothed round-trip time.
const RTO_FLOOR_S: f64 = 0.2;
/// The curve's end in round-trip times; its steps are a tenth of one.
const CURVE_RTTS: u32 = 2;
const STEPS_PER_RTT: u32 = 10;

/// All results for the given conditions.
struct HoldingTimes {
    conditions: Conditions,
    timeout: Timeout,
    difference_s: Option<f64>,
    width_s: f64,
    t_mht_s: f64,
    stricter_s: f64,
    /// The longest hold of the policies.
    longest_s: f64,
    /// The holding time of the default policy.
    default_s: f64,
    range: Option<OperatingRange>,
}

impl HoldingTimes {
    fn of(args: &HoldingTimeArgs) -> Self {
        let seconds = |ms: f64| ms / SECOND_MS;
        let rtt_s = seconds(args.rtt);
        let rttvar_s = args.rttvar.map_or(rtt_s / 10.0, seconds);
        let sample_s = args.sample.map_or(rtt_s, seconds);
        let usual = Timeout::with_floor(rtt_s, rttvar_s, sample_s, RTO_FLOOR_S);
        let timeout = Timeout { rto_s: args.rto.map_or(usual.rto_s, seconds), ..usual };
        let conditions = Conditions { rtt_s, w_segments: args.w, t_e_s: args.t_e };
        let difference_s = args.difference.map(seconds);
        let width_s = args.width.map_or(rtt_s / 5.0, seconds);
        let t_mht_s = max_holding_time(&timeout);
        Self {
            conditions,
            timeout,
            difference_s,
            width_s,
            t_mht_s,
            stricter_s: stricter_bound(&timeout),
            longest_s: longest(&timeout),
            default_s: optimum_with_floor(&conditions, difference_s, longest(&timeout)),
            range: holding_time::operating_range(&conditions, t_mht_s, width_s),
        }
    }

    /// The conditions in words.
    fn sentence(&self) -> String {
        let Self { conditions, timeout, .. } = self;
        let difference = self.difference_s.map(|difference_s| {
            format!(", delay difference {} ms", rounded(difference_s * SECOND_MS))
        });
        format!(
            "RTT {} ms, window {} segments, {} s since the last congestion event; latest sample {} \
             ms, RTTVAR {} ms, RTO {} ms{}.",
            rounded(conditions.rtt_s * SECOND_MS),
            rounded(conditions.w_segments),
            rounded(conditions.t_e_s),
            rounded(timeout.sample_s * SECOND_MS),
            rounded(timeout.rttvar_s * SECOND_MS),
            rounded(timeout.rto_s * SECOND_MS),
            difference.unwrap_or_default(),
        )
    }

    fn figures(&self) -> Vec<Figure> {
        let Self { conditions, .. } = self;
        let w = conditions.w_segments;
        let ms = |name: &str, seconds: f64| Figure::number(name, seconds * SECOND_MS, "ms");
        let mut figures = vec![
            ms("default: optimum with floor", self.default_s),
            ms("optimum (000 eq. 5, sign put right)", optimum(conditions)),
            ms("optimum as printed (000 eq. 5)", optimum_as_printed(conditions)),
            ms("net growth", net_growth(conditions, self.longest_s)),
            ms("supremum of the optimum, 0.582 RTT", SUPREMUM_RTT * conditions.rtt_s),
            ms("T_MHT (000 eq. 1)", self.t_mht_s),
            ms("stricter bound, RTO - R' - RTTVAR", self.stricter_s),
        ];
        if let Some(range) = self.range {
            figures.push(ms("operating range, LB", range.low_s));
            figures.push(ms("operating range, UB", range.high_s));
        }
        figures.push(Figure::number("alpha(w) (RFC 3649)", alpha(w), "ratio"));
        figures.push(Figure::number("beta(w) (RFC 3649)", beta(w), "ratio"));
        figures.push(ms("rho, success over failure", conditions.rho_s()));
        figures
    }

    /// The end of the curve: at most T_MHT, from which on every hold is long enough.
    fn curve_end_s(&self) -> f64 {
        (f64::from(CURVE_RTTS) * self.conditions.rtt_s).min(self.t_mht_s.max(0.0))
    }

    fn point(&self, hold_s: f64) -> Point {
        Point {
            hold_ms: hold_s * SECOND_MS,
            gain_segments: self.conditions.gain(hold_s, self.t_mht_s),
            net_gain_segments: self.conditions.net_gain(hold_s, self.t_mht_s),
        }
    }

    /// The curve in steps of a tenth of the round-trip time; empty where T_MHT is not above 0.
    fn curve(&self) -> Vec<Point> {
        let end_s = self.curve_end_s();
        let steps = 0..=CURVE_RTTS * STEPS_PER_RTT;
        let step_s = self.conditions.rtt_s / f64::from(STEPS_PER_RTT);
        let holds = steps.map(|step| f64::from(step) * step_s);
        // Rounding must not drop the last step.
        let within = |hold_s: &f64| end_s > 0.0 && *hold_s <= end_s * (1.0 + 1e-9);
        holds.filter(within).map(|hold_s| self.point(hold_s)).collect()
    }

    fn no_range(&self) -> &'static str {
        if optimum(&self.conditions) <= 0.0 {
            "No operating range: the optimum is 0, since rho does not exceed the round-trip time."
        } else {
            "No operating range: the optimum lies beyond T_MHT."
        }
    }
}

/// One point of the curve.
#[derive(Clone, Copy, Debug, Serialize)]
struct Point {
    hold_ms: f64,
    /// ϑ of 000's equation 3.
    gain_segments: f64,
    /// The same with increments on both sides.
    net_gain_segments: f64,
}

/// The summary's content; there are no checks.
#[derive(Serialize)]
struct More<'a> {
    command: &'a str,
    rtt_ms: f64,
    w_segments: f64,
    t_e_s: f64,
    sample_ms: f64,
    rttvar_ms: f64,
    rto_ms: f64,
    width_ms: f64,
}

pub(crate) fn run(args: &HoldingTimeArgs, output: &Output) -> Result<Verdict> {
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    let answer = HoldingTimes::of(args);
    let (figures, curve) = (answer.figures(), answer.curve());
    output.line(answer.sentence())?;
    output.line("")?;
    output.lines(figures_table(&figures).lines())?;
    if answer.range.is_none() {
        output.line(answer.no_range())?;
    }
    output.line("")?;
    output.lines(curve_table(&curve).lines())?;
    if curve.is_empty() {
        output.line("No curve: T_MHT is not above 0. Try a larger --rto or a smaller --rttvar.")?;
    }
    output.records("figure", &figures)?;
    output.records("point", &curve)?;
    let command = args.command();
    output.record("summary", &Summary::new("holding-time", &figures, more(&answer, &command)))?;
    if let Some(page) = page {
        page.write_text(&page::html(&answer, &figures, &command))?;
    }
    Ok(Verdict::Good)
}

fn more<'a>(answer: &HoldingTimes, command: &'a str) -> More<'a> {
    let HoldingTimes { conditions, timeout, .. } = answer;
    More {
        command,
        rtt_ms: conditions.rtt_s * SECOND_MS,
        w_segments: conditions.w_segments,
        t_e_s: conditions.t_e_s,
        sample_ms: timeout.sample_s * SECOND_MS,
        rttvar_ms: timeout.rttvar_s * SECOND_MS,
        rto_ms: timeout.rto_s * SECOND_MS,
        width_ms: answer.width_s * SECOND_MS,
    }
}

fn figures_table(figures: &[Figure]) -> Table {
    let mut table = Table::of_numbers(&["what", "value"]);
    for figure in figures {
        table.row([figure.name.clone(), figure.value_text()]);
    }
    table
}

fn curve_table(curve: &[Point]) -> Table {
    let columns = ["hold, ms", "gain, segments", "net gain, segments"];
    let mut table = Table::new(&columns.map(|name| (name, Align::Right)));
    for point in curve {
        table.row([
            format!("{:.1}", point.hold_ms),
            format!("{:.2}", point.gain_segments),
            format!("{:.2}", point.net_gain_segments),
        ]);
    }
    table
}

fn rounded(number: f64) -> String {
    crate::report::words::number(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(rtt: f64, w: f64, t_e: f64) -> HoldingTimeArgs {
        HoldingTimeArgs {
            rtt,
            w,
            t_e,
            sample: None,
            rttvar: None,
            rto: None,
            difference: None,
            width: None,
            html: None,
        }
    }

    fn value(figures: &[Figure], name: &str) -> String {
        let found = figures.iter().find(|figure| figure.name.starts_with(name));
        found.unwrap_or_else(|| panic!("no figure {name}")).value_text()
    }

    #[test]
    fn figures_at_000s_conditions() {
        let answer = HoldingTimes::of(&args(100.0, 38.0, 30.0));
        let figures = answer.figures();
        for (name, expected) in [
            ("default", "50.0 ms"),
            ("optimum (000", "49.9 ms"),
            ("optimum as printed", "2963.0 ms"),
            ("net growth", "68.7 ms"),
            ("supremum", "58.2 ms"),
            ("T_MHT", "1280.0 ms"),
            ("stricter bound", "190.0 ms"),
            ("beta", "0.500"),
        ] {
            assert_eq!(value(&figures, name), expected, "{name}");
        }
        assert!(answer.range.is_some());
        let curve = answer.curve();
        assert_eq!((curve.len(), curve[20].hold_ms.round()), (21, 200.0));
    }

    /// The erratum of equation 1: with a timeout of 1 s it allows 6.88 s.
    #[test]
    fn equation_1_allows_more_than_the_timeout() {
        let with = HoldingTimeArgs { rto: Some(1000.0), ..args(100.0, 38.0, 30.0) };
        let figures = HoldingTimes::of(&with).figures();
        assert_eq!(value(&figures, "T_MHT"), "6880.0 ms");
        assert_eq!(value(&figures, "stricter bound"), "890.0 ms");
    }

    #[test]
    fn without_an_optimum_or_a_bound_it_says_so() {
        let deadlocked = HoldingTimes::of(&args(100.0, 500.0, 1.0));
        assert!(deadlocked.range.is_none() && deadlocked.no_range().contains("optimum is 0"));
        assert_eq!(value(&deadlocked.figures(), "default"), "50.0 ms", "the floor");
        let shaky = HoldingTimeArgs { rttvar: Some(60.0), ..args(100.0, 38.0, 30.0) };
        let shaky = HoldingTimes::of(&shaky);
        assert!(shaky.t_mht_s.abs() < 1e-9 && shaky.no_range().contains("beyond T_MHT"));
        assert!(shaky.curve().len() <= 1);
    }

    /// The default policy here equals that of the state machine.
    #[test]
    fn the_measured_difference_is_a_floor() {
        let with = HoldingTimeArgs { difference: Some(80.0), ..args(100.0, 38.0, 30.0) };
        assert_eq!(value(&HoldingTimes::of(&with).figures(), "default"), "80.0 ms");
        let beyond = HoldingTimeArgs { difference: Some(800.0), ..args(100.0, 38.0, 30.0) };
        assert_eq!(value(&HoldingTimes::of(&beyond).figures(), "default"), "190.0 ms");
    }
}
