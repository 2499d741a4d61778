//! What `via = "mptcp"` adds to a bulk transfer's options.

use plait_toml::{Problem, Section};

use super::app::Via;
use super::bond::read_names;
use crate::tcp::mptcp::SchedulerName;

/// The options.
pub(super) const OPTIONS: [&str; 6] =
    ["scheduler", "subflows", "primary", "backup", "penalise", "send_buffer_bytes"];

/// More than any kernel opens (RFC 8684 section 3.4 has eight bits for an address).
const SUBFLOWS_MAX: usize = 32;

/// A connection over several links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MptcpSpec {
    /// Which subflow carries what.
    pub scheduler: SchedulerName,
    /// The links, a subflow on each.
    pub subflows: Vec<String>,
    /// The link of the subflow that opens the connection.
    pub primary: String,
    /// Links whose subflows carry data only while no other can.
    pub backup: Vec<String>,
    /// Whether a full window is answered with opportunistic retransmission and a penalty.
    pub penalise: bool,
    /// The sender's buffer, if it has a fixed size.
    pub send_buffer_bytes: Option<u64>,
}

impl MptcpSpec {
    /// The options that upstream Linux's kernel does not have, or not as they are set, with their
    /// values; `links` are all links, in order.
    pub fn beyond_linux<'a>(
        &self,
        links: impl Iterator<Item = &'a String>,
    ) -> Option<(&'static str, String)> {
        let links: Vec<&String> = links.collect();
        let list = |names: &[String]| format!("[\"{}\"]", names.join("\", \""));
        if self.scheduler != SchedulerName::ShortestFlush {
            return Some(("scheduler", format!("\"{}\"", self.scheduler)));
        }
        if !links.iter().copied().eq(&self.subflows) {
            return Some(("subflows", list(&self.subflows)));
        }
        if links.first() != Some(&&self.primary) {
            return Some(("primary", format!("\"{}\"", self.primary)));
        }
        if !self.backup.is_empty() {
            return Some(("backup", list(&self.backup)));
        }
        if self.penalise {
            return Some(("penalise", "true".to_owned()));
        }
        self.send_buffer_bytes.map(|bytes| ("send_buffer_bytes", bytes.to_string()))
    }
}

/// Reads the options of a bulk transfer; `None` when it does not use MPTCP. They may stand where
/// the carrier is not said: then they hold in the cells whose carrier is MPTCP.
pub(super) fn read(
    section: &mut Section<'_>,
    via: Option<&Via>,
    links: &[&str],
) -> Option<MptcpSpec> {
    match via {
        Some(Via::Mptcp) => {}
        Some(Via::Link(_) | Via::Bond | Via::Steer) if section.holds_any(&["via"]) => {
            section.no_effect(&OPTIONS, "another `via`", "via = \"mptcp\"");
            return None;
        }
        _ => {
            section.know(&OPTIONS);
            return None;
        }
    }
    let scheduler = read_scheduler(section);
    let named = read_names(section, "subflows", links, SUBFLOWS_MAX);
    let is_named = section.holds_any(&["subflows"]);
    let subflows: Vec<String> =
        if is_named { named } else { links.iter().map(|link| (*link).to_owned()).collect() };
    let primary = section.text("primary");
    if let Some(primary) = primary.as_ref().filter(|primary| !subflows.contains(primary)) {
        section.problem("primary", not_among(primary, &subflows));
    }
    let among: Vec<&str> = subflows.iter().map(String::as_str).collect();
    let backup = read_names(section, "backup", links, SUBFLOWS_MAX);
    let strange = backup.iter().find(|link| !among.contains(&link.as_str()));
    if let Some(link) = strange {
        section.problem("backup", not_among(link, &subflows));
    } else if !backup.is_empty() && subflows.iter().all(|link| backup.contains(link)) {
        let text = "every subflow is a backup, and a backup of none";
        section.problem("backup", Problem::new(text, "leave out the link that is to carry data"));
    }
    let is_min_rtt = scheduler == SchedulerName::MinRtt;
    Some(MptcpSpec {
        scheduler,
        primary: primary.or_else(|| subflows.first().cloned())?,
        subflows,
        backup,
        penalise: section.boolean("penalise").unwrap_or(is_min_rtt),
        send_buffer_bytes: section.integer("send_buffer_bytes", (4096, 1 << 30), "bytes"),
    })
}

fn read_scheduler(section: &mut Section<'_>) -> SchedulerName {
    let known = SchedulerName::ALL.map(SchedulerName::name);
    let word = section.parsed("scheduler", |word| {
        word.parse().map_err(|_| Problem::choice(word, known.iter().copied()))
    });
    word.unwrap_or_default()
}

fn not_among(link: &str, subflows: &[String]) -> Problem {
    let text = format!("no subflow is on \"{link}\"");
    Problem::new(text, format!("choose one of: {}", subflows.join(", ")))
}
