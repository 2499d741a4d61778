//! install.4: running gateways are changed without a restart.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::{Effort, Figure};
use super::hooks::{self, SOURCE};
use crate::emulator::Way;
use crate::gateway::{
    Bond, BondSetup, Gateway, GatewayFile, customer_file, endpoint_v4, idle_peer, make_key,
    path_over, provider_file,
};
use crate::measure::{Echo, RoundTrips, ping};
use crate::output::Meter;
use crate::process::wait_until;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, Topology, inner_v4};

const LINKS: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::LTE];
const PEERS: usize = 10_000;
const PEERS_TIME_MAX_S: f64 = 10.0;
const LIMIT: Duration = Duration::from_secs(15);
const ECHO_PORT: u16 = 9000;
const ASKED: u32 = 400;
const INTERVAL: Duration = Duration::from_millis(5);
/// The control socket of the lab's providers.
const SOCKET: &str = "/run/plait/plait1.sock";

pub(in super::super) fn check(_: Effort) -> Result<Vec<Figure>> {
    let mut meter = Meter::new("install.4", "parts", 5);
    let mut figures = paths().context("changing paths")?;
    meter.finished_one();
    figures.extend(peer().context("adding a peer")?);
    meter.finished_one();
    figures.push(one_by_one().context("adding peers, a request for each")?);
    meter.finished_one();
    figures.extend(hooks::check().context("hooks")?);
    meter.finished_one();
    figures.push(by_file().context("adding peers from a file")?);
    meter.finished_one();
    Ok(figures)
}

fn holds(name: &str, is_so: bool) -> Figure {
    Figure::count(name, u64::from(is_so)).exactly(1.0, SOURCE)
}

/// Every command of `plait path` on a bond of two links.
fn paths() -> Result<Vec<Figure>> {
    let topology = Topology::build(&LINKS)?;
    let customer = &topology.customer().netns;
    let mut bond = Bond::start(customer, &topology.provider, &BondSetup::over(&["dsl", "lte"]))?;
    let echo = Echo::open(
        (customer, (inner_v4(2), 0).into()),
        (&topology.provider, (inner_v4(1), ECHO_PORT).into()),
    )?;
    let mut trips = RoundTrips::default();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| echo.ask(ASKED, INTERVAL, &mut trips));
        std::thread::sleep(INTERVAL * ASKED / 4);
        bond.customer.command(customer, &["path", "down", "dsl"])?;
        asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let mut figures = vec![
        Figure::count("round trips lost while a path was put down", trips.unanswered)
            .exactly(0.0, SOURCE),
    ];
    let before = given(&topology);
    echo.ask(ASKED / 4, INTERVAL, &mut trips)?;
    let carried: Vec<u64> =
        given(&topology).iter().zip(before).map(|(now, was)| now - was).collect();
    figures.push(Figure::none("packets over the path that is down", carried[0], SOURCE));
    figures.push(
        Figure::count("packets over the other one", carried[1])
            .at_least(f64::from(ASKED / 2), SOURCE),
    );
    let list = list(&bond.customer, &topology, "paths")?;
    let reason = &list[0]["links"][0]["reason"];
    figures.push(holds("its status says why", reason == "down by command"));
    bond.customer.command(customer, &["path", "up", "dsl"])?;
    figures.push(holds("both are used after up", bond.wait_until_up(2).is_ok()));
    figures.extend(options(&topology, &mut bond)?);
    figures.push(Figure::count("round trips lost at all", trips.unanswered).exactly(0.0, SOURCE));
    bond.stop()?;
    Ok(figures)
}

/// Standby, price and quota; and the file after `--save`.
fn options(topology: &Topology, bond: &mut Bond<'_>) -> Result<Vec<Figure>> {
    let netns = &topology.customer().netns;
    let text = fs::read_to_string(bond.customer.config())?;
    let commented =
        format!("# The whole file.\n{}", text.replace("price = 0", "price = 0 # cheap"));
    fs::write(bond.customer.config(), &commented)?;
    bond.customer.command(netns, &["reload"])?;
    let run = |gateway: &Gateway, arguments: &[&str]| gateway.command(netns, arguments);
    run(&bond.customer, &["path", "standby", "lte", "on"])?;
    run(&bond.customer, &["path", "price", "dsl", "2", "--save"])?;
    run(&bond.customer, &["path", "quota", "lte", "20GB", "--save"])?;
    let list = list(&bond.customer, topology, "paths")?;
    let [dsl, lte] = [&list[0], &list[1]];
    let expected = commented
        .replacen("price = 0 # cheap", "price = 2 # cheap", 1)
        .replace("\n\n[[peer]]", "\nquota = \"20GB\"\n\n[[peer]]");
    let saved = fs::read_to_string(bond.customer.config())?;
    let peer_told = wait_until("the provider to hear of it", LIMIT, || {
        let status = bond.provider.command(&topology.provider, &["status", "--json"])?;
        let has = |part: &str| status.contains(part);
        Ok((has("\"price\":2") && has("\"standby\":true")).then_some(()))
    });
    fs::write(bond.customer.config(), saved.clone() + "# by hand\n")?;
    let refused = run(&bond.customer, &["path", "price", "dsl", "3", "--save"]);
    let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
    run(&bond.customer, &["reload"])?;
    Ok(vec![
        holds("price acts", dsl["price"] == 2),
        holds("standby acts", lte["standby"] == true),
        holds("quota acts", lte["quota_bytes"] == 20_000_000_000_u64),
        holds("the peer hears of both", peer_told.is_ok()),
        holds("the file has what was saved, and all else as it was", saved == expected),
        holds(
            "a file that was changed by hand is left alone",
            refused.contains("was changed since the gateway read it"),
        ),
    ])
}

/// Packets given to each link so far, both directions together.
fn given(topology: &Topology) -> Vec<u64> {
    let links = topology.customer().links.iter();
    let packets = |way, link: &crate::topology::AttachedLink| {
        link.emulator.observe(0, way).counters.in_packets
    };
    links.map(|link| packets(Way::Up, link) + packets(Way::Down, link)).collect()
}

/// What `plait path list` or `plait peer list` tells.
fn list(gateway: &Gateway, topology: &Topology, what: &str) -> Result<Value> {
    let command = if what == "paths" { "path" } else { "peer" };
    let text = gateway.command(&topology.customer().netns, &[command, "list", "--json"])?;
    let answer: Value = serde_json::from_str(&text)?;
    Ok(answer["ok"][what].clone())
}

/// A provider that does not know its customer at first.
fn peer() -> Result<Vec<Figure>> {
    let topology = Topology::build(&LINKS[..1])?;
    let (netns, scratch) = (&topology.customer().netns, Scratch::in_memory("runtime")?);
    let keys = ["provider.key", "customer.key"].map(|name| make_key(&scratch.path().join(name)));
    let [provider_key, customer_key] = keys;
    let (provider_key, customer_key) = (provider_key?, customer_key?);
    let mut provider = provider(&topology, &scratch)?;
    let file =
        customer_file("customer.key", 2, &provider_key, &[endpoint_v4()], &[path_over("dsl")]);
    let mut customer = Gateway::start(netns, scratch.path(), "customer", &file)?;
    // Before its device is there, the bare link leads to the provider's inner address, too.
    wait_until("an answer of the customer", LIMIT, || customer.status(netns))?;
    let reached = |count| ping(netns, inner_v4(1), None, count).map(|pings| pings.received);
    let before = reached(2)?;
    let net = format!("{}/32", inner_v4(2));
    let begun = Instant::now();
    let add = ["peer", "add", &customer_key, "--allowed-ips", &net];
    provider.command(&topology.provider, &add)?;
    wait_until("a bond", LIMIT, || Ok((reached(1)? > 0).then_some(())))?;
    let time = begun.elapsed();
    let after = reached(10)?;
    provider.command(&topology.provider, &["peer", "remove", &customer_key])?;
    let gone = reached(2)?;
    customer.stop()?;
    provider.stop()?;
    Ok(vec![
        Figure::count("pings answered before the peer was added", before.into())
            .exactly(0.0, SOURCE),
        Figure::number("from `peer add` to the first answer", time.as_secs_f64(), "s")
            .at_most(LIMIT.as_secs_f64(), SOURCE),
        Figure::count("pings answered of 10", after.into()).exactly(10.0, SOURCE),
        Figure::count("pings answered after it was removed", gone.into()).exactly(0.0, SOURCE),
    ])
}

/// A provider with one peer, in vain.
fn provider(topology: &Topology, scratch: &Scratch) -> Result<Gateway> {
    let mut file = provider_file("provider.key", &[]);
    file.peers.push(idle_peer(0));
    let mut provider = Gateway::start(&topology.provider, scratch.path(), "provider", &file)?;
    wait_until("an answer of the provider", LIMIT, || provider.status(&topology.provider))?;
    Ok(provider)
}

/// Ten thousand requests over the control socket, one after the other.
fn one_by_one() -> Result<Figure> {
    many("10,000 peers added, a request for each", |_, _, peers| {
        for peer in peers {
            let nets: Vec<String> = peer.allowed_ips.iter().map(ToString::to_string).collect();
            let peer = json!({ "public_key": peer.public_key, "allowed_ips": nets });
            let asked = json!({ "version": 1, "request": "peer-add", "peers": [peer] });
            let mut socket = UnixStream::connect(SOCKET)?;
            socket.write_all(format!("{asked}\n").as_bytes())?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer)?;
            ensure!(answer.starts_with("{\"version\":1,\"ok\":"), "{answer}");
        }
        Ok(())
    })
}

/// The same by one command.
fn by_file() -> Result<Figure> {
    many("10,000 peers added by one command", |provider, topology, peers| {
        let file = provider.config().with_file_name("many.toml");
        let sections = GatewayFile { peers: peers.to_vec(), ..GatewayFile::default() };
        let text = sections.to_text();
        let at = text.find("[[peer]]").context("there are peers")?;
        fs::write(&file, &text[at..])?;
        let from = file.to_string_lossy().into_owned();
        provider.command(&topology.provider, &["peer", "add", "--from", &from]).map(drop)
    })
}

/// The time in which a provider gets them all.
fn many(
    name: &str,
    add: impl FnOnce(&Gateway, &Topology, &[plait_toml::gateway::Peer]) -> Result<()>,
) -> Result<Figure> {
    let topology = Topology::build(&LINKS[..1])?;
    let scratch = Scratch::in_memory("runtime")?;
    make_key(&scratch.path().join("provider.key"))?;
    let mut provider = provider(&topology, &scratch)?;
    let peers: Vec<_> = (1..=PEERS).map(idle_peer).collect();
    let begun = Instant::now();
    add(&provider, &topology, &peers)?;
    let time = begun.elapsed();
    let known = provider.status(&topology.provider)?.context("the provider says nothing")?;
    ensure!(known.peers.len() == PEERS + 1, "only {} peers are there", known.peers.len());
    ensure!(Path::new(SOCKET).exists(), "the provider answers elsewhere");
    provider.stop()?;
    Ok(Figure::number(name, time.as_secs_f64(), "s").at_most(PEERS_TIME_MAX_S, SOURCE))
}
