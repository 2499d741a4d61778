//! The kill switch, `when_down = "block"`: nothing leaves the host outside the bond.
//!
//! It is a table of the packet filter, so it stays in force when the gateway crashes or is killed.
//! Its one chain looks at packets last of all, when nobody changes their way any more. plait's own
//! datagrams are known by the mark of their sockets.

use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use plait_net::netlink::Netlink;
use plait_net::rights::effective_user;

use super::super::nat::{HostError, nft, nft_tables, plain_name, removal};
use super::super::state::StateFile;
use crate::advice::Advised;
use crate::config::identity::{SYSFS, find};
use crate::config::{Config, Endpoint, WhenDown, user_of};

/// Begins the names of these tables.
const PREFIX: &str = "plait-block_";
/// Files with the addresses of name servers: the host's own, and those that a local resolver asks.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// Name servers of which the rules know.
const RESOLVERS_MAX: usize = 16;
/// A host needs these to have addresses on its links, and its neighbours need them of it. Nothing
/// else is in them.
const OF_LINKS: &str = "\
    udp sport { 67, 68 } udp dport { 67, 68 } accept
    udp sport { 546, 547 } udp dport { 546, 547 } accept
    icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } \
     accept
    icmpv6 type { mld-listener-report, mld-listener-done, mld2-listener-report } accept
";

/// The kill switch of a gateway that starts or runs.
#[derive(Debug)]
pub(crate) struct Block {
    table: String,
    /// It was in force already, since a crash or an earlier stop.
    was_there: bool,
    stays: bool,
    stage: Stage,
    /// The rules in force.
    script: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Starts,
    Runs,
    Ended,
}

impl Block {
    /// Puts it in force, if the configuration asks for it: before anything else is set up.
    ///
    /// # Errors
    /// The packet filter does not take the rules, with the remedy.
    pub(crate) fn put_in_force(
        config: &Config,
        file: &mut StateFile,
    ) -> Result<Option<Self>, Advised> {
        let gateway = &config.gateway;
        if gateway.when_down != WhenDown::Block {
            return Ok(None);
        }
        let table = table_name(&gateway.tun);
        let was_there = nft_tables().is_ok_and(|tables| tables.contains(&table));
        file.state.block_table = Some(table.clone());
        file.save();
        let script = script(config);
        nft(&[], &script).map_err(|error| advised(&error))?;
        log::info!("nothing leaves outside the bond: nft list table inet {table}");
        let stays = gateway.block_stays;
        Ok(Some(Self { table, was_there, stays, stage: Stage::Starts, script }))
    }

    /// Everything is set up: from now on only an orderly end lifts it.
    pub(super) fn runs(&mut self) {
        self.stage = Stage::Runs;
    }

    /// The gateway ends as it was asked to.
    pub(super) fn end(&mut self) {
        self.stage = Stage::Ended;
    }

    /// Whether dropping it leaves it in force.
    pub(super) fn outlives(&self) -> bool {
        let by_stage = match self.stage {
            Stage::Starts => self.was_there,
            Stage::Runs => true,
            Stage::Ended => false,
        };
        self.stays || by_stage || std::thread::panicking()
    }

    /// Other networks, links or name servers.
    pub(super) fn follow(&mut self, config: &Config) {
        self.stays = config.gateway.block_stays;
        let script = script(config);
        if script == self.script {
            return;
        }
        match nft(&[], &script) {
            Ok(()) => self.script = script,
            Err(error) => log::error!("when_down: {error}; the old rules stay in force"),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.outlives() {
            log::warn!("{} stays in force; `plait unblock` lifts it", self.table);
        } else if let Err(error) = nft(&[], &removal(&self.table)) {
            log::warn!("{} is not lifted: {error}; `plait unblock` does", self.table);
        }
    }
}

/// Lifts what an earlier run left in force.
pub(super) fn lift_leftover(file: &mut StateFile) {
    let Some(table) = file.state.block_table.take() else { return };
    // Somebody else may have written the file: only a table of ours is removed.
    if is_ours(&table) {
        match nft(&[], &removal(&table)) {
            Ok(()) => log::info!("{table} is lifted"),
            Err(error) => log::warn!("{table} is not lifted: {error}; `plait unblock` does"),
        }
    }
    file.save();
}

/// The kill switches in force on this host, by their tables.
///
/// # Errors
/// The packet filter cannot be asked.
pub(crate) fn blocks_in_force() -> Result<Vec<String>, HostError> {
    Ok(nft_tables()?.into_iter().filter(|table| is_ours(table)).collect())
}

/// Lifts one of them.
///
/// # Errors
/// The packet filter refuses.
pub(crate) fn lift(table: &str) -> Result<(), HostError> {
    nft(&[], &removal(table))
}

/// Whether nft is there and, with `has_rights`, whether the kernel would take the rules; nothing is
/// changed.
///
/// # Errors
/// The same as when it is put in force.
pub(crate) fn can_block(config: &Config, has_rights: bool) -> Result<(), HostError> {
    if has_rights { nft(&["--check"], &script(config)) } else { Ok(()) }
}

/// The name of a device's table.
pub(crate) fn table_name(tun: &str) -> String {
    format!("{PREFIX}{}", plain_name(tun))
}

fn is_ours(table: &str) -> bool {
    table.strip_prefix(PREFIX).is_some_and(|tun| plain_name(tun) == tun)
}

fn advised(error: &HostError) -> Advised {
    Advised::new(error.of("when_down"), error.help())
}

/// Commands that make the table again, all at once: there is no moment without it.
fn script(config: &Config) -> String {
    let (gateway, tun) = (&config.gateway, &config.gateway.tun);
    let table = table_name(tun);
    let mut script = removal(&table);
    let _ = writeln!(script, "table inet {table} {{\n  chain leaving {{");
    script.push_str("    type filter hook postrouting priority 300; policy drop;\n");
    let _ = writeln!(script, "    oifname {{ \"lo\", \"{tun}\" }} accept");
    let _ = writeln!(script, "    meta mark {} accept", Config::SOCKET_MARK);
    if !config.beside.is_empty() {
        let (bits, mark) = (Config::BESIDE_MARK_BITS, Config::BESIDE_MARK);
        let _ = writeln!(script, "    meta mark and {bits:#x} == {mark:#x} accept");
    }
    // What comes out of the bond is for the networks behind this host, not for the links.
    for interface in links(config) {
        let _ = writeln!(script, "    iifname \"{tun}\" oifname \"{interface}\" drop");
    }
    let _ = writeln!(script, "    iifname \"{tun}\" accept");
    script.push_str(OF_LINKS);
    for allowed in &gateway.block_allows {
        let _ = match allowed.address {
            IpAddr::V4(_) => writeln!(script, "    ip daddr {allowed} accept"),
            IpAddr::V6(_) => writeln!(script, "    ip6 daddr {allowed} accept"),
        };
    }
    script.push_str(&name_servers(config));
    script.push_str("    counter comment \"kept in\"\n  }\n}\n");
    script
}

/// The interfaces of the paths, by the names that they have now.
fn links(config: &Config) -> Vec<String> {
    let named = config.paths.iter().filter_map(|path| path.interface.as_ref());
    let mut names: Vec<String> = named.map(|interface| interface.value.clone()).collect();
    let mut identities = config.paths.iter().filter_map(|path| path.link.as_ref()).peekable();
    if identities.peek().is_none() {
        return names;
    }
    match Netlink::open().and_then(|mut netlink| netlink.interfaces()) {
        Ok(interfaces) => {
            let found = identities
                .filter_map(|link| find(&link.value, &interfaces, Path::new(SYSFS)).ok().flatten());
            names.extend(found.map(|interface| interface.name.clone()));
        }
        Err(error) => log::warn!("when_down: {error}: {}", error.source),
    }
    names
}

/// Rules for what resolves the names of endpoints; none when there is no name.
fn name_servers(config: &Config) -> String {
    let mut endpoints = config.peers.iter().flat_map(|peer| &peer.endpoints);
    if !endpoints.any(|endpoint| matches!(endpoint.value, Endpoint::Name(..))) {
        return String::new();
    }
    let texts = RESOLVERS.map(|file| fs::read_to_string(file).unwrap_or_default());
    // A missing user is reported elsewhere.
    let user = user_of(config.gateway.user.as_ref()).ok().flatten();
    let users = [Some(effective_user()), user.map(|user| user.uid)];
    let users: Vec<String> = users.iter().flatten().map(ToString::to_string).collect();
    rules_for(&texts.each_ref().map(|text| servers(text)), &users.join(", "))
}

/// The servers that this process asks itself are open to its users only. Whom a local resolver
/// serves cannot be known: what it asks is open to all.
fn rules_for([own, behind]: &[Vec<IpAddr>; 2], users: &str) -> String {
    let has_local = own.iter().any(IpAddr::is_loopback);
    let own = own.iter().filter(|server| !server.is_loopback()).map(|server| (server, true));
    let behind = behind.iter().filter(|_| has_local).map(|server| (server, false));
    let mut rules = String::new();
    for (server, asks_itself) in own.chain(behind) {
        let family = if server.is_ipv4() { "ip" } else { "ip6" };
        let who = if asks_itself { format!("meta skuid {{ {users} }} ") } else { String::new() };
        let _ = writeln!(
            rules,
            "    {who}{family} daddr {server} meta l4proto {{ tcp, udp }} th dport 53 accept"
        );
    }
    rules
}

/// The name servers of a resolv.conf(5).
fn servers(text: &str) -> Vec<IpAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let words = lines.filter_map(|rest| rest.split_whitespace().next());
    words.filter_map(|word| word.parse().ok()).take(RESOLVERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_open_to_whom_asks_them() {
        let own = servers("# x\nnameserver 127.0.0.53\nnameserver 9.9.9.9 \nnameserver fe80::1%a");
        assert_eq!(own, ["127.0.0.53", "9.9.9.9"].map(|text| text.parse::<IpAddr>().unwrap()));
        let behind = servers("nameserver 2001:db8::53");
        let port = "meta l4proto { tcp, udp } th dport 53 accept\n";
        let direct = format!("    meta skuid {{ 0, 7 }} ip daddr 9.9.9.9 {port}");
        assert_eq!(rules_for(&[own[1..].to_vec(), behind.clone()], "0, 7"), direct);
        let both = format!("{direct}    ip6 daddr 2001:db8::53 {port}");
        assert_eq!(rules_for(&[own, behind], "0, 7"), both);
    }

    #[test]
    fn only_an_orderly_end_lifts_it_or_a_start_that_found_none() {
        let outlives = |stage, was_there, stays| {
            let (table, script) = (table_name("x"), String::new());
            let block = Block { table, was_there, stays, stage, script };
            let outlives = block.outlives();
            std::mem::forget(block);
            outlives
        };
        assert!(!outlives(Stage::Starts, false, false) && outlives(Stage::Starts, true, false));
        assert!(outlives(Stage::Runs, false, false) && !outlives(Stage::Ended, true, false));
        assert!(outlives(Stage::Starts, false, true) && outlives(Stage::Ended, false, true));
    }

    #[test]
    fn only_tables_of_ours_are_lifted() {
        assert!(is_ours("plait-block_plait0") && is_ours(&table_name("a@b")));
        assert!(!is_ours("filter") && !is_ours("plait_plait0") && !is_ours("plait-block_a b"));
    }
}
