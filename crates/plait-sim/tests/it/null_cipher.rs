//! The null cipher changes nothing but the time a run takes, and stays in the simulator.

use std::fs;
use std::path::{Path, PathBuf};

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig, LossDetection, Order, PeerConfig, Prefix, RekeyLimits,
    SocketId,
};
use plait_proto::drop_reason::DropReason;
use plait_proto::endpoint::Endpoint;
use plait_proto::faults::Faults;
use plait_proto::path::Route;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::rng::Rng;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::session::{PresharedKey, PrivateKey};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::dscp::Dscps;
use plait_sim::run::run_with;
use plait_sim::world::CipherChoice;

use crate::scenarios::written;

/// Loss, reordering, an outage and a session that is renewed, in both directions.
const ROUGH: &str = r#"
duration_s = 130
[links.a]
rate_mbit = 2
rtt_ms = [10, 20]
loss = 0.01
[links.b]
rate_mbit = 1
rtt_ms = [30, 60]
outages_s = [[20.0, 24.0]]
[bond]
links = ["a", "b"]
[[app]]
name = "bulk"
kind = "tcp"
flows = 2
[[app]]
name = "up"
kind = "udp"
direction = "up"
payload_bytes = 700
rate = { mbit = 0.5, layer = "offered" }
"#;

#[test]
fn a_run_is_the_same_under_both_ciphers() {
    let experiment = written(ROUGH);
    let scenario = &experiment.cells[0].scenario;
    let [null, real] = [CipherChoice::Null, CipherChoice::Real]
        .map(|cipher| run_with(scenario, 5, cipher).unwrap());
    assert!(null.trace.events() > 50_000, "{:?}", null.trace);
    assert_eq!(null.trace, real.trace);
    assert_eq!((null.metrics, null.series), (real.metrics, real.series));
    assert_eq!(null.counters, real.counters);
}

type MakeEndpoint = fn(EndpointConfig, Vec<PeerConfig>, Rng) -> Endpoint;

/// One of two gateways that know each other; the first calls the second.
fn gateway(make: MakeEndpoint, side: u8) -> Endpoint {
    let keys = [0, 1].map(|side| PrivateKey::from_bytes([side + 1; 32]));
    let [own, other] = if side == 0 { [0, 1] } else { [1, 0] };
    let link = LinkConfig {
        socket: SocketId(0),
        name: "link".into(),
        price: 0,
        weight: 1,
        standby: false,
        metered: false,
    };
    let calls = side == 0;
    let config = EndpointConfig {
        private_key: keys[own].clone(),
        wall_clock_at_zero: Duration::from_secs(1),
        links: if calls { vec![link] } else { Vec::new() },
        bond: BondConfig {
            scheduler: SchedulerConfig::default(),
            congestion: Algorithm::default().default_congestion(),
            order: Order::default(),
            unordered: Dscps::default(),
            resequencer: ResequencerConfig::default(),
            loss_detection: LossDetection::default(),
            report_interval: Duration::from_millis(50),
            inner_mtu: 1440,
            rekey: RekeyLimits::default(),
            release: None,
        },
    };
    let peer = PeerConfig {
        public_key: keys[other].public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: if calls { vec![([192, 0, 2, 1], 1).into()] } else { Vec::new() },
        allowed_ips: vec![Prefix { address: [0, 0, 0, 0].into(), length: 0 }],
        keepalive: Duration::from_secs(25),
    };
    make(config, vec![peer], Rng::from_seed([side; 32]))
}

/// Hands a gateway's datagrams to the other; says whether there were any.
fn carry(from: &mut Endpoint, to: &mut Endpoint) -> bool {
    let mut any = false;
    while let Some(transmit) = from.poll_transmit() {
        let route = Route { socket: SocketId(0), remote: ([192, 0, 2, 9], 9).into(), local: None };
        let stride = transmit.segment_size.unwrap_or(transmit.contents.len());
        let mut datagrams = transmit.contents.to_vec();
        to.handle_datagrams(Instant::ZERO, route, transmit.ecn, stride, &mut datagrams);
        any = true;
    }
    any
}

/// Lets two gateways talk until neither has anything to say, and gives them back.
fn talk(calling: MakeEndpoint, called: MakeEndpoint) -> [Endpoint; 2] {
    let (mut a, mut b) = (gateway(calling, 0), gateway(called, 1));
    a.start(Instant::ZERO);
    for _ in 0..10 {
        let (there, back) = (carry(&mut a, &mut b), carry(&mut b, &mut a));
        if !there && !back {
            break;
        }
    }
    [a, b]
}

fn cipher(endpoint: &mut Endpoint) -> Option<String> {
    endpoint.status(Instant::ZERO).peers[0].cipher.clone()
}

#[test]
fn a_gateway_without_a_cipher_makes_sessions_with_its_like_only() {
    let mut alike = talk(Endpoint::without_cipher, Endpoint::without_cipher);
    assert_eq!(cipher(&mut alike[0]).as_deref(), Some("none (simulation)"));
    let mut real = talk(Endpoint::new, Endpoint::new);
    assert!(cipher(&mut real[0]).is_some_and(|name| name.contains('-')), "an AEAD");
    for (calling, called) in [
        (Endpoint::new as MakeEndpoint, Endpoint::without_cipher as MakeEndpoint),
        (Endpoint::without_cipher, Endpoint::new),
    ] {
        let [mut a, mut b] = talk(calling, called);
        assert_eq!((cipher(&mut a), cipher(&mut b)), (None, None));
        assert_eq!(b.drop_count(DropReason::BadHandshake), 1, "the initiation is not believed");
    }
}

/// A gateway of the search, which is known by another public key.
fn for_search(config: EndpointConfig, peers: Vec<PeerConfig>, rng: Rng) -> Endpoint {
    let toy_key = |bytes| PrivateKey::from_bytes([bytes; 32]).toy_public_key();
    let own = config.private_key.toy_public_key();
    let public_key = if own == toy_key(1) { toy_key(2) } else { toy_key(1) };
    let peers = peers.into_iter().map(|peer| PeerConfig { public_key, ..peer }).collect();
    Endpoint::for_search(config, peers, rng, Faults::default())
}

#[test]
fn a_gateway_of_the_search_makes_sessions_with_its_like_only() {
    let mut alike = talk(for_search, for_search);
    assert_eq!(cipher(&mut alike[0]).as_deref(), Some("none (simulation)"));
    for other in [Endpoint::new as MakeEndpoint, Endpoint::without_cipher] {
        for (calling, called) in [(for_search as MakeEndpoint, other), (other, for_search)] {
            let [mut a, mut b] = talk(calling, called);
            assert_eq!((cipher(&mut a), cipher(&mut b)), (None, None));
            assert_eq!(b.drop_total(), 1, "the initiation is not believed");
        }
    }
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("a folder of this repository")
        .map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| files_under(folder))).collect()
}

#[test]
fn the_daemon_names_neither_the_feature_nor_the_constructor() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for daemon in ["plait", "plait-net"] {
        let sources = files_under(&crates.join(daemon).join("src"));
        for file in sources.into_iter().chain([crates.join(daemon).join("Cargo.toml")]) {
            let text = fs::read_to_string(&file).unwrap();
            for word in ["without_cipher", "for_search", "simulation", "plait-sim", "Cipher::Null"]
            {
                assert!(!text.contains(word), "{} names {word}", file.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "the daemon's sources lie elsewhere");
    let proto = fs::read_to_string(crates.join("plait-proto/Cargo.toml")).unwrap();
    assert!(!proto.contains("default = "), "the feature is asked for, never on by itself");
}
