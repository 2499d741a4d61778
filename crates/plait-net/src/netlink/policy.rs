//! Policy routing: rules, and routes in the program's own tables.
//!
//! Both carry the number of the program that made them (`protocol` of rtnetlink(7)), so that a
//! program finds its own again, and only those, even after a crash.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Netlink, NetlinkError, family, ip};

/// Address families with rules of their own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    fn code(self) -> AddressFamily {
        match self {
            Self::V4 => AddressFamily::Inet,
            Self::V6 => AddressFamily::Inet6,
        }
    }
}

/// Which packets a rule is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Selector {
    /// All.
    All,
    /// Those that came in by this interface; `lo` stands for the host's own.
    Interface(String),
    /// Those with this source address.
    From(IpAddr),
    /// Those with this mark.
    Mark(u32),
}

/// What a rule does with its packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// Looks in a table, and goes on to the next rule if nothing fits there.
    Table(u32),
    /// Goes on with the rule of this priority.
    Goto(u32),
    /// Does nothing: a target for [`Self::Goto`].
    Nop,
}

/// A rule of policy routing (ip-rule(8)).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rule {
    /// Its place: lower comes first.
    pub priority: u32,
    /// The address family.
    pub family: Family,
    /// Which packets it is for.
    pub selector: Selector,
    /// What it does with them.
    pub action: Action,
}

/// A route in one of the program's own tables.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TableRoute {
    /// The table.
    pub table: u32,
    /// The network; the unspecified address for the default route.
    pub destination: IpAddr,
    /// Its prefix length.
    pub prefix: u8,
    /// The next hop, where there is one.
    pub gateway: Option<IpAddr>,
    /// The interface; without it the kernel finds the one of the next hop.
    pub index: Option<u32>,
}

impl Netlink {
    /// The rules of both families that `protocol` made; those that [`Rule`] cannot express are left
    /// out.
    ///
    /// # Errors
    /// [`NetlinkError`], as all methods.
    pub fn rules_of(&mut self, protocol: u8) -> Result<Vec<Rule>, NetlinkError> {
        let mut rules = Vec::new();
        for family in Family::ALL {
            let mut request = RuleMessage::default();
            request.header.family = family.code();
            let answers =
                self.dump("list the routing rules", RouteNetlinkMessage::GetRule(request))?;
            let own = RuleAttribute::Protocol(RouteProtocol::from(protocol));
            rules.extend(answers.into_iter().filter_map(|answer| match answer {
                RouteNetlinkMessage::NewRule(rule) if rule.attributes.contains(&own) => {
                    rule_info(family, &rule)
                }
                _ => None,
            }));
        }
        Ok(rules)
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// [`NetlinkError`]; EEXIST when it is there already.
    pub fn add_rule(&mut self, rule: &Rule, protocol: u8) -> Result<(), NetlinkError> {
        let request = RouteNetlinkMessage::NewRule(rule_message(rule, protocol));
        self.change(format!("add {}", describe(rule)), request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// [`NetlinkError`]; ENOENT when it is not there.
    pub fn remove_rule(&mut self, rule: &Rule, protocol: u8) -> Result<(), NetlinkError> {
        let request = RouteNetlinkMessage::DelRule(rule_message(rule, protocol));
        self.change(format!("remove {}", describe(rule)), request, 0)
    }

    /// The unicast routes that `protocol` made outside the table `main`.
    ///
    /// # Errors
    /// [`NetlinkError`]
    pub fn table_routes_of(&mut self, protocol: u8) -> Result<Vec<TableRoute>, NetlinkError> {
        let request = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let answers = self.dump("list the routes", request)?;
        let protocol = RouteProtocol::from(protocol);
        let routes = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) if route.header.protocol == protocol => {
                table_route_info(&route)
            }
            _ => None,
        });
        Ok(routes.collect())
    }

    /// Adds a route to its table.
    ///
    /// # Errors
    /// [`NetlinkError`]; EEXIST when there is another to the same network, ENETUNREACH or
    /// EHOSTUNREACH when nothing leads to its next hop.
    pub fn add_table_route(
        &mut self,
        route: &TableRoute,
        protocol: u8,
    ) -> Result<(), NetlinkError> {
        let action = format!("add a route to {}/{}", route.destination, route.prefix);
        let request = RouteNetlinkMessage::NewRoute(route_message(route, protocol));
        self.change(action, request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes a route from its table.
    ///
    /// # Errors
    /// [`NetlinkError`]; ESRCH when it is not there.
    pub fn remove_table_route(
        &mut self,
        route: &TableRoute,
        protocol: u8,
    ) -> Result<(), NetlinkError> {
        let action = format!("remove the route to {}/{}", route.destination, route.prefix);
        let request = RouteNetlinkMessage::DelRoute(route_message(route, protocol));
        self.change(action, request, 0)
    }
}

fn describe(rule: &Rule) -> String {
    let which = match &rule.selector {
        Selector::All => String::new(),
        Selector::Interface(name) => format!(" for what comes from {name}"),
        Selector::From(address) => format!(" for what {address} sends"),
        Selector::Mark(mark) => format!(" for what has the mark {mark:#x}"),
    };
    format!("the routing rule of priority {}{which}", rule.priority)
}

fn rule_message(rule: &Rule, protocol: u8) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = rule.family.code();
    message.attributes = vec![
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::Protocol(RouteProtocol::from(protocol)),
    ];
    match &rule.selector {
        Selector::All => {}
        Selector::Interface(name) => {
            message.attributes.push(RuleAttribute::Iifname(name.clone()));
        }
        Selector::From(address) => {
            message.header.src_len = if address.is_ipv4() { 32 } else { 128 };
            message.attributes.push(RuleAttribute::Source(*address));
        }
        Selector::Mark(mark) => message.attributes.push(RuleAttribute::FwMark(*mark)),
    }
    match rule.action {
        Action::Table(table) => {
            message.header.action = RuleAction::ToTable;
            message.attributes.push(RuleAttribute::Table(table));
        }
        Action::Goto(priority) => {
            message.header.action = RuleAction::Goto;
            message.attributes.push(RuleAttribute::Goto(priority));
        }
        Action::Nop => message.header.action = RuleAction::Nop,
    }
    message
}

/// `None` for a rule that [`Rule`] cannot express.
fn rule_info(family: Family, message: &RuleMessage) -> Option<Rule> {
    let (mut priority, mut table, mut goto) = (0, u32::from(message.header.table), 0);
    let mut selector = Selector::All;
    let mut select = |found| {
        let first = selector == Selector::All;
        selector = found;
        first.then_some(())
    };
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(value) => priority = *value,
            RuleAttribute::Table(value) => table = *value,
            RuleAttribute::Goto(value) => goto = *value,
            RuleAttribute::Iifname(name) => select(Selector::Interface(name.clone()))?,
            RuleAttribute::Source(address) => select(Selector::From(*address))?,
            RuleAttribute::FwMark(mark) => select(Selector::Mark(*mark))?,
            RuleAttribute::Destination(_)
            | RuleAttribute::Oifname(_)
            | RuleAttribute::IpProtocol(_) => return None,
            _ => {}
        }
    }
    let action = match message.header.action {
        RuleAction::ToTable => Action::Table(table),
        RuleAction::Goto => Action::Goto(goto),
        RuleAction::Nop => Action::Nop,
        _ => return None,
    };
    Some(Rule { priority, family, selector, action })
}

fn route_message(route: &TableRoute, protocol: u8) -> RouteMessage {
    let mut message = RouteMessage::default();
    let direct = route.gateway.is_none() && route.destination.is_ipv4();
    message.header = RouteHeader {
        address_family: family(route.destination),
        destination_prefix_length: route.prefix,
        table: u8::try_from(route.table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC),
        protocol: RouteProtocol::from(protocol),
        scope: if direct { RouteScope::Link } else { RouteScope::Universe },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Table(route.table)];
    if route.prefix > 0 {
        message.attributes.push(RouteAttribute::Destination(route.destination.into()));
    }
    message.attributes.extend(route.index.map(RouteAttribute::Oif));
    message.attributes.extend(route.gateway.map(|gateway| RouteAttribute::Gateway(gateway.into())));
    message
}

fn table_route_info(message: &RouteMessage) -> Option<TableRoute> {
    let header = &message.header;
    let destination = match header.address_family {
        AddressFamily::Inet => IpAddr::from([0u8; 4]),
        AddressFamily::Inet6 => IpAddr::from([0u8; 16]),
        _ => return None,
    };
    let prefix = header.destination_prefix_length;
    let table = u32::from(header.table);
    let mut route = TableRoute { table, destination, prefix, gateway: None, index: None };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Destination(address) => route.destination = ip(address)?,
            RouteAttribute::Gateway(address) => route.gateway = ip(address),
            RouteAttribute::Oif(index) => route.index = Some(*index),
            _ => {}
        }
    }
    let wanted =
        header.kind == RouteType::Unicast && route.table != u32::from(RouteHeader::RT_TABLE_MAIN);
    wanted.then_some(route)
}
