//! `[steer]`: a steering node at the provider's end of some links, and clients without plait.

use std::collections::BTreeMap;

use plait_proto::dida::DidaConfig;
use plait_proto::steer::{Granularity, NoPolicy, Policy};
use plait_proto::time::Duration;
use plait_toml::{Bounds, Problem, Section};

use super::bond::{NamedLinks, read_links};
use super::link::{self, LinkSpec};

/// A steering node and its clients.
#[derive(Clone, PartialEq, Debug)]
pub struct SteerSpec {
    /// The attachments, the same links for all clients. The first is the primary, which carries
    /// the uplink.
    pub links: Vec<String>,
    /// Which attachment gets how much.
    pub policy: Policy,
    /// Weight of each link for the policy `fixed`, in the order of `links`.
    pub shares: Vec<u16>,
    /// Whether packets or flows are steered.
    pub granularity: Granularity,
    /// So many packets of a flow stay on the primary at first.
    pub first_packets: u32,
    /// Clients; an application names its own.
    pub clients: u16,
    /// What holds duplicate ACKs; `None` for steering alone.
    pub dida: Option<DidaConfig>,
    /// t-Reordering of an in-order delivery at the clients; `None` for clients with nothing.
    pub t_reordering: Option<Duration>,
    /// Largest packet that all links take, in bytes.
    pub mtu: u16,
}

/// Attachments that a client may have.
const LINKS_MAX: usize = 16;
const CLIENTS_MAX: i64 = 1000;
const T_REORDERING_MAX_MS: f64 = 10_000.0;

/// Reads the section; `None` when it is absent.
pub(super) fn read(
    mut section: Section<'_>,
    links: &BTreeMap<String, LinkSpec>,
    link_names: &[&str],
) -> Option<SteerSpec> {
    if !section.is_present() {
        return None;
    }
    let wanted = NamedLinks { max: LINKS_MAX, example: "links = [\"lte\", \"wifi\"]" };
    let names = read_links(&mut section, link_names, wanted);
    let policy = read_policy(&mut section);
    let shares = read_shares(&mut section, policy, names.len());
    let granularities = [("packet", Granularity::Packet), ("flow", Granularity::Flow)];
    let granularity = section.choice("per", &granularities).unwrap_or_default();
    let first_packets = section.integer("first_packets", (0, 1_000_000), "packets").unwrap_or(10);
    let clients = section.integer("clients", (1, CLIENTS_MAX), "").unwrap_or(1);
    let dida = plait_toml::dida::read(section.single("dida"));
    let t_reordering = read_client(section.single("client"));
    section.finish();
    let mtu = names.iter().filter_map(|name| link::path_mtu(links, name)).min();
    Some(SteerSpec {
        links: names,
        policy,
        shares,
        granularity,
        first_packets,
        clients,
        dida,
        t_reordering,
        mtu: mtu.unwrap_or(u16::MAX),
    })
}

fn read_policy(section: &mut Section<'_>) -> Policy {
    let read = |name: &str| {
        name.parse::<Policy>().map_err(|error| match error {
            NoPolicy::Unknown(_) => {
                Problem::choice(name, Policy::ALL.map(Policy::name).into_iter())
            }
            NoPolicy::Refused { why, .. } => {
                let text = format!("\"{name}\" cannot steer: {why}");
                let known = Policy::ALL.map(Policy::name).join(", ");
                Problem::new(text, format!("use one of: {known}"))
            }
        })
    };
    section.parsed("policy", read).unwrap_or_default()
}

/// One weight for each link; the same for all when there is nothing to read.
fn read_shares(section: &mut Section<'_>, policy: Policy, links: usize) -> Vec<u16> {
    const WEIGHT: Bounds = Bounds::new(1.0, 65_535.0, "");
    let same = vec![1; links];
    if policy != Policy::Fixed {
        let setting = format!("policy = \"{policy}\"");
        section.no_effect(&["shares"], &setting, "policy = \"fixed\"");
        return same;
    }
    if !section.holds_any(&["shares"]) {
        section.missing("shares", "shares = [50, 50]");
        return same;
    }
    let Some(shares) = section.integers("shares", WEIGHT) else { return same };
    if shares.len() != links {
        let text = format!("the links are {links}, the shares {}", shares.len());
        section.problem("shares", Problem::new(text, "write one whole number for each link"));
        return same;
    }
    shares
}

fn read_client(mut section: Section<'_>) -> Option<Duration> {
    if !section.is_present() {
        return None;
    }
    if !section.holds_any(&["t_reordering_ms"]) {
        section.know(&["t_reordering_ms"]);
        section.missing("t_reordering_ms", "t_reordering_ms = 100");
    }
    let time = section.millis("t_reordering_ms", T_REORDERING_MAX_MS);
    section.finish();
    time
}
