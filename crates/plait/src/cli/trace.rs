//! `plait trace`: what the senders of TCP connections and MPTCP subflows do.
//!
//! - [`choice`]: which source serves here; [`source`]: by netlink; `probe`: by BPF
//! - [`sinks`]: where samples go; [`rotate`]: files that cannot fill a disk; [`live`]: the screen
//! - [`words`]: samples and cost in words; [`draw`]: a written trace as a page
//! - [`split`]: a capture split into subflows

mod choice;
mod draw;
mod live;
#[cfg(feature = "bpf")]
mod probe;
mod rotate;
mod sinks;
mod source;
mod split;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ipnet::IpNet;
use plait_net::clock;
use plait_trace::filter::{Filter, parse_token};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::choice::{Chosen, SourceName};
use self::sinks::Sinks;
use self::words::Summary;
use super::Outcome;

const AFTER_HELP: &str = "\
Examples:
  plait trace                                   live, all connections of this network namespace
  plait trace --port 443 --json                 JSON Lines, one record per sample
  plait trace --token a1b2c3d4 --html page.html --seconds 60
  plait trace --output day.jsonl --megabytes 200   a day's trace that cannot fill the disk
  plait trace draw --html page.html day.jsonl   the page of what was written
  plait trace split capture.pcap                what each subflow in a capture carried

The first line says which source serves: tcp_probe, the kernel's tracepoint, gives a sample when an
acknowledgement arrives; it needs root and a program built with the feature bpf. sock_diag asks by
netlink again and again; it needs no rights, but without CAP_NET_ADMIN the kernel does not say which
subflows belong together. Neither reads payload or keys.

Exit codes:
  0  ended by a signal, by q, or after --seconds
  2  an error; it is explained on stderr";

/// Trace TCP connections and MPTCP subflows: cwnd, ssthresh, windows, sRTT, rate, retransmits
///
/// On a terminal it shows them live. Elsewhere it prints a line per sample, with --json a record.
/// At its end it says how many samples there were, and what they cost.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Split(split::Args),
    Draw(draw::Args),
}

#[derive(Debug, clap::Args)]
struct LiveArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Where samples come from
    #[arg(long, value_enum, default_value_t)]
    source: SourceName,
    /// Least seconds between two samples of a socket, 0 to 3600: 0.01 by tcp_probe, where 0 gives
    /// every acknowledgement; 0.1 by sock_diag
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    every: Option<Duration>,
    /// End after some seconds
    #[arg(long, value_name = "SECONDS", value_parser = length)]
    seconds: Option<Duration>,
    /// Print JSON Lines, also on a terminal: a `trace`, a `sample` for each, then a `summary`
    #[arg(long)]
    json: bool,
    /// Write JSON Lines to a file, and older ones to FILE.1 to FILE.7
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Room for all files of --output together; the oldest goes first
    #[arg(long, value_name = "N", default_value_t = 100, requires = "output",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    megabytes: u64,
    /// Write a page with plots at the end
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Which connections are looked at.
#[derive(Clone, Debug, clap::Args)]
struct FilterArgs {
    /// Only connections with this port at either end; may be given again
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Only connections with this address, or one of this network, at either end
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_parser = network)]
    address: Vec<IpNet>,
    /// Only the MPTCP connection with this token, in hexadecimal
    #[arg(long, value_name = "TOKEN", value_parser = parse_token)]
    token: Vec<u32>,
}

impl FilterArgs {
    fn filter(&self) -> Filter {
        let (ports, networks) = (self.port.clone(), self.address.clone());
        Filter { ports, networks, tokens: self.token.clone() }
    }
}

fn network(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<std::net::IpAddr>().map(IpNet::from);
    address.or_else(|_| text.parse()).map_err(|_| "expected an address, or a network".into())
}

fn interval(text: &str) -> Result<Duration, String> {
    seconds(text, 0.0..=3600.0).ok_or_else(|| "expected 0 to 3600 seconds".into())
}

fn length(text: &str) -> Result<Duration, String> {
    seconds(text, 0.1..=1e8).ok_or_else(|| "expected 0.1 seconds or more".into())
}

fn seconds(text: &str, range: std::ops::RangeInclusive<f64>) -> Option<Duration> {
    let seconds = text.parse().ok().filter(|seconds| range.contains(seconds));
    seconds.map(Duration::from_secs_f64)
}

/// The longest that a signal, a key or the end waits.
const REACTION: Duration = Duration::from_millis(100);

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.action {
        Some(Action::Split(args)) => split::run(args),
        Some(Action::Draw(args)) => draw::run(args),
        None => trace(&args.live),
    }
}

fn trace(args: &LiveArgs) -> anyhow::Result<Outcome> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot watch for signals")?;
    }
    let begun = Instant::now();
    let chosen = choice::choose(args.source, args.filter.filter(), begun, args.every)?;
    let Chosen { mut source, head } = chosen;
    let mut sinks = Sinks::open(args, &head, begun)?;
    // What it costs to begin is not what it costs to trace.
    let (traced, processor) = (Instant::now(), clock::process_cpu_time());
    let mut samples = 0_u64;
    let ends = args.seconds.map(|length| begun + length);
    while !stop.load(Ordering::Relaxed) && ends.is_none_or(|end| Instant::now() < end) {
        let left = ends.map_or(REACTION, |end| end.saturating_duration_since(Instant::now()));
        let mut failed = None;
        let polled = source.poll(left.min(REACTION), &mut |sample| {
            samples += 1;
            if let Err(error) = sinks.take(sample) {
                failed.get_or_insert(error);
            }
        });
        polled.context("the source of samples fails")?;
        if let Some(error) = failed {
            return Err(error);
        }
        if sinks.tick()?.is_break() {
            break;
        }
    }
    let used = clock::process_cpu_time().saturating_sub(processor) + source.kernel_time();
    let summary = Summary::new(traced.elapsed(), samples, used, source.lost());
    sinks.end(&head, &summary)?;
    Ok(Outcome::Good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_bounds() {
        assert_eq!(interval("0.05"), Ok(Duration::from_millis(50)));
        assert_eq!(interval("0"), Ok(Duration::ZERO));
        for wrong in ["-1", "nan", "4000", "1s"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
        assert!(length("0").is_err() && length("86400").is_ok());
        assert_eq!(network("10.0.0.1").map(|net| net.to_string()), Ok("10.0.0.1/32".into()));
        assert!(network("fd00::/64").is_ok() && network("example.org").is_err());
    }
}
