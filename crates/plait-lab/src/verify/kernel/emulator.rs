//! kernel.6: the lab's emulator beside the netem of Linux 6.1, in one boot of one guest.

use anyhow::{Context, Result};

use super::super::{Effort, Figure};
use crate::cli::vm::Guest;
use crate::list::Catalogue;
use crate::netem::beside::{Request, figures, of};
use crate::netem::{Carrier, Measured, Runs};
use crate::vm;

const GUEST: Guest = Guest::Qemu;
/// Six links: rates, delays, losses, queues.
const LINKS: &str = "kernel/links";
const CONTROL: &str = "cubic";
/// Runs over a link that loses at random differ more from each other.
const RUNS: Runs = Runs { each: 2, lossy: 10 };
const GOODPUT_SHARE: f64 = 0.05;
const DELAY_SHARE: f64 = 0.1;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    vm::check(GUEST)?;
    let (runs, seconds) = if effort.is_quick() { (Runs::alike(1), 30) } else { (RUNS, 60) };
    let controls = [CONTROL.to_owned()];
    let request = Request {
        guest: GUEST,
        scenario: LINKS,
        controls: &controls,
        emulator: true,
        before: None,
        runs,
        seconds,
    };
    let all = request.measure()?;
    let links = Catalogue::find(None)?.load(LINKS, &[])?.experiment.scenario.links;
    let late = all.iter().filter_map(|run| run.late_p99_us).max().unwrap_or_default();
    let mut found = vec![
        Figure::text(
            "guest",
            format!(
                "{}, one boot, {} runs of {seconds} s, {} where packets are lost at random",
                GUEST.name(),
                runs.each,
                runs.lossy
            ),
        ),
        Figure::number("emulator's 99th percentile of lateness, the most", late as f64, "us"),
    ];
    for link in links.keys() {
        found.extend(of_link(&all, link)?);
    }
    Ok(found)
}

fn of_link(all: &[Measured], link: &str) -> Result<Vec<Figure>> {
    let on = |carrier| {
        let figures = figures(of(all, link, carrier, CONTROL));
        figures.with_context(|| format!("the guest had no run on {link}"))
    };
    let (kernel, ours) = (on(Carrier::Netem)?, on(Carrier::Emulator)?);
    let words = format!(
        "{:.2} and {:.2} Mbit/s; {:.1} and {:.1} ms; window {:.0} and {:.0}; {:.1} and {:.1} \
         reductions a minute",
        ours.goodput_mbit,
        kernel.goodput_mbit,
        ours.rtt_p50_ms,
        kernel.rtt_p50_ms,
        ours.window.p50,
        kernel.window.p50,
        ours.reductions_per_minute,
        kernel.reductions_per_minute,
    );
    let ratio = |what: &str, ours: f64, kernel: f64, share: f64| {
        Figure::number(format!("{link}: {what}, emulator over netem"), ours / kernel, "ratio")
            .within(Some(1.0 - share), Some(1.0 + share), "netem of Linux 6.1")
    };
    Ok(vec![
        Figure::text(format!("{link}: emulator and netem"), words),
        ratio("goodput", ours.goodput_mbit, kernel.goodput_mbit, GOODPUT_SHARE),
        ratio("median ping under load", ours.rtt_p50_ms, kernel.rtt_p50_ms, DELAY_SHARE),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netem::Window;

    fn run(carrier: Carrier, goodput_mbit: f64, rtt_p50_ms: f64) -> Measured {
        Measured {
            link: "near".into(),
            carrier,
            control: CONTROL.into(),
            run: 1,
            goodput_mbit,
            rtt_p50_ms,
            window: Window { p25: 1.0, p50: 2.0, p75: 3.0 },
            reductions_per_minute: 4.0,
            late_p99_us: None,
        }
    }

    #[test]
    fn a_link_that_differs_fails() {
        let verdicts = |ours: Measured| {
            let all = [run(Carrier::Netem, 10.0, 20.0), ours];
            let figures = of_link(&all, "near").unwrap();
            figures.iter().filter(|figure| figure.is_check()).map(|one| one.ok).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(run(Carrier::Emulator, 10.4, 21.9)), [true, true]);
        assert_eq!(verdicts(run(Carrier::Emulator, 9.4, 17.9)), [false, false]);
        let missing = of_link(&[run(Carrier::Netem, 10.0, 20.0)], "near").unwrap_err();
        assert!(missing.to_string().contains("near"), "{missing}");
    }
}
