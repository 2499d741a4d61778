//! Names of metrics and series, shared by both back-ends, the checks and the report.

use plait_toml::{Problem, Section};

use super::error::no_such;
/// The owner of a metric or a series; the last part of its full name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// The run as a whole: `jain_index`.
    Run,
    /// An application: `goodput_mbit.APP`.
    App,
    /// A link: `utilisation_percent.LINK`.
    Link,
    /// The subflows that an application's MPTCP connections have on a link:
    /// `subflow_throughput_mbit.APP:LINK`.
    Subflow,
}

/// The owner of a subflow's metrics and series.
pub fn subflow_owner(app: &str, link: &str) -> String {
    format!("{app}:{link}")
}

/// The metrics of a run. Means are over the time from `warmup_s` to the end, of an application over
/// its own time within that. `docs/guide/scenarios.md` defines each.
pub const METRICS: &[(&str, Of)] = &[
    ("loss_percent", Of::Run),
    ("lost_packets", Of::Run),
    ("late_packets", Of::Run),
    ("offered_mbit", Of::Run),
    ("goodput_mbit", Of::Run),
    ("bond_goodput_mbit", Of::Run),
    ("beside_goodput_mbit", Of::Run),
    ("tcp_goodput_mbit", Of::Run),
    ("udp_goodput_mbit", Of::Run),
    ("aggregation_ratio", Of::Run),
    ("aggregation_benefit", Of::Run),
    ("load_mbit", Of::Run),
    ("of_best_alone", Of::Run),
    ("of_sum_alone", Of::Run),
    ("benefit_alone", Of::Run),
    ("of_best_bare", Of::Run),
    ("of_sum_bare", Of::Run),
    ("of_at_once", Of::Run),
    ("of_better", Of::Run),
    ("of_mptcp", Of::Run),
    ("excess_of_mptcp", Of::Run),
    ("probe_rtt_ms", Of::Run),
    ("probe_excess_ms", Of::Run),
    ("jain_index", Of::Run),
    ("capacity_shares", Of::Run),
    ("wait_p95_ms", Of::Run),
    ("overhead", Of::Run),
    ("held_acks", Of::Run),
    ("discarded_acks", Of::Run),
    ("released_acks", Of::Run),
    ("masked_acks", Of::Run),
    ("hold_mean_ms", Of::Run),
    ("hold_max_ms", Of::Run),
    ("loss_percent", Of::App),
    ("offered_mbit", Of::App),
    ("goodput_mbit", Of::App),
    ("standstill_ms", Of::App),
    ("delay_p50_ms", Of::App),
    ("delay_p95_ms", Of::App),
    ("reordered_packets", Of::App),
    ("retransmitted_percent", Of::App),
    ("timeouts", Of::App),
    ("retransmits", Of::App),
    ("duplicate_acks", Of::App),
    ("fast_recoveries", Of::App),
    ("undone_recoveries", Of::App),
    ("transfer_s", Of::App),
    ("transfer_mbit", Of::App),
    ("subflow_throughput_mbit", Of::Subflow),
    ("reinjected_percent", Of::App),
    ("penalties", Of::App),
    ("window_blocked_ms", Of::App),
    ("join_ms", Of::App),
    ("mos", Of::App),
    ("page_load_p50_s", Of::App),
    ("page_load_p95_s", Of::App),
    ("initial_load_s", Of::App),
    ("stalls", Of::App),
    ("stalled_s", Of::App),
    ("stall_mean_s", Of::App),
    ("buffered_s", Of::App),
    ("quality_mbit", Of::App),
    ("switches", Of::App),
    ("viewer_score", Of::App),
    ("finished", Of::App),
    ("link_throughput_mbit", Of::Link),
    ("link_loss_percent", Of::Link),
    ("link_queue_ms", Of::Link),
    ("utilisation_percent", Of::Link),
    ("link_share_percent", Of::Link),
    ("bond_share_percent", Of::Link),
    ("bond_path_percent", Of::Link),
    ("path_overhead", Of::Link),
    ("air_percent", Of::Link),
    ("air_retries_percent", Of::Link),
    ("air_deferrals", Of::Link),
    ("mcs_mean", Of::Link),
];

/// The series that a run can capture.
pub const SERIES: &[(&str, Of)] = &[
    ("link_throughput", Of::Link),
    ("drops", Of::Link),
    ("queue_ms", Of::Link),
    ("weight", Of::Link),
    ("rtt_ms", Of::Link),
    ("capacity", Of::Link),
    ("offered", Of::App),
    ("goodput", Of::App),
    ("delay_ms", Of::App),
    ("cwnd", Of::App),
    ("rto_ms", Of::App),
    ("duplicate_acks", Of::App),
    ("subflow_throughput", Of::Subflow),
    ("subflow_cwnd", Of::Subflow),
    ("subflow_ssthresh", Of::Subflow),
    ("subflow_srtt_ms", Of::Subflow),
    ("losses", Of::Run),
    ("waiting", Of::Run),
];

/// The unit of a metric, from the end of its name; empty for a plain number.
pub fn unit_of(metric: &str) -> &'static str {
    const UNITS: &[(&str, &str)] = &[
        ("_percent", "%"),
        ("_mbit", "Mbit/s"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("_packets", "packets"),
        ("_packets_per_minute", "packets/min"),
    ];
    let name = metric.split_once('.').map_or(metric, |(name, _)| name);
    UNITS.iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit)
}

/// The owners that full names may end in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners<'a> {
    pub(super) apps: &'a [String],
    pub(super) links: &'a [&'a str],
    /// Metrics that the scenario defines: its measures.
    pub(super) measures: &'a [String],
}

/// Reads the name of a metric.
pub(super) fn read(
    section: &mut Section<'_>,
    key: &'static str,
    owners: Owners<'_>,
) -> Option<String> {
    let name = section.required_text(key, "metric = \"loss_percent\"")?;
    if !owners.measures.contains(&name)
        && let Err(problem) = check(&name, METRICS, owners)
    {
        section.problem(key, problem);
    }
    Some(name)
}

/// Reads the names of metrics: one or a list, none where there is no such option.
pub(super) fn read_all(
    section: &mut Section<'_>,
    key: &'static str,
    owners: Owners<'_>,
) -> Vec<String> {
    let mut names = Vec::new();
    for (name, place) in section.texts(key) {
        if !owners.measures.contains(&name)
            && let Err(problem) = check(&name, METRICS, owners)
        {
            section.problem_at(&place, key, problem);
        }
        names.push(name);
    }
    names
}

/// Whether a full name is one of the table's, with an owner that exists.
pub(super) fn check(
    name: &str,
    table: &[(&'static str, Of)],
    owners: Owners<'_>,
) -> Result<(), Problem> {
    let (head, owner) = name.split_once('.').map_or((name, None), |(head, of)| (head, Some(of)));
    let mut kinds = table.iter().filter(|(known, _)| *known == head).map(|(_, of)| *of).peekable();
    if kinds.peek().is_none() {
        let known = table.iter().map(|(known, _)| *known);
        let mut known: Vec<&str> =
            known.chain(owners.measures.iter().map(String::as_str)).collect();
        known.dedup();
        return Err(Problem::choice(name, known.into_iter()));
    }
    let kinds: Vec<Of> = kinds.collect();
    let owner_known = kinds.iter().any(|of| match (of, owner) {
        (Of::Run, owner) => owner.is_none(),
        (Of::App, Some(owner)) => owners.apps.iter().any(|app| app == owner),
        (Of::Link, Some(owner)) => owners.links.contains(&owner),
        (Of::Subflow, Some(owner)) => owner.split_once(':').is_some_and(|(app, link)| {
            owners.apps.iter().any(|known| known == app) && owners.links.contains(&link)
        }),
        (Of::App | Of::Link | Of::Subflow, None) => false,
    });
    if owner_known {
        return Ok(());
    }
    let full = |of: &Of| match of {
        Of::Run => vec![head.to_owned()],
        Of::App => owners.apps.iter().map(|app| format!("{head}.{app}")).collect(),
        Of::Link => owners.links.iter().map(|link| format!("{head}.{link}")).collect(),
        Of::Subflow => {
            let pairs = owners
                .apps
                .iter()
                .flat_map(|app| owners.links.iter().map(move |link| subflow_owner(app, link)));
            pairs.map(|owner| format!("{head}.{owner}")).collect()
        }
    };
    let known: Vec<String> = kinds.iter().flat_map(full).collect();
    let (kind, name) = ("figure", name.to_owned());
    Err(no_such(kind, &name, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_unit() {
        for (name, unit) in [
            ("loss_percent.flow", "%"),
            ("tcp_one_mbit", "Mbit/s"),
            ("shift_s", "s"),
            ("losses_packets_per_minute", "packets/min"),
            ("jain_index", ""),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }

    #[test]
    fn a_name_needs_its_owner() {
        let apps = ["flow".to_owned()];
        let owners = Owners { apps: &apps, links: &["dsl"], measures: &[] };
        for (name, right) in [
            ("jain_index", true),
            ("jain_index.flow", false),
            ("loss_percent", true),
            ("loss_percent.flow", true),
            ("loss_percent.dsl", false),
            ("delay_p95_ms", false),
            ("utilisation_percent.dsl", true),
            ("utilisation_percent.lte", false),
            ("subflow_throughput_mbit.flow:dsl", true),
            ("subflow_throughput_mbit.flow:lte", false),
            ("subflow_throughput_mbit.flow", false),
            ("nonsense", false),
        ] {
            assert_eq!(check(name, METRICS, owners).is_ok(), right, "{name}");
        }
    }
}
