//! One TCP flow over a chain, with pings beside it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Window;
use super::chain::Chain;
use crate::emulator::Way;
use crate::measure::{Pinging, Span, Stream, Target, TcpCounters, Transport};
use crate::record::Samples;

/// Not a divisor of anything on the links.
const PING_INTERVAL: Duration = Duration::from_millis(97);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// What a flow had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) goodput_bps: u64,
    pub(super) rtt_p50_ms: f64,
    pub(super) window: Window,
    /// Over the whole flow.
    pub(super) reductions: u64,
}

/// Sends from the provider to the customer under a congestion control of the kernel.
pub(super) fn measure(chain: &Chain, control: &str, span: Span) -> Result<Found> {
    let target = Target { client: &chain.customer, server: chain.server, bind: None };
    let before = TcpCounters::of(&chain.provider)?;
    let stream = Stream::start_under(target, &chain.provider, Transport::Tcp, Way::Down, control)?;
    let from = Instant::now() + Duration::from_secs(span.omit_seconds.into());
    let until = from + Duration::from_secs(span.seconds.into());
    std::thread::sleep(from.saturating_duration_since(Instant::now()));
    let pings = u128::from(span.seconds) * 1000 / PING_INTERVAL.as_millis();
    let pings = u32::try_from(pings).context("a run is short")?;
    let pinging = Pinging::start(target, PING_INTERVAL, pings)?;
    let mut windows = Vec::new();
    while Instant::now() < until {
        windows.push(f64::from(stream.sender_info()?.snd_cwnd));
        std::thread::sleep(SAMPLE_INTERVAL);
    }
    let deliveries = stream.deliveries();
    let after = TcpCounters::of(&chain.provider)?.since(before);
    if let Some(death) = stream.death() {
        bail!("the flow ended early: {death}");
    }
    drop(stream);
    let windows = Samples::new(windows).context("a run has samples")?;
    Ok(Found {
        goodput_bps: deliveries.rate_bps(from, until),
        rtt_p50_ms: pinging.answers()?.percentile_ms(50),
        window: Window {
            p25: windows.quantile(0.25),
            p50: windows.quantile(0.5),
            p75: windows.quantile(0.75),
        },
        reductions: after.recoveries + after.timeouts,
    })
}
