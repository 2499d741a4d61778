//! What the kernel's TCP does, told by its tracepoint `tcp_probe` whenever an acknowledgement or
//! data arrives.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::RingBufferBuilder;
use libbpf_rs::{ErrorKind, Link, MapCore as _, MapFlags, MapHandle, Object, RingBuffer};

use crate::error::{Error, LoadError};
use crate::object::TRACE;

/// Ports that the program can be told.
pub const PORTS_MAX: usize = 16;
/// Where the kernel describes its structures.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The network namespace of the calling thread.
const OWN_NETNS: &str = "/proc/thread-self/ns/net";

/// Which sockets of this thread's network namespace are told of, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Least time between two events of a socket; a change of its slow-start threshold is told at
    /// once.
    pub every: Duration,
    /// One of these at either end, at most [`PORTS_MAX`]; none for all sockets.
    pub ports: Vec<u16>,
}

impl Settings {
    /// As `struct settings` has it.
    fn bytes(&self, netns: u32) -> Vec<u8> {
        let every = u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX);
        let ports = self.ports.iter().take(PORTS_MAX);
        let mut bytes = Vec::with_capacity(SETTINGS_BYTES);
        bytes.extend(every.to_ne_bytes());
        bytes.extend(netns.to_ne_bytes());
        bytes.extend((ports.len() as u16).to_ne_bytes());
        ports.for_each(|port| bytes.extend(port.to_ne_bytes()));
        bytes.resize(SETTINGS_BYTES, 0);
        bytes
    }
}

/// Bytes of `struct settings`, padded to whole words, and of `struct event`.
const SETTINGS_BYTES: usize = 48;
const EVENT_BYTES: usize = 104;

/// A socket at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// On the clock CLOCK_MONOTONIC.
    pub at: Duration,
    /// Unlike any other socket's while the machine runs (SO_COOKIE).
    pub socket: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Of a subflow: this end's token of its connection, and its own number at this end.
    pub mptcp: Option<(u32, u8)>,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments, as the kernel has it.
    pub ssthresh: u32,
    /// Window that the receiver offers, in bytes.
    pub send_window_bytes: u32,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: u32,
    /// Delivery rate in bit/s.
    pub rate_bps: u64,
    /// Segments retransmitted.
    pub retransmits: u32,
    /// Maximum segment size in bytes.
    pub mss_bytes: u32,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
}

impl Event {
    /// Reads `struct event`.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; EVENT_BYTES] = bytes.get(..EVENT_BYTES)?.try_into().ok()?;
        let part = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let whole = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let is_v6 = bytes[96] != 0;
        let address = |at: usize| -> IpAddr {
            let mut octets = [0; 16];
            octets.copy_from_slice(&bytes[at..at + 16]);
            match is_v6 {
                true => Ipv6Addr::from(octets).to_canonical(),
                false => Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into(),
            }
        };
        let local_port = u16::from_ne_bytes([bytes[60], bytes[61]]);
        let remote_port = u16::from_be_bytes([bytes[62], bytes[63]]);
        let (mss, delivered, interval_us) = (part(48), part(52), part(56));
        let bits = u64::from(delivered).saturating_mul(u64::from(mss)).saturating_mul(8);
        let rate = bits.saturating_mul(1_000_000).checked_div(interval_us.into());
        Some(Self {
            at: Duration::from_nanos(whole(0)),
            socket: whole(8),
            local: SocketAddr::new(address(64), local_port),
            remote: SocketAddr::new(address(80), remote_port),
            // A connection that fell back to plain TCP has no token.
            mptcp: (bytes[97] != 0 && part(24) != 0).then(|| (part(24), bytes[98])),
            cwnd: part(28),
            ssthresh: part(32),
            send_window_bytes: part(36),
            srtt_us: part(40),
            rate_bps: rate.unwrap_or_default(),
            retransmits: part(44),
            mss_bytes: mss,
            acked_bytes: whole(16),
        })
    }
}

/// What a trace came to so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Calls of the tracepoint that the settings take.
    pub seen: u64,
    /// Events lost because nobody took them in time.
    pub lost: u64,
    /// Processor time that the program took in the kernel.
    pub spent: Duration,
}

/// The tracepoint, traced until this is dropped.
#[derive(Debug)]
pub struct Trace {
    // Dropped in this order: first nothing comes any more.
    _link: Link,
    ring: RingBuffer<'static>,
    events: Rc<RefCell<Vec<Event>>>,
    counts: MapHandle,
    _object: Object,
}

impl Trace {
    /// Begins to trace.
    ///
    /// # Errors
    /// Names what the machine lacks.
    pub fn begin(settings: &Settings) -> Result<Self, Error> {
        if !Path::new(BTF).exists() {
            return Err(Error::NoBtf(BTF.into()));
        }
        let object = TRACE.load().map_err(named)?;
        let taken = |cause: libbpf_rs::Error| Error::from(LoadError::new(TRACE.name(), "", cause));
        let netns = fs::metadata(OWN_NETNS).map_err(Error::pin("read", OWN_NETNS))?.ino() as u32;
        let told = map(&object, "settings")?;
        told.update(&0_u32.to_ne_bytes(), &settings.bytes(netns), MapFlags::ANY).map_err(taken)?;
        let events = Rc::new(RefCell::new(Vec::new()));
        let filled = Rc::clone(&events);
        let source = map(&object, "events")?;
        let mut builder = RingBufferBuilder::new();
        let ring = builder.add(&source, move |bytes| {
            filled.borrow_mut().extend(Event::parse(bytes));
            0
        });
        ring.map_err(taken)?;
        let ring = builder.build().map_err(taken)?;
        let counts = map(&object, "counts")?;
        let mut programs = object.progs_mut();
        let program = programs.next().expect("the object was compiled with one program");
        let link = program.attach().map_err(taken).map_err(named)?;
        drop(programs);
        Ok(Self { _link: link, ring, events, counts, _object: object })
    }

    /// Gives what has come since the last call.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take(&self, mut each: impl FnMut(&Event)) -> io::Result<()> {
        self.ring.consume().map_err(io::Error::other)?;
        self.events.borrow_mut().drain(..).for_each(|event| each(&event));
        Ok(())
    }

    /// What it came to so far.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counts(&self) -> io::Result<Counts> {
        let key = 0_u32.to_ne_bytes();
        let cores = self.counts.lookup_percpu(&key, MapFlags::ANY).map_err(io::Error::other)?;
        let mut sum = Counts::default();
        for core in cores.unwrap_or_default() {
            let word = |n: usize| {
                let bytes = core.get(8 * n..8 * n + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, u64::from_ne_bytes)
            };
            sum.seen += word(0);
            sum.lost += word(1);
            sum.spent += Duration::from_nanos(word(2));
        }
        Ok(sum)
    }
}

/// A map of the object by its name.
fn map(object: &Object, name: &'static str) -> Result<MapHandle, Error> {
    let map = object.maps().find(|map| map.name() == name);
    let handle = MapHandle::try_from(&map.expect("the object was compiled with its maps"));
    handle.map_err(|cause| LoadError::new(TRACE.name(), "", cause).into())
}

/// Tells missing rights apart from other refusals.
fn named(error: Error) -> Error {
    match error {
        Error::Load(refused) if refused.kind() == ErrorKind::PermissionDenied => {
            Error::NoRights("CAP_BPF or CAP_PERFMON")
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn parsed(change: impl FnOnce(&mut [u8; EVENT_BYTES])) -> Event {
        let mut bytes = [0; EVENT_BYTES];
        bytes[52] = 100;
        bytes[48..52].copy_from_slice(&1000_u32.to_ne_bytes());
        bytes[56..60].copy_from_slice(&2_000_u32.to_ne_bytes());
        bytes[60..62].copy_from_slice(&5000_u16.to_ne_bytes());
        bytes[62..64].copy_from_slice(&80_u16.to_be_bytes());
        bytes[64..68].copy_from_slice(&[10, 0, 0, 1]);
        bytes[80..84].copy_from_slice(&[10, 0, 0, 2]);
        change(&mut bytes);
        Event::parse(&bytes).expect("it is long enough")
    }

    #[test]
    fn an_event_is_read_as_it_is_laid_out() {
        let event = parsed(|_| {});
        assert_eq!(event.local.to_string(), "10.0.0.1:5000");
        assert_eq!(event.remote.to_string(), "10.0.0.2:80");
        assert_eq!((event.rate_bps, event.mptcp), (400_000_000, None));
        let event = parsed(|bytes| {
            bytes[24..28].copy_from_slice(&7_u32.to_ne_bytes());
            (bytes[97], bytes[98]) = (1, 3);
            bytes[56..60].fill(0);
        });
        assert_eq!((event.rate_bps, event.mptcp), (0, Some((7, 3))));
        let event = parsed(|bytes| (bytes[96], bytes[79]) = (1, 1));
        assert_eq!(event.local.to_string(), "[a00:1::1]:5000");
        assert_eq!(Event::parse(&[0; EVENT_BYTES - 1]), None);
    }

    #[test]
    fn settings_fill_their_struct() {
        let settings = Settings { every: Duration::from_micros(3), ports: vec![9; 99] };
        let bytes = settings.bytes(0x0102_0304);
        assert_eq!(bytes.len(), SETTINGS_BYTES);
        assert_eq!(bytes[..8], 3000_u64.to_ne_bytes());
        assert_eq!(bytes[8..12], 0x0102_0304_u32.to_ne_bytes());
        assert_eq!(bytes[12..14], (PORTS_MAX as u16).to_ne_bytes());
    }

    /// Needs the rights of root on the machine, and a kernel that takes such programs.
    #[test]
    fn a_connection_of_this_process_is_traced() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback device is there");
        let port = listener.local_addr().expect("it is bound").port();
        let settings = |port| Settings { every: Duration::ZERO, ports: vec![port] };
        let (trace, other) = match (Trace::begin(&settings(port)), Trace::begin(&settings(1))) {
            (Ok(trace), Ok(other)) => (trace, other),
            (Err(error), _) | (_, Err(error)) => {
                eprintln!("skipped: {error}: {}", error.help());
                return;
            }
        };
        let mut sender = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        let (mut receiver, _) = listener.accept().expect("it was connected to");
        for _ in 0..20 {
            sender.write_all(&[7; 1000]).expect("it is open");
            receiver.read_exact(&mut [0; 1000]).expect("it was sent");
        }
        let mut events = Vec::new();
        trace.take(|event| events.push(*event)).expect("the ring can be read");
        let local = sender.local_addr().expect("it is connected");
        let own: Vec<_> = events.iter().filter(|event| event.local == local).collect();
        assert!(own.len() > 3, "{events:?}");
        assert!(own.iter().all(|event| event.remote.port() == port && event.cwnd > 0));
        assert!(own.last().is_some_and(|last| last.acked_bytes > 5000 && last.socket > 0));
        let counts = trace.counts().expect("the map can be read");
        assert_eq!((counts.seen, counts.lost), (events.len() as u64, 0));
        assert!(counts.spent > Duration::ZERO);
        other.take(|event| panic!("of another port: {event:?}")).expect("the ring can be read");
        assert_eq!(other.counts().expect("the map can be read").seen, 0);
    }
}
