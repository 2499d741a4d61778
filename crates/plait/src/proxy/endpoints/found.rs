//! What the host has: endpoints, limits, and the rules and routes that are ours.

use std::net::IpAddr;

use plait_net::netlink::Netlink;
use plait_net::netlink::policy::Family;
use serde::Deserialize;

use super::change::{Endpoint, Limits, Route, Rule, Which};
use crate::advice::Advised;
use crate::proxy::ip::{self, IpError, PROTOCOL, words};

/// Tables of a run, from its first on; the first is not used.
pub(super) const TABLES: u32 = 32;
/// The table `main`, as a number.
const MAIN: u32 = 254;

/// What is there.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Found {
    /// All endpoints, whoever made them, in the order in which the kernel uses them.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) limits: Limits,
    /// Ours alone.
    pub(super) rules: Vec<Rule>,
    /// Ours alone.
    pub(super) routes: Vec<Route>,
}

impl Found {
    /// Asks the kernel. `table` is the first of our tables.
    pub(super) fn read(netlink: &mut Netlink, table: u32) -> Result<Self, Advised> {
        let limits = ip::run(&words("mptcp limits show"))?;
        let limits = parse_limits(&limits).ok_or_else(|| IpError::Answer {
            command: "ip mptcp limits show".into(),
            problem: limits.trim().to_owned(),
        })?;
        let endpoints: Vec<Endpoint> = ip::json("-j mptcp endpoint show")?;
        Ok(Self {
            endpoints: endpoints.into_iter().map(Endpoint::named).collect(),
            limits,
            rules: rules(table)?,
            routes: routes(netlink, table)?,
        })
    }
}

/// `add_addr_accepted 0 subflows 2`; not JSON in any version.
fn parse_limits(text: &str) -> Option<Limits> {
    let number = |name: &str| {
        let mut words = text.split_whitespace();
        words.find(|word| *word == name)?;
        words.next()?.parse().ok()
    };
    Some(Limits { subflows: number("subflows")?, add_addr_accepted: number("add_addr_accepted")? })
}

/// As `ip -j rule show` has it, with numbers for names.
#[derive(Deserialize)]
struct Listed {
    priority: u32,
    #[serde(default)]
    src: Option<String>,
    #[serde(default)]
    table: Option<String>,
    #[serde(default)]
    protocol: Option<String>,
    #[serde(default)]
    suppress_prefixlen: Option<u32>,
}

fn rules(table: u32) -> Result<Vec<Rule>, IpError> {
    let mut rules = Vec::new();
    for family in Family::ALL {
        let option = if family == Family::V4 { "-4" } else { "-6" };
        let listed: Vec<Listed> = match ip::json(&format!("{option} -N -j rule show")) {
            // A kernel without IPv6 has none of its rules.
            Err(IpError::Refused { .. }) if family == Family::V6 => Vec::new(),
            listed => listed?,
        };
        rules.extend(listed.into_iter().filter_map(|one| rule(family, table, &one)));
    }
    Ok(rules)
}

/// `None` for a rule of others.
fn rule(family: Family, table: u32, listed: &Listed) -> Option<Rule> {
    let priority = listed.priority;
    let number = |text: &Option<String>| text.as_deref()?.parse::<u32>().ok();
    let ours = number(&listed.protocol) == Some(PROTOCOL.into())
        && (table..table + TABLES).contains(&priority);
    let to = number(&listed.table)?;
    let which = match listed.src.as_deref()?.parse() {
        Ok(address) => Which::From(address, to),
        Err(_) if to == MAIN && listed.suppress_prefixlen == Some(0) => Which::KnownToMain,
        Err(_) => return None,
    };
    ours.then_some(Rule { family, priority, which })
}

fn routes(netlink: &mut Netlink, table: u32) -> Result<Vec<Route>, Advised> {
    let failed = |error| {
        Advised::new("cannot read the routes", "look at the cause")
            .caused_by(anyhow::Error::new(error))
    };
    let names = netlink.links().map_err(failed)?;
    let routes = netlink.table_routes_of(PROTOCOL).map_err(failed)?;
    let ours = routes
        .into_iter()
        .filter(|route| (table..table + TABLES).contains(&route.table) && route.prefix == 0);
    let route = |route: plait_net::netlink::policy::TableRoute| {
        let link = names.iter().find(|link| Some(link.index) == route.index)?;
        Some(Route {
            family: Family::of(route.destination),
            table: route.table,
            gateway: route.gateway.filter(|gateway: &IpAddr| !gateway.is_unspecified()),
            dev: link.name.clone(),
        })
    };
    Ok(ours.filter_map(route).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_ip_are_understood() {
        assert_eq!(
            parse_limits("add_addr_accepted 3 subflows 2 \n"),
            Some(Limits { subflows: 2, add_addr_accepted: 3 })
        );
        assert_eq!(parse_limits("subflows 2"), None);
        let said = r#"[{"address":"10.1.0.2","id":1,"subflow":true,"dev":"la"},
            {"address":"fd00::2","id":2,"signal":true,"backup":true,"port":80,"implicit":true}]"#;
        let [one, two] = serde_json::from_str::<Vec<Endpoint>>(said).unwrap().try_into().unwrap();
        assert!(one.subflow && !one.backup && one.dev.as_deref() == Some("la"));
        assert!(two.signal && two.backup && two.implicit && two.port == Some(80));
        // As iproute2 6.1 tells of an implicit endpoint.
        let said = r#"{"address":"10.2.0.2","id":1,"rawflags":"30"}"#;
        let raw = serde_json::from_str::<Endpoint>(said).unwrap().named();
        assert!(raw.implicit && raw.rawflags.as_deref() == Some("20"));
    }

    #[test]
    fn rules_of_others_are_not_ours() {
        let said = r#"[{"priority":0,"src":"all","table":"255"},
            {"priority":5300,"src":"all","table":"254","suppress_prefixlen":0,"protocol":"112"},
            {"priority":5301,"src":"10.1.0.2","table":"5301","protocol":"112"},
            {"priority":5301,"src":"10.1.0.3","table":"5301","protocol":"4"},
            {"priority":5203,"src":"10.1.0.4","table":"5202","protocol":"112"},
            {"priority":5302,"src":"all","goto":5309,"protocol":"112"}]"#;
        let listed: Vec<Listed> = serde_json::from_str(said).unwrap();
        let rules = listed.iter().filter_map(|one| rule(Family::V4, 5300, one));
        let which: Vec<_> = rules.map(|rule| rule.which).collect();
        assert_eq!(which, [Which::KnownToMain, Which::From([10, 1, 0, 2].into(), 5301)]);
    }
}
