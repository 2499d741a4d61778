//! kernel.1: all six controllers load, run a transfer, unload, and leave nothing; nor does a loader
//! that is killed.

use std::time::Duration;

use anyhow::{Context, Result};

use super::super::{Effort, Figure};
use super::loaded::{self, InKernel, cc, cc_in};
use super::site::{Site, seen};
use crate::output::Progress;

const SOURCE: &str = "kernel.1";
const CONTROLLERS: [&str; 6] = ["whitehaul", "edinburgh", "lia", "olia", "balia", "illinois"];
/// What the sender's namespace has before and after.
const PLAIN: &str = "reno";
/// Loaders killed, and by how much later than the one before.
const KILLS: u32 = 40;
const KILLS_QUICK: u32 = 20;
/// Of these a loader must have got so far, else the kills say nothing.
const IN_FORCE_SHARE_MIN: f64 = 0.25;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    loaded::mount_bpffs()?;
    loaded::ensure_can_load()?;
    let site = Site::build()?;
    site.allow_multipath()?;
    cc_in(site.sender(), &["use", PLAIN])?;
    let before = InKernel::now()?;
    let seconds = if effort.is_quick() { 3 } else { 10 };
    let step = Duration::from_secs(seconds + 3);
    let mut progress = Progress::new(CONTROLLERS.len() + 1, step * 7);
    let (mut ran, mut unlike, mut left) = (0, 0, Vec::new());
    let mut figures = Vec::new();
    for name in CONTROLLERS {
        let _step = progress.step(name, step);
        let run = run_one(&site, name, Duration::from_secs(seconds))?;
        ran += u64::from(run.subflows == 2);
        unlike += run.others;
        left.extend(before.new_since()?);
        figures.push(Figure::mbit(format!("{name}: both links"), run.rate_bps));
    }
    let kills = if effort.is_quick() { KILLS_QUICK } else { KILLS };
    let killed = {
        let _step = progress.step("killed", step);
        kill_loaders(kills, &before)?
    };
    let all = CONTROLLERS.len() as f64;
    figures.extend([
        Figure::count("controllers that ran both subflows", ran).exactly(all, SOURCE),
        Figure::none("sockets with another controller", unlike, SOURCE),
        told("programs, maps and links left", left),
        Figure::count("killed loaders", kills.into()),
        Figure::count("of these, controllers that were in force", killed.loaded)
            .at_least(IN_FORCE_SHARE_MIN * f64::from(kills), "chosen: a quarter of the kills"),
        Figure::count("of these, left half loaded", killed.incomplete),
        Figure::none("of these, not listed, or not removed by `--all`", killed.unlisted, SOURCE),
        told("programs, maps and links left after that", killed.left),
    ]);
    Ok(figures)
}

/// A count that must be zero, with what it counts in its name where it is not.
fn told(name: &str, what: Vec<String>) -> Figure {
    let names = if what.is_empty() { String::new() } else { format!(": {}", what.join(", ")) };
    Figure::none(format!("{name}{names}"), what.len() as u64, SOURCE)
}

struct Run {
    rate_bps: u64,
    /// Subflows that ran the controller.
    subflows: usize,
    /// Sockets with another one.
    others: u64,
}

/// Loads a controller, sends over both links with it, and unloads it.
fn run_one(site: &Site, name: &str, time: Duration) -> Result<Run> {
    cc(&["load", name])?;
    cc_in(site.sender(), &["use", name])?;
    let transfer = site.transfer(true)?;
    std::thread::sleep(time);
    let sockets = seen(site.sender())?;
    let rate_bps = transfer.stop();
    cc_in(site.sender(), &["use", PLAIN])?;
    unload_when_free(name)?;
    let kernel_name = format!("bpf_{name}");
    let subflows = sockets.iter().filter(|socket| socket.controller == kernel_name).count();
    Ok(Run { rate_bps, subflows, others: (sockets.len() - subflows) as u64 })
}

/// Connections that have been closed last a moment longer in the kernel.
fn unload_when_free(name: &str) -> Result<()> {
    crate::process::wait_until("unloading", Duration::from_secs(20), || {
        Ok(cc(&["unload", name]).ok())
    })
    .with_context(|| format!("{name} stays: {:?}", cc(&["unload", name]).err()))?;
    Ok(())
}

#[derive(Default)]
struct Killed {
    loaded: u64,
    incomplete: u64,
    unlisted: u64,
    left: Vec<String>,
}

/// Kills loaders, each a little later than the one before, and has the next start clean up.
fn kill_loaders(count: u32, before: &InKernel) -> Result<Killed> {
    let whole = {
        let begun = std::time::Instant::now();
        cc(&["load", "olia"])?;
        let taken = begun.elapsed();
        cc(&["unload", "olia"])?;
        taken
    };
    let mut sum = Killed::default();
    for turn in 1..=count {
        let mut loader = loaded::command(&["load", "olia"])?
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()?;
        std::thread::sleep(2 * whole * turn / count);
        loader.kill()?;
        loader.wait()?;
        match loaded::state_of(&loaded::listed()?, "olia").as_str() {
            "loaded" => sum.loaded += 1,
            "absent" => {}
            _ => sum.incomplete += 1,
        }
        // Exit code 1: there was nothing.
        let _nothing = cc(&["unload", "--all"]);
        let records = loaded::listed()?;
        sum.unlisted += u64::from(loaded::state_of(&records, "olia") != "absent");
    }
    sum.left = before.new_since()?;
    Ok(sum)
}
