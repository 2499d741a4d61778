//! The Grafana board's queries, asked of a real Prometheus that scrapes a real gateway.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;
use serde_json::Value;

use crate::gateway::scraped::{Scrape, get};
use crate::gateway::{Gateway, customer_file, endpoint_v4, make_key, path_over, provider_file};
use crate::measure::{self, Target, WebServer};
use crate::output::Output;
use crate::process::{Service, wait_until};
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, SERVER_V4, Topology};

const BOARD: &str = include_str!("../../../../contrib/grafana/plait.json");
const ALERTS: &str = include_str!("../../../../contrib/prometheus/alerts.yml");
const LOCAL: std::net::IpAddr = std::net::IpAddr::V4(Ipv4Addr::LOCALHOST);
const METRICS: SocketAddr = SocketAddr::new(LOCAL, 9788);
const PROMETHEUS: SocketAddr = SocketAddr::new(LOCAL, 9090);
const LIMIT: Duration = Duration::from_secs(30);
/// What goes through the bond first: from a megabyte on its overhead is told.
const BYTES: u64 = 4_000_000;

/// Every panel shows something, and Prometheus takes the alerts.
pub(super) fn board(output: &Output) -> Result<()> {
    let links = [LinkSpec::DSL, LinkSpec::LTE];
    let topology = Topology::build(&links)?;
    let scratch = Scratch::in_memory("board")?;
    let key = |name: &str| make_key(&scratch.path().join(name));
    let [provider_key, customer_key] = [key("provider.key")?, key("customer.key")?];
    let mut paths = links.map(|link| path_over(link.name));
    paths[1].quota = Some(1_000_000_000_000);
    let file = customer_file("customer.key", 2, &provider_key, &[endpoint_v4()], &paths);
    let mut customer_file = file;
    customer_file.gateway.metrics = Some(METRICS);
    let provider_file = provider_file("provider.key", &[(customer_key, 2)]);
    let netns = &topology.customer().netns;
    let folder = scratch.path();
    let mut provider = Gateway::start(&topology.provider, folder, "provider", &provider_file)?;
    let mut customer = Gateway::start(netns, folder, "customer", &customer_file)?;
    wait_until("a bond", LIMIT, || {
        Ok(customer.status(netns)?.filter(|status| status.is_up(links.len())))
    })?;
    let _prometheus = start_prometheus(netns, &scratch)?;
    let web = WebServer::start(&topology.server, BYTES)?;
    let target = Target { client: netns, server: SERVER_V4.into(), bind: None };
    measure::download(target, &web)?;
    let scrape = Scrape::take(netns, METRICS)?;
    ensure!(scrape.samples["plait_quota_limit_bytes{path=\"lte\"}"] == 1e12, "the quota's limit");
    let queries = queries()?;
    ensure!(queries.len() >= 20, "the board has {} queries", queries.len());
    for (panel, query) in &queries {
        wait_until(&format!("a series for {panel}: {query}"), LIMIT, || {
            Ok((ask(netns, query)? > 0).then_some(()))
        })?;
    }
    output.line(format!("{} queries of the board have series", queries.len()))?;
    let rules = api(netns, "/api/v1/rules")?;
    let groups = rules["data"]["groups"].as_array().context("Prometheus tells its rules")?;
    let count: usize =
        groups.iter().filter_map(|group| Some(group["rules"].as_array()?.len())).sum();
    ensure!(count == ALERTS.matches("- alert:").count(), "Prometheus took {count} alerts");
    customer.stop()?;
    provider.stop()
}

fn start_prometheus(netns: &NetNs, scratch: &Scratch) -> Result<Service> {
    let place = |name: &str| scratch.path().join(name);
    fs::write(place("alerts.yml"), ALERTS)?;
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [alerts.yml]\n\
         scrape_configs:\n  - job_name: plait\n    static_configs: [{{targets: ['{METRICS}']}}]\n"
    );
    fs::write(place("prometheus.yml"), config)?;
    let mut command = netns.command("prometheus");
    command
        .arg(format!("--config.file={}", place("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", place("data").display()))
        .arg(format!("--web.listen-address={PROMETHEUS}"));
    Service::start(&mut command, &place("prometheus.log"))
}

/// The queries of the board's panels, with every variable filled in.
fn queries() -> Result<Vec<(String, String)>> {
    let board: Value = serde_json::from_str(BOARD).context("the board is JSON")?;
    let mut found = Vec::new();
    for panel in board["panels"].as_array().context("the board has panels")? {
        let title = panel["title"].as_str().context("a panel has a title")?;
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().context("a target has an expression")?;
            let query = query.replace("$__rate_interval", "10s");
            let query = query.replace("$instance", ".*").replace("$peer", ".*");
            ensure!(!query.contains('$'), "{title}: an unknown variable in {query}");
            found.push((title.to_owned(), query));
        }
    }
    Ok(found)
}

/// The number of series that a query has now.
fn ask(netns: &NetNs, query: &str) -> Result<usize> {
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = match api(netns, &format!("/api/v1/query?query={encoded}")) {
        Ok(answer) => answer,
        // It is still starting.
        Err(_) => return Ok(0),
    };
    let result = answer["data"]["result"].as_array().context("Prometheus answers a query")?;
    Ok(result.len())
}

fn api(netns: &NetNs, page: &str) -> Result<Value> {
    Ok(serde_json::from_str(&get(netns, PROMETHEUS, page)?)?)
}
