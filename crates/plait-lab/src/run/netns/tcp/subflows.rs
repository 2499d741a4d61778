//! What each link carried of the kernel's MPTCP, from the counters of the senders' subflows.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use plait_net::mptcp::{self, Subflow};
use plait_net::tcp::TcpInfo;
use plait_sim::app::{MultipathView, SubflowView};

/// From here on a threshold stands for none: no window grows to it.
const SSTHRESH_NONE: u32 = 1 << 30;

/// The customer's address on each link, by which its subflow is known, with the link's name.
pub(crate) type Lines = Vec<(Ipv4Addr, String)>;

/// By number of the connection, and the subflow's two ends.
#[derive(Debug, Default)]
pub(super) struct Subflows(BTreeMap<(usize, SocketAddr, SocketAddr), Counted>);

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    last: TcpInfo,
    is_open: bool,
    measured_bytes: u64,
}

impl Subflows {
    /// Reads a connection's subflows; what they grew by counts as measured, or not.
    pub(super) fn sample(&mut self, connection: usize, socket: &TcpStream, measures: bool) {
        // One that is over, or has fallen back to TCP, has no subflows.
        let now = mptcp::subflows(socket).ok().flatten().unwrap_or_default();
        self.take(connection, &now, measures);
    }

    fn take(&mut self, connection: usize, now: &[Subflow], measures: bool) {
        for ((of, ..), counted) in &mut self.0 {
            counted.is_open &= *of != connection;
        }
        for Subflow { local, remote, info } in now {
            let counted = self.0.entry((connection, *local, *remote)).or_default();
            if measures {
                counted.measured_bytes += info.bytes_acked.saturating_sub(counted.last.bytes_acked);
            }
            (counted.last, counted.is_open) = (*info, true);
        }
    }

    /// All connections together, by link.
    pub(super) fn view(&self, lines: &Lines) -> MultipathView {
        let of_line = |(address, link): &(Ipv4Addr, String)| {
            let is_its = |(_, local, remote): &(usize, SocketAddr, SocketAddr)| {
                [local.ip(), remote.ip()].contains(&(*address).into())
            };
            let its = self.0.iter().filter(|(ends, _)| is_its(ends)).map(|(_, counted)| counted);
            subflow(link, &its.copied().collect::<Vec<_>>())
        };
        MultipathView { subflows: lines.iter().map(of_line).collect(), ..MultipathView::default() }
    }
}

fn subflow(link: &str, its: &[Counted]) -> SubflowView {
    let open = || its.iter().filter(|counted| counted.is_open).map(|counted| counted.last);
    let thresholds = open().map(|info| info.snd_ssthresh);
    let known =
        thresholds.map(|segments| (segments < SSTHRESH_NONE).then_some(f64::from(segments)));
    SubflowView {
        link: link.to_owned(),
        throughput_bytes: its.iter().map(|counted| counted.last.bytes_acked).sum(),
        measured_throughput_bytes: its.iter().map(|counted| counted.measured_bytes).sum(),
        cwnd_segments: open().map(|info| f64::from(info.snd_cwnd)).sum(),
        ssthresh_segments: known.sum(),
        srtt: open().map(|info| Duration::from_micros(info.srtt_us.into())).max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subflow(customer: [u8; 4], bytes_acked: u64, snd_ssthresh: u32) -> Subflow {
        let info = TcpInfo { bytes_acked, snd_cwnd: 10, snd_ssthresh, ..TcpInfo::default() };
        let local = SocketAddr::from(([10, 3, 0, 2], 5000));
        Subflow { local, remote: SocketAddr::from((customer, 4000)), info }
    }

    #[test]
    fn a_links_subflows_add_up_and_only_the_span_is_measured() {
        let lines = vec![([10, 1, 0, 1].into(), "a".into()), ([10, 2, 0, 1].into(), "b".into())];
        let mut subflows = Subflows::default();
        let none = u32::MAX >> 1;
        subflows.take(0, &[subflow([10, 1, 0, 1], 100, none), subflow([10, 2, 0, 1], 7, 5)], false);
        subflows.take(1, &[subflow([10, 1, 0, 1], 20, 9)], true);
        subflows.take(0, &[subflow([10, 1, 0, 1], 150, 8)], true);
        let view = subflows.view(&lines).subflows;
        assert_eq!((view[0].throughput_bytes, view[0].measured_throughput_bytes), (170, 70));
        assert_eq!((view[0].cwnd_segments, view[0].ssthresh_segments), (20.0, Some(17.0)));
        // The second link's subflow is gone; what it carried is not.
        assert_eq!((view[1].throughput_bytes, view[1].cwnd_segments), (7, 0.0));
        subflows.take(1, &[subflow([10, 1, 0, 1], 20, none)], true);
        assert_eq!(subflows.view(&lines).subflows[0].ssthresh_segments, None);
    }
}
