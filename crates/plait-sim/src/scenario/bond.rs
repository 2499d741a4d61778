//! `[bond]`: the two gateways and their settings.

use std::collections::BTreeMap;

use plait_proto::config::{LossDetection, Order};
use plait_proto::congestion::ControllerConfig;
use plait_proto::dida::DidaConfig;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::time::Duration;
use plait_proto::wire::dscp::Dscps;
use plait_toml::form::List;
use plait_toml::option::{self, Field, Options};
use plait_toml::tuning::{self, Tuning};
use plait_toml::{Problem, Section, common};

use super::error::no_such;
use super::link::{self, LinkSpec};
use super::rate::TUNNEL_BYTES;

/// A bond over some of the links; both gateways have the same settings.
#[derive(Clone, PartialEq, Debug)]
pub struct BondSpec {
    /// The links, in the order that breaks ties between equal prices.
    pub links: Vec<String>,
    /// Picks the path of each packet.
    pub scheduler: SchedulerConfig,
    /// The controller of each path; `None`: open loop.
    pub congestion: Option<ControllerConfig>,
    /// Which packets wait for which.
    pub order: Order,
    /// Classes of packets that wait for none.
    pub unordered: Dscps,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// How long packets wait, and how many.
    pub resequencer: ResequencerConfig,
    /// Time between loss reports.
    pub report_interval: Duration,
    /// Largest inner packet in bytes.
    pub inner_mtu: u16,
    /// DIDA between the provider's gateway and the server; `None`: none.
    pub dida: Option<DidaConfig>,
}

impl BondSpec {
    /// The gateways' settings.
    pub fn tuning(&self) -> Tuning {
        Tuning {
            scheduler: self.scheduler.clone(),
            congestion: self.congestion,
            order: self.order,
            unordered: self.unordered,
            resequencer: self.resequencer,
            loss_detection: self.loss_detection,
        }
    }
}

/// The default largest inner packet: as on Ethernet.
const INNER_MTU_BYTES: u16 = 1500;
/// Paths that one gateway may have.
const LINKS_MAX: usize = 32;

/// `[bond]`, as it stands in the file, without the sections in it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BondSection {
    links: Vec<String>,
    inner_mtu: Option<u16>,
}

/// The options of `[bond]`.
pub const BOND: Options<BondSection> = &[
    &links("the bond's links", "list of names, 32 at most", |bond: &mut BondSection| {
        &mut bond.links
    })
    .absent("all links, in the order of their names"),
    &common::inner_mtu("inner_mtu", |bond: &mut BondSection| &mut bond.inner_mtu)
        .absent("60 less than the smallest link's `mtu`, 1500 at most"),
];

/// Reads the section; `None` when it is absent.
pub(super) fn read(
    mut section: Section<'_>,
    links: &BTreeMap<String, LinkSpec>,
    link_names: &[&str],
) -> Option<BondSpec> {
    if !section.is_present() {
        return None;
    }
    let mut said = BondSection::default();
    option::read(BOND, &mut section, &mut said);
    let mut names = read_links(&mut section, link_names, LINKS_MAX);
    if names.is_empty() && section.is_right_so_far() && !section.holds_any(&["links"]) {
        names = link_names.iter().take(LINKS_MAX).map(|name| (*name).to_owned()).collect();
    }
    let dida = plait_toml::dida::read(section.single("dida"));
    let [scheduler, congestion, resequencer] =
        ["scheduler", "congestion", "resequencer"].map(|name| section.single(name));
    let tuning = tuning::read(scheduler, congestion, resequencer);
    let report_interval = tuning.report_interval();
    let Tuning { scheduler, congestion, order, unordered, resequencer, loss_detection } = tuning;
    let mtu = names.iter().filter_map(|name| link::path_mtu(links, name)).min();
    let room = mtu.map_or(INNER_MTU_BYTES, room_inside);
    let inner_mtu = said.inner_mtu.unwrap_or(room.min(INNER_MTU_BYTES));
    if inner_mtu > room {
        let text = format!("a packet of {inner_mtu} bytes does not fit the links with its framing");
        let help = format!("write at most {room}, or raise the links' mtu");
        section.problem("inner_mtu", Problem::new(text, help));
    }
    section.finish();
    let links = names;
    Some(BondSpec {
        links,
        scheduler,
        congestion,
        order,
        unordered,
        loss_detection,
        resequencer,
        report_interval,
        inner_mtu,
        dida,
    })
}

fn room_inside(mtu: u16) -> u16 {
    mtu - u16::try_from(TUNNEL_BYTES).expect("the framing is shorter than 65536 bytes")
}

/// A section's list of links; existing links are known when it is read.
pub(super) const fn links<C>(
    meaning: &'static str,
    told: &'static str,
    at: fn(&mut C) -> &mut Vec<String>,
) -> Field<C, List<String>> {
    Field::new("links", meaning, List { told, read: |name| Ok(name.to_owned()) }, at)
}

/// Checks a section's list of links: only existing ones, at most `max`.
pub(super) fn read_links(section: &mut Section<'_>, known: &[&str], max: usize) -> Vec<String> {
    read_names(section, "links", known, max)
}

/// The same of an option with another name.
pub(super) fn read_names(
    section: &mut Section<'_>,
    key: &'static str,
    known: &[&str],
    max: usize,
) -> Vec<String> {
    let given = section.holds_any(&[key]);
    let named = section.texts(key);
    if given && !(1..=max).contains(&named.len()) {
        let text = format!("{} links", named.len());
        section.problem(key, Problem::new(text, format!("name 1 to {max} links")));
    }
    let mut links: Vec<String> = Vec::new();
    for (name, place) in named {
        if !known.contains(&name.as_str()) {
            let known = known.iter().map(|name| (*name).to_owned()).collect();
            section.problem_at(&place, key, no_such("link", &name, known));
        } else if links.contains(&name) {
            let text = format!("\"{name}\" stands here twice");
            section.problem_at(&place, key, Problem::new(text, "keep one of the two"));
        } else {
            links.push(name);
        }
    }
    links
}
