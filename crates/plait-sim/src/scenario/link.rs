//! `[links.NAME]`: the links.

use std::collections::BTreeMap;
use std::sync::Arc;

use plait_proto::time::Duration;
use plait_proto::units::Rate;
use plait_toml::{Bounds, Place, Problem, Problems, Section, Table, Value};

use super::error::no_such;
use super::files::Reader;
use super::medium::Kind;
use super::span::{Span, millis};
use crate::link::{Access, Bucket, Discipline, RateSteps, Room, Trace};
use crate::ratio::Ratio;

mod air;
mod behind;
mod course;
pub(in crate::scenario) mod limits;

pub use air::AirSpec;
use behind::read_behind;

/// A link between customer and provider.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkSpec {
    /// What it is, for people; may be empty.
    pub title: String,
    /// Source of its numbers; may be empty.
    pub source: String,
    /// Customer to provider.
    pub up: DirectionSpec,
    /// Provider to customer.
    pub down: DirectionSpec,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Price class in the bond; cheapest first.
    pub price: u8,
    /// Static weight for the `fixed` scheduler.
    pub weight: u16,
    /// Another link that this one's packets also cross, between it and the provider; all links that
    /// name it share it.
    pub through: Option<String>,
    /// Its radio, when it is on a medium. Then capacity and queue of both directions are what it
    /// has alone.
    pub air: Option<AirSpec>,
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct DirectionSpec {
    /// How much passes.
    pub capacity: Capacity,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Largest extra delay.
    pub jitter: Duration,
    /// Whether the extra delay may reorder packets.
    pub reorder: bool,
    /// Packets lost at random.
    pub loss: LossSpec,
    /// Packets that wait for the transmitter.
    pub queue: QueueSpec,
    /// Limits what enters the queue.
    pub policer: Option<Bucket>,
    /// Limits what leaves the queue.
    pub shaper: Option<Bucket>,
    /// When the transmitter may send.
    pub access: Access,
    /// When the link is cut.
    pub outages: Vec<Span>,
}

impl DirectionSpec {
    /// A direction that loses nothing, has no jitter, and a drop-tail queue of 50 ms.
    pub fn new(capacity: Capacity, delay: Duration) -> Self {
        let bytes = capacity.rate_at_first().bytes_in(millis(DROP_TAIL_MS));
        Self {
            capacity,
            delay,
            jitter: Duration::ZERO,
            reorder: false,
            loss: LossSpec::Bernoulli(Ratio::ZERO),
            queue: QueueSpec { discipline: Discipline::DropTail, room: Room::Bytes(bytes) },
            policer: None,
            shaper: None,
            access: Access::Always,
            outages: Vec::new(),
        }
    }

    /// The long-run rate for full packets.
    pub fn mean_rate(&self) -> Rate {
        let rate = behind_queue(self.capacity.mean_rate(), self.shaper, self.access);
        self.policer.map_or(rate, |bucket| bucket.rate.min(rate))
    }

    /// The longest that a packet waits, while the link sends at all.
    pub fn longest_wait(&self) -> Duration {
        let rate = match &self.capacity {
            Capacity::Steps { steps, .. } => steps.lowest().unwrap_or(Rate::ZERO),
            Capacity::Fixed(_) | Capacity::Trace(_) => self.capacity.mean_rate(),
        };
        let turn = match self.access {
            Access::Always => Duration::ZERO,
            Access::Granted(grants) => grants.gap_max,
            Access::Contended(aggregation) => aggregation.access_max + aggregation.air_max,
        };
        let rate = behind_queue(rate, self.shaper, self.access);
        self.queue.room.time_at(rate, MTU_BYTES.into()).saturating_add(turn)
    }
}

/// The rate at which a queue empties, for full packets.
fn behind_queue(rate: Rate, shaper: Option<Bucket>, access: Access) -> Rate {
    access.mean_rate(shaper.map_or(rate, |bucket| bucket.rate.min(rate)))
}

/// How much passes through a link, at the IP layer.
#[derive(Clone, PartialEq, Debug)]
pub enum Capacity {
    /// A transmitter of fixed rate.
    Fixed(Rate),
    /// A transmitter whose rate changes at given times after the start of the scenario.
    Steps {
        /// The rates; their zero is the scenario's start.
        steps: Arc<RateSteps>,
        /// Their mean over the run.
        mean: Rate,
    },
    /// A recorded capacity.
    Trace(Arc<Trace>),
}

impl Capacity {
    /// The rate, or the mean of one that changes.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Self::Fixed(rate) | Self::Steps { mean: rate, .. } => *rate,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }

    /// The rate before the first step, or a trace's mean.
    pub fn rate_at_first(&self) -> Rate {
        match self {
            Self::Steps { steps, .. } => steps.base(),
            Self::Fixed(_) | Self::Trace(_) => self.mean_rate(),
        }
    }
}

/// Packets lost at random, after the transmitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossSpec {
    /// Each independently.
    Bernoulli(Ratio),
    /// A chain of two states (Gilbert 1960, Elliott 1963), which moves once per packet.
    GilbertElliott {
        /// Probability of leaving the good state.
        good_to_bad: Ratio,
        /// Probability of leaving the bad state.
        bad_to_good: Ratio,
        /// Loss in the good state.
        loss_good: Ratio,
        /// Loss in the bad state.
        loss_bad: Ratio,
    },
}

/// The queue before the transmitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueSpec {
    /// Which packets are dropped.
    pub discipline: Discipline,
    /// How much may wait; what does not fit is dropped.
    pub room: Room,
}

/// Time that a drop-tail queue holds at the link's rate by default, in milliseconds.
const DROP_TAIL_MS: f64 = 50.0;
/// The same for CoDel and PIE, which keep their queue short themselves.
const MANAGED_MS: f64 = 1000.0;
/// Room for a full packet and the tunnel's framing.
const MTU_BYTES: u16 = 1600;
const RTT_MAX_MS: f64 = 10_000.0;

const CAPACITY: &[&str] = &["rate_mbit", "trace"];
/// A direction with one of these options uses its own steps, if any.
const STEPS: &[&str] = &["rate_mbit", "trace", "rate_steps", "rate_repeat_s"];
/// A course is a share of the direction's own rate, so it may be set for the link.
const COURSE: &[&str] = &["course", "trace", "rate_steps"];
const QUEUE_ROOM: &[&str] = &["queue_ms", "queue_bytes", "queue_packets"];
const ACCESS: &[&str] = &["grants", "aggregation"];
/// An option, and the options of the base conditions that it replaces.
const REPLACES: &[(&str, &[&str])] = &[
    ("rate_mbit", &["trace", "rate_steps", "rate_repeat_s", "course", "medium"]),
    ("trace", &["rate_mbit", "rate_steps", "rate_repeat_s", "course", "grants", "aggregation"]),
    ("rate_steps", &["rate_repeat_s", "course"]),
    ("course", &["rate_steps", "rate_repeat_s", "grants", "aggregation"]),
    ("queue_ms", &["queue_bytes", "queue_packets"]),
    ("queue_bytes", &["queue_ms", "queue_packets", "queue_scales"]),
    ("queue_packets", &["queue_ms", "queue_bytes", "queue_scales"]),
    ("grants", &["aggregation"]),
    ("aggregation", &["grants"]),
];
/// Options that a direction may set for itself.
const OF_DIRECTION: &[&str] = &[
    "rate_mbit",
    "rate_steps",
    "rate_repeat_s",
    "trace",
    "course",
    "policer",
    "shaper",
    "grants",
    "aggregation",
    "queue",
    "queue_ms",
    "queue_bytes",
    "queue_packets",
    "queue_scales",
    "loss",
    "reorder",
    "outages_s",
    "delay_ms",
];

/// The context for reading a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) files: &'a Reader<'a>,
    /// The media.
    pub(super) media: &'a BTreeMap<&'a str, Kind>,
    /// How long the run lasts.
    pub(super) duration: Duration,
}

/// Reads every link; those that are wrong are left out.
pub(super) fn read_all(
    sections: Vec<(&str, Section<'_>)>,
    around: Around<'_>,
) -> BTreeMap<String, LinkSpec> {
    let mut links = BTreeMap::new();
    for (name, section) in sections {
        let name_bytes_max = plait_proto::config::LinkConfig::NAME_BYTES_MAX;
        if name.is_empty() || name.len() > name_bytes_max || name.contains(['.', '=', ',']) {
            let text = format!("\"{name}\" is no name for a link");
            let help = format!("use 1 to {name_bytes_max} bytes without `.`, `=` and `,`");
            section.problem("", Problem::new(text, help));
        }
        if let Some(link) = read_like(section, around) {
            links.insert(name.to_owned(), link);
        }
    }
    links
}

/// The largest IP packet that crosses a link and the one behind it (`through`), in bytes; `None`
/// when there is no such link.
pub(super) fn path_mtu(links: &BTreeMap<String, LinkSpec>, name: &str) -> Option<u16> {
    let link = links.get(name)?;
    let through = link.through.as_ref().and_then(|through| links.get(through));
    Some(through.map_or(link.mtu, |through| link.mtu.min(through.mtu)))
}

/// Checks links' references to each other.
pub(super) fn check_through(
    places: &BTreeMap<&str, Place>,
    links: &BTreeMap<String, LinkSpec>,
    problems: &Problems,
) {
    for (name, link) in links {
        let Some(through) = &link.through else { continue };
        let add = |problem| {
            problems.add(&places[name.as_str()], format!("[links.{name}] through"), problem);
        };
        let others = places.keys().filter(|other| **other != name.as_str());
        let known: Vec<String> = others.map(|other| (*other).to_owned()).collect();
        if !known.contains(through) {
            add(no_such("other link", through, known));
        } else if links.get(through).is_some_and(|other| other.through.is_some()) {
            let text = format!("\"{through}\" itself runs through another link");
            add(Problem::new(text, "name a link that runs through none"));
        }
    }
}

/// Reads a link that may be based on a file of named conditions.
fn read_like(mut section: Section<'_>, around: Around<'_>) -> Option<LinkSpec> {
    let place = section.place_of("like");
    let Some(like) = section.text("like") else { return read(section, around) };
    let base = match around.files.table(&place, &like) {
        Ok(base) => base,
        Err(error) => {
            error.note(&section, "like", around.files.problems());
            return None;
        }
    };
    if let Some(nested) = base.get("like") {
        let problem = Problem::new(
            "a file of link conditions that is like another",
            "write all of its options in this file",
        );
        section.problem_at(&nested.key_place, "like", problem);
    }
    let merged = overlay(base, section.entries()?);
    read(section.with_entries(&merged), around)
}

/// The base, with the section's own options replacing the base's.
fn overlay(mut base: Table, own: &Table) -> Table {
    for (key, replaced) in REPLACES {
        if own.contains_key(*key) {
            base.retain(|key, _| !replaced.contains(&key.as_str()));
        }
    }
    for (key, entry) in own {
        let both = (base.get_mut(key).map(|entry| &mut entry.node.value), &entry.node.value);
        match both {
            (Some(Value::Table(under)), Value::Table(over))
                if ["up", "down"].contains(&key.as_str()) =>
            {
                *under = overlay(std::mem::take(under), over);
            }
            _ => {
                base.insert(key.clone(), entry.clone());
            }
        }
    }
    base
}

fn read(mut section: Section<'_>, around: Around<'_>) -> Option<LinkSpec> {
    section.know(&["like"]);
    section.know(OF_DIRECTION);
    let title = section.text("title").unwrap_or_default();
    let source = section.text("source").unwrap_or_default();
    let rtt = section.range("rtt_ms", Bounds::new(0.0, RTT_MAX_MS, "milliseconds"));
    let mtu = section.integer("mtu", (576, 9000), "bytes").unwrap_or(MTU_BYTES);
    let price = section.integer("price", (0, 255), "").unwrap_or(0);
    let weight = section.integer("weight", (1, 65_535), "").unwrap_or(1);
    let through = section.text("through");
    let is_on_air = section.holds_any(&["medium"]);
    let air = is_on_air.then(|| air::read(&mut section, around.media));
    if !is_on_air {
        section.know(&["medium"]);
        section.no_effect(air::OPTIONS, "a rate of its own", "links on a medium");
    }
    let (up, down) = (section.single("up"), section.single("down"));
    let delays_are_given = [&up, &down].iter().all(|own| own.holds_any(&["delay_ms"]));
    if !section.holds_any(&["rtt_ms", "delay_ms"]) && !delays_are_given {
        section.missing("rtt_ms", "rtt_ms = 20");
    }
    let common = Common { rtt, mtu, around };
    let (up, down) = if is_on_air {
        let air = air.as_ref().and_then(Option::as_ref);
        section.no_effect(&["through"], "medium", "links without a medium");
        section.no_effect(air::DECIDED, "medium", "links without a medium");
        let up = air::read_way(up, &mut section, rtt, air);
        (up, air::read_way(down, &mut section, rtt, air))
    } else {
        let up = read_direction(up, &mut section, common);
        (up, read_direction(down, &mut section, common))
    };
    section.finish();
    let (up, down) = up.zip(down)?;
    Some(LinkSpec { title, source, up, down, mtu, price, weight, through, air: air.flatten() })
}

/// The context for reading both directions.
#[derive(Clone, Copy)]
struct Common<'a> {
    rtt: Option<(f64, f64)>,
    mtu: u16,
    around: Around<'a>,
}

/// Reads one direction; an option that stands in `own` wins over the link's.
fn read_direction<'a>(
    mut own: Section<'a>,
    link: &mut Section<'a>,
    Common { rtt, mtu, around }: Common<'_>,
) -> Option<DirectionSpec> {
    own.know(OF_DIRECTION);
    let capacity = read_capacity(pick(&mut own, link, CAPACITY), around.files);
    // A queue's room follows the rate as given, whatever changes it later.
    let nominal = capacity.as_ref().map_or(Rate::ZERO, Capacity::rate_at_first);
    let course = course::read(pick(&mut own, link, COURSE), nominal);
    let capacity = read_steps(pick(&mut own, link, STEPS), capacity, around.duration);
    let capacity = course.or(capacity);
    let policer = limits::read_bucket(pick(&mut own, link, &["policer"]), "policer", mtu);
    let shaper = limits::read_bucket(pick(&mut own, link, &["shaper"]), "shaper", mtu);
    let section = pick(&mut own, link, ACCESS);
    let mut access = limits::read_access(section);
    if matches!(capacity, Some(Capacity::Trace(_))) {
        section.no_effect(ACCESS, "trace", "links without a trace");
        access = Access::Always;
    }
    let rate = behind_queue(nominal, shaper, access);
    let discipline = pick(&mut own, link, &["queue"]).choice("queue", &DISCIPLINES);
    let scales = pick(&mut own, link, &["queue_scales"]).boolean("queue_scales").unwrap_or(false);
    let discipline = discipline.unwrap_or_default();
    let room = read_room(pick(&mut own, link, QUEUE_ROOM), discipline);
    let room = match room {
        Room::Time(time) if !scales => Room::Bytes(rate.bytes_in(time)),
        other => other,
    };
    let queue = QueueSpec { discipline, room };
    let behind = read_behind(&mut own, link, rtt);
    own.finish();
    let (capacity, behind) = (capacity?, behind?);
    let plain = DirectionSpec::new(capacity, behind.delay);
    Some(behind.of(DirectionSpec { policer, shaper, access, queue, ..plain }))
}

/// The disciplines by name.
const DISCIPLINES: [(&str, Discipline); 3] =
    [("drop-tail", Discipline::DropTail), ("codel", Discipline::CoDel), ("pie", Discipline::Pie)];

/// Where to read a group of options: in the direction's own section if it has any of them.
fn pick<'s, 'a>(
    own: &'s mut Section<'a>,
    link: &'s mut Section<'a>,
    group: &[&str],
) -> &'s mut Section<'a> {
    if own.holds_any(group) { own } else { link }
}

fn read_capacity(section: &mut Section<'_>, files: &Reader<'_>) -> Option<Capacity> {
    if section.holds_any(&["trace"]) {
        section.no_effect(&["rate_mbit"], "trace", "links without a trace");
        let place = section.place_of("trace");
        let file = section.text("trace")?;
        return match files.trace(&place, &file) {
            Ok(trace) => Some(Capacity::Trace(trace)),
            Err(error) => {
                error.note(section, "trace", files.problems());
                None
            }
        };
    }
    if !section.holds_any(&["rate_mbit"]) {
        section.missing("rate_mbit", "rate_mbit = 50");
        return None;
    }
    let mbit = section.number("rate_mbit", limits::MBIT)?;
    Some(Capacity::Fixed(limits::mbit_rate(mbit)))
}

/// The capacity with its rate's steps.
fn read_steps(
    section: &mut Section<'_>,
    capacity: Option<Capacity>,
    duration: Duration,
) -> Option<Capacity> {
    if matches!(capacity, Some(Capacity::Trace(_))) {
        section.no_effect(&["rate_steps", "rate_repeat_s"], "trace", "links without a trace");
        return capacity;
    }
    let base = capacity.as_ref().map_or(Rate::ZERO, Capacity::mean_rate);
    match (limits::read_steps(section, base), capacity) {
        (Some(steps), Some(_)) => {
            let mean = steps.mean_over(duration);
            Some(Capacity::Steps { steps, mean })
        }
        (_, capacity) => capacity,
    }
}

/// The room as given.
fn read_room(section: &mut Section<'_>, discipline: Discipline) -> Room {
    for (key, others, belongs_to) in [
        ("queue_bytes", ["queue_ms", "queue_packets"], "links without queue_bytes"),
        ("queue_packets", ["queue_ms", "queue_bytes"], "links without queue_packets"),
    ] {
        if section.holds_any(&[key]) {
            section.no_effect(&others, key, belongs_to);
            section.no_effect(&["queue_scales"], key, "queues in milliseconds");
            let most = section.integer(key, (0, 1 << 32), key.trim_start_matches("queue_"));
            let most = most.unwrap_or(0);
            return if key == "queue_bytes" { Room::Bytes(most) } else { Room::Packets(most) };
        }
    }
    let default_ms = match discipline {
        Discipline::DropTail => DROP_TAIL_MS,
        Discipline::CoDel | Discipline::Pie => MANAGED_MS,
    };
    Room::Time(section.millis("queue_ms", 60_000.0).unwrap_or(millis(default_ms)))
}
