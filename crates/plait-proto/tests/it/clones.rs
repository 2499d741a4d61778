//! A second gateway with the same key: a clone, a hot spare, a test that forgot the first.

use core::net::SocketAddr;

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, number, packet};
use plait_proto::config::SocketId;
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::ecn::Ecn;

const STEP: Duration = Duration::from_millis(10);

/// A gateway with the customer's key somewhere else.
struct Clone {
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Clone {
    fn start(pair: &mut Pair) -> Self {
        let mut endpoint = pair.clone_of(CUSTOMER);
        endpoint.start(pair.now);
        Self { endpoint, address: ([198, 51, 100, 7], 4000).into() }
    }

    /// Exchanges what the clone and the provider have for each other.
    fn exchange(&mut self, pair: &mut Pair) {
        if self.endpoint.poll_timeout(pair.now).is_some_and(|due| due <= pair.now) {
            self.endpoint.handle_timeout(pair.now);
        }
        let mut sent = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit() {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len());
            sent.extend(transmit.contents.chunks(size).map(<[u8]>::to_vec));
        }
        for datagram in sent {
            pair.inject_from(PROVIDER, self.address, &datagram);
        }
        for (to, mut bytes) in core::mem::take(&mut pair.astray) {
            if to == self.address {
                let route = Route { socket: SocketId(0), remote: pair.provider_at, local: None };
                let stride = bytes.len();
                self.endpoint.handle_datagrams(pair.now, route, Ecn::NotEct, stride, &mut bytes);
            }
        }
        while self.endpoint.poll_deliver().is_some() {}
        while self.endpoint.poll_event().is_some() {}
    }
}

/// Sends a packet each way every 10 ms; gives when the last of both directions arrived.
fn talk(pair: &mut Pair, first: u32, count: u32, mut clone: Option<&mut Clone>) {
    for n in first..first + count {
        for side in [CUSTOMER, PROVIDER] {
            pair.send(side, &[packet(side, 1, n)]);
        }
        if let Some(clone) = &mut clone {
            clone.endpoint.handle_packet(pair.now, &packet(CUSTOMER, 2, n));
            clone.exchange(pair);
        }
        pair.run_for(STEP);
    }
}

fn arrived(pair: &Pair, side: usize, from: u32) -> usize {
    pair.delivered[side].iter().filter(|bytes| number(bytes) >= from).count()
}

#[test]
fn regression_a_bond_delivers_again_after_a_clone_has_come_and_gone() {
    for clone_ms in [500, 2000, 30_000] {
        let mut pair = Pair::connected(Setup::default());
        talk(&mut pair, 0, 3000, None);
        let mut clone = Clone::start(&mut pair);
        talk(&mut pair, 3000, clone_ms / 10, Some(&mut clone));
        drop(clone);
        let gone = pair.now;
        talk(&mut pair, 100_000, 1000, None);
        assert_eq!(pair.now, gone + STEP * 1000);
        talk(&mut pair, 200_000, 200, None);
        pair.run_for(Duration::from_secs(1));
        for side in [CUSTOMER, PROVIDER] {
            let came = arrived(&pair, side, 200_000);
            assert_eq!(came, 200, "side {side}, 10 s after a clone that ran for {clone_ms} ms");
        }
    }
}

#[test]
fn two_clones_in_turn_do_no_more_harm_than_one() {
    let mut pair = Pair::connected(Setup::default());
    talk(&mut pair, 0, 300, None);
    for round in 1..4 {
        let mut clone = Clone::start(&mut pair);
        talk(&mut pair, 1000 * round, 100, Some(&mut clone));
        drop(clone);
        talk(&mut pair, 1000 * round + 100, 30, None);
    }
    talk(&mut pair, 100_000, 1000, None);
    talk(&mut pair, 200_000, 100, None);
    pair.run_for(Duration::from_secs(1));
    assert_eq!([CUSTOMER, PROVIDER].map(|side| arrived(&pair, side, 200_000)), [100, 100]);
    assert!(pair.now > Instant::ZERO);
}
