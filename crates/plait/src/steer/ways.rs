//! How the node's packets are routed through its host: which rules and routes are needed, and which
//! attachments can be reached. Computed from the configuration and the interfaces; changes nothing.
//!
//! Packets for a client's primary address and packets from it go into the TUN device; packets that
//! the node writes there follow the attachments' routes first, then the host's:
//!
//! ```text
//! priority      table
//! T    what comes from steer0, and the host's own: T (the ways of the attachments)
//! T+1  the same: go to T+9, and so on by the host's own rules
//! T+2  what is for a client: T+1 (its primary addresses: steer0)
//! T+3  what a client sends: T+2 (default: steer0)
//! T+9  nothing
//! ```
//!
//! For reverse paths (RFC 3704) the kernel looks up routes as if for the host's own packets, so the
//! same rules apply.

use std::net::IpAddr;

use plait_net::netlink::Interface;
use plait_net::netlink::policy::{Action, Family, Rule, Selector, TableRoute};
use plait_proto::steer::AttachmentId;
use serde::{Deserialize, Serialize};

use super::config::{Attachment, Client, SteerConfig};

/// The number that marks the node's rules and routes as plait's (`protocol` in ip-rule(8)).
pub(super) const PROTOCOL: u8 = 112;
/// Priorities that belong to a node, from its first on.
pub(super) const PRIORITIES: u32 = 10;
/// Tables that belong to a node, from its first on.
pub(super) const TABLES: u32 = 3;

/// How one attachment is reached, for status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Way {
    /// The client's name.
    pub(crate) client: String,
    /// The attachment's name.
    pub(crate) attachment: String,
    /// How it is reached, in words.
    pub(crate) through: String,
    /// Whether it can be reached.
    pub(crate) there: bool,
    /// Why it cannot.
    pub(crate) reason: String,
    /// Probes are answered, but from the attachment's address: the client lacks its rule.
    pub(crate) rule_missing: bool,
}

/// One attachment with the routes that lead to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Leading {
    pub(super) id: AttachmentId,
    pub(super) way: Way,
    /// Empty when the host's own routes lead there, or when it cannot be reached.
    pub(super) routes: Vec<TableRoute>,
}

/// The rules and routes that there should be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RoutingPlan {
    /// Rules for packets that the node writes and for the host's own packets.
    pub(super) inner_rules: Vec<Rule>,
    /// Rules that bring clients' packets to the node.
    pub(super) outer_rules: Vec<Rule>,
    /// Routes into the TUN device.
    pub(super) to_node: Vec<TableRoute>,
    /// The attachments, in the order of the file.
    pub(super) leading: Vec<Leading>,
}

/// Computes the plan for these interfaces. `tun` is the index of the TUN device.
pub(super) fn plan(config: &SteerConfig, interfaces: &[Interface], tun: u32) -> RoutingPlan {
    let table = config.node.table;
    let mut plan = RoutingPlan::default();
    for family in Family::ALL {
        let addresses: Vec<IpAddr> =
            config.clients.iter().flat_map(|client| of_family(client, family)).collect();
        if addresses.is_empty() {
            continue;
        }
        plan.inner_rules.extend(inner_rules(&config.node.tun, table, family));
        let rule = |priority, selector, table| Rule {
            priority,
            family,
            selector,
            action: Action::Table(table),
        };
        plan.outer_rules.push(rule(table + 2, Selector::All, table + 1));
        let sent = |address: &IpAddr| rule(table + 3, Selector::From(*address), table + 2);
        plan.outer_rules.extend(addresses.iter().map(sent));
        let route = |table, destination, prefix| TableRoute {
            table,
            destination,
            prefix,
            gateway: None,
            index: Some(tun),
        };
        let everything = unspecified(family);
        plan.to_node.push(route(table + 2, everything, 0));
        plan.to_node.extend(addresses.iter().map(|to| route(table + 1, *to, host_bits(*to))));
    }
    for (client, of) in (0..).zip(&config.clients) {
        for (attachment, one) in (0..).zip(&of.attachments) {
            let id = AttachmentId { client, attachment };
            plan.leading.push(lead(table, id, of, one, interfaces));
        }
    }
    plan
}

fn inner_rules(tun: &str, table: u32, family: Family) -> Vec<Rule> {
    let end = table + PRIORITIES - 1;
    let rule = |priority, selector, action| Rule { priority, family, selector, action };
    let mut rules = vec![rule(end, Selector::All, Action::Nop)];
    for from in [tun, "lo"] {
        let from = Selector::Interface(from.to_owned());
        rules.push(rule(table, from.clone(), Action::Table(table)));
        rules.push(rule(table + 1, from, Action::Goto(end)));
    }
    rules
}

fn lead(
    table: u32,
    id: AttachmentId,
    client: &Client,
    attachment: &Attachment,
    interfaces: &[Interface],
) -> Leading {
    let reached = if id.attachment == 0 { client.address } else { attachment.address };
    let wanted = attachment.interface.as_ref().map(|interface| interface.value.as_str());
    let (index, reason) = match wanted {
        None => (None, None),
        Some(name) => match interfaces.iter().find(|one| one.name == name) {
            None => (None, Some(format!("no interface called {name}"))),
            Some(one) if !one.up => (None, Some(format!("{name} is switched off"))),
            Some(one) if !one.running => (None, Some(format!("{name} has no carrier"))),
            Some(one) => (Some(one.index), None),
        },
    };
    let there = reason.is_none();
    let route = |destination: IpAddr| {
        let gateway = attachment.gateway.like(destination);
        let prefix = host_bits(destination);
        let known = index.is_some() || gateway.is_some();
        known.then_some(TableRoute { table, destination, prefix, gateway, index })
    };
    let routes = reached.iter().filter(|_| there).filter_map(route).collect();
    let gateways: Vec<String> = attachment.gateway.iter().map(|hop| hop.to_string()).collect();
    let mut through = wanted.map_or_else(String::new, |name| format!("dev {name}"));
    if !gateways.is_empty() {
        let space = if through.is_empty() { "" } else { " " };
        through = format!("via {}{space}{through}", gateways.join(", "));
    }
    let through = if through.is_empty() { "the host's routes".to_owned() } else { through };
    let way = Way {
        client: client.name.clone(),
        attachment: attachment.name.clone(),
        through,
        there,
        reason: reason.unwrap_or_default(),
        rule_missing: false,
    };
    Leading { id, way, routes }
}

fn of_family(client: &Client, family: Family) -> Option<IpAddr> {
    client.address.like(unspecified(family))
}

fn unspecified(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([0; 4]),
        Family::V6 => IpAddr::from([0; 16]),
    }
}

fn host_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steer::config::testing::parse;

    const TUN: u32 = 9;

    fn interface(index: u32, name: &str, up: bool, running: bool) -> Interface {
        Interface { index, name: name.into(), mac: None, up, running, addresses: Vec::new() }
    }

    fn config(lte: &str, wifi: &str) -> SteerConfig {
        parse(&format!(
            "[node]\n[[client]]\nname = \"phone\"\naddress = \"10.1.0.1\"\naddress6 = \"fd01::1\"\n\
             [[client.attachment]]\nname = \"lte\"\n{lte}\n\
             [[client.attachment]]\nname = \"wifi\"\naddress = \"10.2.0.1\"\n{wifi}\n"
        ))
        .unwrap()
    }

    fn written(routes: &[TableRoute]) -> Vec<String> {
        let text = |route: &TableRoute| {
            let TableRoute { table, destination, prefix, .. } = route;
            let gateway = route.gateway.map_or(String::new(), |hop| format!(" via {hop}"));
            let index = route.index.map_or(String::new(), |index| format!(" dev {index}"));
            format!("{table}: {destination}/{prefix}{gateway}{index}")
        };
        routes.iter().map(text).collect()
    }

    #[test]
    fn clients_packets_come_to_the_node_and_go_on_by_their_attachments() {
        let config = config("interface = \"lte0\"", "gateway = \"10.4.0.2\"");
        let plan = plan(&config, &[interface(3, "lte0", true, true)], TUN);
        assert_eq!(
            written(&plan.to_node),
            [
                "5202: 0.0.0.0/0 dev 9",
                "5201: 10.1.0.1/32 dev 9",
                "5202: ::/0 dev 9",
                "5201: fd01::1/128 dev 9"
            ]
        );
        assert_eq!(
            written(&plan.leading[0].routes),
            ["5200: 10.1.0.1/32 dev 3", "5200: fd01::1/128 dev 3"]
        );
        assert_eq!(written(&plan.leading[1].routes), ["5200: 10.2.0.1/32 via 10.4.0.2"]);
        assert_eq!(plan.leading[1].way.through, "via 10.4.0.2");
        let priorities: Vec<u32> = plan.outer_rules.iter().map(|rule| rule.priority).collect();
        assert_eq!(priorities, [5202, 5203, 5202, 5203]);
        // The node's own packets skip the rules that lead to it.
        for family in Family::ALL {
            for from in ["steer0", "lo"] {
                let selector = Selector::Interface(from.into());
                let action = Action::Goto(5209);
                let skip = Rule { priority: 5201, family, selector, action };
                assert!(plan.inner_rules.contains(&skip), "{from}");
            }
        }
    }

    #[test]
    fn an_attachment_without_its_interface_is_not_there_and_says_why() {
        let config = config("", "interface = \"wlan0\"");
        for (interfaces, reason) in [
            (vec![], "no interface called wlan0"),
            (vec![interface(4, "wlan0", false, false)], "wlan0 is switched off"),
            (vec![interface(4, "wlan0", true, false)], "wlan0 has no carrier"),
        ] {
            let plan = plan(&config, &interfaces, TUN);
            let [lte, wifi] = &plan.leading[..] else { panic!("two attachments") };
            assert!(lte.way.there && lte.routes.is_empty(), "the host's routes lead there");
            assert_eq!((wifi.way.there, wifi.way.reason.as_str()), (false, reason));
            assert!(wifi.routes.is_empty());
        }
    }
}
