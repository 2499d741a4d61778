//! The 0-RTT TCP Convert Protocol (RFC 8803), without I/O: what a client and a Transport Converter
//! say to each other before a connection's own bytes.
//!
//! A client opens a connection to the converter and says, in its first bytes, where it wants to go.
//! The converter answers before the server's first bytes, and then both are out of the way.

mod codec;
mod exchange;

pub use codec::{
    Connect, ErrorCode, HEADER_BYTES, MESSAGE_BYTES_MAX, MalformedMessage, Message, Tlv, decode,
    encode, length_of,
};
pub use exchange::{Answer, Asked, answer_to, asked_for, request_for};
