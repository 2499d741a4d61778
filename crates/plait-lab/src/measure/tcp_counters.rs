//! Reads a host's TCP counters from the kernel's tables.

use std::fs;

use anyhow::Result;
use plait_net::netns::NetNs;
use serde::Serialize;

/// The counters of a protocol in a table like `/proc/net/snmp` or `/proc/net/netstat`: a line of
/// names, and one of values.
pub(crate) fn counters<'a>(
    table: &'a str,
    protocol: &'a str,
) -> impl Iterator<Item = (&'a str, u64)> {
    let of_protocol = move |line: &'a str| line.strip_prefix(protocol)?.strip_prefix(": ");
    let mut lines = table.lines().filter_map(of_protocol);
    let mut words = || lines.next().unwrap_or_default().split_whitespace();
    let (names, values) = (words(), words());
    names.zip(values).filter_map(|(name, value)| Some((name, value.parse().ok()?)))
}

/// TCP counters of a namespace, named as in `/proc/net/netstat`. Zero where the kernel lacks one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct TcpCounters {
    /// Times that a sender assumed a loss because of SACKs (`TCPSackRecovery`) or duplicate ACKs
    /// (`TCPRenoRecovery`).
    pub(crate) recoveries: u64,
    /// Times that it found the loss spurious and restored its window (`TCPFullUndo`,
    /// `TCPPartialUndo`, `TCPDSACKUndo`).
    pub(crate) undone: u64,
    /// Retransmission timeouts (`TCPTimeouts`), without tail loss probes (`TCPLossProbes`).
    pub(crate) timeouts: u64,
    /// Times that SACKs showed reordering (`TCPSACKReorder`).
    pub(crate) reorderings: u64,
    /// Times that slow start ended because the delay grew or ACKs came in a train
    /// (`TCPHystartDelayDetect`, `TCPHystartTrainDetect`): CUBIC's HyStart, without any loss.
    pub(crate) slow_start_ends: u64,
    /// Duplicate SACKs received: segments retransmitted needlessly (`TCPDSACKRecv`).
    pub(crate) dsacks: u64,
}

impl TcpCounters {
    pub(crate) fn of(netns: &NetNs) -> Result<Self> {
        let table = netns.run_in(|| fs::read_to_string("/proc/thread-self/net/netstat"))??;
        Ok(Self::parse(&table))
    }

    fn parse(table: &str) -> Self {
        let sum = |wanted: &[&str]| {
            let fields = counters(table, "TcpExt").filter(|(name, _)| wanted.contains(name));
            fields.map(|(_, value)| value).sum()
        };
        Self {
            recoveries: sum(&["TCPSackRecovery", "TCPRenoRecovery"]),
            undone: sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo"]),
            timeouts: sum(&["TCPTimeouts"]),
            reorderings: sum(&["TCPSACKReorder"]),
            slow_start_ends: sum(&["TCPHystartDelayDetect", "TCPHystartTrainDetect"]),
            dsacks: sum(&["TCPDSACKRecv"]),
        }
    }

    /// The difference since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            recoveries: self.recoveries.saturating_sub(earlier.recoveries),
            undone: self.undone.saturating_sub(earlier.undone),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            reorderings: self.reorderings.saturating_sub(earlier.reorderings),
            slow_start_ends: self.slow_start_ends.saturating_sub(earlier.slow_start_ends),
            dsacks: self.dsacks.saturating_sub(earlier.dsacks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let table = "TcpExt: SyncookiesSent TCPSackRecovery TCPRenoRecovery TCPDSACKUndo \
                     TCPTimeouts TCPSACKReorder TCPDSACKRecv TCPHystartDelayDetect\n\
                     TcpExt: 9 4 1 2 3 5 6 7\n\
                     IpExt: InNoRoutes TCPTimeouts\nIpExt: 7 8\n";
        let counters = TcpCounters::parse(table);
        let expected = TcpCounters {
            recoveries: 5,
            undone: 2,
            timeouts: 3,
            reorderings: 5,
            slow_start_ends: 7,
            dsacks: 6,
        };
        assert_eq!(counters, expected);
        let later = TcpCounters { recoveries: 7, ..expected };
        assert_eq!(later.since(expected), TcpCounters { recoveries: 2, ..TcpCounters::default() });
        assert_eq!(TcpCounters::parse(""), TcpCounters::default());
    }
}
