//! video.3: one access is cut during a download and during playback: nothing breaks.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_toml::proxy::WayIn;

use super::super::{Effort, Figure};
use super::links::{LINKS, Site, Way};
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::output::Progress;
use crate::proxy::{Came, sum_of};
use crate::run;

const SOURCE: &str = "video.3";
/// A clip of 2K while Wi-Fi is cut for 20 s.
const PLAYBACK: &str = "004/cut";
/// When a link is cut, and for how long: longer than a buffer of any proxy or kernel lasts.
const CUT_AFTER: Duration = Duration::from_secs(2);
const CUT_FOR: Duration = Duration::from_secs(8);

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = downloads(effort)?;
    match playback(effort) {
        Ok(more) => figures.extend(more),
        // What was seen of downloads stands; a text lies in no band.
        Err(error) => {
            let why = Figure::text("playback was not measured", format!("{error:#}"));
            figures.push(why.exactly(0.0, SOURCE));
        }
    }
    Ok(figures)
}

/// Downloads of which each link is cut in turn.
fn downloads(effort: Effort) -> Result<Vec<Figure>> {
    let bytes = if effort.is_quick() { 80_000_000 } else { 200_000_000 };
    let (sum, step) = (sum_of(bytes), Duration::from_secs(bytes / 3_000_000));
    let mut progress = Progress::new(2 * LINKS.len(), step * 2 * LINKS.len() as u32);
    let (mut broken, mut wrong) = (0, 0);
    let mut figures = Vec::new();
    for (cut, link) in LINKS.iter().enumerate() {
        let site = Site::build()?;
        let [by_itself, ..] = site.ways();
        let mut download = |way: &Way| -> Result<()> {
            let name = format!("{}, {} cut", way.name, link.name);
            let _step = progress.step(&name, step);
            let came = download(&site, way, bytes, cut);
            match &came {
                Ok(came) => {
                    wrong += u64::from(came.sum != sum);
                    let seconds = came.whole.as_secs_f64();
                    figures.push(Figure::number(format!("{name}: time"), seconds, "s"));
                }
                Err(error) => {
                    broken += 1;
                    figures.push(Figure::text(name, format!("{error:#}")));
                }
            }
            Ok(())
        };
        download(&by_itself)?;
        let _near = site.start_near(WayIn::Redirect)?;
        download(&Site::transparent(WayIn::Redirect))?;
    }
    figures.push(Figure::none("broken connections", broken, SOURCE));
    figures.push(Figure::none("wrong sums", wrong, SOURCE));
    Ok(figures)
}

/// Downloads while a link is cut for some seconds.
fn download(site: &Site, way: &Way, bytes: u64, cut: usize) -> Result<Came> {
    let emulator = &site.topology.customer().links[cut].emulator;
    std::thread::scope(|scope| {
        let cutting = scope.spawn(|| {
            std::thread::sleep(CUT_AFTER);
            emulator.set_cut(true);
            std::thread::sleep(CUT_FOR);
            emulator.set_cut(false);
        });
        let came = way.route.fetch(site.client(way), way.by, site.server(way), bytes);
        cutting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        came
    })
}

/// A clip in Chromium over MPTCP between two proxies, and over the bond.
fn playback(effort: Effort) -> Result<Vec<Figure>> {
    let experiment = ExperimentArgs::of(PLAYBACK);
    let args = RunArgs {
        seeds: Some(if effort.is_quick() { 1 } else { 3 }),
        experiment,
        ..RunArgs::of("", On::Netns)
    };
    let results = run::results(&args).context("playback")?;
    let mut figures = Vec::new();
    for (carrier, told, is_promised) in
        [("mptcp", "two proxies", true), ("bond", "the bond", false), ("bare:wifi", "Wi-Fi", false)]
    {
        let runs = results.runs.iter().filter(|run| run.cell == format!("carrier={carrier}"));
        let most = |metric: &str| {
            let values = runs.clone().filter_map(|run| run.metrics.get(metric).copied());
            values.fold(0.0, f64::max)
        };
        let stalls =
            Figure::number(format!("playback over {told}: stalls at 2K"), most("stalls.clip"), "");
        figures.push(if is_promised { stalls.exactly(0.0, SOURCE) } else { stalls });
        let stalled = most("stalled_s.clip");
        figures.push(Figure::number(format!("playback over {told}: stood still"), stalled, "s"));
    }
    Ok(figures)
}
