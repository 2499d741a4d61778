//! What there should be, for the links as they are now.

use std::net::IpAddr;

use plait_net::netlink::policy::Family;

use super::change::{Endpoint, Route, Rule, Which};
use super::found::{Found, TABLES};
use super::links::{LinkWay, Out};
use super::{EndpointsConfig, KERNEL_MAX, Role};

/// What there should be; the default is nothing of ours.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Wanted {
    pub(super) endpoints: Vec<Endpoint>,
    /// At least so many subflows besides the first; 0 leaves it to others.
    pub(super) subflows: u8,
    /// At least so many addresses of the other end; 0 leaves it to others.
    pub(super) add_addr_accepted: u8,
    pub(super) rules: Vec<Rule>,
    pub(super) routes: Vec<Route>,
}

impl Wanted {
    /// For these links. Tables that are in use for an address stay so.
    pub(super) fn of(config: &EndpointsConfig, ways: &[LinkWay], found: &Found) -> Self {
        let (subflow, signal) = match config.role {
            Role::Client => (true, false),
            Role::Server { signal } => (false, signal),
        };
        let mut wanted = Self::default();
        if config.role == Role::Client {
            wanted.subflows = subflows_for(ways);
        } else {
            // How many links its clients have, a server cannot know.
            (wanted.subflows, wanted.add_addr_accepted) = (KERNEL_MAX, KERNEL_MAX);
        }
        if !subflow && !signal {
            return wanted;
        }
        let endpoint = |way: &LinkWay| Endpoint {
            subflow,
            signal,
            backup: way.backup,
            ..Endpoint::new(way.address, &way.dev)
        };
        wanted.endpoints = ways.iter().map(endpoint).collect();
        wanted.lead_out(config.table, ways, found);
        wanted
    }

    /// A packet from a link's address leaves over that link; what the table `main` knows better
    /// than by its default route, such as networks on the spot, goes by that table as before.
    fn lead_out(&mut self, first: u32, ways: &[LinkWay], found: &Found) {
        let leading = ways.iter().filter(|way| way.out != Out::Nowhere);
        let mut tables: Vec<(IpAddr, Option<u32>)> =
            leading.clone().map(|way| (way.address, table_of(way.address, found))).collect();
        for at in 0..tables.len() {
            let taken = |table: &u32| tables.iter().any(|(_, other)| *other == Some(*table));
            if tables[at].1.is_none() {
                tables[at].1 = (first + 1..first + TABLES).find(|table| !taken(table));
            }
        }
        for (way, (address, table)) in leading.zip(tables) {
            let Some(table) = table else { continue };
            let family = Family::of(address);
            let known = Rule { family, priority: first, which: Which::KnownToMain };
            if !self.rules.contains(&known) {
                self.rules.push(known);
            }
            let which = Which::From(address, table);
            self.rules.push(Rule { family, priority: first + 1, which });
            let gateway = match way.out {
                Out::Via(gateway) => Some(gateway),
                Out::Direct | Out::Nowhere => None,
            };
            self.routes.push(Route { family, table, gateway, dev: way.dev.clone() });
        }
    }
}

fn table_of(address: IpAddr, found: &Found) -> Option<u32> {
    found.rules.iter().find_map(|rule| match rule.which {
        Which::From(from, table) if from == address => Some(table),
        _ => None,
    })
}

/// A connection has one family. When it begins over none of the links, each takes one more.
fn subflows_for(ways: &[LinkWay]) -> u8 {
    let count = |family| ways.iter().filter(|way| Family::of(way.address) == family).count();
    let most = Family::ALL.map(count).into_iter().max().unwrap_or(0);
    u8::try_from(most).unwrap_or(KERNEL_MAX).min(KERNEL_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(dev: &str, address: &str, out: Out) -> LinkWay {
        LinkWay { dev: dev.into(), address: address.parse().unwrap(), backup: false, out }
    }

    fn config(role: Role) -> EndpointsConfig {
        EndpointsConfig { links: Vec::new(), role, table: 5300, state_file: "unused".into() }
    }

    #[test]
    fn an_address_keeps_its_table_when_another_link_goes() {
        let via = |text: &str| Out::Via(text.parse().unwrap());
        let ways = [
            way("wifi", "10.1.0.2", via("10.1.0.1")),
            way("wifi", "fd01::2", via("fe80::1")),
            way("lte", "10.2.0.2", Out::Direct),
            way("dsl", "10.3.0.2", Out::Nowhere),
        ];
        let client = config(Role::Client);
        let all = Wanted::of(&client, &ways, &Found::default());
        assert_eq!((all.endpoints.len(), all.subflows, all.add_addr_accepted), (4, 3, 0));
        let tables: Vec<_> = all.routes.iter().map(|route| route.table).collect();
        assert_eq!(tables, [5301, 5302, 5303]);
        assert_eq!(all.rules.len(), 5, "one for what main knows per family, one per address");
        let found = Found { rules: all.rules, ..Found::default() };
        let rest = Wanted::of(&client, &ways[2..], &found);
        assert_eq!(rest.routes[0].table, 5303);
    }

    #[test]
    fn a_server_has_limits_and_tells_addresses_only_when_asked() {
        let ways = [way("wifi", "10.1.0.2", Out::Direct)];
        let silent = Wanted::of(&config(Role::Server { signal: false }), &ways, &Found::default());
        let limits = Wanted { subflows: 8, add_addr_accepted: 8, ..Wanted::default() };
        assert_eq!(silent, limits);
        let telling = Wanted::of(&config(Role::Server { signal: true }), &ways, &Found::default());
        assert!(telling.endpoints[0].signal && !telling.endpoints[0].subflow);
        assert_eq!(telling.routes.len(), 1);
    }
}
