//! Which source serves here, and why not the better one.

use std::time::{Duration, Instant};

use plait_net::machine::Machine;
use plait_trace::filter::Filter;
use serde::Serialize;

#[cfg(feature = "bpf")]
use super::probe::Probe;
use super::source::{Asking, Source};
use crate::advice::Advised;

/// What the user asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(super) enum SourceName {
    /// The best that works here
    #[default]
    Auto,
    /// The kernel's tracepoint, by BPF
    TcpProbe,
    /// The kernel's list of sockets, by netlink
    SockDiag,
}

/// The first line of a trace.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Head {
    pub(super) source: &'static str,
    /// Why another one does not serve, and what is missing of this one.
    pub(super) notes: Vec<String>,
    /// Least seconds between two samples of a socket.
    pub(super) every_s: f64,
    /// When it began, in seconds since 1970 UTC.
    pub(super) began_unix_s: f64,
}

impl Head {
    fn new(source: &'static str, notes: Vec<String>, every: Duration) -> Self {
        let began_unix_s = plait_net::clock::realtime_since_epoch().as_secs_f64();
        Self { source, notes, every_s: every.as_secs_f64(), began_unix_s }
    }

    pub(super) fn sentence(&self) -> String {
        let notes = self.notes.iter().map(|note| format!("; {note}")).collect::<String>();
        let every = match self.every_s {
            0.0 => "every acknowledgement".to_owned(),
            seconds => format!("at most every {seconds} s"),
        };
        format!("source: {}, {every}{notes}", self.source)
    }
}

/// A source that serves.
pub(super) struct Chosen {
    pub(super) source: Box<dyn Source>,
    pub(super) head: Head,
}

/// Seconds between two questions, unless told, and at least.
const ASK_EVERY: Duration = Duration::from_millis(100);
const ASK_EVERY_MIN: Duration = Duration::from_millis(1);

/// Opens the source that was asked for, or the best one that works.
pub(super) fn choose(
    name: SourceName,
    filter: Filter,
    begun: Instant,
    every: Option<Duration>,
) -> anyhow::Result<Chosen> {
    let mut notes = Vec::new();
    if name != SourceName::SockDiag {
        match probe(&filter, begun, every) {
            Ok(chosen) => return Ok(chosen),
            Err(error) if name == SourceName::TcpProbe => return Err(error.into()),
            Err(error) => notes.push(format!("not tcp_probe: {:#}", anyhow::Error::from(error))),
        }
    }
    if !Machine::inspect().net_admin {
        if !filter.tokens.is_empty() {
            let message = "the kernel tells tokens only to who has CAP_NET_ADMIN here";
            return Err(Advised::new(message, "run it as root, or without --token").into());
        }
        notes.push("without CAP_NET_ADMIN subflows look like TCP connections".into());
    }
    let every = every.unwrap_or(ASK_EVERY).max(ASK_EVERY_MIN);
    let source = Asking::open(filter, begun, every).map_err(|cause| {
        let help = "use a kernel with sock_diag (CONFIG_INET_DIAG)";
        Advised::new("the kernel's list of sockets cannot be asked", help).caused_by(cause)
    })?;
    Ok(Chosen { source: Box::new(source), head: Head::new("sock_diag", notes, every) })
}

/// Seconds between two samples of a socket by the tracepoint, unless told.
#[cfg(feature = "bpf")]
const PROBE_EVERY: Duration = Duration::from_millis(10);

#[cfg(feature = "bpf")]
fn probe(filter: &Filter, begun: Instant, every: Option<Duration>) -> Result<Chosen, Advised> {
    let every = every.unwrap_or(PROBE_EVERY);
    let source = Probe::open(filter.clone(), begun, every).map_err(|error| {
        let help = format!("{}; --source sock-diag works without", error.help());
        Advised::new("the tracepoint tcp_probe cannot be traced", help).caused_by(error)
    })?;
    Ok(Chosen { source: Box::new(source), head: Head::new("tcp_probe", Vec::new(), every) })
}

#[cfg(not(feature = "bpf"))]
fn probe(_: &Filter, _: Instant, _: Option<Duration>) -> Result<Chosen, Advised> {
    let help = "build it with `cargo build --features bpf`, or take --source sock-diag";
    Err(Advised::new("this program was built without the feature bpf", help))
}
