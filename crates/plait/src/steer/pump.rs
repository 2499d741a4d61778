//! Moves packets between the TUN device and the protocol, in batches: packets to a client go over
//! one of its attachments, packets from a client may be held. The host's routes do the rest.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use plait_net::batch::PacketBatch;
use plait_net::tun::TunPort;
use plait_proto::steer::{Downstream, Node, NodeConfig, Upstream};
use plait_proto::time::Instant;

/// Packets that are handled before they are written: at least a super-packet.
const PACKETS_PER_WRITE: usize = 64;
/// Reads before everything else gets its turn.
const READS_PER_TURN: usize = 32;
/// The error of reading a TUN device that is down.
const EIO: i32 = 5;

/// The TUN device and the protocol behind it.
#[derive(Debug)]
pub(super) struct Pump<T> {
    pub(super) node: Node,
    pub(super) tun: T,
    /// The primary addresses of all clients.
    clients: BTreeSet<IpAddr>,
    batch: PacketBatch,
    /// Multicast packets that the kernel sent on the device.
    pub(super) ignored_packets: u64,
}

impl<T: TunPort> Pump<T> {
    pub(super) fn new(node: Node, tun: T) -> Self {
        let clients = primary_addresses(node.config());
        Self { node, tun, clients, batch: PacketBatch::new(), ignored_packets: 0 }
    }

    /// Applies another configuration.
    pub(super) fn reconfigure(&mut self, now: Instant, config: NodeConfig) {
        self.clients = primary_addresses(&config);
        self.node.reconfigure(now, config);
        self.flush();
    }

    /// Reads from the device; says whether there may be more.
    pub(super) fn read(&mut self, now: impl Fn() -> Instant) -> io::Result<bool> {
        self.batch.clear();
        for _ in 0..READS_PER_TURN {
            let more = match self.tun.recv(&mut self.batch) {
                Err(error) if error.raw_os_error() == Some(EIO) => false,
                result => result?,
            };
            if !more || self.batch.len() >= PACKETS_PER_WRITE {
                self.pass_batch(now());
            }
            if !more {
                return Ok(false);
            }
        }
        self.pass_batch(now());
        Ok(true)
    }

    fn pass_batch(&mut self, now: Instant) {
        let mut batch = std::mem::take(&mut self.batch);
        for at in 0..batch.len() {
            let packet = batch.get_mut(at).expect("a batch has as many packets as it says");
            self.pass(now, packet);
        }
        batch.clear();
        self.batch = batch;
        self.flush();
    }

    /// Both ends of a packet may be clients.
    fn pass(&mut self, now: Instant, packet: &mut [u8]) {
        let Some((source, destination)) = addresses(packet) else {
            // The node counts input that is not a packet.
            let _: Downstream = self.node.handle_downstream(now, packet);
            return;
        };
        if destination.is_multicast() {
            self.ignored_packets += 1;
            return;
        }
        let for_client = self.clients.contains(&destination);
        if self.clients.contains(&source) || !for_client {
            let upstream = self.node.handle_upstream(now, packet);
            self.write_released();
            if upstream != Upstream::Forward {
                return;
            }
        }
        if for_client && let Downstream::Drop(_) = self.node.handle_downstream(now, packet) {
            return;
        }
        write(&mut self.tun, packet);
    }

    fn write_released(&mut self) {
        while let Some(released) = self.node.poll_transmit() {
            write(&mut self.tun, &released);
        }
    }

    /// Writes what the protocol has ready.
    pub(super) fn flush(&mut self) {
        self.write_released();
        if let Err(error) = self.tun.flush() {
            log::debug!("writing to the TUN device: {error}");
        }
    }
}

fn write(tun: &mut impl TunPort, packet: &[u8]) {
    if let Err(error) = tun.send(packet) {
        log::debug!("writing to the TUN device: {error}");
    }
}

fn primary_addresses(config: &NodeConfig) -> BTreeSet<IpAddr> {
    config.clients.iter().flat_map(|client| client.address.iter()).collect()
}

/// Source and destination; `None` when there are none.
fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => {
            let [source, destination] = packet.get(12..20)?.as_chunks::<4>().0 else { return None };
            Some((IpAddr::from(*source), IpAddr::from(*destination)))
        }
        6 => {
            let [source, destination] = packet.get(8..40)?.as_chunks::<16>().0 else { return None };
            Some((IpAddr::from(*source), IpAddr::from(*destination)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use plait_net::memory::MemoryTun;
    use plait_proto::steer::{AttachmentConfig, ClientConfig, UnknownClient};

    use super::*;

    const SERVER: [u8; 4] = [198, 51, 100, 1];
    const PRIMARY: [u8; 4] = [10, 1, 0, 1];
    const OTHER: [u8; 4] = [10, 2, 0, 1];

    fn config() -> NodeConfig {
        NodeConfig {
            clients: vec![ClientConfig {
                name: "phone".into(),
                address: IpAddr::from(PRIMARY).into(),
                attachments: vec![
                    AttachmentConfig::primary("lte"),
                    AttachmentConfig::at("wifi", OTHER.into()),
                ],
            }],
            unknown: UnknownClient::Drop,
            probe: None,
            policy: plait_proto::steer::Policy::RoundRobin,
            first_packets: 0,
            ..NodeConfig::default()
        }
    }

    /// An ACK without a checksum; nobody here looks at it.
    fn packet(source: [u8; 4], destination: [u8; 4], number: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 40, 0, number, 0x40, 0, 64, 6, 0, 0];
        packet.extend(source);
        packet.extend(destination);
        packet
            .extend([0, 80, 16, 0, 0, 0, 0, number, 0, 0, 0, 1, 0x50, 0x10, 255, 255, 0, 0, 0, 0]);
        packet
    }

    fn passed(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut host, tun) = MemoryTun::pair();
        let mut pump = Pump::new(Node::new(config(), 1), tun);
        for packet in packets {
            host.send(packet).expect("room");
        }
        host.flush().expect("room");
        pump.read(|| Instant::ZERO).expect("a memory TUN never fails");
        let mut got = PacketBatch::new();
        while host.recv(&mut got).expect("a memory TUN never fails") {}
        got.iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn packets_for_a_client_go_over_all_attachments_and_its_own_go_as_they_are() {
        let down: Vec<_> = (0..10).map(|number| packet(SERVER, PRIMARY, number)).collect();
        let mut destinations: Vec<_> =
            passed(&down).iter().map(|packet| packet[16..20].to_vec()).collect();
        destinations.sort();
        assert_eq!(destinations, [[PRIMARY; 5], [OTHER; 5]].concat());
        let up = [packet(PRIMARY, SERVER, 1)];
        assert_eq!(passed(&up), up);
    }

    #[test]
    fn what_belongs_to_nobody_goes_by_the_rule_and_noise_of_the_device_nowhere() {
        assert!(passed(&[packet(SERVER, [10, 9, 9, 9], 1)]).is_empty());
        assert!(passed(&[packet([0; 4], [224, 0, 0, 22], 1)]).is_empty());
        assert!(passed(&[vec![0x45, 0], vec![0x90; 60]]).is_empty());
    }
}
