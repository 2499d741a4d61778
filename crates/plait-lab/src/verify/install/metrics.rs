//! install.5: what metrics cost a gateway with a thousand bonds, and whether they are true.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plait_proto::session::PublicKey;

use super::super::{Effort, Figure};
use crate::gateway::{
    Gateway, Scrape, Status, customer_file, endpoint_v4, make_key, path_over, provider_file,
};
use crate::many_peers::crowd::{Crowd, member};
use crate::measure::{Echo, RoundTrips, median};
use crate::output::Progress;
use crate::process::wait_until;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, Topology, inner_v4};

mod agreement;

use agreement::Agreement;

const SOURCE: &str = "install.5";
const PEERS: usize = 1000;
const LINK: LinkSpec = LinkSpec::new("wire", 100, 2, 2);
const ECHO_PORT: u16 = 9000;
const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9788);
/// For all customers to call and to be answered.
const UP_LIMIT: Duration = Duration::from_secs(90);
/// Prometheus asks this often by default on the guide's page; here faster, to wait less.
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// The gateway gathers at most this often.
const APART: Duration = Duration::from_millis(1100);
/// Questions through the bond in the time of a scrape, and the time between two.
const ASKED: u32 = 400;
const INTERVAL: Duration = Duration::from_millis(1);

/// A provider with its customers.
struct Site {
    topology: Topology,
    scratch: Scratch,
    provider: Gateway,
    customer: Gateway,
    _crowd: Crowd,
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let scrapes = if effort.is_quick() { 10 } else { 40 };
    let measured = APART * scrapes * 2;
    let mut progress = Progress::new(3, Duration::from_secs(20) + measured * 2);
    let step = progress.step("bonds with 1,000 customers", Duration::from_secs(20));
    let mut site = Site::build()?;
    drop(step);
    let step = progress.step("round trips beside scrapes and without", measured);
    let mut figures = delays(&site, scrapes)?;
    drop(step);
    let _step = progress.step("processor time of scrapes and without", measured);
    figures.extend(processor_time(&site, scrapes)?);
    let agreement = Agreement::of(&mut site.provider, &site.topology.provider, METRICS)?;
    figures.extend(agreement.figures(SOURCE));
    site.customer.stop()?;
    site.provider.stop()?;
    drop(site.scratch);
    Ok(figures)
}

impl Site {
    fn build() -> Result<Self> {
        let topology = Topology::build(&[LINK])?;
        let scratch = Scratch::in_memory("metrics")?;
        let key = |name: &str| make_key(&scratch.path().join(name));
        let [provider_key, customer_key] = [key("provider.key")?, key("customer.key")?];
        let mut file = provider_file("provider.key", &[(customer_key, 2)]);
        file.peers.extend((1..PEERS).map(member));
        file.gateway.metrics = Some(METRICS);
        let mut provider = Gateway::start(&topology.provider, scratch.path(), "provider", &file)?;
        let endpoints = [endpoint_v4()];
        let paths = [path_over(LINK.name)];
        let file = customer_file("customer.key", 2, &provider_key, &endpoints, &paths);
        let netns = &topology.customer().netns;
        let customer = Gateway::start(netns, scratch.path(), "customer", &file)?;
        let key: PublicKey = plait_key(&provider_key)?;
        let crowd = Crowd::start(netns, PEERS - 1, endpoint_v4(), key)?;
        wait_until("1,000 bonds", UP_LIMIT, || {
            std::thread::sleep(Duration::from_millis(500));
            let status = provider.status(&topology.provider)?;
            Ok(status.filter(|status| Status::is_up(status, 1)))
        })
        .with_context(|| format!("the provider's log ends:\n{}", provider.log_tail()))?;
        Ok(Self { topology, scratch, provider, customer, _crowd: crowd })
    }
}

fn plait_key(text: &str) -> Result<PublicKey> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text)?;
    let bytes: [u8; 32] = bytes.try_into().ok().context("a key has 32 bytes")?;
    Ok(PublicKey::from_bytes(bytes))
}

/// Round trips through a bond of the gateway, in turns while it is scraped and while it is not. A
/// scrape that holds packets up does so each time; what else the machine does, it does now and
/// then: so the longest round trip of each turn is taken, and of those the median.
fn delays(site: &Site, scrapes: u32) -> Result<Vec<Figure>> {
    let Topology { provider, .. } = &site.topology;
    let from = (&site.topology.customer().netns, (inner_v4(2), 0).into());
    let echo = Echo::open(from, (provider, (inner_v4(1), ECHO_PORT).into()))?;
    let turn = |longest: &mut Vec<u64>| -> Result<()> {
        let mut trips = RoundTrips::default();
        echo.ask(ASKED, INTERVAL, &mut trips)?;
        longest.push((trips.percentile_us(100) * 1e3) as u64);
        Ok(())
    };
    let (mut quiet, mut scraped) = (Vec::new(), Vec::new());
    let (mut took, mut gathered, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..scrapes {
        let begun = Instant::now();
        turn(&mut quiet)?;
        std::thread::sleep(APART.saturating_sub(begun.elapsed()));
        std::thread::scope(|scope| -> Result<()> {
            let scraping = scope.spawn(|| {
                let begun = Instant::now();
                Scrape::take(provider, METRICS).map(|scrape| (begun.elapsed(), scrape))
            });
            turn(&mut scraped)?;
            let (time, scrape) =
                scraping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            took.push(time.as_nanos() as u64);
            let gathering = scrape.samples.get("plait_metrics_gathering_seconds");
            gathered.push((gathering.context("a metric is missing")? * 1e9) as u64);
            bytes = scrape.bytes;
            Ok(())
        })?;
    }
    let ms = |name: &str, nanos: u64| Figure::number(name, nanos as f64 / 1e6, "ms");
    let most = |times: &[u64]| times.iter().copied().max().unwrap_or(0);
    let (longest_quiet, longest_scraped) = (most(&quiet), most(&scraped));
    let extra = median(scraped.clone()).saturating_sub(median(quiet.clone()));
    Ok(vec![
        Figure::number("text of the metrics", bytes as f64 / 1e6, "MB"),
        ms("a scrape, median", median(took)),
        ms("of it, until the loop has gathered the status", median(gathered)),
        ms("longest round trip in 0.4 s without a scrape, median", median(quiet)),
        ms("the same with a scrape", median(scraped)),
        ms("longest round trip of all without scrapes", longest_quiet),
        ms("longest round trip of all beside scrapes", longest_scraped),
        ms("longest extra delay of a packet by a scrape", extra).at_most(5.0, SOURCE),
    ])
}

/// The gateway's processor time for scrapes, the same time without them taken off.
fn processor_time(site: &Site, scrapes: u32) -> Result<Vec<Figure>> {
    let spent = |scrapes_now: bool| -> Result<Duration> {
        let before = site.provider.cpu_time()?;
        for _ in 0..scrapes {
            let begun = Instant::now();
            if scrapes_now {
                Scrape::take(&site.topology.provider, METRICS)?;
            }
            std::thread::sleep(APART.saturating_sub(begun.elapsed()));
        }
        Ok(site.provider.cpu_time()?.saturating_sub(before))
    };
    let (idle, scraped) = (spent(false)?, spent(true)?);
    let each = scraped.saturating_sub(idle) / scrapes;
    let share = each.as_secs_f64() / ASKED_EVERY.as_secs_f64();
    Ok(vec![
        Figure::number("processor time of a scrape", each.as_secs_f64() * 1e3, "ms"),
        Figure::percent("of a core, with a scrape each 5 s", (share * 1e6) as u64)
            .at_most(1.0, SOURCE),
    ])
}
