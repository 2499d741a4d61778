//! A network of UDP ports without loss, delay or reordering; ports can be cut off.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::udp::{ReceivedMeta, Transmit, UdpCounters, UdpPort};

/// Buffers that wait at one port at most.
const QUEUE_BUFFERS_MAX: usize = 4096;
/// Buffers that one receive hands out at most, as with the kernel.
const BATCH_BUFFERS_MAX: usize = 32;

#[derive(Debug, Default)]
struct Port {
    waiting: VecDeque<(ReceivedMeta, Vec<u8>)>,
    cut: bool,
}

#[derive(Debug, Default)]
struct State {
    ports: BTreeMap<SocketAddr, Port>,
    lost_datagrams: u64,
}

/// What the ports are plugged into. Clones share one network.
#[derive(Clone, Debug, Default)]
pub struct MemoryNetwork {
    state: Arc<Mutex<State>>,
}

impl MemoryNetwork {
    /// A network without ports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plugs a port in at `address`, which is its only one.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`].
    pub fn bind(&self, address: SocketAddr) -> io::Result<MemoryUdp> {
        let mut state = self.lock();
        if state.ports.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.ports.insert(address, Port::default());
        Ok(MemoryUdp {
            network: self.clone(),
            address,
            counters: UdpCounters::default(),
            refusal: None,
        })
    }

    /// Cuts the port at `address` off, or plugs it in again. While it is cut, what it sends and
    /// what is sent to it is silently lost.
    pub fn set_cut(&self, address: SocketAddr, cut: bool) {
        if let Some(port) = self.lock().ports.get_mut(&address) {
            port.cut = cut;
        }
    }

    /// Datagrams that reached no port.
    pub fn lost_datagrams(&self) -> u64 {
        self.lock().lost_datagrams
    }

    /// A test that panicked while it held the state has failed already; the state is still whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port of a [`MemoryNetwork`]; unplugged when dropped.
#[derive(Debug)]
pub struct MemoryUdp {
    network: MemoryNetwork,
    address: SocketAddr,
    counters: UdpCounters,
    refusal: Option<i32>,
}

impl MemoryUdp {
    /// The port's address.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Makes every send fail with this error number of the kernel, or succeed again.
    pub fn refuse_sends(&mut self, errno: Option<i32>) {
        self.refusal = errno;
    }
}

impl Drop for MemoryUdp {
    fn drop(&mut self) {
        self.network.lock().ports.remove(&self.address);
    }
}

impl UdpPort for MemoryUdp {
    fn send(&mut self, transmit: &Transmit<'_>) -> io::Result<()> {
        if let Some(errno) = self.refusal {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let mut state = self.network.lock();
        let stride = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let cut = state.ports.get(&self.address).is_none_or(|port| port.cut);
        let source_ip: IpAddr = transmit.source.unwrap_or(self.address.ip());
        let meta = ReceivedMeta {
            source: SocketAddr::new(source_ip, self.address.port()),
            destination: Some(transmit.destination.ip()),
            stride,
            ecn: transmit.ecn & 3,
        };
        self.counters.sends += 1;
        self.counters.sent_datagrams += transmit.contents.len().div_ceil(stride).max(1) as u64;
        self.counters.sent_bytes += transmit.contents.len() as u64;
        match state.ports.get_mut(&transmit.destination) {
            Some(port) if !cut && !port.cut && port.waiting.len() < QUEUE_BUFFERS_MAX => {
                port.waiting.push_back((meta, transmit.contents.to_vec()));
            }
            _ => {
                let datagrams = transmit.contents.len().div_ceil(stride).max(1);
                state.lost_datagrams += datagrams as u64;
            }
        }
        Ok(())
    }

    fn recv(&mut self, sink: &mut dyn FnMut(ReceivedMeta, &mut [u8])) -> io::Result<usize> {
        let buffers: Vec<_> = {
            let mut state = self.network.lock();
            let Some(port) = state.ports.get_mut(&self.address) else { return Ok(0) };
            let count = port.waiting.len().min(BATCH_BUFFERS_MAX);
            port.waiting.drain(..count).collect()
        };
        let count = buffers.len();
        self.counters.received_buffers += count as u64;
        let datagrams = buffers.iter().map(|(meta, bytes)| bytes.len().div_ceil(meta.stride));
        self.counters.received_datagrams += datagrams.sum::<usize>() as u64;
        for (meta, mut contents) in buffers {
            sink(meta, &mut contents);
        }
        Ok(count)
    }

    fn counters(&self) -> UdpCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 4000))
    }

    fn transmit(destination: SocketAddr, contents: &[u8]) -> Transmit<'_> {
        Transmit { destination, source: None, ecn: 1, contents, segment_size: Some(2) }
    }

    fn receive(port: &mut MemoryUdp) -> Vec<(ReceivedMeta, Vec<u8>)> {
        let mut received = Vec::new();
        port.recv(&mut |meta, buffer| received.push((meta, buffer.to_vec()))).unwrap();
        received
    }

    #[test]
    fn datagrams_reach_the_port_of_their_destination() {
        let network = MemoryNetwork::new();
        let mut one = network.bind(address(1)).unwrap();
        let mut two = network.bind(address(2)).unwrap();
        assert_eq!(network.bind(address(1)).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        one.send(&transmit(address(2), b"abc")).unwrap();
        one.send(&transmit(address(3), b"abc")).unwrap();
        let expected = ReceivedMeta {
            source: address(1),
            destination: Some(address(2).ip()),
            stride: 2,
            ecn: 1,
        };
        assert_eq!(receive(&mut two), [(expected, b"abc".to_vec())]);
        assert_eq!(receive(&mut one), []);
        assert_eq!(network.lost_datagrams(), 2);
        drop(two);
        one.send(&transmit(address(2), b"")).unwrap();
        assert_eq!(network.lost_datagrams(), 3);
    }

    #[test]
    fn a_cut_port_neither_sends_nor_receives() {
        let network = MemoryNetwork::new();
        let mut one = network.bind(address(1)).unwrap();
        let mut two = network.bind(address(2)).unwrap();
        network.set_cut(address(1), true);
        one.send(&transmit(address(2), b"ab")).unwrap();
        two.send(&transmit(address(1), b"ab")).unwrap();
        assert_eq!((receive(&mut one).len(), receive(&mut two).len()), (0, 0));
        network.set_cut(address(1), false);
        two.send(&transmit(address(1), b"ab")).unwrap();
        assert_eq!(receive(&mut one).len(), 1);
        assert_eq!(network.lost_datagrams(), 2);
    }
}
