//! TCP connections between customer and server that send as much as they can, with a receiver that
//! notes when data arrives.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;
use plait_net::tcp::{self, TcpInfo};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{Deliveries, Target};
use crate::emulator::Way;
use crate::topology::{SERVER_V4, Topology};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const CHUNK_BYTES: usize = 64 * 1024;
/// The sender's congestion control, if no other is asked for (RFC 9438).
const CONGESTION: &str = "cubic";

/// What carries a connection's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    Tcp,
    /// Multipath TCP (RFC 8684): one connection of several TCP subflows, each with the requested
    /// congestion control. The namespaces decide which subflows there are.
    Mptcp,
}

impl Transport {
    /// A socket of this kind in a namespace.
    pub(crate) fn open(self, netns: &NetNs) -> Result<Socket> {
        let protocol = match self {
            Self::Tcp => Protocol::TCP,
            Self::Mptcp => Protocol::MPTCP,
        };
        match netns.run_in(|| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)))? {
            Ok(socket) => Ok(socket),
            Err(error) if self == Self::Mptcp => bail!(
                "the kernel opens no MPTCP socket: {error}; use a kernel that was built with \
                 CONFIG_MPTCP (Linux 5.16 or later)"
            ),
            Err(error) => Err(error.into()),
        }
    }
}

/// A running connection; it is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Stream {
    shared: Arc<Shared>,
    /// Later MPTCP subflows are accepted only while there is a listener.
    _listener: Socket,
    ends: [TcpStream; 2],
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stopping: AtomicBool,
    deliveries: Mutex<Deliveries>,
    /// Why an end stopped unasked.
    death: Mutex<Option<String>>,
}

impl Shared {
    fn deliveries(&self) -> MutexGuard<'_, Deliveries> {
        self.deliveries.lock().expect("no thread panics while it holds the record's lock")
    }

    fn death(&self) -> MutexGuard<'_, Option<String>> {
        self.death.lock().expect("no thread panics while it holds the record's lock")
    }

    /// Notes the first reason for which the connection ended, unless it was asked to.
    fn died(&self, of: String) {
        if !self.stopping.load(Ordering::Relaxed) {
            self.death().get_or_insert(of);
        }
    }
}

impl Stream {
    /// Connects the customer to the server through the bond; data flows `way`.
    pub(crate) fn start(topology: &Topology, way: Way) -> Result<Self> {
        let client = &topology.customer().netns;
        let target = Target { client, server: SERVER_V4.into(), bind: None };
        Self::start_to(target, &topology.server, Transport::Tcp, way)
    }

    /// Connects the target's client to the target's address, which is one of `server`'s; data flows
    /// `way`.
    pub(crate) fn start_to(
        target: Target<'_>,
        server: &NetNs,
        transport: Transport,
        way: Way,
    ) -> Result<Self> {
        Self::start_under(target, server, transport, way, CONGESTION)
    }

    /// The same under this congestion control of the kernel.
    pub(crate) fn start_under(
        target: Target<'_>,
        server: &NetNs,
        transport: Transport,
        way: Way,
        congestion: &str,
    ) -> Result<Self> {
        let Connected { listener, customer, server } = Connected::open(target, server, transport)?;
        let (sender, receiver) = match way {
            Way::Up => (customer, server),
            Way::Down => (server, customer),
        };
        SockRef::from(&sender).set_tcp_congestion(congestion.as_bytes()).with_context(|| {
            format!("the kernel has no congestion control {congestion}; load its module")
        })?;
        let ends = [sender.try_clone()?, receiver.try_clone()?];
        let shared = Arc::new(Shared::default());
        let mut stream =
            Self { shared: Arc::clone(&shared), _listener: listener, ends, threads: Vec::new() };
        let for_sender = Arc::clone(&shared);
        stream.spawn("sender", move || send_all(sender, &for_sender))?;
        stream.spawn("receiver", move || receive_all(receiver, &shared))?;
        Ok(stream)
    }

    /// Starts several at once.
    pub(crate) fn start_several(topology: &Topology, way: Way, count: usize) -> Result<Vec<Self>> {
        (0..count).map(|_| Self::start(topology, way)).collect()
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        self.threads.push(std::thread::Builder::new().name(name.into()).spawn(work)?);
        Ok(())
    }

    /// TCP_INFO of the sender.
    pub(crate) fn sender_info(&self) -> Result<TcpInfo> {
        Ok(tcp::info(&self.ends[0])?)
    }

    /// The arrivals so far.
    pub(crate) fn deliveries(&self) -> Deliveries {
        self.shared.deliveries().clone()
    }

    /// Why the connection ended; `None` while it lives.
    pub(crate) fn death(&self) -> Option<String> {
        self.shared.death().clone()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        for end in &self.ends {
            // Fails only if the connection is already gone.
            let _gone = end.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }
}

/// A new connection.
#[derive(Debug)]
struct Connected {
    listener: Socket,
    customer: TcpStream,
    server: TcpStream,
}

impl Connected {
    fn open(target: Target<'_>, server: &NetNs, transport: Transport) -> Result<Self> {
        let listener = transport.open(server)?;
        listener.bind(&SocketAddr::new(target.server, 0).into())?;
        listener.listen(1)?;
        let address = listener.local_addr()?;
        let customer = transport.open(target.client)?;
        if let Some(source) = target.bind {
            customer.bind(&SocketAddr::new(source, 0).into())?;
        }
        let connected = customer.connect_timeout(&address, CONNECT_LIMIT);
        connected.with_context(|| {
            let address = address.as_socket().map(|address| address.to_string());
            format!("cannot connect to {}", address.unwrap_or_default())
        })?;
        let server = TcpStream::from(listener.accept()?.0);
        let mut connected = Self { listener, customer: customer.into(), server };
        connected.request().context("while asking for a transfer")?;
        Ok(connected)
    }

    /// As in any download, the customer sends first: until the kernel's MPTCP has received data
    /// from the connecting end, it uses only one subflow (RFC 8684 section 3.1).
    fn request(&mut self) -> Result<()> {
        self.server.set_read_timeout(Some(CONNECT_LIMIT))?;
        self.customer.write_all(b"?")?;
        self.server.read_exact(&mut [0])?;
        Ok(self.server.set_read_timeout(None)?)
    }
}

fn send_all(mut socket: TcpStream, shared: &Shared) {
    let chunk = vec![0x5a; CHUNK_BYTES];
    loop {
        match socket.write(&chunk) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return shared.died(format!("the sender: {error}")),
        }
    }
}

fn receive_all(mut socket: TcpStream, shared: &Shared) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return shared.died("the receiver: closed by the sender".into()),
            Ok(bytes) => shared.deliveries().add(Instant::now(), bytes as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return shared.died(format!("the receiver: {error}")),
        }
    }
}
