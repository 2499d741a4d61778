//! One connection to the measuring service.

use std::io::{self, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plait_net::machine::fill_random;
use plait_net::tcp;
use plait_proto::ingress::PinError;
use plait_proto::seq::PathId;

use super::registry::{Place, Refused, Registry};
use crate::daemon::requests::Requests;
use crate::measure::transfer::{self, Limit};
use crate::measure::wire::{Message, Purpose, Refusal, Token, VERSION, WireError};
use crate::measure::{FLOW_TIME_MAX, Flow, canonical};

/// A client must send its first message within this time.
const FIRST_MESSAGE_TIME: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });
/// Longest time from [`Message::Ready`] to [`Message::Go`], while other connections are prepared.
const GO_TIME: Duration = Duration::from_secs(10);
/// Data in flight at the end of a flow's time may still arrive within this time.
const AFTER_TIME: Duration = Duration::from_secs(2);
/// How often a held measurement is checked for its end.
const HOLD_CALL_TIME: Duration = Duration::from_millis(500);
/// The congestion control that measurements use, if the kernel has it.
pub(crate) const CONGESTION: &str = "cubic";

/// Why a connection ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("refused: {0}")]
    Refused(#[from] Refused),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("a message out of turn")]
    OutOfTurn,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves a connection to its end.
///
/// # Errors
/// Why it ended early; the other side was told.
pub(super) fn serve(
    mut stream: TcpStream,
    source: SocketAddr,
    registry: &Registry,
    requests: &Requests,
) -> Result<(), Fault> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(FIRST_MESSAGE_TIME))?;
    let result = converse(&mut stream, source, registry, requests);
    let refused = match &result {
        Err(Fault::Refused(refused)) => Some(refused.clone()),
        Err(Fault::Wire(WireError::UnknownVersion(_))) => {
            Some(Refused::new(Refusal::Version, format!("it speaks version {VERSION}")))
        }
        _ => None,
    };
    if let Some(Refused { why, text }) = refused {
        Message::Refused { why, text }.write(&mut stream)?;
    }
    result
}

fn converse(
    stream: &mut TcpStream,
    source: SocketAddr,
    registry: &Registry,
    requests: &Requests,
) -> Result<(), Fault> {
    let address = canonical(source.ip());
    match Message::read_within(stream, FIRST_MESSAGE_TIME)? {
        Message::Open { seconds } => hold(stream, registry, address, seconds),
        Message::Join { token, purpose, path, millis, bytes } => {
            let place = registry.join(address, &token, bytes)?;
            let time = Duration::from_millis(millis.into());
            if time > FLOW_TIME_MAX {
                let most = FLOW_TIME_MAX.as_secs();
                let text = format!("a flow may last {most} s at most");
                return Err(Refused::new(Refusal::TooMuch, text).into());
            }
            let flow = Flow::new(stream.local_addr()?, source);
            let _pin = path.map(|path| Pin::set(requests, PathId(path), flow)).transpose()?;
            carry(stream, &place, purpose, Limit { time, bytes })
        }
        _ => Err(Fault::OutOfTurn),
    }
}

/// A measurement lasts as long as the connection on which it was begun.
fn hold(
    stream: &mut TcpStream,
    registry: &Registry,
    source: std::net::IpAddr,
    seconds: u16,
) -> Result<(), Fault> {
    let holding = registry.open(source, seconds, random_token()?)?;
    Message::Welcome { token: holding.session.token() }.write(stream)?;
    let is_told = registry.may_tell(&holding.session);
    if is_told {
        log::info!("{source} measures, for up to {seconds} s");
    }
    stream.set_read_timeout(Some(HOLD_CALL_TIME))?;
    while holding.session.is_alive() {
        match stream.read(&mut [0; 64]) {
            Ok(0) => break,
            // Nothing more is expected, and whatever comes has no effect.
            Ok(_) => std::thread::sleep(HOLD_CALL_TIME),
            Err(error) if transfer::is_pause(&error) => {}
            Err(_) => break,
        }
    }
    if is_told {
        log::info!("{source} measures no more");
    }
    Ok(())
}

fn random_token() -> io::Result<Token> {
    let mut token = Token::default();
    fill_random(&mut token)?;
    Ok(token)
}

/// A flow, or an echo, from [`Message::Ready`] to its end.
fn carry(
    stream: &mut TcpStream,
    place: &Place,
    purpose: Purpose,
    limit: Limit,
) -> Result<(), Fault> {
    if let Err(error) = tcp::set_congestion(&*stream, CONGESTION) {
        log::debug!("measuring without {CONGESTION}: {error}");
    }
    Message::Ready { congestion: tcp::congestion(&*stream)? }.write(stream)?;
    if Message::read_within(stream, GO_TIME)? != Message::Go {
        return Err(Fault::OutOfTurn);
    }
    let start = Instant::now();
    let goes_on = |_| place.0.is_alive();
    match purpose {
        Purpose::Down => {
            transfer::send(stream, start, limit, goes_on)?;
            stream.shutdown(Shutdown::Write)?;
        }
        Purpose::Up => {
            let counts = transfer::receive(stream, start, limit, goes_on)?;
            Message::Counted { bytes: counts.slots() }.write(stream)?;
            stream.shutdown(Shutdown::Write)?;
        }
        Purpose::Echo => return echo(stream, start, limit, goes_on),
    }
    // Until the other side closes as well: closing now could discard data in flight.
    let rest = limit.time.saturating_sub(start.elapsed()) + AFTER_TIME;
    let more = Limit { time: rest, bytes: u64::MAX };
    transfer::receive(stream, Instant::now(), more, goes_on)?;
    tcp::reset_on_close(&*stream)?;
    Ok(())
}

fn echo(
    stream: &mut TcpStream,
    start: Instant,
    limit: Limit,
    goes_on: impl Fn(u64) -> bool,
) -> Result<(), Fault> {
    while start.elapsed() < limit.time && goes_on(0) {
        match Message::read_within(stream, AFTER_TIME) {
            Ok(echo @ Message::Echo { .. }) => echo.write(stream)?,
            Ok(_) => return Err(Fault::OutOfTurn),
            Err(WireError::Closed) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A flow of the service that is pinned to a path as long as the value lives.
struct Pin<'a> {
    requests: &'a Requests,
    flow: Flow,
}

impl<'a> Pin<'a> {
    fn set(requests: &'a Requests, path: PathId, flow: Flow) -> Result<Self, Refused> {
        match requests.pin(path, flow) {
            Some(Ok(())) => Ok(Self { requests, flow }),
            Some(Err(error @ PinError::NoPath(_))) => {
                Err(Refused::new(Refusal::NoSuchPath, error.to_string()))
            }
            Some(Err(error)) => Err(Refused::new(Refusal::Other, error.to_string())),
            None => Err(Refused::new(Refusal::Other, "the gateway is too busy, or about to end")),
        }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.requests.unpin(self.flow);
    }
}

#[cfg(test)]
mod tests;
