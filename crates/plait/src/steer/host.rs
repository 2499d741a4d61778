//! What a steering node changes on its host: a TUN device, policy routing rules and routes in its
//! own tables. All of it carries the node's marks, so that the next start finds what a crash left.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use plait_net::netlink::policy::{Rule, Selector, TableRoute};
use plait_net::netlink::{Interface, LinkInfo, Netlink, NetlinkError};
use plait_net::tun::Tun;

use super::config::SteerConfig;
use super::ways::{self, Leading, PRIORITIES, PROTOCOL, RoutingPlan, TABLES};
use crate::advice::Advised;
use crate::daemon::{FORWARD_IPV4, FORWARD_IPV6};
use crate::randomness;

/// The dummy address of RFC 7600: a device without any address fails the kernel's reverse-path
/// check in every mode.
const DUMMY_ADDRESS: [u8; 4] = [192, 0, 0, 8];
/// `rp_filter`, loose (RFC 3704 §2.4): packets come out of the device whose return path is
/// different.
const RP_FILTER_LOOSE: &str = "2";
/// The least that IPv6 needs (RFC 8200 §5), and what IPv4 hosts must accept (RFC 1122 §3.3.2).
const MTU_MIN: [u32; 2] = [1280, 576];
/// The TUN device's MTU when no attachment's is known, in bytes.
const MTU_DEFAULT: u32 = 1500;

/// The errors of adding what exists, and of removing what does not.
const EEXIST: i32 = 17;
const ENOENT: i32 = 2;
const ESRCH: i32 = 3;

/// The host as the node sees and changes it.
#[derive(Debug)]
pub(super) struct Host {
    netlink: Netlink,
    tun: String,
    index: u32,
    table: u32,
    mtu: Option<u32>,
    /// Routes that the kernel refused, with its answer: logged once.
    refused: Vec<(TableRoute, String)>,
}

/// Refuses a host that does not forward the node's packets, unless the configuration lets the node
/// switch forwarding on.
///
/// # Errors
/// Forwarding is off, with the way to switch it on.
pub(super) fn check_forwarding(config: &SteerConfig) -> Result<(), Advised> {
    let [any_v4, any_v6] = families(config);
    for (wanted, file, name) in [
        (any_v4, FORWARD_IPV4, "net.ipv4.ip_forward"),
        (any_v6, FORWARD_IPV6, "net.ipv6.conf.all.forwarding"),
    ] {
        // A kernel without the file lacks the family; adding the first route will report that.
        let is_off = fs::read_to_string(file).is_ok_and(|value| value.trim() == "0");
        if wanted && is_off && !config.node.forward {
            let message = format!("{name} is 0: this host forwards nothing");
            let help = format!(
                "`sysctl -w {name}=1`, or add `forward = true` to [node], which sets it while the \
                 node runs"
            );
            return Err(Advised::new(message, help));
        }
    }
    Ok(())
}

/// Whether any client has an IPv4 address, and whether any has an IPv6 address.
pub(super) fn families(config: &SteerConfig) -> [bool; 2] {
    let any = |is_there: fn(&super::config::Client) -> bool| config.clients.iter().any(is_there);
    [any(|client| client.address.v4.is_some()), any(|client| client.address.v6.is_some())]
}

impl Host {
    /// Sets up the TUN device and removes what an earlier run left. No route leads to the device
    /// yet.
    ///
    /// # Errors
    /// Something cannot be set up, or belongs to another program.
    pub(super) fn open(config: &SteerConfig, tun: &Tun) -> anyhow::Result<Self> {
        let mut netlink = Netlink::open()?;
        let link = netlink.link(tun.name())?;
        let index = link.context("the TUN device vanished as soon as it was made")?.index;
        let mut host = Self {
            netlink,
            tun: tun.name().to_owned(),
            index,
            table: config.node.table,
            mtu: None,
            refused: Vec::new(),
        };
        host.check_owner(config)?;
        host.clean()?;
        host.set_up_device(config)?;
        Ok(host)
    }

    /// Leaves the tables of another running node alone.
    fn check_owner(&mut self, config: &SteerConfig) -> anyhow::Result<()> {
        let interfaces = self.netlink.links()?;
        let rules = self.own_rules()?;
        let other = rules.iter().find_map(|rule| match &rule.selector {
            Selector::Interface(name) if name != "lo" && *name != self.tun => {
                interfaces.iter().find(|link| link.name == *name)
            }
            _ => None,
        });
        let Some(LinkInfo { name, .. }) = other else { return Ok(()) };
        let (first, last) = (self.table, self.table + PRIORITIES - 1);
        let place = format!("{}:{}: [node] table", config.file.display(), config.node.line);
        let message =
            format!("{place}: the routing rules {first} to {last} belong to the node on {name}");
        Err(Advised::new(message, "give each node of a host its own `table`").into())
    }

    fn set_up_device(&mut self, config: &SteerConfig) -> anyhow::Result<()> {
        let [any_v4, any_v6] = families(config);
        if any_v4 {
            self.loosen_reverse_path_check()?;
        }
        self.set_ipv6(any_v6);
        self.follow_mtu(config, &[])?;
        self.netlink.add_address(self.index, DUMMY_ADDRESS.into(), 32)?;
        self.netlink.set_up(self.index)?;
        Ok(())
    }

    /// Switches IPv6 on the device on or off. Without link-local addresses the kernel sends nothing
    /// of its own there.
    fn set_ipv6(&self, on: bool) {
        let conf = PathBuf::from("/proc/sys/net/ipv6/conf").join(&self.tun);
        for (sysctl, value) in
            [("addr_gen_mode", "1"), ("disable_ipv6", if on { "0" } else { "1" })]
        {
            if let Err(error) = fs::write(conf.join(sysctl), value) {
                log::debug!("{}/{sysctl} stays as it is: {error}", conf.display());
            }
        }
    }

    /// Prepares for another configuration.
    pub(super) fn reconfigure(&self, config: &SteerConfig) {
        let [_, any_v6] = families(config);
        self.set_ipv6(any_v6);
    }

    /// The larger of the device's and the host's values counts (ip-sysctl.rst), and loose is the
    /// largest: so the device's own value decides.
    fn loosen_reverse_path_check(&self) -> Result<(), Advised> {
        let file = PathBuf::from("/proc/sys/net/ipv4/conf").join(&self.tun).join("rp_filter");
        let Err(cause) = fs::write(&file, RP_FILTER_LOOSE) else { return Ok(()) };
        let strict =
            |file: PathBuf| fs::read_to_string(file).is_ok_and(|value| value.trim() == "1");
        let all = PathBuf::from("/proc/sys/net/ipv4/conf/all/rp_filter");
        if !strict(file.clone()) && !strict(all) {
            return Ok(());
        }
        let message = format!("{} cannot be set to 2 (loose)", file.display());
        let help = "/proc/sys may be read-only, as in a container: set \
                    net.ipv4.conf.all.rp_filter=2 outside";
        Err(Advised::new(message, help).caused_by(cause))
    }

    /// Reads the interfaces, and updates the attachments' routes and the rules for packets that the
    /// node writes. Returns which attachments can be reached.
    ///
    /// # Errors
    /// The kernel refuses a read or a rule.
    pub(super) fn refresh(&mut self, config: &SteerConfig) -> anyhow::Result<RoutingPlan> {
        let interfaces = self.netlink.interfaces().context("cannot look at the interfaces")?;
        self.require_device(&interfaces)?;
        let mut plan = ways::plan(config, &interfaces, self.index);
        // The target of other rules comes first.
        self.apply_rules(&plan.inner_rules, self.end()..self.end() + 1)?;
        self.apply_rules(&plan.inner_rules, self.table..self.table + 2)?;
        let found = self.own_routes()?;
        let found: Vec<_> = found.into_iter().filter(|route| route.table == self.table).collect();
        let wanted: Vec<_> = plan.leading.iter().flat_map(|one| one.routes.clone()).collect();
        for route in found.iter().filter(|route| !wanted.iter().any(|one| is_met(one, route))) {
            self.remove_route(route)?;
        }
        let mut refused = Vec::new();
        for one in &mut plan.leading {
            self.set_routes(one, &found, &mut refused);
        }
        self.refused = refused;
        self.follow_mtu(config, &plan.leading)?;
        Ok(plan)
    }

    /// Somebody may remove the device; without it there is no node.
    fn require_device(&self, interfaces: &[Interface]) -> anyhow::Result<()> {
        let is_there = interfaces.iter().any(|one| one.index == self.index && one.up);
        anyhow::ensure!(is_there, "{} was removed or switched off", self.tun);
        Ok(())
    }

    fn set_routes(
        &mut self,
        one: &mut Leading,
        found: &[TableRoute],
        refused: &mut Vec<(TableRoute, String)>,
    ) {
        for route in &one.routes {
            if found.iter().any(|there| is_met(route, there)) {
                continue;
            }
            let Err(error) = tolerate(self.netlink.add_table_route(route, PROTOCOL), EEXIST) else {
                continue;
            };
            let reason = match route.gateway {
                Some(gateway) => format!("no way to {gateway}: {}", error.source),
                None => format!("{error}: {}", error.source),
            };
            let entry = (route.clone(), reason.clone());
            if !self.refused.contains(&entry) {
                log::warn!("{}, attachment {}: {reason}", one.way.client, one.way.attachment);
            }
            refused.push(entry);
            (one.way.there, one.way.reason) = (false, reason);
        }
    }

    /// Whether an attachment waits for a route that the kernel refused: look again in a while.
    pub(super) fn wants_retry(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Routes the clients' packets into the TUN device.
    ///
    /// # Errors
    /// The kernel refuses a route or a rule.
    pub(super) fn lead_in(&mut self, plan: &RoutingPlan) -> Result<(), NetlinkError> {
        let tables = self.table + 1..self.table + TABLES;
        let found = self.own_routes()?;
        let found: Vec<_> = found.into_iter().filter(|one| tables.contains(&one.table)).collect();
        for route in plan.to_node.iter().filter(|route| !found.contains(route)) {
            tolerate(self.netlink.add_table_route(route, PROTOCOL), EEXIST)?;
        }
        self.apply_rules(&plan.outer_rules, self.table + 2..self.end())?;
        for route in found.iter().filter(|route| !plan.to_node.contains(route)) {
            self.remove_route(route)?;
        }
        Ok(())
    }

    /// Routes the clients' packets past the node; packets that it writes are still routed.
    ///
    /// # Errors
    /// The kernel refuses to remove a rule.
    pub(super) fn lead_past(&mut self) -> Result<(), NetlinkError> {
        self.apply_rules(&[], self.table + 2..self.end())
    }

    /// Removes every rule and route of this node, also those of an earlier run.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn clean(&mut self) -> Result<(), NetlinkError> {
        self.lead_past()?;
        self.apply_rules(&[], self.table..self.end() + 1)?;
        for route in self.own_routes()? {
            self.remove_route(&route)?;
        }
        Ok(())
    }

    /// The last of the node's priorities.
    fn end(&self) -> u32 {
        self.table + PRIORITIES - 1
    }

    fn own_rules(&mut self) -> Result<Vec<Rule>, NetlinkError> {
        let own = self.table..self.end() + 1;
        let rules = self.netlink.rules_of(PROTOCOL)?;
        Ok(rules.into_iter().filter(|rule| own.contains(&rule.priority)).collect())
    }

    fn own_routes(&mut self) -> Result<Vec<TableRoute>, NetlinkError> {
        let own = self.table..self.table + TABLES;
        let routes = self.netlink.table_routes_of(PROTOCOL)?;
        Ok(routes.into_iter().filter(|route| own.contains(&route.table)).collect())
    }

    /// Adds and removes rules of these priorities until they are the wanted ones.
    fn apply_rules(
        &mut self,
        wanted: &[Rule],
        priorities: std::ops::Range<u32>,
    ) -> Result<(), NetlinkError> {
        let within = |rule: &&Rule| priorities.contains(&rule.priority);
        let found = self.own_rules()?;
        for rule in wanted.iter().filter(within).filter(|rule| !found.contains(rule)) {
            tolerate(self.netlink.add_rule(rule, PROTOCOL), EEXIST)?;
        }
        for rule in found.iter().filter(within).filter(|rule| !wanted.contains(rule)) {
            tolerate(self.netlink.remove_rule(rule, PROTOCOL), ENOENT)?;
        }
        Ok(())
    }

    fn remove_route(&mut self, route: &TableRoute) -> Result<(), NetlinkError> {
        tolerate(self.netlink.remove_table_route(route, PROTOCOL), ESRCH)
    }

    /// The device accepts no packet that an attachment cannot carry: the sender learns that a
    /// packet is too long before its destination is rewritten, while the sender still recognises
    /// the address.
    fn follow_mtu(&mut self, config: &SteerConfig, leading: &[Leading]) -> anyhow::Result<()> {
        let [_, any_v6] = families(config);
        let least = MTU_MIN[usize::from(!any_v6)];
        let mtu = match config.node.mtu {
            Some(mtu) => u32::from(mtu),
            None => self.smallest_mtu(leading)?.max(least),
        };
        if self.mtu == Some(mtu) {
            return Ok(());
        }
        self.netlink.set_mtu(self.index, mtu)?;
        if self.mtu.is_some() {
            log::info!("packets for clients are at most {mtu} bytes long now");
        }
        self.mtu = Some(mtu);
        Ok(())
    }

    fn smallest_mtu(&mut self, leading: &[Leading]) -> Result<u32, NetlinkError> {
        if leading.iter().all(|one| one.routes.is_empty()) {
            return Ok(MTU_DEFAULT);
        }
        let used: Vec<u32> = self
            .own_routes()?
            .into_iter()
            .filter(|route| route.table == self.table)
            .filter_map(|route| route.index)
            .collect();
        let links = self.netlink.links()?;
        let mtus = links.iter().filter(|link| used.contains(&link.index)).map(|link| link.mtu);
        Ok(mtus.min().unwrap_or(MTU_DEFAULT))
    }
}

impl Drop for Host {
    /// Leaves the host as it was found.
    fn drop(&mut self) {
        if let Err(error) = self.clean() {
            log::warn!("{error}: {}; the next start tries again", error.source);
        }
    }
}

/// Whether an existing route is the wanted one; the kernel fills in the interface.
fn is_met(wanted: &TableRoute, there: &TableRoute) -> bool {
    let index = wanted.index.or(there.index);
    TableRoute { index, ..wanted.clone() } == *there
}

fn tolerate(result: Result<(), NetlinkError>, errno: i32) -> Result<(), NetlinkError> {
    result.or_else(|error| if error.errno() == Some(errno) { Ok(()) } else { Err(error) })
}

/// Random bytes from the operating system: for the node's seed, and for the identity of its probes.
///
/// # Errors
/// There are none.
pub(super) fn random_bytes<const N: usize>() -> Result<[u8; N], Advised> {
    let mut bytes = [0; N];
    randomness::fill(&mut bytes, |what| log::warn!("{what}"))?;
    Ok(bytes)
}
