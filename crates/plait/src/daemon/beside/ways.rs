//! Policy routing for what goes beside the bond: a table for each link in use, and a rule that
//! leads the mark of each `[[beside]]` into the table of its link.

use plait_net::netlink::Netlink;
use plait_net::netlink::policy::{Action, Family, Rule, Selector, TableRoute};

use super::super::exits::Exit;
use super::super::policy::{PRIORITY, PROTOCOL, added, everywhere, removed};
use super::script::Way;
use crate::config::Config;

/// Zones of conntrack begin here; a link's is this and a part of its interface's number.
const ZONE: u16 = 0x6000;
const ZONE_BITS: u32 = 0x0fff;
/// Tables have the gateway's marks' beginning, this bit, and a number.
const TABLE: u32 = 0x80;
const TABLES_MAX: u32 = 0x80;
/// What distinguishes the marks and tables of one gateway from another's.
const OWN_BITS: u32 = 0xffff_ff00;

/// The daemon's rules and tables.
#[derive(Debug)]
pub(super) struct Ways {
    netlink: Netlink,
    base: u32,
    /// The links that have a table, with its number.
    tables: Vec<(u32, Exit)>,
    /// The rules that are there.
    rules: Vec<Rule>,
    /// The kernel may have removed routes with their link.
    stale: bool,
}

impl Ways {
    /// None yet, for the gateway with this device.
    ///
    /// # Errors
    /// There is no such device, or the kernel cannot be asked.
    pub(super) fn new(tun: &str) -> anyhow::Result<Self> {
        let mut netlink = Netlink::open()?;
        let link = netlink.link(tun)?;
        let index = link.ok_or_else(|| anyhow::anyhow!("there is no device {tun}"))?.index;
        let base = Config::BESIDE_MARK | (index & 0xff) << 8;
        Ok(Self { netlink, base, tables: Vec::new(), rules: Vec::new(), stale: false })
    }

    /// What the gateway's marks and tables begin with.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// Routes may have gone with their link: all are added again.
    pub(super) fn may_be_gone(&mut self) {
        self.stale = true;
    }

    /// Leads each mark over its rule's links.
    fn lead(&mut self, ways: &[[Way; 2]]) {
        for exit in ways.iter().flatten().filter_map(Way::exit) {
            if self.table_of(exit).is_none() {
                self.add_table(exit);
            }
        }
        if std::mem::take(&mut self.stale) {
            for (table, exit) in self.tables.clone() {
                self.add_route(table, &exit);
            }
        }
        for rule in self.wanted(ways) {
            if self.rules.contains(&rule) {
                continue;
            }
            match added(self.netlink.add_rule(&rule, PROTOCOL)) {
                Ok(()) => self.rules.push(rule),
                Err(error) => log::error!("{error}: {}", error.source),
            }
        }
    }

    /// Removes rules and tables that nobody needs any more.
    fn drop_unused(&mut self, ways: &[[Way; 2]]) {
        let wanted = self.wanted(ways);
        let rules = std::mem::take(&mut self.rules);
        let (stay, go): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|rule| wanted.contains(rule));
        for rule in go {
            removed(self.netlink.remove_rule(&rule, PROTOCOL));
        }
        let is_used = |table: u32| stay.iter().any(|rule| rule.action == Action::Table(table));
        let tables = std::mem::take(&mut self.tables);
        for (table, exit) in tables {
            if is_used(table) {
                self.tables.push((table, exit));
            } else {
                removed(self.netlink.remove_table_route(&route(table, &exit), PROTOCOL));
            }
        }
        self.rules = stay;
    }

    /// Leads these and nothing else.
    pub(super) fn follow(&mut self, ways: &[[Way; 2]]) {
        self.lead(ways);
        self.drop_unused(ways);
    }

    fn table_of(&self, exit: &Exit) -> Option<u32> {
        let is_same = |known: &Exit| {
            (known.family, known.index, known.gateway) == (exit.family, exit.index, exit.gateway)
        };
        self.tables.iter().find(|(_, known)| is_same(known)).map(|(table, _)| *table)
    }

    fn add_table(&mut self, exit: &Exit) {
        let is_free = |table: &u32| self.tables.iter().all(|(used, _)| used != table);
        let mut numbers = (0..TABLES_MAX).map(|number| self.base | TABLE | number);
        // Each rule has two links at most, and there are no more than half as many rules.
        let Some(table) = numbers.find(is_free) else { return };
        if self.add_route(table, exit) {
            self.tables.push((table, exit.clone()));
        }
    }

    fn add_route(&mut self, table: u32, exit: &Exit) -> bool {
        match added(self.netlink.add_table_route(&route(table, exit), PROTOCOL)) {
            Ok(()) => true,
            // The link went since it was looked at: a notification will follow.
            Err(error) => {
                log::debug!("{error} over {}: {}", exit.interface, error.source);
                false
            }
        }
    }

    fn wanted(&self, ways: &[[Way; 2]]) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (at, of_rule) in ways.iter().enumerate() {
            for exit in of_rule.iter().filter_map(Way::exit) {
                let Some(table) = self.table_of(exit) else { continue };
                rules.push(rule(exit.family, mark(self.base, at), table));
            }
        }
        rules
    }
}

/// The mark of a rule.
pub(super) fn mark(base: u32, rule: usize) -> u32 {
    base | (rule as u32 + 1)
}

/// The zone of a link.
pub(super) fn zone(exit: &Exit) -> u16 {
    // The bits are fewer than the type's.
    ZONE | (exit.index & ZONE_BITS) as u16
}

fn rule(family: Family, mark: u32, table: u32) -> Rule {
    let (selector, action) = (Selector::Mark(mark), Action::Table(table));
    Rule { priority: PRIORITY, family, selector, action }
}

fn route(table: u32, exit: &Exit) -> TableRoute {
    let (destination, index) = (everywhere(exit.family), Some(exit.index));
    TableRoute { table, destination, prefix: 0, gateway: exit.gateway, index }
}

/// Removes the rules and routes of a run that crashed.
pub(super) fn undo(base: u32) {
    // Somebody else may have written the state file: only what is ours is removed.
    if base & Config::BESIDE_MARK_BITS != Config::BESIDE_MARK {
        return;
    }
    let Ok(mut netlink) = Netlink::open() else { return };
    let is_own = |number: u32| number & OWN_BITS == base & OWN_BITS;
    for rule in netlink.rules_of(PROTOCOL).unwrap_or_default() {
        if matches!(rule.selector, Selector::Mark(mark) if is_own(mark)) {
            removed(netlink.remove_rule(&rule, PROTOCOL));
        }
    }
    for route in netlink.table_routes_of(PROTOCOL).unwrap_or_default() {
        if is_own(route.table) {
            removed(netlink.remove_table_route(&route, PROTOCOL));
        }
    }
}
