//! `[medium.NAME]`: the air that links with `medium = "NAME"` share.

use std::collections::BTreeMap;

use plait_proto::time::Duration;
use plait_toml::{Bounds, Place, Problem, Problems, Section};

use super::error::no_such;
use super::link::LinkSpec;
use crate::air::Standard;
use crate::packet::Way;
use crate::ratio::Ratio;

/// The air that some links share.
#[derive(Clone, PartialEq, Debug)]
pub struct MediumSpec {
    /// Whose schemes its radios have.
    pub standard: Standard,
    /// Whether each radio has its own antennas.
    pub antennas: Antennas,
    /// How far the antennas of two radios are apart, in metres; `None`: too far to be sensed.
    pub apart_m: Option<f64>,
    /// Who senses whom how much; a pair that is not named follows from the antennas.
    pub coupling: Vec<CouplingSpec>,
    /// Foreign transmitters.
    pub interferers: Vec<InterfererSpec>,
}

impl MediumSpec {
    /// The share of `from`'s frames that `link` senses, where it is stated.
    pub fn stated(&self, link: &str, from: &str) -> Option<Ratio> {
        let names = |one: &&CouplingSpec| one.link == link && one.from == from;
        self.coupling.iter().rev().find(names).map(|one| one.share)
    }

    /// States the share of `from`'s frames that `link` senses from now on.
    pub(crate) fn set_coupling(&mut self, link: String, from: String, share: Ratio) {
        self.coupling.retain(|one| one.link != link || one.from != from);
        self.coupling.push(CouplingSpec { link, from, share });
    }
}

/// Whose antennas a radio sends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Antennas {
    /// `own`: each radio's.
    #[default]
    Own,
    /// `shared`: all radios', through a power splitter at each end. Only one of them can send.
    Shared,
}

impl Antennas {
    const ALL: [(&'static str, Self); 2] = [("own", Self::Own), ("shared", Self::Shared)];

    /// Loss of both splitters between transmitter and receiver, in decibels: each halves the power.
    pub fn splitters_db(self) -> f64 {
        match self {
            Self::Own => 0.0,
            Self::Shared => 6.0,
        }
    }
}

/// How much of one link's air another takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CouplingSpec {
    /// The link that loses.
    pub link: String,
    /// The link whose frames it senses.
    pub from: String,
    /// The share of those frames that it senses.
    pub share: Ratio,
}

/// A foreign transmitter beside one receiver.
#[derive(Clone, PartialEq, Debug)]
pub struct InterfererSpec {
    /// Names it in events.
    pub name: String,
    /// The link that it disturbs.
    pub link: String,
    /// The direction that is received beside it.
    pub way: Way,
    /// Time from one of its frames to the next.
    pub period: Duration,
    /// What it does.
    pub disturbs: Disturbs,
    /// Whether it sends from the beginning.
    pub on: bool,
}

/// How much an interferer does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Disturbs {
    /// It takes this share of what the link carries alone, by destroying what it meets.
    Share(Ratio),
    /// It is received at this power.
    Power {
        /// In dBm.
        dbm: f64,
        /// How long its frames are.
        air: Duration,
    },
}

/// What the links of a medium must know of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Kind {
    pub(super) standard: Standard,
    pub(super) antennas: Antennas,
}

const APART_CM: Bounds = Bounds::new(1.0, 10_000.0, "centimetres");
const SHARE: Bounds = Bounds::new(0.0, 1.0, "");
const MBIT: Bounds = Bounds::new(0.1, 1000.0, "Mbit/s");
pub(super) const DBM: Bounds = Bounds::new(-120.0, 40.0, "dBm");

/// 003's interferer: CBR UDP at 20 Mbit/s in datagrams of 1470 bytes.
const INTERFERER_MBIT: f64 = 20.0;
const INTERFERER_BYTES: u64 = 1470;
/// Its frames are sent one by one at the fastest rate of 802.11a.
const INTERFERER_PHY_MBIT: f64 = 54.0;
/// Headers of a frame: MAC, LLC, IP, UDP, check sequence.
const FRAME_HEADERS_BYTES: u64 = 26 + 8 + 28 + 4;
/// Legacy preamble; SIFS and an acknowledgement at 24 Mbit/s.
const FRAME_AROUND: Duration = Duration::from_micros(20 + 16 + 28);

/// Reads what links must know; the rest is read once they are.
pub(super) fn read_kinds<'a>(sections: &mut [(&'a str, Section<'_>)]) -> BTreeMap<&'a str, Kind> {
    let kind = |(name, section): &mut (&'a str, Section<'_>)| {
        let standard = section.choice("standard", &Standard::ALL).unwrap_or_default();
        let antennas = section.choice("antennas", &Antennas::ALL).unwrap_or_default();
        (*name, Kind { standard, antennas })
    };
    sections.iter_mut().map(kind).collect()
}

/// Reads the rest of every medium, whose links are known.
pub(super) fn read_all(
    sections: Vec<(&str, Section<'_>)>,
    kinds: &BTreeMap<&str, Kind>,
    places: &BTreeMap<&str, Place>,
    links: &BTreeMap<String, LinkSpec>,
) -> BTreeMap<String, MediumSpec> {
    let mut media = BTreeMap::new();
    let mut interferers: Vec<String> = Vec::new();
    for (name, section) in sections {
        let on_it = |link: &&String| {
            links[link.as_str()].air.as_ref().is_some_and(|air| air.medium == name)
        };
        let members: Vec<String> = links.keys().filter(on_it).cloned().collect();
        // A link that was left out for an error of its own may be one of them.
        if members.is_empty() && places.len() == links.len() {
            let text = "no link is on it";
            let help = format!("give a link `medium = \"{name}\"`, or take it out");
            section.problem("", Problem::new(text, help));
        }
        let medium = read(section, kinds[name], &members, &mut interferers);
        media.insert(name.to_owned(), medium);
    }
    media
}

fn read(
    mut section: Section<'_>,
    Kind { standard, antennas }: Kind,
    members: &[String],
    interferer_names: &mut Vec<String>,
) -> MediumSpec {
    section.know(&["standard", "antennas"]);
    if antennas == Antennas::Shared {
        let options = ["coupling", "antenna_separation_cm"];
        section.no_effect(&options, "antennas = \"shared\"", "radios with their own antennas");
    }
    let apart_m = section.number("antenna_separation_cm", APART_CM).map(|cm| cm / 100.0);
    let coupling: Vec<CouplingSpec> = section
        .many("coupling")
        .into_iter()
        .filter_map(|one| read_coupling(one, members))
        .collect();
    let interferers = section
        .many("interferer")
        .into_iter()
        .filter_map(|one| read_interferer(one, members, interferer_names))
        .collect();
    section.finish();
    MediumSpec { standard, antennas, apart_m, coupling, interferers }
}

fn read_coupling(mut section: Section<'_>, members: &[String]) -> Option<CouplingSpec> {
    section.know(&["name"]);
    let link = member(&mut section, "link", "link = \"wh-1\"", members);
    let from = member(&mut section, "from", "from = \"wh-2\"", members);
    if link.is_some() && link == from {
        let problem = Problem::new("a radio does not sense itself", "name another link");
        section.problem("from", problem);
    }
    if !section.holds_any(&["share"]) {
        section.missing("share", "share = 0.35");
    }
    let share = section.number("share", SHARE).map(ratio);
    section.finish();
    Some(CouplingSpec { link: link?, from: from?, share: share? })
}

fn read_interferer(
    mut section: Section<'_>,
    members: &[String],
    names: &mut Vec<String>,
) -> Option<InterfererSpec> {
    let name = section.required_text("name", "name = \"beside-wh-2\"");
    if let Some(name) = &name {
        if names.contains(name) {
            let text = format!("another interferer is called \"{name}\" too");
            section.problem("name", Problem::new(text, "give each its own name"));
        }
        names.push(name.clone());
    }
    let link = member(&mut section, "link", "link = \"wh-2\"", members);
    let receivers = [("customer", Way::Down), ("provider", Way::Up)];
    let way = section.choice("receiver", &receivers).unwrap_or(Way::Down);
    let mbit = section.number("rate_mbit", MBIT).unwrap_or(INTERFERER_MBIT);
    let bytes = section.integer("payload_bytes", (16, 2000), "bytes").unwrap_or(INTERFERER_BYTES);
    let period = Duration::from_secs_f64(bytes as f64 * 8.0 / (mbit * 1e6));
    let disturbs = read_disturbs(&mut section, bytes, period);
    let on = section.boolean("on").unwrap_or(true);
    section.finish();
    Some(InterfererSpec { name: name?, link: link?, way, period, disturbs: disturbs?, on })
}

fn read_disturbs(section: &mut Section<'_>, bytes: u64, period: Duration) -> Option<Disturbs> {
    if section.holds_any(&["kappa"]) {
        let options = ["power_dbm", "phy_mbit"];
        section.no_effect(&options, "kappa", "interferers without a stated share");
        return section.number("kappa", SHARE).map(|share| Disturbs::Share(ratio(share)));
    }
    section.know(&["kappa"]);
    if !section.holds_any(&["power_dbm"]) {
        section.missing("kappa", "kappa = 0.3");
    }
    let phy_mbit = section.number("phy_mbit", MBIT).unwrap_or(INTERFERER_PHY_MBIT);
    let dbm = section.number("power_dbm", DBM)?;
    let bits = ((bytes + FRAME_HEADERS_BYTES) * 8) as f64;
    let air = Duration::from_secs_f64(bits / (phy_mbit * 1e6)) + FRAME_AROUND;
    Some(Disturbs::Power { dbm, air: air.min(period) })
}

fn member(
    section: &mut Section<'_>,
    key: &'static str,
    example: &'static str,
    members: &[String],
) -> Option<String> {
    let name = section.required_text(key, example)?;
    if members.contains(&name) {
        return Some(name);
    }
    section.problem(key, no_such("link of this medium", &name, members.to_vec()));
    None
}

pub(super) fn ratio(share: f64) -> Ratio {
    Ratio::from_ppm((share * 1e6).round() as u32)
}

/// Checks that links and the links behind them share no medium: what crosses both would wait twice.
pub(super) fn check_through(
    places: &BTreeMap<&str, Place>,
    links: &BTreeMap<String, LinkSpec>,
    problems: &Problems,
) {
    for (name, link) in links {
        let Some(through) = link.through.as_ref().and_then(|through| links.get(through)) else {
            continue;
        };
        if through.air.is_some() {
            let text = "the link behind it is on a medium";
            let problem = Problem::new(text, "name a link with a rate of its own");
            problems.add(&places[name.as_str()], format!("[links.{name}] through"), problem);
        }
    }
}
