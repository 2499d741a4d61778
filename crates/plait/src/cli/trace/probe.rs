//! Samples by the kernel's tracepoint of TCP.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use plait_bpf::trace::{Counts, Event, PORTS_MAX, Settings, Trace};
use plait_net::clock;
use plait_trace::filter::Filter;
use plait_trace::sample::{Sample, ssthresh};

use super::source::Source;

/// How often the kernel's ring is looked at: it has room for 40,000 events.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The tracepoint, while it is traced.
#[derive(Debug)]
pub(super) struct Probe {
    trace: Trace,
    filter: Filter,
    /// When the trace began, on the clock of the kernel's programs.
    begun: Duration,
}

impl Probe {
    pub(super) fn open(
        filter: Filter,
        begun: Instant,
        every: Duration,
    ) -> Result<Self, plait_bpf::Error> {
        // The program in the kernel knows few ports; the others are left out here.
        let fits = filter.ports.len() <= PORTS_MAX;
        let ports = if fits { filter.ports.clone() } else { Vec::new() };
        let trace = Trace::begin(&Settings { every, ports })?;
        let begun = clock::monotonic().saturating_sub(begun.elapsed());
        Ok(Self { trace, filter, begun })
    }

    fn counts(&self) -> Counts {
        // Unreadable counts are those of nothing.
        self.trace.counts().unwrap_or_default()
    }
}

impl Source for Probe {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Sample)) -> io::Result<()> {
        thread::sleep(wait.min(LOOK_EVERY));
        self.trace.take(|event| {
            let token = event.mptcp.map(|(token, _)| token);
            let is_wanted = self.filter.takes_ends(event.local, event.remote)
                && self.filter.takes_tokens(token.as_slice());
            if is_wanted {
                take(sample(event, self.begun));
            }
        })
    }

    fn kernel_time(&self) -> Duration {
        self.counts().spent
    }

    fn lost(&self) -> u64 {
        self.counts().lost
    }
}

fn sample(event: &Event, begun: Duration) -> Sample {
    Sample {
        at_s: event.at.saturating_sub(begun).as_secs_f64(),
        socket: event.socket,
        local: event.local,
        remote: event.remote,
        token: event.mptcp.map(|(token, _)| token),
        subflow: event.mptcp.map(|(_, id)| id),
        cwnd: event.cwnd,
        ssthresh: ssthresh(event.ssthresh),
        send_window_bytes: event.send_window_bytes,
        srtt_us: event.srtt_us,
        rate_bps: event.rate_bps,
        retransmits: event.retransmits,
        mss_bytes: event.mss_bytes,
        acked_bytes: event.acked_bytes,
    }
}
