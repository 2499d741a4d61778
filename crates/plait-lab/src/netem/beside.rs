//! The transfers of a guest, as this machine sees them: asked for in one boot, read, and laid
//! beside the simulator's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Carrier, Measured, OMIT_SECONDS, Runs, Window};
use crate::cli::vm::{Guest, TransfersArgs};
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::figure::{Figure, Summary};
use crate::list::Catalogue;
use crate::output::Align::{Left, Right};
use crate::output::{self, Output, Progress, Table, Verdict};
use crate::record::{Middle, Results, RunRecord, Samples};
use crate::vm::{self, Ended, Job};

/// Links of the transfers under several congestion controls.
pub(crate) const ILLINOIS: &str = "kernel/illinois";
/// Of this machine's time: for the boot, and for each second of the guest's.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
const SECOND_LIMIT: Duration = Duration::from_secs(5);
/// The same on a core to itself.
const BOOT_TIME: Duration = Duration::from_secs(15);

/// What is measured in one boot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) guest: Guest,
    /// A scenario, for its links.
    pub(crate) scenario: &'a str,
    /// Congestion controls of the kernel.
    pub(crate) controls: &'a [String],
    /// The emulator's links as well.
    pub(crate) emulator: bool,
    /// A shell command before it.
    pub(crate) before: Option<&'a str>,
    pub(crate) runs: Runs,
    pub(crate) seconds: u32,
}

impl Request<'_> {
    /// Boots a guest and returns what its runs had.
    pub(crate) fn measure(&self) -> Result<Vec<Measured>> {
        let links = Catalogue::find(None)?.load(self.scenario, &[])?.experiment.scenario.links;
        let on_links: u32 = links.values().map(|link| self.runs.on(link)).sum();
        let controls = u32::try_from(self.controls.len()).context("controls are few")?;
        let carriers = if self.emulator { 2 } else { 1 };
        let runs = on_links * controls * carriers;
        let seconds = (self.seconds + OMIT_SECONDS) * runs;
        let mut progress = Progress::new(1, BOOT_TIME + Duration::from_secs(seconds.into()));
        let what = format!("{runs} transfers in the guest {}", self.guest.name());
        let _step = progress.step(&what, BOOT_TIME + Duration::from_secs(seconds.into()) / 2);
        let command = self.command();
        let limit = BOOT_LIMIT + SECOND_LIMIT * seconds;
        let ended = vm::boot(self.guest, Job { name: "netem", command: &command, limit })?;
        anyhow::ensure!(
            ended.code == 0,
            "the transfers failed in the guest {}: {}",
            self.guest.name(),
            ended.said.trim()
        );
        read(&ended)
    }

    fn command(&self) -> Vec<String> {
        let before = self.before.map_or_else(String::new, |before| format!("{before} && "));
        let script = format!("{before}exec plait-lab --json netem \"$@\"");
        let mut words = vec!["sh".to_owned(), "-c".to_owned(), script, "netem".to_owned()];
        words.push(self.scenario.to_owned());
        for control in self.controls {
            words.extend(["--control".to_owned(), control.clone()]);
        }
        words.extend(self.emulator.then(|| "--emulator".to_owned()));
        words.extend(["--runs".to_owned(), self.runs.each.to_string()]);
        words.extend(["--runs-lossy".to_owned(), self.runs.lossy.to_string()]);
        words.extend(["--seconds".to_owned(), self.seconds.to_string()]);
        words
    }
}

fn read(ended: &Ended) -> Result<Vec<Measured>> {
    let is_run = |line: &&str| line.starts_with(r#"{"type":"run""#);
    let record = |line: &str| {
        serde_json::from_str(line).with_context(|| format!("no run of the guest: {line}"))
    };
    ended.out.lines().filter(is_run).map(record).collect()
}

/// The figures of a link under a control: means over the runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) goodput_mbit: f64,
    pub(crate) rtt_p50_ms: f64,
    pub(crate) window: Window,
    pub(crate) reductions_per_minute: f64,
}

/// The figures of these runs; `None` without any.
pub(crate) fn figures<'a>(runs: impl Iterator<Item = &'a Measured> + Clone) -> Option<Figures> {
    let mean = |of: fn(&Measured) -> f64| {
        Some(Samples::new(runs.clone().map(of).collect())?.middle(Middle::Mean))
    };
    let median = |of: fn(&Measured) -> f64| Samples::median(runs.clone().map(of));
    Some(Figures {
        goodput_mbit: mean(|run| run.goodput_mbit)?,
        rtt_p50_ms: median(|run| run.rtt_p50_ms)?,
        window: Window {
            p25: mean(|run| run.window.p25)?,
            p50: mean(|run| run.window.p50)?,
            p75: mean(|run| run.window.p75)?,
        },
        reductions_per_minute: mean(|run| run.reductions_per_minute)?,
    })
}

/// The runs of one link, carrier and control.
pub(crate) fn of<'a>(
    all: &'a [Measured],
    link: &'a str,
    carrier: Carrier,
    control: &'a str,
) -> impl Iterator<Item = &'a Measured> + Clone {
    let is_it =
        move |run: &&Measured| run.link == link && run.carrier == carrier && run.control == control;
    all.iter().filter(is_it)
}

/// The simulator's name of a congestion control.
fn simulated_name(control: &str) -> &str {
    match control.strip_prefix(BPF).unwrap_or(control) {
        "cubic" => "cubic-linux",
        "reno" => "new-reno",
        other => other,
    }
}

/// What the simulator has on the links of [`ILLINOIS`] under a control, by link.
pub(crate) fn simulated(
    control: &str,
    runs: u32,
    seconds: u32,
) -> Result<BTreeMap<String, Figures>> {
    let links = Catalogue::find(None)?.load(ILLINOIS, &[])?.experiment.scenario.links;
    let name = simulated_name(control);
    let setting = |link: &String| format!("app.{link}.controller=\"{name}\"");
    let mut settings: Vec<String> = links.keys().map(setting).collect();
    settings.push(format!("duration_s={}", seconds + OMIT_SECONDS));
    let experiment = ExperimentArgs { settings, ..ExperimentArgs::of(ILLINOIS) };
    let args = RunArgs { seeds: Some(runs.into()), experiment, ..RunArgs::of(ILLINOIS, On::Sim) };
    let results = crate::run::results(&args)?;
    let found = links.into_keys().map(|link| -> Result<(String, Figures)> {
        let figures = of_results(&results, &link, seconds);
        Ok((link.clone(), figures.with_context(|| format!("no run on {link}"))?))
    });
    found.collect()
}

fn of_results(results: &Results, link: &str, seconds: u32) -> Option<Figures> {
    let mean = |of: &dyn Fn(&RunRecord) -> Option<f64>| {
        let values = results.runs.iter().filter_map(of).collect();
        Some(Samples::new(values)?.middle(Middle::Mean))
    };
    let metric = |run: &RunRecord, name: &str| run.metrics.get(&format!("{name}.{link}")).copied();
    let quantile = |share: f64| {
        mean(&|run| {
            let series = run.series.get(&format!("cwnd.{link}"))?;
            let omitted = (f64::from(OMIT_SECONDS) / run.interval_s).round() as usize;
            let counted = series.iter().skip(omitted).copied().flatten().collect();
            Some(Samples::new(counted)?.quantile(share))
        })
    };
    let minutes = f64::from(seconds + OMIT_SECONDS) / 60.0;
    let reductions = |run: &RunRecord| {
        let timeouts = metric(run, "timeouts").unwrap_or(0.0);
        Some((metric(run, "fast_recoveries")? + timeouts) / minutes)
    };
    Some(Figures {
        goodput_mbit: mean(&|run| metric(run, "goodput_mbit"))?,
        // The simulator sends no pings.
        rtt_p50_ms: f64::NAN,
        window: Window { p25: quantile(0.25)?, p50: quantile(0.5)?, p75: quantile(0.75)? },
        reductions_per_minute: mean(&reductions)?,
    })
}

/// How far a control that a BPF program adds may be from the kernel's own of its name.
const TWIN_SHARE: f64 = 0.1;
const BPF: &str = "bpf_";

/// Each control that a BPF program added beside the kernel's own of that name, where both were
/// measured: goodput and window on each link.
pub(crate) fn twins(all: &[Measured], controls: &[String]) -> Vec<Figure> {
    let links: BTreeSet<&str> = all.iter().map(|run| run.link.as_str()).collect();
    let mut found = Vec::new();
    for control in controls {
        let Some(own) = control.strip_prefix(BPF) else { continue };
        for link in &links {
            let on = |control: &str| figures(of(all, link, Carrier::Netem, control));
            let (Some(bpf), Some(own)) = (on(control), on(own)) else { continue };
            let ratio = |what: &str, bpf: f64, own: f64| {
                let name = format!("{link}: {what}, {control} over the kernel's own");
                Figure::number(name, bpf / own, "ratio").within(
                    Some(1.0 - TWIN_SHARE),
                    Some(1.0 + TWIN_SHARE),
                    "within 10 % of each other in one boot",
                )
            };
            found.push(ratio("goodput", bpf.goodput_mbit, own.goodput_mbit));
            found.push(ratio("median window", bpf.window.p50, own.window.p50));
        }
    }
    found
}

#[derive(Serialize)]
struct Row<'a> {
    link: &'a str,
    control: &'a str,
    kernel: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<Figures>,
}

/// `plait-lab vm transfers`.
pub(crate) fn run(args: &TransfersArgs, output: &Output) -> Result<Verdict> {
    let TransfersArgs { controls, guest, before, runs, seconds } = args;
    let request = Request {
        guest: *guest,
        scenario: ILLINOIS,
        controls,
        emulator: false,
        before: before.as_deref(),
        runs: Runs::alike(*runs),
        seconds: *seconds,
    };
    let all = request.measure()?;
    let heads = [
        ("link", Left),
        ("control", Left),
        ("on", Left),
        ("goodput", Right),
        ("window p25 / p50 / p75", Right),
        ("reductions a minute", Right),
        ("ping p50", Right),
    ];
    let mut table = Table::new(&heads);
    for control in controls {
        let simulated = simulated(control, *runs, *seconds).unwrap_or_else(|error| {
            output::note(format!("not simulated: {error:#}"));
            BTreeMap::new()
        });
        let links: BTreeSet<&str> = all.iter().map(|run| run.link.as_str()).collect();
        for link in links {
            let runs = of(&all, link, Carrier::Netem, control);
            let kernel = figures(runs).with_context(|| format!("no run on {link}"))?;
            let simulated = simulated.get(link).copied();
            output.record("transfers", &Row { link, control, kernel, simulated })?;
            table.row(cells(link, control, "kernel", kernel));
            if let Some(simulated) = simulated {
                table.row(cells(link, control, "simulator", simulated));
            }
        }
    }
    output.lines(table.lines())?;
    let twins = twins(&all, controls);
    for twin in &twins {
        let (value, verdict) = (twin.value_text(), twin.verdict());
        output.line(format!("{}: {value} ({}): {verdict}", twin.name, twin.band_text()))?;
    }
    let summary = Summary::new("vm transfers", &twins, serde_json::json!({}));
    output.record("summary", &summary)?;
    Ok(Verdict::of(summary.ok))
}

fn cells(link: &str, control: &str, on: &str, figures: Figures) -> Vec<String> {
    let Figures { goodput_mbit, rtt_p50_ms, window, reductions_per_minute } = figures;
    let Window { p25, p50, p75 } = window;
    let ping = if rtt_p50_ms.is_nan() { String::new() } else { format!("{rtt_p50_ms:.1} ms") };
    vec![
        link.to_owned(),
        control.to_owned(),
        on.to_owned(),
        format!("{goodput_mbit:.2} Mbit/s"),
        format!("{p25:.1} / {p50:.1} / {p75:.1}"),
        format!("{reductions_per_minute:.1}"),
        ping,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(run: u32, goodput_mbit: f64) -> Measured {
        Measured {
            link: "near".into(),
            carrier: Carrier::Netem,
            control: "cubic".into(),
            run,
            goodput_mbit,
            rtt_p50_ms: 20.0 * f64::from(run),
            window: Window { p25: 1.0, p50: 2.0, p75: 3.0 },
            reductions_per_minute: 4.0,
            late_p99_us: None,
        }
    }

    #[test]
    fn records_come_out_of_a_guest() {
        let record = serde_json::to_string(&measured(1, 9.5)).unwrap();
        let out = format!("{{\"type\":\"run\",{}\n{{\"type\":\"summary\"}}\n", &record[1..]);
        let ended = Ended { code: 0, out, said: String::new() };
        assert_eq!(read(&ended).unwrap(), [measured(1, 9.5)]);
        let cut = Ended { out: "{\"type\":\"run\",\"link\":".into(), ..ended };
        assert!(read(&cut).unwrap_err().to_string().contains("no run of the guest"));
    }

    #[test]
    fn runs_are_summed_up() {
        let runs = [measured(1, 9.0), measured(2, 9.0), measured(3, 12.0)];
        let found = figures(of(&runs, "near", Carrier::Netem, "cubic")).unwrap();
        assert_eq!((found.goodput_mbit, found.rtt_p50_ms), (10.0, 40.0));
        assert_eq!(figures(of(&runs, "near", Carrier::Emulator, "cubic")), None);
    }

    #[test]
    fn a_twin_that_differs_fails() {
        let controls = ["cubic", "bpf_cubic", "bpf_lia"].map(ToOwned::to_owned);
        let bpf = |goodput| Measured { control: "bpf_cubic".into(), ..measured(1, goodput) };
        let ok = |goodput| {
            let all = [measured(1, 10.0), bpf(goodput)];
            twins(&all, &controls).iter().map(|figure| figure.ok).collect::<Vec<_>>()
        };
        assert_eq!(ok(10.9), [true, true]);
        assert_eq!(ok(8.9), [false, true]);
        assert!(twins(&[bpf(10.0)], &controls).is_empty(), "the kernel's own was not measured");
    }

    #[test]
    fn the_guest_is_asked_by_one_command() {
        let controls = ["illinois", "bpf_illinois"].map(ToOwned::to_owned);
        let request = Request {
            guest: Guest::Qemu,
            scenario: ILLINOIS,
            controls: &controls,
            emulator: false,
            before: Some("plait cc load bpf_illinois"),
            runs: Runs { each: 2, lossy: 9 },
            seconds: 10,
        };
        let words = request.command();
        assert_eq!(words[2], "plait cc load bpf_illinois && exec plait-lab --json netem \"$@\"");
        let rest = "netem kernel/illinois --control illinois --control bpf_illinois --runs 2 \
                    --runs-lossy 9 --seconds 10";
        assert_eq!(words[3..].join(" "), rest);
    }

    #[test]
    fn controls_have_their_twins_in_the_simulator() {
        let names = ["cubic", "reno", "illinois", "bpf_illinois", "bpf_lia"].map(simulated_name);
        assert_eq!(names, ["cubic-linux", "new-reno", "illinois", "illinois", "lia"]);
    }
}
