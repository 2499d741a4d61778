//! survive.2: a link that begins to lose a fifth of its packets.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plait_sim::link::{LinkConfig, Loss};
use plait_sim::ratio::Ratio;

use super::super::{Effort, Figure};
use super::repeats::Repeats;
use super::{LINKS, sleep_until};
use crate::emulator::{Emulator, Way};
use crate::gateway::{Bond, BondSetup};
use crate::measure::{Stream, median};
use crate::output::Progress;
use crate::topology::Topology;

const SOURCE: &str = "issue 4, promise 2";
const RATIO_MIN: f64 = 0.9;
const LOSS: Loss = Loss::Bernoulli(Ratio::from_percent(20));
/// From the onset to the time that counts.
const NOTICE: Duration = Duration::from_secs(5);

/// The time before the onset and the time that counts.
#[derive(Clone, Copy, Debug)]
struct Spans {
    ramp: Duration,
    counted: Duration,
}

impl Spans {
    fn total(self) -> Duration {
        self.ramp + NOTICE + self.counted
    }
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let quick = effort.runs == 1;
    let counted = Duration::from_secs(if quick { 8 } else { 20 });
    let spans = Spans { ramp: Duration::from_secs(if quick { 4 } else { 8 }), counted };
    let runs = u32::try_from(4 * effort.runs)?;
    let mut progress = Progress::new(runs as usize, spans.total() * runs);
    let [dsl, lte] = LINKS.map(|link| link.name);
    let mut figures = Vec::new();
    let mut repeats = Repeats::default();
    for (lossy, good) in [(dsl, lte), (lte, dsl)] {
        let mut rates = |what: &str, paths: &[&str]| -> Result<u64> {
            let mut all = Vec::new();
            for _ in 0..effort.runs {
                let _step = progress.step(what, spans.total());
                let rate = repeats.undisturbed(what, || rate_bps(paths, lossy, spans));
                all.push(rate.with_context(|| what.to_owned())?);
            }
            Ok(median(all))
        };
        let alone = rates(&format!("{good} alone through plait"), &[good])?;
        let bond = rates(&format!("both, {lossy} losing 20 %"), &[dsl, lte])?;
        figures.push(Figure::mbit(format!("{good} alone through plait"), alone));
        figures.push(Figure::mbit(format!("bond while {lossy} loses 20 %"), bond));
        let ratio = bond as f64 / alone as f64;
        let name = format!("bond while {lossy} loses 20 %, of {good} alone");
        figures.push(Figure::number(name, ratio, "ratio").at_least(RATIO_MIN, SOURCE));
    }
    figures.extend(repeats.figures());
    Ok(figures)
}

/// Rate of one download over `paths` from [`NOTICE`] after the onset of `lossy`'s losses on.
fn rate_bps(paths: &[&str], lossy: &str, spans: Spans) -> Result<u64> {
    let topology = Topology::build(&LINKS)?;
    let setup = BondSetup::over(paths);
    let mut bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    let stream = Stream::start(&topology, Way::Down)?;
    std::thread::sleep(spans.ramp);
    begin_to_lose(&topology.link(lossy)?.emulator);
    let from = Instant::now() + NOTICE;
    let until = from + spans.counted;
    sleep_until(until);
    let rate = stream.deliveries().rate_bps(from, until);
    let death = stream.death();
    ensure!(death.is_none(), "the connection died: {}", death.unwrap_or_default());
    drop(stream);
    bond.stop()?;
    Ok(rate)
}

fn begin_to_lose(emulator: &Emulator) {
    emulator.reconfigure(|config| LinkConfig { loss: LOSS, ..config });
}
