//! `[[event]]`: what happens during a run. A cut, a rate, or a flow that starts changes a link's or
//! an application's own timeline, and is merged into it when a seed is drawn; events of gateways,
//! interfaces and addresses are left to the back-end.

use std::collections::BTreeMap;
use std::sync::Arc;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;
use plait_toml::{Bounds, Problem, Section};

use super::error::no_such;
use super::link::{Capacity, DirectionSpec, limits};
use super::medium::{DBM, ratio};
use super::{AppSpec, LinkSpec, MediumSpec, Scenario, Span};
use crate::link::RateSteps;
use crate::prng::Prng;
use crate::ratio::Ratio;

/// Something that happens at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// When, since the run began; the earliest time where each seed draws its own.
    pub at: Duration,
    /// The latest time; equal to `at` where nothing is drawn.
    pub at_latest: Duration,
    /// What happens.
    pub action: Action,
}

/// What happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A link loses everything in both directions, while its interface stays; for so long, or until
    /// it is healed.
    Cut(String, Option<Duration>),
    /// A cut link works again.
    Heal(String),
    /// A link has another rate in both directions.
    Rate(String, NewRate),
    /// A link loses each packet with this probability, in both directions.
    Loss(String, Ratio),
    /// Both ends of a link on a medium send with this power, in dBm.
    Power(String, f64),
    /// A link on a medium senses this share of another one's frames, named second.
    Coupling(String, String, Ratio),
    /// An interferer begins to send, or stops.
    Interferer(String, bool),
    /// The customer's interface of a link is gone.
    Unplug(String),
    /// The interface is back.
    Plug(String),
    /// The NAT on a link loses its state, and assigns other ports.
    Rebind(String),
    /// The customer gets another address on a link.
    Readdress(String),
    /// A gateway's process ends without a farewell.
    Kill(Gateway),
    /// It is started again.
    Restart(Gateway),
    /// A gateway reads its configuration again.
    Reload(Gateway),
    /// An application starts.
    Start(String),
    /// An application stops sending.
    Stop(String),
}

/// The rate that a link changes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewRate {
    /// This one, in both directions.
    To(Rate),
    /// This share of each direction's initial rate.
    Share(Ratio),
}

/// One of the two gateways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gateway {
    /// The one with the links, which calls.
    Customer,
    /// The one that is called.
    Provider,
}

const ACTIONS: [&str; 16] = [
    "cut",
    "heal",
    "rate",
    "loss",
    "power",
    "coupling",
    "interferer",
    "unplug",
    "plug",
    "rebind",
    "readdress",
    "kill",
    "restart",
    "reload",
    "start",
    "stop",
];
const GATEWAYS: [(&str, Gateway); 2] =
    [("customer", Gateway::Customer), ("provider", Gateway::Provider)];
/// Options that belong to some actions only.
const OPTIONS: [&str; 11] = [
    "link",
    "gateway",
    "app",
    "rate_mbit",
    "share",
    "loss",
    "for_s",
    "power_dbm",
    "from",
    "interferer",
    "on",
];

impl Action {
    /// The link to which it happens.
    pub fn link(&self) -> Option<&str> {
        match self {
            Self::Cut(link, _)
            | Self::Heal(link)
            | Self::Rate(link, _)
            | Self::Loss(link, _)
            | Self::Power(link, _)
            | Self::Coupling(link, ..)
            | Self::Unplug(link)
            | Self::Plug(link)
            | Self::Rebind(link)
            | Self::Readdress(link) => Some(link),
            _ => None,
        }
    }

    /// Whether it affects something that only a bond has.
    pub fn needs_bond(&self) -> bool {
        matches!(self, Self::Kill(_) | Self::Restart(_) | Self::Reload(_))
    }

    /// Whether it happens on a medium.
    pub fn is_on_air(&self) -> bool {
        matches!(self, Self::Power(..) | Self::Coupling(..) | Self::Interferer(..))
    }

    /// Whether it is merged into a link's or an application's timeline.
    fn is_course(&self) -> bool {
        matches!(
            self,
            Self::Cut(..) | Self::Heal(_) | Self::Rate(..) | Self::Start(_) | Self::Stop(_)
        )
    }
}

/// The context for reading events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) duration: Duration,
    pub(super) link_names: &'a [&'a str],
    pub(super) links: &'a BTreeMap<String, LinkSpec>,
    pub(super) media: &'a BTreeMap<String, MediumSpec>,
    pub(super) app_names: &'a [String],
    pub(super) has_bond: bool,
}

/// Reads every event; those that are wrong are left out.
pub(super) fn read_all(sections: Vec<Section<'_>>, around: Around<'_>) -> Vec<Event> {
    sections.into_iter().filter_map(|section| read(section, around)).collect()
}

fn read(mut section: Section<'_>, around: Around<'_>) -> Option<Event> {
    if !section.holds_any(&["at_s"]) {
        section.missing("at_s", "at_s = 10");
    }
    let (at, at_latest) = section.seconds_range("at_s").unwrap_or_default();
    if at_latest >= around.duration {
        let text = "it would happen after the end of the run";
        section.problem("at_s", Problem::new(text, "let it happen before duration_s"));
    }
    let action = read_action(&mut section, around);
    if section.holds_any(&["action"]) {
        section.know(&OPTIONS);
    }
    section.finish();
    Some(Event { at, at_latest, action: action? })
}

fn read_action(section: &mut Section<'_>, around: Around<'_>) -> Option<Action> {
    let names = ACTIONS.map(|name| (name, name));
    if !section.holds_any(&["action"]) {
        section.missing("action", "action = \"cut\"");
    }
    let action = section.choice("action", &names)?;
    let needs: &[&'static str] = match action {
        "cut" => &["link", "for_s"],
        "rate" => &["link", "rate_mbit", "share"],
        "loss" => &["link", "loss"],
        "power" => &["link", "power_dbm"],
        "coupling" => &["link", "from", "share"],
        "interferer" => &["interferer", "on"],
        "kill" | "restart" | "reload" => &["gateway"],
        "start" | "stop" => &["app"],
        _ => &["link"],
    };
    let others: Vec<&'static str> =
        OPTIONS.iter().copied().filter(|option| !needs.contains(option)).collect();
    section.no_effect(&others, &format!("action = \"{action}\""), "other actions");
    if needs[0] == "gateway" {
        return read_of_gateway(section, action, around.has_bond);
    }
    if needs[0] == "interferer" {
        return read_interferer(section, around);
    }
    if needs[0] == "app" {
        let app = named(section, "app", "application", around.app_names)?;
        return Some(if action == "start" { Action::Start(app) } else { Action::Stop(app) });
    }
    let known: Vec<String> = around.link_names.iter().map(|name| (*name).to_owned()).collect();
    let link = named(section, "link", "link", &known)?;
    Some(match action {
        "cut" => Action::Cut(link, section.seconds("for_s")),
        "heal" => Action::Heal(link),
        "rate" => read_rate(section, link, around)?,
        "power" | "coupling" => read_of_air(section, action, link, around)?,
        "loss" => {
            if !section.holds_any(&["loss"]) {
                section.missing("loss", "loss = 0.2");
            }
            Action::Loss(link, read_share(section, "loss")?)
        }
        "unplug" => Action::Unplug(link),
        "plug" => Action::Plug(link),
        "readdress" => Action::Readdress(link),
        _ => Action::Rebind(link),
    })
}

fn read_of_gateway(section: &mut Section<'_>, action: &str, has_bond: bool) -> Option<Action> {
    if !section.holds_any(&["gateway"]) {
        section.missing("gateway", "gateway = \"customer\"");
    }
    let gateway = section.choice("gateway", &GATEWAYS)?;
    if !has_bond {
        let problem = Problem::new("the scenario has no gateways", "add [bond], or take it out");
        section.problem("action", problem);
    }
    Some(match action {
        "kill" => Action::Kill(gateway),
        "restart" => Action::Restart(gateway),
        _ => Action::Reload(gateway),
    })
}

/// Reads what happens to a link's radio.
fn read_of_air(
    section: &mut Section<'_>,
    action: &str,
    link: String,
    around: Around<'_>,
) -> Option<Action> {
    let medium_of = |name: &str| Some(&around.links.get(name)?.air.as_ref()?.medium);
    let medium = medium_of(&link);
    if medium.is_none() && around.links.contains_key(&link) {
        let problem = Problem::new("the link is on no medium", "name a link with `medium`");
        section.problem("link", problem);
    }
    if action == "power" {
        if !section.holds_any(&["power_dbm"]) {
            section.missing("power_dbm", "power_dbm = 14");
        }
        return Some(Action::Power(link, section.number("power_dbm", DBM)?));
    }
    let beside = |other: &&&str| **other != link && medium_of(other) == medium;
    let beside = around.link_names.iter().filter(beside).map(|name| (*name).to_owned());
    let from = named(section, "from", "other link of this medium", &beside.collect::<Vec<_>>());
    if !section.holds_any(&["share"]) {
        section.missing("share", "share = 0.35");
    }
    let share = section.number("share", Bounds::new(0.0, 1.0, ""));
    Some(Action::Coupling(link, from?, ratio(share?)))
}

fn read_interferer(section: &mut Section<'_>, around: Around<'_>) -> Option<Action> {
    let all = around.media.values().flat_map(|medium| &medium.interferers);
    let known: Vec<String> = all.map(|interferer| interferer.name.clone()).collect();
    let name = named(section, "interferer", "interferer", &known);
    if !section.holds_any(&["on"]) {
        section.missing("on", "on = true");
    }
    Some(Action::Interferer(name?, section.boolean("on")?))
}

fn read_rate(section: &mut Section<'_>, link: String, around: Around<'_>) -> Option<Action> {
    let rate = if section.holds_any(&["share"]) {
        section.no_effect(&["rate_mbit"], "share", "events without a share");
        NewRate::Share(read_share(section, "share")?)
    } else {
        if !section.holds_any(&["rate_mbit"]) {
            section.missing("rate_mbit", "rate_mbit = 5");
        }
        NewRate::To(limits::mbit_rate(section.number("rate_mbit", limits::MBIT_OR_NONE)?))
    };
    if around.links.get(&link).is_some_and(|link| link.air.is_some()) {
        let text = "the link's rate follows the air";
        section.problem("link", Problem::new(text, "name a link with `rate_mbit`"));
        return None;
    }
    let ways = around.links.get(&link).into_iter().flat_map(|link| [&link.up, &link.down]);
    let follows = |way: &DirectionSpec| match &way.capacity {
        Capacity::Fixed(_) => true,
        Capacity::Steps { steps, .. } => steps.period().is_none(),
        Capacity::Trace(_) => false,
    };
    if !ways.into_iter().all(follows) {
        let text = "the link's rate follows a trace, or steps that repeat";
        section.problem("link", Problem::new(text, "name a link with `rate_mbit`"));
        return None;
    }
    Some(Action::Rate(link, rate))
}

fn read_share(section: &mut Section<'_>, key: &'static str) -> Option<Ratio> {
    section.number(key, Bounds::new(0.0, 1.0, "")).map(ratio)
}

fn named(
    section: &mut Section<'_>,
    key: &'static str,
    kind: &'static str,
    known: &[String],
) -> Option<String> {
    if !section.holds_any(&[key]) {
        let example = match key {
            "app" => "app = \"flow\"",
            "from" => "from = \"wh-2\"",
            "interferer" => "interferer = \"beside-wh-2\"",
            _ => "link = \"lte\"",
        };
        section.missing(key, example);
    }
    let name = section.text(key)?;
    if known.contains(&name) {
        return Some(name);
    }
    section.problem(key, no_such(kind, &name, known.to_vec()));
    None
}

/// Draws the times of events, and merges those of a link's or an application's timeline into it.
/// The remaining events have one time each, and are sorted by it.
pub(super) fn settle(scenario: &mut Scenario, prng: &mut Prng) {
    let mut events = std::mem::take(&mut scenario.events);
    for event in &mut events {
        let spread = event.at_latest.saturating_sub(event.at).as_nanos();
        if spread > 0 {
            let spread = u64::try_from(spread).expect("a day is less than 2^64 ns");
            event.at += Duration::from_nanos(prng.up_to(spread));
            event.at_latest = event.at;
        }
    }
    events.sort_by_key(|event| event.at);
    for (place, event) in events.iter().enumerate() {
        match &event.action {
            Action::Cut(link, length) => {
                let healed = events[place..]
                    .iter()
                    .find(|later| matches!(&later.action, Action::Heal(other) if other == link));
                let end = length.map(|length| event.at + length);
                let end = end.or(healed.map(|healed| healed.at)).unwrap_or(scenario.duration);
                let cut = Span { start: event.at, end };
                of_link(scenario, link, |way, _| add_outage(&mut way.outages, cut));
            }
            Action::Rate(link, rate) => {
                let step = (event.at, *rate);
                of_link(scenario, link, |way, duration| add_step(way, step, duration));
            }
            Action::Start(app) => {
                of_app(scenario, app, |app| (app.start, app.start_latest) = (event.at, event.at));
            }
            Action::Stop(app) => of_app(scenario, app, |app| app.stop = event.at),
            _ => {}
        }
    }
    events.retain(|event| !event.action.is_course());
    scenario.events = events;
}

fn of_link(scenario: &mut Scenario, link: &str, change: impl Fn(&mut DirectionSpec, Duration)) {
    let duration = scenario.duration;
    if let Some(link) = scenario.links.get_mut(link) {
        change(&mut link.up, duration);
        change(&mut link.down, duration);
    }
}

fn of_app(scenario: &mut Scenario, name: &str, change: impl Fn(&mut AppSpec)) {
    scenario.apps.iter_mut().filter(|app| app.name == name).for_each(change);
}

/// Adds a span; merges it with those that it touches.
fn add_outage(outages: &mut Vec<Span>, mut cut: Span) {
    outages.retain(|span| {
        let apart = span.end < cut.start || cut.end < span.start;
        if !apart {
            cut = Span { start: cut.start.min(span.start), end: cut.end.max(span.end) };
        }
        apart
    });
    if cut.start < cut.end {
        outages.push(cut);
        outages.sort_by_key(|span| span.start);
    }
}

fn add_step(way: &mut DirectionSpec, (at, rate): (Duration, NewRate), duration: Duration) {
    let (base, mut steps) = match &way.capacity {
        Capacity::Fixed(rate) => (*rate, Vec::new()),
        Capacity::Steps { steps, .. } => (steps.base(), steps.steps().to_vec()),
        Capacity::Trace(_) => return,
    };
    let rate = match rate {
        NewRate::To(rate) => rate,
        NewRate::Share(share) => {
            let bits = u128::from(base.bits_per_second()) * u128::from(share.ppm()) / 1_000_000;
            let bits = u64::try_from(bits).expect("a share is no more than the whole");
            Rate::from_bits_per_second(bits)
        }
    };
    steps.retain(|(other, _)| *other != at);
    steps.push((at, rate));
    steps.sort_by_key(|(at, _)| *at);
    let steps = RateSteps::new(Instant::ZERO, base, steps, None);
    let steps = Arc::new(steps.expect("steps that do not repeat and are in order are a course"));
    let mean = steps.mean_over(duration);
    way.capacity = Capacity::Steps { steps, mean };
}
