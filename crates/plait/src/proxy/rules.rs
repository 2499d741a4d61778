//! Leads clients' TCP connections into a transparent proxy on this host, wherever they go: by
//! `redirect` (their destination is rewritten, and the proxy asks for the original one) or by
//! `tproxy` (packets stay as they are, and the proxy's socket is transparent, IP_TRANSPARENT of
//! ip(7)).
//!
//! All of it stands in an nft table of its own, and for `tproxy` in one rule and one routing table
//! beside it. [`text`] prints the commands, [`apply`] gives them and undoes them.

mod script;

#[cfg(test)]
mod kernel_tests;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use plait_proto::config::Prefix;
use serde::{Deserialize, Serialize};

use super::ip;
use super::kept::Kept;
use crate::advice::Advised;
use crate::daemon::{HostError, nft};

/// The mark of packets for a `tproxy` unless the configuration says otherwise: one bit, so that
/// other marks stay.
pub(crate) const MARK: u32 = 0x0800_0000;
/// Routing table, and priority of the rule that leads there. It comes before the rules of
/// [`super::endpoints`], of which one leads by the table `main`.
pub(crate) const TABLE: u32 = 5290;

/// What is led where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RulesConfig {
    /// Tells these rules from those of another proxy on this host.
    pub(crate) name: String,
    /// How.
    pub(crate) kind: Kind,
    /// The proxy's port. For `redirect` it listens on all addresses.
    pub(crate) port: u16,
    /// Where clients' packets come in; everywhere when empty.
    pub(crate) interfaces: Vec<String>,
    /// Ports of servers; all when empty.
    pub(crate) ports: Vec<RangeInclusive<u16>>,
    /// Clients' addresses; all when empty.
    pub(crate) clients: Vec<Prefix>,
    /// Servers that are reached without the proxy. This host's own addresses always are.
    pub(crate) exempt: Vec<Prefix>,
    /// Where it is written what a crash leaves to undo. Nothing else may use the file.
    pub(crate) state_file: PathBuf,
}

/// How connections are led in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// nft's `redirect`.
    Redirect {
        /// Leads this host's own programs in too, but for these: the proxy's connections must not
        /// come back to it.
        own_but: Option<Own>,
    },
    /// nft's `tproxy`.
    Tproxy {
        /// A bit that no other rule of the host uses.
        mark: u32,
        /// Routing table and priority.
        table: u32,
    },
}

/// Some of this host's programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// Those of the user with this number.
    User(u32),
    /// Those that mark their sockets so (SO_MARK).
    Mark(u32),
}

/// What is to be undone; in the state file.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
struct State {
    nft_table: Option<String>,
    tproxy: Option<Marked>,
}

/// The rule and the routing table of a `tproxy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Marked {
    mark: u32,
    table: u32,
}

/// The rules in force; undone when it is dropped.
#[derive(Debug)]
pub(crate) struct Applied {
    kept: Kept<State>,
}

/// The commands of [`apply`] as a text for sh, with the way to undo them.
pub(crate) fn text(config: &RulesConfig) -> String {
    script::text(config)
}

/// Undoes what an earlier run left, then leads connections in.
///
/// # Errors
/// A program or a right is missing, or the routing table belongs to another; nothing is changed
/// then.
pub(crate) fn apply(config: &RulesConfig) -> Result<Applied, Advised> {
    let mut applied = Applied { kept: Kept::open(&config.state_file) };
    undo(&mut applied.kept)?;
    let marked = match config.kind {
        Kind::Redirect { .. } => None,
        Kind::Tproxy { mark, table } => Some(Marked { mark, table }),
    };
    let table = script::table_name(&config.name);
    applied.kept.value = State { nft_table: Some(table.clone()), tproxy: marked };
    applied.kept.save();
    for command in marked.iter().flat_map(|marked| script::routing(marked, "add")) {
        ip::run(&command).map_err(|error| match (&marked, error.is_there_already()) {
            (Some(Marked { table, .. }), true) => {
                let message = format!("the routing table {table} belongs to another program");
                Advised::new(message, "choose another `table`").caused_by(error)
            }
            _ => error.into(),
        })?;
    }
    nft(&[], &script::nft(config)).map_err(advised)?;
    log::info!("connections are led to port {}: nft list table inet {table}", config.port);
    Ok(applied)
}

/// Undoes what a crashed run left, as its state file says.
///
/// # Errors
/// A program or a right is missing.
pub(crate) fn undo_leftovers(state_file: &Path) -> Result<(), Advised> {
    undo(&mut Kept::open(state_file))
}

impl Drop for Applied {
    fn drop(&mut self) {
        if let Err(error) = undo(&mut self.kept) {
            log::warn!("connections are still led to the proxy: {error}; {}", error.help());
        }
    }
}

/// The table goes first: without it nothing is marked.
fn undo(kept: &mut Kept<State>) -> Result<(), Advised> {
    let State { nft_table, tproxy } = kept.value.clone();
    // Somebody else may have written the file: only a table of ours is removed.
    if let Some(table) = nft_table.filter(|table| script::is_ours(table)) {
        nft(&[], &script::removal(&table)).map_err(advised)?;
    }
    for command in tproxy.iter().flat_map(|marked| script::routing(marked, "delete")) {
        match ip::run(&command) {
            Err(error) if !error.is_gone_already() => return Err(error.into()),
            _ => {}
        }
    }
    kept.value = State::default();
    kept.save();
    Ok(())
}

fn advised(error: HostError) -> Advised {
    match error {
        HostError::NftMissing => Advised::new(
            "the program nft is missing, which leads connections in",
            "install it (Debian and Ubuntu: package nftables), or lead them in by other means",
        ),
        HostError::NftRefused(said) => Advised::new(
            format!("nft refused the rules: {said}"),
            "the kernel needs nf_tables with NAT or TPROXY (`modprobe nft_redir nft_tproxy \
             nft_fib_inet`), and plait the right CAP_NET_ADMIN",
        ),
        other => Advised::new(format!("the rules: {other}"), other.help()),
    }
}
