//! What carries the files, and over which links. Everything is a setting of the scenario
//! `000/netns`, whose links, delays and client these are.

use super::{SIZES_MB, SIZES_WITHOUT_SACK_MB};

/// The scenario whose links and steering node these are.
pub(super) const SCENARIO: &str = "000/netns";
/// Its links, the primary first.
pub(super) const LINKS: [&str; 2] = ["lte", "wifi"];

/// Links of one kind.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Condition {
    pub(super) name: &'static str,
    pub(super) settings: &'static [&'static str],
}

impl Condition {
    /// How many runs there are of it where steady links have `runs`: on links that fluctuate a
    /// download depends on when it begins, so there are twice as many beginnings.
    pub(super) const fn runs(&self, runs: usize) -> usize {
        if self.settings.is_empty() { runs } else { 2 * runs }
    }
}

pub(super) const STEADY: Condition = Condition { name: "steady", settings: &[] };

/// Both links with their capacity over time.
pub(super) const FLUCTUATING: Condition = Condition {
    name: "fluctuating",
    settings: &[
        "links.lte.down={ trace = \"../traces/000-lte-fluctuating.trace\" }",
        "links.wifi.trace=\"../traces/000-wifi-fluctuating.trace\"",
    ],
};

pub(super) const CONDITIONS: [Condition; 2] = [STEADY, FLUCTUATING];

/// What carries a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carrier {
    /// A link alone, without a node.
    Link(&'static str),
    /// The kernel's MPTCP over both links, without a node.
    Mptcp,
    /// A steering node.
    Node,
}

#[derive(PartialEq, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) carrier: Carrier,
    pub(super) settings: &'static [&'static str],
    /// Least and greatest share of the primary that is as configured, in per cent; of files from
    /// 4 MB on.
    pub(super) primary_percent: Option<(f64, f64)>,
}

/// Half of the packets over each: what the first packets of a flow, ACKs' absence and what is sent
/// again add is a few per cent.
const HALF: Option<(f64, f64)> = Some((42.0, 58.0));
/// By round-trip times, which queues change: some of the packets over each.
const SOME: Option<(f64, f64)> = Some((5.0, 95.0));

/// Of the scenario's axis `sender`; its first label has SACK.
const WITHOUT_SACK: &str = "sender=no-sack";

impl Case {
    const fn bare(name: &'static str, carrier: Carrier) -> Self {
        Self { name, carrier, settings: &[], primary_percent: None }
    }

    const fn steered(
        name: &'static str,
        settings: &'static [&'static str],
        primary_percent: Option<(f64, f64)>,
    ) -> Self {
        Self { name, carrier: Carrier::Node, settings, primary_percent }
    }

    /// Sizes of its files.
    pub(super) fn sizes_mb(&self) -> &'static [u64] {
        if self.settings.contains(&WITHOUT_SACK) { &SIZES_WITHOUT_SACK_MB } else { &SIZES_MB }
    }

    /// Whether it is measured under a condition: a sender without SACK on steady links alone.
    pub(super) fn is_for(&self, condition: &Condition) -> bool {
        *condition == STEADY || !self.settings.contains(&WITHOUT_SACK)
    }
}

pub(super) const LTE: &str = "LTE alone";
pub(super) const WIFI: &str = "Wi-Fi alone";
pub(super) const HALF_NATIVE: &str = "LWIP 50:50";
pub(super) const HALF_DIDA: &str = "LWIP 50:50 + DIDA";
pub(super) const RTT_NATIVE: &str = "LWIP by RTT";
pub(super) const RTT_DIDA: &str = "LWIP by RTT + DIDA";
pub(super) const MPTCP: &str = "kernel MPTCP";
pub(super) const NO_SACK_NATIVE: &str = "LWIP 50:50, no SACK";
pub(super) const NO_SACK_DIDA: &str = "LWIP 50:50 + DIDA, no SACK";

pub(super) const CASES: [Case; 9] = [
    Case::bare(LTE, Carrier::Link(LINKS[0])),
    Case::bare(WIFI, Carrier::Link(LINKS[1])),
    Case::steered(HALF_NATIVE, &["node=half"], HALF),
    Case::steered(HALF_DIDA, &["node=half-dida"], HALF),
    Case::steered(RTT_NATIVE, &["node=by-rtt"], SOME),
    Case::steered(RTT_DIDA, &["node=by-rtt-dida"], SOME),
    Case::bare(MPTCP, Carrier::Mptcp),
    Case::steered(NO_SACK_NATIVE, &["node=half", WITHOUT_SACK], HALF),
    Case::steered(NO_SACK_DIDA, &["node=half-dida", WITHOUT_SACK], HALF),
];
