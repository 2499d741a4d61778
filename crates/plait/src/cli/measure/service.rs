//! Connects to the peer's measuring service, and pins flows to a path at both ends.

use std::io::{self, Read as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plait_net::tcp;

use super::control;
use crate::advice::Advised;
use crate::measure::transfer::{self, Counts, Limit};
use crate::measure::wire::{Message, Purpose, Refusal, Token, VERSION, WireError};
use crate::measure::{Command, Flow};

/// The congestion control of flows from here, if the kernel has it.
const CONGESTION: &str = "cubic";
/// How long the service may take for its first answer.
const ANSWER_TIME: Duration = Duration::from_secs(3);
/// How long the last counts may take to arrive.
const COUNTS_TIME: Duration = Duration::from_millis(1000);
/// Small messages are sent this often.
const ECHO_INTERVAL: Duration = Duration::from_millis(50);
/// Length of [`Message::Echo`] on the wire.
const ECHO_BYTES: usize = 11;

/// A measurement with the peer's service; it ends when the value is dropped.
#[derive(Debug)]
pub(super) struct Service {
    address: SocketAddr,
    token: Token,
    /// The measurement lasts as long as this connection.
    _holding: TcpStream,
}

impl Service {
    /// Begins a measurement of so many seconds at most with the first of these addresses that
    /// answers.
    ///
    /// # Errors
    /// No service is there, or it refuses; with advice.
    pub(super) fn open(addresses: &[IpAddr], port: u16, time: Duration) -> anyhow::Result<Self> {
        let help = "give the peer's address inside the bond: --to ADDRESS";
        let mut last = Advised::new("cannot tell the peer's address inside the bond", help);
        for &address in addresses {
            let address = SocketAddr::new(address, port);
            match TcpStream::connect_timeout(&address, ANSWER_TIME) {
                Ok(stream) => return Self::begin(stream, address, time),
                Err(cause) => last = unreachable(address, cause),
            }
        }
        Err(last.into())
    }

    fn begin(mut stream: TcpStream, address: SocketAddr, time: Duration) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        set_timeouts(&stream, ANSWER_TIME)?;
        let seconds = u16::try_from(time.as_secs() + 1).unwrap_or(u16::MAX);
        Message::Open { seconds }.write(&mut stream)?;
        match Message::read(&mut stream) {
            Ok(Message::Welcome { token }) => Ok(Self { address, token, _holding: stream }),
            answer => Err(unwelcome(address, answer).into()),
        }
    }
}

fn unreachable(address: SocketAddr, cause: io::Error) -> Advised {
    let help = match cause.kind() {
        io::ErrorKind::ConnectionRefused => {
            "the peer's gateway must allow it: `measure = true` under its [gateway] or its \
             [[peer]] (an older plait has no measuring service); --port when it uses another"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            "a firewall on the peer's host may drop the port, or the peer is not at this address: \
             --to ADDRESS"
        }
        _ => "is this the peer's address inside the bond? else give it: --to ADDRESS",
    };
    Advised::new(format!("no measuring service at {address}"), help).caused_by(cause)
}

/// The error that an unexpected answer means.
fn unwelcome(address: SocketAddr, answer: Result<Message, WireError>) -> Advised {
    match answer {
        Ok(Message::Refused { why, text }) => {
            let help = match why {
                Refusal::NotAllowed => {
                    "on the peer: `measure = true` under [gateway], or under the [[peer]] with \
                     this gateway's key; then reload it"
                }
                Refusal::Busy => "wait until it has ended",
                Refusal::Version => "use the same version of plait on both gateways",
                Refusal::TooMuch => "measure fewer seconds, bytes or paths",
                Refusal::NoSuchPath => "a path came or went meanwhile: measure again",
                Refusal::UnknownToken | Refusal::Other => "look at the peer's log; measure again",
            };
            Advised::new(format!("the peer at {address} refuses to measure: {text}"), help)
        }
        Ok(_) => other_program(address),
        Err(cause @ (WireError::Closed | WireError::Io(_))) => {
            let help = "is the bond up? look at `plait status`, and at the peer's log";
            Advised::new(format!("the measuring service at {address} went away"), help)
                .caused_by(cause)
        }
        Err(cause) => other_program(address).caused_by(cause),
    }
}

fn other_program(address: SocketAddr) -> Advised {
    let help = format!(
        "another program may listen there; or the peer's plait speaks another version than \
         {VERSION}"
    );
    Advised::new(format!("what answers at {address} is no measuring service"), help)
}

fn set_timeouts(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let time = Some(time.max(Duration::from_millis(1)));
    stream.set_read_timeout(time)?;
    stream.set_write_timeout(time)
}

/// What a flow or an echo is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) purpose: Purpose,
    /// Id of the path that it keeps to.
    pub(super) path: Option<u8>,
    pub(super) limit: Limit,
}

/// A connection that is ready to start.
#[derive(Debug)]
pub(super) struct Ready<'a> {
    stream: TcpStream,
    order: Order,
    _pin: Option<Pin<'a>>,
}

/// A flow of this side that is pinned to a path as long as the value lives.
#[derive(Debug)]
struct Pin<'a> {
    socket: &'a Path,
    flow: Flow,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        // A pin that cannot be removed ends by itself.
        let _ = control::command(self.socket, &Command::Unpin { flow: self.flow });
    }
}

impl Service {
    /// Connects and makes both ends pin the connection to its path. `socket` is this host's
    /// gateway's.
    ///
    /// # Errors
    /// The service or the gateway refuses, or does not answer by `deadline`.
    pub(super) fn join<'a>(
        &self,
        socket: &'a Path,
        order: Order,
        deadline: Instant,
    ) -> anyhow::Result<Ready<'a>> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let least = Duration::from_millis(1);
        let mut stream = TcpStream::connect_timeout(&self.address, left().max(least))
            .map_err(|cause| unreachable(self.address, cause))?;
        stream.set_nodelay(true)?;
        set_timeouts(&stream, left())?;
        let pin = order.path.map(|path| pin(socket, path, &stream)).transpose()?;
        let millis = u32::try_from(order.limit.time.as_millis()).unwrap_or(u32::MAX);
        let Order { purpose, path, limit: Limit { bytes, .. } } = order;
        Message::Join { token: self.token, purpose, path, millis, bytes }.write(&mut stream)?;
        match Message::read(&mut stream) {
            Ok(Message::Ready { .. }) => {}
            answer => return Err(unwelcome(self.address, answer).into()),
        }
        if let Err(error) = tcp::set_congestion(&stream, CONGESTION) {
            log::debug!("measuring without {CONGESTION}: {error}");
        }
        Ok(Ready { stream, order, _pin: pin })
    }
}

fn pin<'a>(socket: &'a Path, path: u8, stream: &TcpStream) -> anyhow::Result<Pin<'a>> {
    let flow = Flow::new(stream.local_addr()?, stream.peer_addr()?);
    control::command(socket, &Command::Pin { path, flow })?;
    Ok(Pin { socket, flow })
}

/// The result of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Carried {
    pub(super) counts: Counts,
    /// Its bytes were used up before its time.
    pub(super) was_cut: bool,
}

impl Ready<'_> {
    /// Starts it.
    pub(super) fn go(&mut self) -> anyhow::Result<()> {
        Message::Go.write(&mut self.stream).context("the measuring service went away")
    }

    /// Runs a flow that began at `start` to its end, or until `goes_on` says no.
    pub(super) fn carry(
        mut self,
        start: Instant,
        goes_on: impl Fn() -> bool,
    ) -> anyhow::Result<Carried> {
        let (limit, stream) = (self.order.limit, &mut self.stream);
        let counts = match self.order.purpose {
            Purpose::Up => {
                transfer::send(stream, start, limit, |_| goes_on())?;
                if start.elapsed() < limit.time {
                    // Its bytes are used up; the other side is to count now.
                    stream.shutdown(Shutdown::Write)?;
                }
                let patience = limit.time.saturating_sub(start.elapsed()) + COUNTS_TIME;
                set_timeouts(stream, patience)?;
                match Message::read(stream) {
                    Ok(Message::Counted { bytes }) => Counts::from_slots(bytes),
                    answer => {
                        let address = stream.peer_addr()?;
                        return Err(unwelcome(address, answer).into());
                    }
                }
            }
            Purpose::Down | Purpose::Echo => {
                transfer::receive(stream, start, limit, |_| goes_on())?
            }
        };
        // Data in flight is dropped: the next phase begins with empty queues.
        tcp::reset_on_close(&self.stream)?;
        let was_cut = !goes_on() || counts.total() >= limit.bytes;
        Ok(Carried { counts, was_cut })
    }

    /// Sends a small message repeatedly from `start` on. Returns, for each that came back, when it
    /// was sent, since the start, and its round-trip time.
    pub(super) fn echo(
        mut self,
        start: Instant,
        goes_on: impl Fn() -> bool,
    ) -> anyhow::Result<Vec<(Duration, Duration)>> {
        let time = self.order.limit.time;
        let (mut samples, mut came) = (Vec::new(), Vec::new());
        let mut due = Duration::ZERO;
        while start.elapsed() < time && goes_on() {
            if start.elapsed() >= due {
                let stamp = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let message = Message::Echo { stamp };
                if message.write(&mut self.stream).is_err() {
                    break;
                }
                due += ECHO_INTERVAL;
            }
            set_timeouts(&self.stream, due.saturating_sub(start.elapsed()))?;
            let mut bytes = [0; 16 * ECHO_BYTES];
            match self.stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => came.extend_from_slice(&bytes[..count]),
                Err(error) if transfer::is_pause(&error) => {}
                Err(_) => break,
            }
            let now = start.elapsed();
            let whole = came.len() - came.len() % ECHO_BYTES;
            let messages = came[..whole].chunks(ECHO_BYTES);
            samples.extend(messages.filter_map(|message| {
                let Ok(Message::Echo { stamp }) = Message::parse(&message[2..]) else {
                    return None;
                };
                let sent_at = Duration::from_nanos(stamp);
                Some((sent_at, now.saturating_sub(sent_at)))
            }));
            came.drain(..whole);
        }
        tcp::reset_on_close(&self.stream)?;
        Ok(samples)
    }
}
