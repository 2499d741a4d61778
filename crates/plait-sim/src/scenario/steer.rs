//! `[steer]`: a steering node at the provider's end of some links, and clients without plait.

use std::collections::BTreeMap;

use plait_proto::dida::DidaConfig;
use plait_proto::steer::{Granularity, Policy};
use plait_proto::time::Duration;
use plait_toml::form::{FineMillis, Whole, WholeList};
use plait_toml::node::Node;
use plait_toml::option::{self, Field, Only, Options};
use plait_toml::{Problem, Section, common};

use super::bond::{links, read_links};
use super::link::{self, LinkSpec};

/// A steering node and its clients.
#[derive(Clone, PartialEq, Debug)]
pub struct SteerSpec {
    /// The links that all clients have as attachments. The first is the primary, which carries the
    /// uplink.
    pub links: Vec<String>,
    /// How packets are shared out over attachments.
    pub policy: Policy,
    /// Weight of each link for the policy `fixed`, in the order of `links`.
    pub shares: Vec<u16>,
    /// Whether packets or flows are steered.
    pub granularity: Granularity,
    /// How many packets of a flow stay on the primary at first.
    pub first_packets: u32,
    /// Number of clients; an application names its own.
    pub clients: u16,
    /// DIDA's settings; `None`: steering alone.
    pub dida: Option<DidaConfig>,
    /// t-Reordering of in-order delivery at the clients; `None`: clients do not reorder.
    pub t_reordering: Option<Duration>,
    /// Largest packet that all links carry, in bytes.
    pub mtu: u16,
}

/// Attachments that a client may have.
const LINKS_MAX: usize = 16;

/// `[steer]`, as it stands in the file, without the sections in it.
#[derive(Clone, PartialEq, Debug)]
pub struct SteerSection {
    links: Vec<String>,
    policy: Policy,
    shares: Vec<u16>,
    granularity: Granularity,
    first_packets: u32,
    clients: u16,
}

impl Default for SteerSection {
    fn default() -> Self {
        let Node { policy, granularity, first_packets, .. } = Node::default();
        let (links, shares) = (Vec::new(), Vec::new());
        Self { links, policy, shares, granularity, first_packets, clients: 1 }
    }
}

/// The options of `[steer]`.
pub const STEER: Options<SteerSection> = &[
    &links(
        "the clients' attachments, the same for all; the first is the primary",
        "list of names, 16 at most",
        |steer: &mut SteerSection| &mut steer.links,
    )
    .required("links = [\"lte\", \"wifi\"]"),
    &common::policy(|steer: &mut SteerSection| &mut steer.policy),
    &Field::new(
        "shares",
        "a weight for each link, such as percent",
        WholeList { low: 1, high: 65_535 },
        |steer: &mut SteerSection| &mut steer.shares,
    )
    .absent("required there")
    .only(Only {
        decided_by: "policy",
        against: |steer| {
            let policy = steer.policy;
            (policy != Policy::Fixed).then(|| format!("policy = \"{policy}\""))
        },
        belongs_to: "policy = \"fixed\"",
    }),
    &common::per(|steer: &mut SteerSection| &mut steer.granularity),
    &common::first_packets(|steer: &mut SteerSection| &mut steer.first_packets),
    &Field::new(
        "clients",
        "clients behind the same links",
        Whole::new(1, 1000, ""),
        |steer: &mut SteerSection| &mut steer.clients,
    ),
];

/// `[steer.client]`, as it stands in the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClientSection {
    t_reordering: Duration,
}

/// The options of `[steer.client]`.
pub const CLIENT: Options<ClientSection> = &[&Field::new(
    "t_reordering_ms",
    "the client puts packets in order before its TCP sees them, with PDCP's one timer; what comes \
     after it was given up is dropped",
    FineMillis { high: 10_000 },
    |client: &mut ClientSection| &mut client.t_reordering,
)
.required("t_reordering_ms = 100")];

/// Reads the section; `None` when it is absent.
pub(super) fn read(
    mut section: Section<'_>,
    links: &BTreeMap<String, LinkSpec>,
    link_names: &[&str],
) -> Option<SteerSpec> {
    if !section.is_present() {
        return None;
    }
    let mut said = SteerSection::default();
    let wrong = option::read(STEER, &mut section, &mut said);
    let names = read_links(&mut section, link_names, LINKS_MAX);
    let shares = shares(&section, said.policy, said.shares, names.len(), &wrong);
    let dida = plait_toml::dida::read(section.single("dida"));
    let t_reordering = read_client(section.single("client"));
    section.finish();
    let mtu = names.iter().filter_map(|name| link::path_mtu(links, name)).min();
    Some(SteerSpec {
        links: names,
        policy: said.policy,
        shares,
        granularity: said.granularity,
        first_packets: said.first_packets,
        clients: said.clients,
        dida,
        t_reordering,
        mtu: mtu.unwrap_or(u16::MAX),
    })
}

/// One weight for each link; equal by default.
fn shares(
    section: &Section<'_>,
    policy: Policy,
    shares: Vec<u16>,
    links: usize,
    wrong: &[&str],
) -> Vec<u16> {
    let is_sound = policy == Policy::Fixed && !wrong.contains(&"shares");
    if is_sound && !section.holds_any(&["shares"]) {
        section.missing("shares", "shares = [50, 50]");
    } else if is_sound && shares.len() != links {
        let text = format!("the links are {links}, the shares {}", shares.len());
        section.problem("shares", Problem::new(text, "write one whole number for each link"));
    } else if is_sound {
        return shares;
    }
    vec![1; links]
}

fn read_client(mut section: Section<'_>) -> Option<Duration> {
    if !section.is_present() {
        return None;
    }
    let mut said = ClientSection::default();
    option::read(CLIENT, &mut section, &mut said);
    section.finish();
    Some(said.t_reordering)
}
