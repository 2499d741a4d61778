//! What a running gateway may be asked to change without a reload: peers one by one, and paths.

use std::path::Path;
use std::sync::Arc;

use plait_proto::config::Prefix;
use plait_proto::session::{PresharedKey, PublicKey};
use plait_toml::value::amount;
use plait_toml::{Entry, Node, Place, Table, Value};

use crate::advice::Advised;
use crate::config::{ConfigErrors, PEERS_MAX, Peer, parse_key, peers_of};
use crate::control::message::{PeerAsked, Request};

/// A checked request.
#[derive(Debug)]
pub(super) enum Wanted {
    AddPeers(Vec<Peer>),
    RemovePeer(PublicKey),
    ListPeers,
    ListPaths,
    ChangePath(String, PathChange),
    File,
    FileSaved(String),
}

/// What becomes of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathChange {
    Down,
    Up,
    Standby(bool),
    Price(u8),
    /// Bytes in a month.
    Quota(Option<u64>),
}

/// Why a running gateway does not change as asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum RefusedChange {
    #[error("{0} is the gateway's own key")]
    OwnKey(PublicKey),
    #[error("there is a peer with the key {0} already")]
    SamePeer(PublicKey),
    #[error("{}/{} belongs to the peer {other} too", prefix.address, prefix.length)]
    SamePrefix { prefix: Prefix, other: PublicKey },
    #[error("the peer {0} has no endpoint and the gateway does not listen")]
    NobodyCalls(PublicKey),
    #[error("{mtu} bytes are too few for IPv6 inside the bond")]
    MtuTooSmallForIpv6 { mtu: u16 },
    #[error("more than {PEERS_MAX} peers")]
    TooMany,
    #[error("no peer has the key {0}")]
    NoPeer(PublicKey),
    #[error("it is the only peer")]
    OnlyPeer,
    #[error("there is no path called \"{name}\"; there are: {known}")]
    NoPath { name: String, known: String },
    #[error("this gateway has no [[path]]")]
    NoPaths,
}

impl RefusedChange {
    fn help(&self) -> &'static str {
        match self {
            Self::OwnKey(_) => "give the other gateway's public key",
            Self::SamePeer(_) => "remove it first, or change its section and reload",
            Self::SamePrefix { .. } => {
                "give the prefix to one peer, or split it into longer prefixes"
            }
            Self::NobodyCalls(_) => "give it an endpoint, or `listen_port` to [gateway]",
            Self::MtuTooSmallForIpv6 { .. } => {
                "set `mtu` under [gateway] to 1280 or more and restart, or leave out the IPv6 \
                 prefixes"
            }
            Self::TooMany => "remove some first",
            Self::NoPeer(_) => "`plait peer list` shows the peers",
            Self::OnlyPeer => "a gateway has one at least: add another one first",
            Self::NoPath { .. } => "`plait path list` shows the paths and their state",
            Self::NoPaths => "add a [[path]] for each link to its file, and restart it",
        }
    }
}

impl From<RefusedChange> for Advised {
    fn from(refused: RefusedChange) -> Self {
        Self::new(refused.to_string(), refused.help())
    }
}

/// Checks a request by itself. It may read nothing but its text: the loop does not wait for it.
///
/// # Errors
/// What is wrong, with the remedy.
pub(super) fn wanted(request: Request) -> Result<Wanted, Advised> {
    let path = |path, change| Ok(Wanted::ChangePath(path, change));
    match request {
        Request::PeerAdd { peers } => Ok(Wanted::AddPeers(read_peers(&peers)?)),
        Request::PeerRemove { public_key } => {
            let key = read_key("public_key", &public_key)?;
            Ok(Wanted::RemovePeer(PublicKey::from_bytes(key)))
        }
        Request::PeerList {} => Ok(Wanted::ListPeers),
        Request::PathList {} => Ok(Wanted::ListPaths),
        Request::PathDown { path: name } => path(name, PathChange::Down),
        Request::PathUp { path: name } => path(name, PathChange::Up),
        Request::PathStandby { path: name, standby } => path(name, PathChange::Standby(standby)),
        Request::PathPrice { path: name, price } => path(name, PathChange::Price(price)),
        Request::PathQuota { path: name, quota } => {
            path(name, PathChange::Quota(read_quota(&quota)?))
        }
        Request::File {} => Ok(Wanted::File),
        Request::FileSaved { fingerprint } => Ok(Wanted::FileSaved(fingerprint)),
    }
}

fn read_key(option: &str, text: &str) -> Result<[u8; 32], Advised> {
    let key = parse_key(text).map_err(|malformed| {
        let help = "a key is 32 bytes in base64: 44 characters ending in `=`";
        Advised::new(format!("{option}: not a key: {malformed}"), help)
    })?;
    Ok(*key)
}

fn read_quota(text: &str) -> Result<Option<u64>, Advised> {
    if text == "none" {
        return Ok(None);
    }
    let wrong = |problem: plait_toml::Problem| {
        let help = format!("{}; or `none`", problem.help());
        Advised::new(format!("quota: {problem}"), help)
    };
    amount::parse(text).map(Some).map_err(wrong)
}

/// Reads peers as if they stood in a file, with the same checks and words.
fn read_peers(asked: &[PeerAsked]) -> Result<Vec<Peer>, Advised> {
    let label: Arc<Path> = Path::new("request").into();
    let sections = asked.iter().enumerate();
    let sections = sections.map(|(at, peer)| section(&Place::Line(label.clone(), at + 1), peer));
    let place = Place::Line(label.clone(), 1);
    let list = Node { place: place.clone(), value: Value::List(sections.collect()) };
    let document = Table::from([("peer".into(), Entry { key_place: place, node: list })]);
    let read = peers_of(&label, &document, Path::new(""));
    let mut peers = read.map_err(|errors| told(&errors, asked))?;
    for (peer, asked) in peers.iter_mut().zip(asked) {
        if let Some(text) = &asked.preshared_key {
            let key = read_key("preshared_key", text)?;
            peer.preshared_key = Some(PresharedKey::from_bytes(key));
        }
    }
    Ok(peers)
}

/// A peer's section, all of it at one place.
fn section(place: &Place, asked: &PeerAsked) -> Node {
    let node = |value| Node { place: place.clone(), value };
    let texts = |texts: &[String]| {
        Value::List(texts.iter().map(|text| node(Value::Text(text.clone()))).collect())
    };
    let mut table = Table::new();
    let mut set = |name: &str, value| {
        let entry = Entry { key_place: place.clone(), node: node(value) };
        table.insert(name.into(), entry);
    };
    set("public_key", Value::Text(asked.public_key.clone()));
    set("endpoint", texts(&asked.endpoint));
    set("allowed_ips", texts(&asked.allowed_ips));
    if let Some(seconds) = asked.keepalive_s {
        set("keepalive_s", Value::Integer(seconds.into()));
    }
    if let Some(measure) = asked.measure {
        set("measure", Value::Boolean(measure));
    }
    node(Value::Table(table))
}

/// All errors in one: of several peers, each is named by its key.
fn told(errors: &ConfigErrors, asked: &[PeerAsked]) -> Advised {
    let mut texts = Vec::new();
    let mut help = String::new();
    for error in errors.iter() {
        let option = error.option.trim_start_matches("[[peer]]").trim();
        let peer = error.place.line().and_then(|line| asked.get(line.checked_sub(1)?));
        let of = peer.filter(|_| asked.len() > 1).map(|peer| format!("peer {}: ", peer.public_key));
        texts.push(format!("{}{option}: {}", of.unwrap_or_default(), error.problem));
        if help.is_empty() {
            help = error.help();
        }
    }
    Advised::new(texts.join("; "), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> String {
        PublicKey::from_bytes([number; 32]).to_string()
    }

    fn refused(asked: &[PeerAsked]) -> String {
        let error = read_peers(asked).unwrap_err();
        format!("{error} ({})", error.help())
    }

    #[test]
    fn a_peer_is_read_as_from_a_file() {
        let asked = PeerAsked {
            public_key: key(1),
            preshared_key: Some(key(2)),
            endpoint: vec!["192.0.2.1:7788".into(), "gw.example:7788".into()],
            allowed_ips: vec!["10.1.2.3/16".into()],
            keepalive_s: Some(9),
            measure: Some(true),
        };
        let [peer] = &read_peers(std::slice::from_ref(&asked)).unwrap()[..] else { panic!() };
        assert_eq!(peer.public_key.value.to_string(), key(1));
        assert!(peer.preshared_key.is_some() && peer.endpoints.len() == 2);
        assert_eq!(peer.allowed_ips[0].value.to_string(), "10.1.0.0/16");
        assert_eq!((peer.keepalive.as_secs(), peer.measure), (9, Some(true)));
        let only_key = PeerAsked { public_key: key(1), ..PeerAsked::default() };
        let [peer] = &read_peers(&[only_key]).unwrap()[..] else { panic!() };
        assert_eq!((peer.keepalive.as_secs(), peer.measure), (25, None));
    }

    #[test]
    fn what_is_wrong_is_told_as_of_a_file() {
        let good = PeerAsked { public_key: key(1), ..PeerAsked::default() };
        let bad_key = PeerAsked { public_key: "AAAA".into(), ..PeerAsked::default() };
        let alone = refused(std::slice::from_ref(&bad_key));
        assert!(
            alone.starts_with("public_key: not a key: 3 bytes instead of 32 (a key"),
            "{alone}"
        );
        let bad_net = PeerAsked { allowed_ips: vec!["10.1/8".into()], ..good.clone() };
        let both = refused(&[bad_net, good.clone(), bad_key]);
        assert!(both.contains(&format!("peer {}: allowed_ips: ", key(1))), "{both}");
        assert!(both.contains("; peer AAAA: public_key: "), "{both}");
        let secret = PeerAsked { preshared_key: Some("x".into()), ..good.clone() };
        assert!(refused(&[secret]).starts_with("preshared_key: not a key"));
        let never = PeerAsked { keepalive_s: Some(0), ..good };
        assert!(refused(&[never]).starts_with("keepalive_s: 0 is out of range"));
        assert!(read_quota("20").is_err());
        assert_eq!(read_quota("20 GB").unwrap(), Some(20_000_000_000));
        assert_eq!(read_quota("none").unwrap(), None);
    }
}
