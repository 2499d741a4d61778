//! Sends captured datagrams again with one bit changed.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::super::Figure;
use super::super::survive::hostile::risen;
use super::host::Host;
use super::seen::{ByKind, Seen};
use crate::emulator::Way;
use crate::gateway::{Bond, Status};
use crate::measure::ping;
use crate::topology::{PROVIDER_V4, SERVER_V4, Topology};

const SOURCE: &str = "spec W-8";
/// Datagrams of each kind that are forged, shortest first.
pub(super) const FORGED_PER_KIND: usize = 3;
/// Kind of datagrams that carry an inner packet.
const DATA: u8 = 4;
/// Forged datagrams sent before a pause that lets link and gateway keep up.
const BURST: usize = 50;
const BURST_PAUSE: Duration = Duration::from_millis(10);
/// Time in which the last forged datagrams arrive.
const SETTLE: Duration = Duration::from_secs(1);

/// Sends some datagrams of each kind once for each of their bits, with that bit changed, to the
/// gateway they were meant for, from another port. `what` names them in the figures. Nothing else
/// is sent through the bond meanwhile, so that any packet that comes out was forged.
pub(super) fn forge(
    topology: &Topology,
    bond: &mut Bond<'_>,
    seen: &Seen,
    way: Way,
    what: &str,
    host: &mut Host,
) -> Result<Vec<Figure>> {
    let (netns, source, gateway) = match way {
        Way::Up => {
            let customer = topology.customer();
            (&customer.netns, customer.links[0].customer_address(), "provider")
        }
        Way::Down => (&topology.provider, PROVIDER_V4.into(), "customer"),
    };
    let socket = netns.run_in(|| UdpSocket::bind((source, 0)))??;
    let unexplained = host.deliveries().unexplained;
    let before = status(bond, way)?;
    let sent_by_kind = send_forged(&socket, seen.datagrams(way))?;
    ensure!(sent_by_kind.contains_key(&DATA), "no data datagram to the {gateway} was captured");
    std::thread::sleep(SETTLE);
    let after = status(bond, way)?;
    let unexplained = host.deliveries().unexplained - unexplained;
    let works = ping(&topology.customer().netns, SERVER_V4, None, 5)?.received;
    let name = format!("{what} ones forged to the {gateway}");
    let mut figures = compare(&name, &sent_by_kind, &before, &after)?;
    figures.extend([
        Figure::none(format!("{name}: marked packets that nobody sent"), unexplained, SOURCE),
        Figure::count(format!("{name}: pings of 5 afterwards"), u64::from(works))
            .exactly(5.0, "the bond works on"),
    ]);
    Ok(figures)
}

fn status(bond: &mut Bond<'_>, way: Way) -> Result<Status> {
    match way {
        Way::Up => bond.provider_status(),
        Way::Down => bond.customer_status(),
    }
}

/// Returns how many were sent of each kind.
fn send_forged(socket: &UdpSocket, datagrams: &ByKind) -> Result<BTreeMap<u8, u64>> {
    let mut sent_by_kind: BTreeMap<u8, u64> = BTreeMap::new();
    let mut in_burst = 0;
    for (kind, datagrams) in datagrams {
        for datagram in datagrams.iter().take(FORGED_PER_KIND) {
            let mut forged = datagram.payload.clone();
            for bit in 0..forged.len() * 8 {
                let mask = 1 << (bit % 8);
                forged[bit / 8] ^= mask;
                socket.send_to(&forged, datagram.to)?;
                forged[bit / 8] ^= mask;
                *sent_by_kind.entry(*kind).or_default() += 1;
                in_burst += 1;
                if in_burst % BURST == 0 {
                    std::thread::sleep(BURST_PAUSE);
                }
            }
        }
    }
    Ok(sent_by_kind)
}

fn compare(
    name: &str,
    sent_by_kind: &BTreeMap<u8, u64>,
    before: &Status,
    after: &Status,
) -> Result<Vec<Figure>> {
    let sent: u64 = sent_by_kind.values().sum();
    let dropped = after.drops_total() - before.drops_total();
    let delivered = after.inner_delivered_packets() - before.inner_delivered_packets();
    let opened = after.opened_packets()? - before.opened_packets()?;
    let kinds: Vec<String> = sent_by_kind.iter().map(|(k, n)| format!("{n} of kind {k}")).collect();
    let mut figures = vec![
        Figure::text(format!("{name}: sent"), kinds.join(", ")),
        Figure::count(format!("{name}: dropped and counted"), dropped).exactly(sent as f64, SOURCE),
        Figure::none(format!("{name}: inner packets out of them"), delivered, SOURCE),
        Figure::none(format!("{name}: taken for genuine, second copies too"), opened, SOURCE),
    ];
    let rose = risen(&before.drops, &after.drops).into_iter();
    figures.extend(rose.map(|(reason, rose)| Figure::count(format!("{name}: {reason}"), rose)));
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use plait_proto::resequencer::ResequencerStats;

    use super::*;

    fn status(drops: &str, delivered: u64, counts: [u64; 5]) -> Status {
        let [at_once, waited, late_dropped, late_delivered, duplicates] = counts;
        let resequencer = ResequencerStats {
            at_once,
            waited,
            late_dropped,
            late_delivered,
            duplicates,
            ..ResequencerStats::default()
        };
        let resequencer = serde_json::to_string(&resequencer).unwrap();
        let peer = format!(
            r#"{{"state":"up","inner_delivered_packets":{delivered},"resequencer":{resequencer}}}"#
        );
        let text = format!(r#"{{"peers":[{peer}],"drops":{drops}}}"#);
        Status::parse(&text).unwrap()
    }

    #[test]
    fn a_forgery_that_is_not_counted_or_that_is_opened_fails() {
        let sent = BTreeMap::from([(4, 2), (5, 1)]);
        let counts = [10, 1, 1, 1, 1];
        let before = status(r#"{"replayed":7}"#, 10, counts);
        let verdicts = |after: &Status| -> Vec<bool> {
            let figures = compare("x", &sent, &before, after).unwrap();
            figures.iter().map(|figure| figure.ok).collect()
        };
        let all_dropped = r#"{"replayed":8,"bad-tag":2}"#;
        assert_eq!(verdicts(&status(all_dropped, 10, counts)), [true; 6]);
        let uncounted = status(r#"{"replayed":8,"bad-tag":1}"#, 10, counts);
        assert!(!verdicts(&uncounted)[1]);
        assert!(!verdicts(&status(all_dropped, 11, counts))[2]);
        for at in 0..counts.len() {
            let mut counts = counts;
            counts[at] += 1;
            assert!(!verdicts(&status(all_dropped, 10, counts))[3], "counter {at}");
        }
        let mut unknown = status(all_dropped, 10, counts);
        unknown.peers[0].resequencer = serde_json::Value::Null;
        assert!(compare("x", &sent, &before, &unknown).is_err(), "no counters is no answer");
    }
}
