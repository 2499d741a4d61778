//! Convert messages as bytes (RFC 8803, section 6).
//!
//! A message is a fixed header of 4 bytes and then TLVs. Lengths count words of 32 bits, the type
//! and length themselves included, so that every TLV begins at a multiple of 4.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes of the fixed header (section 6.1).
pub const HEADER_BYTES: usize = 4;
/// The longest message: its length is counted in one byte of words.
pub const MESSAGE_BYTES_MAX: usize = 255 * WORD;
const WORD: usize = 4;
/// The version that this code speaks.
const VERSION: u8 = 1;
/// Tells a Convert message from other bytes.
const MAGIC: u16 = 0x2263;

/// Types of TLVs (section 6.2.1).
mod kind {
    pub(super) const INFO: u8 = 0x01;
    pub(super) const CONNECT: u8 = 0x0a;
    pub(super) const EXTENDED_TCP_HEADER: u8 = 0x14;
    pub(super) const SUPPORTED_TCP_EXTENSIONS: u8 = 0x15;
    pub(super) const COOKIE: u8 = 0x16;
    pub(super) const ERROR: u8 = 0x1e;
}

/// A whole message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    /// Its TLVs, in their order.
    pub tlvs: Vec<Tlv>,
}

/// One element of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tlv {
    /// Asks for the TCP extensions that the converter supports (section 6.2.3).
    Info,
    /// Asks for a connection (section 6.2.5).
    Connect(Connect),
    /// Options of the SYN+ACK that the server answered with (section 6.2.6).
    ExtendedTcpHeader(Vec<u8>),
    /// Kinds of the TCP options that the converter supports (section 6.2.4).
    SupportedTcpExtensions(Vec<u8>),
    /// Proves that the client was seen at its address before (section 6.2.7).
    Cookie(Vec<u8>),
    /// Why there is no connection (section 6.2.8), and what belongs to the code.
    Error(ErrorCode, Vec<u8>),
    /// One of a type that this code does not know.
    Unknown(u8),
}

/// Where a client wants to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connect {
    /// The server.
    pub server: SocketAddr,
    /// TCP options that the converter is asked to use towards it, as they stand in a TCP header.
    pub tcp_options: Vec<u8>,
}

/// Why there is no connection (RFC 8803, section 6.2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorCode {
    /// The message's version is not spoken here.
    UnsupportedVersion,
    /// The message cannot be read.
    MalformedMessage,
    /// A TLV's type is not supported.
    UnsupportedMessage,
    /// The converter wants a cookie first.
    MissingCookie,
    /// The client may not use the converter, or not for this server.
    NotAuthorized,
    /// A TCP option of the Connect TLV is not supported.
    UnsupportedTcpOption,
    /// The converter has no room for another connection.
    ResourceExceeded,
    /// The converter's own network failed.
    NetworkFailure,
    /// The server refused, or reset, the connection.
    ConnectionReset,
    /// The server cannot be reached.
    DestinationUnreachable,
    /// A code that this code does not know.
    Other(u8),
}

impl ErrorCode {
    const KNOWN: [(Self, u8); 10] = [
        (Self::UnsupportedVersion, 0),
        (Self::MalformedMessage, 1),
        (Self::UnsupportedMessage, 2),
        (Self::MissingCookie, 3),
        (Self::NotAuthorized, 32),
        (Self::UnsupportedTcpOption, 33),
        (Self::ResourceExceeded, 64),
        (Self::NetworkFailure, 65),
        (Self::ConnectionReset, 96),
        (Self::DestinationUnreachable, 97),
    ];

    /// The code on the wire.
    pub fn code(self) -> u8 {
        if let Self::Other(code) = self {
            return code;
        }
        let known = Self::KNOWN.iter().find(|(known, _)| *known == self);
        known.map_or(u8::MAX, |(_, code)| *code)
    }

    fn of(code: u8) -> Self {
        let known = Self::KNOWN.iter().find(|(_, known)| *known == code);
        known.map_or(Self::Other(code), |(error, _)| *error)
    }
}

/// Bytes are no Convert message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedMessage {
    /// The magic number is missing.
    #[error("the first bytes are no Convert message")]
    NoConvert,
    /// Another version, whose messages cannot be read.
    #[error("the message has version {0}, and version 1 is spoken here")]
    Version(u8),
    /// The header says less than its own length.
    #[error("the message says that it is shorter than its header")]
    TooShort,
    /// A TLV does not fit.
    #[error("a TLV of type {0:#04x} has an impossible length")]
    TlvLength(u8),
    /// The server's port is 0.
    #[error("a Connect TLV names port 0")]
    PortZero,
}

/// How many bytes a message has, its header included, from its header.
///
/// # Errors
/// The header is none of Convert's.
pub fn length_of(header: [u8; HEADER_BYTES]) -> Result<usize, MalformedMessage> {
    let [version, words, magic @ ..] = header;
    if u16::from_be_bytes(magic) != MAGIC {
        return Err(MalformedMessage::NoConvert);
    }
    if version != VERSION {
        return Err(MalformedMessage::Version(version));
    }
    if words == 0 {
        return Err(MalformedMessage::TooShort);
    }
    Ok(usize::from(words) * WORD)
}

/// Reads what follows a message's header.
///
/// # Errors
/// The bytes are no sequence of TLVs.
pub fn decode(mut body: &[u8]) -> Result<Message, MalformedMessage> {
    let mut message = Message::default();
    while let [kind, words, ..] = *body {
        let length = usize::from(words) * WORD;
        if length == 0 || length > body.len() {
            return Err(MalformedMessage::TlvLength(kind));
        }
        let (tlv, rest) = body.split_at(length);
        message.tlvs.push(decode_tlv(kind, &tlv[2..])?);
        body = rest;
    }
    if body.is_empty() { Ok(message) } else { Err(MalformedMessage::TlvLength(body[0])) }
}

/// Reads a TLV from what follows its type and length: 2 bytes and any number of words.
fn decode_tlv(kind: u8, value: &[u8]) -> Result<Tlv, MalformedMessage> {
    let (first, rest) = value.split_at(2);
    Ok(match kind {
        kind::INFO => Tlv::Info,
        kind::CONNECT => {
            let (address, tcp_options) =
                rest.split_first_chunk::<16>().ok_or(MalformedMessage::TlvLength(kind))?;
            let port = u16::from_be_bytes([first[0], first[1]]);
            if port == 0 {
                return Err(MalformedMessage::PortZero);
            }
            let address = Ipv6Addr::from(*address);
            let server = SocketAddr::new(IpAddr::from(address).to_canonical(), port);
            Tlv::Connect(Connect { server, tcp_options: without_padding(tcp_options) })
        }
        kind::EXTENDED_TCP_HEADER => Tlv::ExtendedTcpHeader(without_padding(rest)),
        kind::SUPPORTED_TCP_EXTENSIONS => Tlv::SupportedTcpExtensions(without_padding(rest)),
        kind::COOKIE => Tlv::Cookie(rest.to_vec()),
        kind::ERROR => {
            let detail = [&first[1..], rest].concat();
            Tlv::Error(ErrorCode::of(first[0]), without_padding(&detail))
        }
        unknown => Tlv::Unknown(unknown),
    })
}

/// Padding is zeros at the end (the TCP option "end of options" is a zero, too).
fn without_padding(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..length].to_vec()
}

/// A message's bytes; `None` when it is longer than [`MESSAGE_BYTES_MAX`].
pub fn encode(message: &Message) -> Option<Vec<u8>> {
    let mut bytes = vec![VERSION, 0];
    bytes.extend(MAGIC.to_be_bytes());
    for tlv in &message.tlvs {
        encode_tlv(tlv, &mut bytes)?;
    }
    bytes[1] = u8::try_from(bytes.len() / WORD).ok()?;
    Some(bytes)
}

fn encode_tlv(tlv: &Tlv, bytes: &mut Vec<u8>) -> Option<()> {
    let start = bytes.len();
    match tlv {
        Tlv::Info => bytes.extend([kind::INFO, 0, 0, 0]),
        Tlv::Connect(connect) => {
            bytes.extend([kind::CONNECT, 0]);
            bytes.extend(connect.server.port().to_be_bytes());
            let address = match connect.server.ip() {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            bytes.extend(address.octets());
            bytes.extend(&connect.tcp_options);
        }
        Tlv::ExtendedTcpHeader(options) => {
            bytes.extend([kind::EXTENDED_TCP_HEADER, 0, 0, 0]);
            bytes.extend(options);
        }
        Tlv::SupportedTcpExtensions(kinds) => {
            bytes.extend([kind::SUPPORTED_TCP_EXTENSIONS, 0, 0, 0]);
            bytes.extend(kinds);
        }
        Tlv::Cookie(cookie) => {
            bytes.extend([kind::COOKIE, 0, 0, 0]);
            bytes.extend(cookie);
        }
        Tlv::Error(code, detail) => {
            bytes.extend([kind::ERROR, 0, code.code()]);
            bytes.extend(detail);
        }
        Tlv::Unknown(kind) => bytes.extend([*kind, 0, 0, 0]),
    }
    bytes.resize(bytes.len().next_multiple_of(WORD), 0);
    bytes[start + 1] = u8::try_from((bytes.len() - start) / WORD).ok()?;
    Some(())
}

#[cfg(test)]
mod tests;
