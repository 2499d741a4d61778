//! The messages between `plait measure` and a measuring service, version 1.
//!
//! A message is a length of two bytes (of what follows), a kind of one byte, and a body; numbers
//! are big-endian. The client sends [`Message::Open`] or [`Message::Join`] first; both begin with a
//! mark and the version. After a flow's [`Message::Go`] its bytes follow, without framing, until
//! the sender closes its half.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The protocol version.
pub(crate) const VERSION: u8 = 1;
/// Begins every connection.
const MARK: [u8; 4] = *b"pltm";
/// The longest message, without its length field.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;
/// The longest text of a refusal in bytes.
const TEXT_BYTES_MAX: usize = 500;
/// Most counts that fit a message.
pub(crate) const COUNTS_MAX: usize = 1000;

/// Names a measurement to the service.
pub(crate) type Token = [u8; 16];

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The service sends.
    Down,
    /// The service receives.
    Up,
    /// The service echoes.
    Echo,
}

/// Why a service refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The version is not supported.
    Version,
    /// This peer may not measure.
    NotAllowed,
    /// A measurement with this peer is already running.
    Busy,
    /// No measurement has this token, or it is over.
    UnknownToken,
    /// More time, bytes or connections than a measurement may have.
    TooMuch,
    /// The flow cannot be pinned to its path.
    NoSuchPath,
    /// Something else.
    Other,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// Request for a measurement of limited duration.
    Open {
        /// Its longest duration.
        seconds: u16,
    },
    /// The measurement is allowed. It lasts as long as this connection.
    Welcome {
        /// Its name.
        token: Token,
    },
    /// The request is refused.
    Refused {
        /// Why.
        why: Refusal,
        /// The same in words.
        text: String,
    },
    /// This connection belongs to a measurement.
    Join {
        /// The measurement.
        token: Token,
        /// What it is for.
        purpose: Purpose,
        /// The path to which the service pins its packets.
        path: Option<u8>,
        /// The longest that the flow lasts.
        millis: u32,
        /// The most that it carries.
        bytes: u64,
    },
    /// The service is ready for [`Self::Go`].
    Ready {
        /// Congestion control of the service's socket.
        congestion: String,
    },
    /// The flow begins.
    Go,
    /// To be sent back.
    Echo {
        /// An arbitrary number.
        stamp: u64,
    },
    /// Bytes that the service received per tenth of a second since the flow's beginning.
    Counted {
        /// Bytes of each.
        bytes: Vec<u32>,
    },
}

/// Errors of a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The connection ended between messages.
    #[error("the other side closed the connection")]
    Closed,
    /// The connection ended within a message.
    #[error("the connection ended within a message")]
    Truncated,
    /// The length is zero or too large.
    #[error("a message of {0} bytes: at most {MESSAGE_BYTES_MAX} are allowed")]
    BadLength(usize),
    /// No message has this kind.
    #[error("unknown kind of message: {0}")]
    UnknownKind(u8),
    /// The connection does not begin with the mark.
    #[error("this is no measurement")]
    BadMark,
    /// Another version.
    #[error("version {0} of the measurement's messages; known is version {VERSION}")]
    UnknownVersion(u8),
    /// The body does not have the form of its kind.
    #[error("a message of kind {0} with a body of another form")]
    BadBody(u8),
    /// The connection failed, or nothing came in time.
    #[error(transparent)]
    Io(#[from] io::Error),
}

const OPEN: u8 = 1;
const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const JOIN: u8 = 4;
const READY: u8 = 5;
const GO: u8 = 6;
const ECHO: u8 = 7;
const COUNTED: u8 = 8;

impl Purpose {
    const ALL: [Self; 3] = [Self::Down, Self::Up, Self::Echo];

    fn number(self) -> u8 {
        self as u8
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.number() == number)
    }
}

impl Refusal {
    const ALL: [Self; 7] = [
        Self::Version,
        Self::NotAllowed,
        Self::Busy,
        Self::UnknownToken,
        Self::TooMuch,
        Self::NoSuchPath,
        Self::Other,
    ];

    fn number(self) -> u8 {
        self as u8
    }

    /// An unknown reason becomes [`Self::Other`].
    fn of(number: u8) -> Self {
        Self::ALL.into_iter().find(|why| why.number() == number).unwrap_or(Self::Other)
    }
}

impl Message {
    /// The message's bytes on the wire.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (kind, body) = self.kind_and_body();
        let length = u16::try_from(1 + body.len()).expect("every message is far below 64 KiB");
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(&body);
        bytes
    }

    fn kind_and_body(&self) -> (u8, Vec<u8>) {
        let mut body = Vec::new();
        let kind = match self {
            Self::Open { seconds } => {
                begin(&mut body);
                body.extend_from_slice(&seconds.to_be_bytes());
                OPEN
            }
            Self::Welcome { token } => {
                body.extend_from_slice(token);
                WELCOME
            }
            Self::Refused { why, text } => {
                body.push(why.number());
                body.extend_from_slice(cut(text, TEXT_BYTES_MAX).as_bytes());
                REFUSED
            }
            Self::Join { token, purpose, path, millis, bytes } => {
                begin(&mut body);
                body.extend_from_slice(token);
                body.push(purpose.number());
                body.extend_from_slice(&[u8::from(path.is_some()), path.unwrap_or(0)]);
                body.extend_from_slice(&millis.to_be_bytes());
                body.extend_from_slice(&bytes.to_be_bytes());
                JOIN
            }
            Self::Ready { congestion } => {
                body.extend_from_slice(congestion.as_bytes());
                READY
            }
            Self::Go => GO,
            Self::Echo { stamp } => {
                body.extend_from_slice(&stamp.to_be_bytes());
                ECHO
            }
            Self::Counted { bytes } => {
                bytes
                    .iter()
                    .take(COUNTS_MAX)
                    .for_each(|n| body.extend_from_slice(&n.to_be_bytes()));
                COUNTED
            }
        };
        (kind, body)
    }

    /// Reads a message without its length.
    ///
    /// # Errors
    /// Mark, version, kind or form are wrong.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (&kind, body) = bytes.split_first().ok_or(WireError::BadLength(0))?;
        let mut body = Body { kind, rest: body };
        let message = match kind {
            OPEN => {
                body.begin()?;
                Self::Open { seconds: u16::from_be_bytes(body.take()?) }
            }
            WELCOME => Self::Welcome { token: body.take()? },
            REFUSED => {
                let [why] = body.take()?;
                Self::Refused { why: Refusal::of(why), text: body.text()? }
            }
            JOIN => {
                body.begin()?;
                let token = body.take()?;
                let [purpose, has_path, path] = body.take()?;
                let purpose = Purpose::of(purpose).ok_or(WireError::BadBody(kind))?;
                let path = match has_path {
                    0 => None,
                    1 => Some(path),
                    _ => return Err(WireError::BadBody(kind)),
                };
                let millis = u32::from_be_bytes(body.take()?);
                Self::Join { token, purpose, path, millis, bytes: u64::from_be_bytes(body.take()?) }
            }
            READY => Self::Ready { congestion: body.text()? },
            GO => Self::Go,
            ECHO => Self::Echo { stamp: u64::from_be_bytes(body.take()?) },
            COUNTED => Self::Counted { bytes: body.counts()? },
            unknown => return Err(WireError::UnknownKind(unknown)),
        };
        if body.rest.is_empty() { Ok(message) } else { Err(WireError::BadBody(kind)) }
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// The connection ended, failed or was silent for too long, or the message is wrong.
    pub(crate) fn read(from: &mut impl Read) -> Result<Self, WireError> {
        let mut length = [0; 2];
        if from.read(&mut length[..1])? == 0 {
            return Err(WireError::Closed);
        }
        fill(from, &mut length[1..])?;
        let length = usize::from(u16::from_be_bytes(length));
        if length == 0 || length > MESSAGE_BYTES_MAX {
            return Err(WireError::BadLength(length));
        }
        let mut bytes = vec![0; length];
        fill(from, &mut bytes)?;
        Self::parse(&bytes)
    }

    /// Reads the next message, which must arrive completely in time.
    ///
    /// # Errors
    /// As [`Self::read`], and a timeout.
    pub(crate) fn read_within(stream: &TcpStream, time: Duration) -> Result<Self, WireError> {
        Self::read(&mut Hurried { stream, until: Instant::now() + time })
    }

    /// Sends the message.
    ///
    /// # Errors
    /// The connection failed.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.to_bytes())
    }
}

/// A connection with a deadline for the whole message, not for each byte.
struct Hurried<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

fn fill(from: &mut impl Read, bytes: &mut [u8]) -> Result<(), WireError> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => WireError::Truncated,
        _ => WireError::Io(error),
    })
}

/// Mark and version.
fn begin(body: &mut Vec<u8>) {
    body.extend_from_slice(&MARK);
    body.push(VERSION);
}

/// The beginning of a text, cut to so many bytes.
fn cut(text: &str, bytes_max: usize) -> &str {
    let fits = (0..=bytes_max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..fits.unwrap_or(0)]
}

/// What is left of a message's body.
struct Body<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl Body<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(WireError::BadBody(self.kind))?;
        self.rest = rest;
        Ok(*first)
    }

    fn begin(&mut self) -> Result<(), WireError> {
        if self.take().map_err(|_| WireError::BadMark)? != MARK {
            return Err(WireError::BadMark);
        }
        match self.take()? {
            [VERSION] => Ok(()),
            [other] => Err(WireError::UnknownVersion(other)),
        }
    }

    fn text(&mut self) -> Result<String, WireError> {
        let bytes = std::mem::take(&mut self.rest);
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= TEXT_BYTES_MAX);
        // The text may be shown on a terminal.
        let text = text.filter(|text| !text.chars().any(char::is_control));
        text.map(str::to_owned).ok_or(WireError::BadBody(self.kind))
    }

    fn counts(&mut self) -> Result<Vec<u32>, WireError> {
        let (counts, rest) = self.rest.as_chunks();
        self.rest = rest;
        if counts.len() > COUNTS_MAX {
            return Err(WireError::BadBody(self.kind));
        }
        Ok(counts.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect())
    }
}

#[cfg(test)]
mod tests;
