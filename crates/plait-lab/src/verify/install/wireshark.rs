//! install.7: what two gateways say, read by Wireshark's dissector with a log of keys; and the
//! manual pages and completions.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use plait_proto::rng::Rng;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::seq::BondIncarnation;
use plait_proto::session::{Hello, Identity, PresharedKey, PrivateKey, PublicKey, Timestamp};
use plait_proto::wire::handshake::SessionIndex;

use super::super::{Effort, Figure};
use super::pages;
use crate::gateway::captured::{Captured, sort};
use crate::gateway::{
    Gateway, GatewayFile, customer_file, endpoint_v4, make_key, path_over, provider_file,
};
use crate::measure::{self, Target, WebServer};
use crate::output::{self, Progress};
use crate::process::wait_until;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, SERVER_V4, Topology};

mod tshark;

use tshark::{Dissected, dissect};

const SOURCE: &str = "install.7";
const LINKS: [LinkSpec; 2] = [LinkSpec::DSL, LinkSpec::LTE];
const DATAGRAMS: usize = 10_000;
/// Packets that are kept of each direction of a link.
const CAPTURED_MAX: usize = 20_000;
const UP_LIMIT: Duration = Duration::from_secs(20);
/// In which a path is found silent, and what was on it is sent again.
const CUT: Duration = Duration::from_secs(2);
const SETTLE: Duration = Duration::from_secs(2);
/// Each of two downloads.
const BYTES: u64 = 5_000_000;
/// More than a gateway answers without a cookie.
const STRANGERS: u32 = 250;

const KINDS: [&str; 5] = ["initiation", "response", "cookie reply", "data", "control"];
const FRAMES: [&str; 14] = [
    "PATH_CHALLENGE",
    "PATH_RESPONSE",
    "PATH_INFO",
    "PROBE",
    "PROBE_ECHO",
    "ACK",
    "LOSS_REPORT",
    "CLOSE",
    "PATH_DEAD",
    "PATH_CLOSE",
    "MTU_PROBE",
    "MTU_ECHO",
    "DISCARDS",
    "RELEASE",
];

pub(in super::super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let mut progress = Progress::new(2, Duration::from_secs(90));
    let step = progress.step("two gateways talk", Duration::from_secs(30));
    let scratch = Scratch::in_memory("wireshark")?;
    let key_log = scratch.path().join("keys.log");
    let packets = talk(&scratch, &key_log)?;
    drop(step);
    let _step = progress.step("tshark reads", Duration::from_secs(60));
    let mut figures = figures(&packets, &dissect(&scratch, &key_log, &packets)?);
    figures.extend(vectors(&scratch)?);
    figures.extend(pages::check(SOURCE)?);
    Ok(figures)
}

/// The site of the conversation.
struct Site<'a> {
    topology: &'a Topology,
    scratch: &'a Scratch,
    key_log: &'a Path,
    provider_key: String,
    files: [GatewayFile; 2],
}

/// Everything that can be provoked; what was on the links, as IP packets.
fn talk(scratch: &Scratch, key_log: &Path) -> Result<Vec<Vec<u8>>> {
    let topology = Topology::build(&LINKS)?;
    let key = |name: &str| make_key(&scratch.path().join(name));
    let [provider_key, customer_key] = [key("provider.key")?, key("customer.key")?];
    let paths = LINKS.map(|link| path_over(link.name));
    let endpoints = [endpoint_v4()];
    let customer = customer_file("customer.key", 2, &provider_key, &endpoints, &paths);
    let provider = provider_file("provider.key", &[(customer_key, 2)]);
    let files = [customer, provider];
    let mut site = Site { topology: &topology, scratch, key_log, provider_key, files };
    let _web = WebServer::start(&topology.server, BYTES)?;
    topology.capture(CAPTURED_MAX);
    site.disturbed(&_web)?;
    for file in &mut site.files {
        // Such a bond tells its losses by reports.
        file.tuning = Some(SchedulerConfig::from(Algorithm::AdaptiveWrr).into());
    }
    site.undisturbed(&_web)?;
    let all: Vec<Vec<u8>> = topology.captured().map(|(_, packet)| packet.into_vec()).collect();
    Ok(choose(all))
}

/// All handshakes and control, and so many data datagrams that there are [`DATAGRAMS`].
fn choose(all: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    const DATA: u8 = 4;
    let kind = |packet: &[u8]| match sort(packet) {
        Captured::Plait { kind, .. } => Some(kind),
        Captured::Neighbourhood | Captured::Foreign => None,
    };
    let others = all.iter().filter(|packet| kind(packet).is_some_and(|kind| kind != DATA)).count();
    let mut room = DATAGRAMS.saturating_sub(others);
    let mut chosen = all;
    chosen.retain(|packet| match kind(packet) {
        Some(DATA) if room == 0 => false,
        Some(DATA) => {
            room -= 1;
            true
        }
        other => other.is_some(),
    });
    chosen
}

impl Site<'_> {
    fn netns(&self) -> &NetNs {
        &self.topology.customer().netns
    }

    fn start(&self) -> Result<[Gateway; 2]> {
        let folder = self.scratch.path();
        let [customer, provider] = &self.files;
        let provider = Gateway::start(&self.topology.provider, folder, "provider", provider)?;
        let (netns, log) = (self.netns(), self.key_log);
        let mut customer = Gateway::start_logging_keys(netns, folder, "customer", customer, log)?;
        self.wait_until_up(&mut customer, LINKS.len())?;
        Ok([customer, provider])
    }

    fn wait_until_up(&self, customer: &mut Gateway, paths: usize) -> Result<()> {
        let waited = wait_until("a bond", UP_LIMIT, || {
            Ok(customer.status(self.netns())?.filter(|status| status.is_up(paths)))
        });
        waited.map(drop).with_context(|| format!("its log ends:\n{}", customer.log_tail()))
    }

    fn download(&self, web: &WebServer) -> Result<()> {
        let target = Target { client: self.netns(), server: SERVER_V4.into(), bind: None };
        measure::download(target, web).map(drop)
    }

    /// A download, a link that is cut meanwhile, a path that is removed and comes again, strangers
    /// that ask for cookies, a restart, an initiation that is repeated too late, an end.
    fn disturbed(&mut self, web: &WebServer) -> Result<()> {
        let [mut customer, mut provider] = self.start()?;
        let lte = &self.topology.link(LINKS[1].name)?.emulator;
        std::thread::scope(|scope| -> Result<()> {
            let cutting = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                lte.set_cut(true);
                std::thread::sleep(CUT);
                lte.set_cut(false);
            });
            let done = self.download(web);
            cutting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done
        })?;
        self.wait_until_up(&mut customer, LINKS.len())?;
        let whole = self.files[0].clone();
        let mut less = whole.clone();
        less.paths.pop();
        customer.reload_with(&less)?;
        std::thread::sleep(SETTLE);
        customer.reload_with(&whole)?;
        self.wait_until_up(&mut customer, LINKS.len())?;
        customer.kill()?;
        self.strangers()?;
        customer.restart(self.netns())?;
        self.wait_until_up(&mut customer, LINKS.len())?;
        self.repeat_the_first_initiation()?;
        std::thread::sleep(SETTLE);
        customer.stop()?;
        std::thread::sleep(SETTLE / 2);
        provider.stop()
    }

    fn undisturbed(&mut self, web: &WebServer) -> Result<()> {
        let [mut customer, mut provider] = self.start()?;
        self.download(web)?;
        std::thread::sleep(SETTLE);
        customer.stop()?;
        provider.stop()
    }

    /// Initiations of a key that nobody knows: the last of them are answered with cookies.
    fn strangers(&self) -> Result<()> {
        let socket = self.netns().run_in(|| UdpSocket::bind(("0.0.0.0", 0)))??;
        let provider = self.provider_key.parse::<PublicKey>().context("a key is a key")?;
        let hello = Hello {
            incarnation: BondIncarnation(1),
            aes_is_fast: true,
            inner_mtu: 1440,
            repairs: false,
            revision: plait_proto::wire::REVISION,
        };
        let state = Identity::new(PrivateKey::from_bytes([77; 32])).initiate(
            &mut Rng::from_seed([78; 32]),
            &provider,
            &PresharedKey::default(),
            SessionIndex::from_random(0x77_7777).context("it is not zero")?,
            Timestamp::from_unix(Duration::from_secs(1)),
            hello,
        );
        for _ in 0..STRANGERS {
            socket.send_to(&state.message, endpoint_v4())?;
        }
        Ok(())
    }

    fn repeat_the_first_initiation(&self) -> Result<()> {
        const INITIATION: u8 = 1;
        let all = self.topology.customer().links.iter();
        let first = all.flat_map(|link| link.emulator.captured_so_far(crate::emulator::Way::Up));
        let first = first.into_iter().find_map(|packet| match sort(&packet) {
            Captured::Plait { kind: INITIATION, payload, .. } => Some(payload.to_vec()),
            _ => None,
        });
        let socket = self.netns().run_in(|| UdpSocket::bind(("0.0.0.0", 0)))??;
        socket.send_to(&first.context("there was an initiation")?, endpoint_v4())?;
        Ok(())
    }
}

fn figures(packets: &[Vec<u8>], all: &[Dissected]) -> Vec<Figure> {
    let count = |is: fn(&Dissected) -> bool| all.iter().filter(|one| is(one)).count() as u64;
    let (mut kinds, mut frames) = (BTreeMap::new(), BTreeMap::new());
    for one in all {
        *kinds.entry(one.kind.unwrap_or(0)).or_insert(0_u64) += 1;
        one.frames.iter().for_each(|frame| *frames.entry(*frame).or_insert(0_u64) += 1);
    }
    let seen = |names: &[&str], counts: &BTreeMap<u8, u64>| -> Vec<String> {
        let named = (1_u8..).zip(names);
        let seen = named.filter_map(|(kind, name)| Some(format!("{name} {}", counts.get(&kind)?)));
        seen.collect()
    };
    let missing = (1_u8..).zip(FRAMES).filter(|(kind, _)| !frames.contains_key(kind));
    let missing: Vec<&str> = missing.map(|(_, name)| name).collect();
    let (kinds, frames) = (seen(&KINDS, &kinds), seen(&FRAMES, &frames));
    output::note(format!("install.7: {}; {}", kinds.join(", "), frames.join(", ")));
    let closed = count(|one| one.kind.is_some_and(|kind| kind >= 4) && !one.opened);
    vec![
        Figure::count("datagrams", packets.len() as u64).at_least(DATAGRAMS as f64, SOURCE),
        Figure::none("not taken for plait's", count(|one| one.kind.is_none()), SOURCE),
        Figure::count("kinds of datagrams seen", kinds.len() as u64).at_least(5.0, SOURCE),
        Figure::count("kinds of frames seen, of 14", frames.len() as u64).at_least(11.0, SOURCE),
        Figure::text("frames that nothing provoked", missing.join(", ")),
        Figure::none("malformed", count(|one| one.malformed), SOURCE),
        Figure::none("with bytes that have no name", count(|one| one.unknown), SOURCE),
        Figure::none("sealed ones that were not opened", closed, SOURCE),
        Figure::none("tags that do not fit", count(|one| one.bad_tag || one.no_key), SOURCE),
    ]
}

/// The test vectors of the specification: both ciphers, each frame with known content.
fn vectors(scratch: &Scratch) -> Result<Vec<Figure>> {
    const VECTORS: &str = include_str!("../../../../../docs/spec/vectors.json");
    let vectors: serde_json::Value = serde_json::from_str(VECTORS)?;
    let (mut log, mut packets, mut expected) = (String::new(), Vec::new(), Vec::new());
    for handshake in vectors["handshakes"].as_array().context("there are handshakes")? {
        let cipher = u8::from(handshake["cipher"].as_str() != Some("AES-256-GCM"));
        for (receiver, sender) in [("responder", "initiator"), ("initiator", "responder")] {
            let index = handshake[receiver]["index"].as_u64().context("an index")?;
            let secret =
                handshake[&format!("secret_from_{sender}")].as_str().context("a secret")?;
            log.push_str(&format!("PLAIT1_DIRECTION {index:06x} {cipher} {secret}\n"));
        }
        for datagram in handshake["datagrams"].as_array().context("there are datagrams")? {
            // Of larger ones the datagram has only a part, and no capture shows the rest.
            if datagram["packet_number"].as_u64().is_none_or(|number| number >= 1 << 32) {
                continue;
            }
            packets.push(udp_packet(&bytes(datagram["datagram"].as_str().context("bytes")?)?));
            let frames = datagram["frames"].as_array().into_iter().flatten();
            let number = |frame: &serde_json::Value| {
                let place = FRAMES.iter().position(|name| frame["type"].as_str() == Some(name));
                place.map(|place| place as u8 + 1)
            };
            expected.push(frames.map(number).collect::<Option<Vec<u8>>>().context("a frame")?);
        }
    }
    let key_log = scratch.path().join("vectors.log");
    std::fs::write(&key_log, log)?;
    let dissected = dissect(scratch, &key_log, &packets)?;
    let as_told = |(one, frames): &(&Dissected, &Vec<u8>)| {
        one.opened && !one.unknown && !one.malformed && one.frames == **frames
    };
    let right = dissected.iter().zip(&expected).filter(as_told).count();
    Ok(vec![
        Figure::count("datagrams of docs/spec/vectors.json read as they are", right as u64)
            .exactly(expected.len().max(30) as f64, SOURCE),
    ])
}

fn bytes(hex: &str) -> Result<Vec<u8>> {
    let at = (0..hex.len()).step_by(2);
    at.map(|at| Ok(u8::from_str_radix(hex.get(at..at + 2).context("hexadecimal")?, 16)?)).collect()
}

/// An IPv4 packet with a datagram to the gateway's port; checksums are left out.
fn udp_packet(payload: &[u8]) -> Vec<u8> {
    let length = |more: usize| ((payload.len() + more) as u16).to_be_bytes();
    let mut packet = vec![0x45, 0];
    packet.extend(length(28));
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1]);
    packet.extend(40_000_u16.to_be_bytes());
    packet.extend(endpoint_v4().port().to_be_bytes());
    packet.extend(length(8));
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_is_kept_and_data_fills_up() {
        let of = |kind: u8| udp_packet(&[0x10 | kind, 0]);
        let mut all = vec![vec![0x60]];
        all.extend((0..DATAGRAMS).map(|_| of(4)));
        all.extend([of(1), of(5), of(5)]);
        let chosen = choose(all);
        assert_eq!(chosen.len(), DATAGRAMS);
        assert_eq!(chosen[DATAGRAMS - 3..], [of(1), of(5), of(5)]);
    }
}
