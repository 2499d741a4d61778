//! survive.6: how long a download stands still when an interface goes or comes, an address or port
//! changes, a gateway restarts or reads its configuration again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::super::{Effort, Figure};
use super::repeats::Repeats;
use super::{LINKS, Times, USED_AGAIN_MS_MAX, count_alive, ensure_flowing, sleep_until};
use crate::emulator::Way;
use crate::gateway::{Bond, BondSetup};
use crate::measure::{BEAT_INTERVAL, Beat, Stream};
use crate::output::Progress;
use crate::topology::Topology;

const SOURCE: &str = "issue 4: back within 2 s of traffic, in either direction";
/// A path that goes is as a silent cut, and one that comes or moves spoils nothing.
const GAP_SOURCE: &str = "issue 4, promise 1, for a path that goes";
const GAP_MS_MAX: f64 = 300.0;
const USED_SOURCE: &str = "issue 4, promise 1, for a path that heals";
const RELOAD_SOURCE: &str = "SIGHUP keeps bonds";
const RELOAD_GAP_MS_MAX: f64 = 100.0;
const BACK_MS_MAX: f64 = 2000.0;

/// Time in which the download fills both links.
const RAMP: Duration = Duration::from_secs(4);
/// Time after the event in which the download is watched.
const WATCHED: Duration = Duration::from_secs(10);
/// For an interface that is to come back: how long it is gone before that.
const GONE: Duration = Duration::from_secs(3);
/// How long a killed gateway stays away: the time that its host needs to start it again.
const DOWN: Duration = Duration::from_millis(200);
/// A path is used again when it has carried this many datagrams: more than were under way when the
/// event happened.
const USED_PACKETS: u64 = 500;
const POLL: Duration = Duration::from_millis(20);
/// A NAT's new ports.
const OTHER_PORTS: u16 = 0x0155;

/// Something that happens to a bond that carries a download.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The control: TCP makes a download stand still now and then by itself, and so does a machine
    /// that has other work.
    Nothing,
    InterfaceRemoved(&'static str),
    InterfaceBack(&'static str),
    AddressChanged(&'static str),
    NatRebinds(&'static str),
    CustomerKilled,
    ProviderKilled,
    CustomerReloads,
    ProviderReloads,
}

const EVENTS: [Event; 13] = [
    Event::InterfaceRemoved(LINKS[0].name),
    Event::InterfaceRemoved(LINKS[1].name),
    Event::InterfaceBack(LINKS[0].name),
    Event::InterfaceBack(LINKS[1].name),
    Event::AddressChanged(LINKS[0].name),
    Event::AddressChanged(LINKS[1].name),
    Event::NatRebinds(LINKS[0].name),
    Event::NatRebinds(LINKS[1].name),
    Event::CustomerKilled,
    Event::ProviderKilled,
    Event::Nothing,
    Event::CustomerReloads,
    Event::ProviderReloads,
];

impl Event {
    fn name(self) -> String {
        match self {
            Self::Nothing => "no event".into(),
            Self::InterfaceRemoved(link) => format!("interface {link} removed"),
            Self::InterfaceBack(link) => format!("interface {link} back"),
            Self::AddressChanged(link) => format!("address of {link} changed"),
            Self::NatRebinds(link) => format!("NAT of {link} rebinds"),
            Self::CustomerKilled => "calling gateway killed and restarted".into(),
            Self::ProviderKilled => "listening gateway killed and restarted".into(),
            Self::CustomerReloads => "SIGHUP to the calling gateway".into(),
            Self::ProviderReloads => "SIGHUP to the listening gateway".into(),
        }
    }

    /// The link that must carry data again afterwards.
    fn returning(self) -> Option<&'static str> {
        match self {
            Self::InterfaceBack(link) | Self::AddressChanged(link) | Self::NatRebinds(link) => {
                Some(link)
            }
            _ => None,
        }
    }

    fn is_restart(self) -> bool {
        matches!(self, Self::CustomerKilled | Self::ProviderKilled)
    }

    /// What must have happened before the download is watched.
    fn prepare(self, topology: &Topology) -> Result<()> {
        if let Self::InterfaceBack(link) = self {
            topology.remove_interface(link)?;
            std::thread::sleep(GONE);
        }
        Ok(())
    }

    fn happen(self, topology: &Topology, bond: &mut Bond<'_>) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::InterfaceRemoved(link) => topology.remove_interface(link),
            Self::InterfaceBack(link) => topology.return_interface(link),
            Self::AddressChanged(link) => topology.change_address(link),
            Self::NatRebinds(link) => {
                topology.link(link)?.emulator.rebind_ports(OTHER_PORTS);
                Ok(())
            }
            Self::CustomerKilled => {
                bond.customer.kill()?;
                std::thread::sleep(DOWN);
                bond.customer.kill_and_restart(&topology.customer().netns)
            }
            Self::ProviderKilled => {
                bond.provider.kill()?;
                std::thread::sleep(DOWN);
                bond.provider.kill_and_restart(&topology.provider)
            }
            Self::CustomerReloads => bond.customer.reload(),
            Self::ProviderReloads => bond.provider.reload(),
        }
    }
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let each = RAMP + WATCHED;
    let runs = u32::try_from(EVENTS.len() * effort.runs)?;
    let mut progress = Progress::new(runs as usize, each * runs);
    let mut figures = Vec::new();
    let mut repeats = Repeats::default();
    for event in EVENTS {
        let mut found = Found::default();
        for _ in 0..effort.runs {
            let _step = progress.step(&event.name(), each);
            let seen = repeats.undisturbed(&event.name(), || watch(event));
            found.add(seen.with_context(|| event.name())?);
        }
        figures.extend(found.figures(event, effort.runs as u64));
    }
    figures.extend(repeats.figures());
    Ok(figures)
}

/// What an event did to one download.
#[derive(Debug)]
struct Seen {
    standstill: Duration,
    silence: Duration,
    used_again: Option<Duration>,
    alive: u64,
    ended: Option<String>,
}

/// What an event did to downloads.
#[derive(Debug, Default)]
struct Found {
    standstill: Times,
    /// Longest time in which no datagram came through, of both directions.
    silence: Times,
    /// Of the link that an event brings back or changes.
    used_again: Times,
    alive: u64,
    /// How many gateways ended by themselves, with what they said.
    ended: Vec<String>,
}

impl Found {
    fn add(&mut self, seen: Seen) {
        self.standstill.add(seen.standstill);
        self.silence.add(seen.silence);
        seen.used_again.into_iter().for_each(|time| self.used_again.add(time));
        self.alive += seen.alive;
        self.ended.extend(seen.ended);
    }

    fn figures(&self, event: Event, runs: u64) -> Vec<Figure> {
        let name = event.name();
        let mut figures = vec![
            Figure::count(format!("{name}: downloads of {runs} that live"), self.alive)
                .exactly(runs as f64, "issue 4: lose no connection"),
        ];
        let standstill = format!("{name}: download stands still");
        let silence = format!("{name}: no datagram");
        if event.is_restart() {
            // TCP repeats at growing intervals, so a download goes on later than the bond.
            figures.push(Figure::number(standstill, self.standstill.worst_ms(), "ms"));
            figures.extend(self.silence.figures(&silence, BACK_MS_MAX, SOURCE));
        } else if matches!(event, Event::Nothing) {
            let worst = format!("{standstill}, worst of {runs}");
            figures.push(Figure::number(worst, self.standstill.worst_ms(), "ms"));
            let median = format!("{standstill}, median");
            figures.push(Figure::number(median, self.standstill.median_ms(), "ms"));
            figures.push(Figure::number(silence, self.silence.worst_ms(), "ms"));
        } else {
            let (most, source) = match event {
                Event::CustomerReloads | Event::ProviderReloads => {
                    (RELOAD_GAP_MS_MAX, RELOAD_SOURCE)
                }
                _ => (GAP_MS_MAX, GAP_SOURCE),
            };
            figures.extend(self.standstill.figures(&standstill, most, source));
            figures.push(Figure::number(silence, self.silence.worst_ms(), "ms"));
        }
        if event.returning().is_some() {
            let again = format!("{name}: its link used again after");
            figures.extend(self.used_again.figures(&again, USED_AGAIN_MS_MAX, USED_SOURCE));
        }
        if let Some(said) = self.ended.first() {
            let times = self.ended.len() as u64;
            crate::output::note(format!("{name}: {said}"));
            figures.push(
                Figure::count(format!("{name}: gateways that ended"), times)
                    .exactly(0.0, "a gateway goes on"),
            );
        }
        figures
    }
}

/// Time from `start` until the calling gateway has received data over a path again; all the time
/// until `limit` when it does not. What the link counts would not do: it carries datagrams to an
/// old address too.
fn used_after(bond: &mut Bond<'_>, name: &str, start: Instant, limit: Instant) -> Result<Duration> {
    let mut least = None;
    while Instant::now() < limit {
        let paths = bond.customer_peer()?.paths;
        if let Some(path) = paths.iter().find(|path| path.name == name) {
            // A path that is made anew counts from zero.
            let received = path.received_packets;
            let base = least.map_or(received, |least: u64| least.min(received));
            least = Some(base);
            if received - base >= USED_PACKETS {
                return Ok(start.elapsed());
            }
        }
        std::thread::sleep(POLL);
    }
    Ok(limit - start)
}

fn watch(event: Event) -> Result<Seen> {
    let topology = Topology::build(&LINKS)?;
    let setup = BondSetup::over(&LINKS.map(|link| link.name));
    let mut bond = Bond::start(&topology.customer().netns, &topology.provider, &setup)?;
    event.prepare(&topology)?;
    let start = Instant::now();
    let streams = [Stream::start(&topology, Way::Down)?];
    let beat = Beat::start(&topology)?;
    std::thread::sleep(RAMP);
    ensure_flowing(&streams, start)?;
    let happened_at = Instant::now();
    event.happen(&topology, &mut bond)?;
    let until = happened_at + WATCHED;
    let used_again = event.returning().map(|name| used_after(&mut bond, name, happened_at, until));
    let used_again = used_again.transpose()?;
    sleep_until(until);
    let alive = count_alive(&streams);
    let standstill = streams[0].deliveries().longest_gap(happened_at, until);
    let silence = [Way::Up, Way::Down].map(|way| {
        let silence = beat.deliveries(way).longest_gap(happened_at, until);
        silence.saturating_sub(BEAT_INTERVAL)
    });
    let silence = silence.into_iter().max().unwrap_or_default();
    drop((streams, beat));
    // The other figures say what became of the traffic.
    let ended = bond.ensure_both_run().and_then(|()| bond.stop());
    let ended = ended.err().map(|error| format!("{error:#}"));
    Ok(Seen { standstill, silence, used_again, alive, ended })
}
