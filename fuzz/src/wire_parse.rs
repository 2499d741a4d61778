//! Every reader of the wire on any bytes; what parses is written back the same.

use plait_proto::seq::{BondSeq, PacketNumber, TruncatedBondSeq, TruncatedPacketNumber};
use plait_proto::wire::control::{ACK_RANGES_MAX, Frame, NAME_BYTES_MAX};
use plait_proto::wire::handshake::{
    COOKIE_REPLY_BYTES, CookieReply, INITIATION_BYTES, Initiation, RESPONSE_BYTES, Response,
};
use plait_proto::wire::ip::Inner;
use plait_proto::wire::sealed::{
    CONTROL_PREFIX_BYTES, ControlPrefix, DATA_PREFIX_BYTES, DataPrefix, HEADER_BYTES, Header,
};
use plait_proto::wire::tcp::{TcpFlags, TcpPacket, is_plain_ack, mask_sack};
use plait_proto::wire::{Kind, first_byte};

use crate::input::Input;
use crate::reached;

/// Readers refuse or return what their writers turn into the same bytes.
pub fn wire_parse(data: &[u8]) {
    frames(data);
    sealed(data);
    handshake(data);
    inner(data);
    tcp(data);
    expansion(data);
}

fn frames(data: &[u8]) {
    let Some(frames) = Frame::read_all(data) else { return };
    let mut written = Vec::with_capacity(data.len());
    for frame in &frames {
        reached::feature(format!("wire_parse {:?}", core::mem::discriminant(frame)));
        match frame {
            Frame::PathInfo(info) => {
                assert!(info.name.len() <= NAME_BYTES_MAX, "a link's name is short");
                let printable = info.name.bytes().all(|byte| byte.is_ascii_graphic());
                assert!(printable, "a link's name is printable: {:?}", info.name);
            }
            Frame::Ack(ack) => {
                let count = ack.ranges.len();
                assert!((1..=ACK_RANGES_MAX).contains(&count), "{count} ranges in one ack");
                assert!(ack.ranges.iter().all(|range| range.length > 0), "a range holds a number");
            }
            _ => {}
        }
        frame.write(&mut written);
    }
    assert_eq!(written, data, "control frames have one encoding");
}

fn sealed(data: &[u8]) {
    let Some(kind) = data.first().and_then(|first| Kind::of(*first)) else { return };
    assert_eq!(first_byte(kind), data[0], "a kind has one first byte");
    if let Some(header) = Header::read(kind, data) {
        assert_eq!(header.to_bytes(), data[..HEADER_BYTES], "a header has one encoding");
    }
    let text = &data[1..];
    let mut copy = text.to_vec();
    match DataPrefix::read(&mut copy) {
        Some((prefix, inner)) => {
            assert_eq!(*inner, text[DATA_PREFIX_BYTES..], "the inner packet is what follows");
            assert_eq!(prefix.to_bytes(), text[..DATA_PREFIX_BYTES]);
        }
        None => assert!(text.len() < DATA_PREFIX_BYTES, "only too short a text has no prefix"),
    }
    match ControlPrefix::read(text) {
        Some((prefix, rest)) => {
            assert_eq!(*rest, text[CONTROL_PREFIX_BYTES..], "the frames are what follows");
            assert_eq!(prefix.to_bytes(), text[..CONTROL_PREFIX_BYTES]);
            frames(rest);
        }
        None => assert!(text.len() < CONTROL_PREFIX_BYTES, "only too short a text has no prefix"),
    }
}

fn handshake(data: &[u8]) {
    if let Some(message) = data.first_chunk::<INITIATION_BYTES>()
        && let Some(sender) = Initiation::sender(message)
    {
        assert_eq!(Initiation::frame(sender)[1..5], message[1..5], "an index has one encoding");
    }
    if let Some(message) = data.first_chunk::<RESPONSE_BYTES>()
        && let (Some(sender), Some(receiver)) =
            (Response::sender(message), Response::receiver(message))
    {
        assert_eq!(Response::frame(sender, receiver)[1..9], message[1..9]);
    }
    if let Some(message) = data.first_chunk::<RESPONSE_BYTES>()
        && let Some(receiver) = Response::receiver(message)
        && message[5..9] == [0; 4]
    {
        assert_eq!(Response::sender(message), None, "a refusal makes no session");
        assert_eq!(Response::refusal(receiver)[1..9], message[1..9]);
    }
    if let Some(message) = data.first_chunk::<COOKIE_REPLY_BYTES>()
        && let Some(receiver) = CookieReply::receiver(message)
    {
        assert_eq!(CookieReply::frame(receiver)[1..5], message[1..5]);
    }
}

fn inner(data: &[u8]) {
    let Some(inner) = Inner::read(data) else { return };
    let length = match data[0] >> 4 {
        4 => usize::from(u16::from_be_bytes([data[2], data[3]])),
        _ => usize::from(u16::from_be_bytes([data[4], data[5]])) + 40,
    };
    assert_eq!(length, data.len(), "an inner packet is as long as it says");
    assert_eq!(inner.source.is_ipv4(), data[0] >> 4 == 4);
    assert_eq!(inner.source.is_ipv4(), inner.destination.is_ipv4());
}

/// A TCP packet is as long as its parts, and stays readable without its SACK option.
fn tcp(data: &[u8]) {
    let says_plain = is_plain_ack(data);
    let Ok(read) = TcpPacket::read(data) else { return };
    let does_more = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::URG;
    let is_plain = read.payload_bytes() == 0
        && read.window() > 0
        && read.flags().any(TcpFlags::ACK)
        && !read.flags().any(does_more);
    assert_eq!(says_plain, is_plain, "both readings agree where the options hold together");
    assert!(read.payload_bytes() as usize + 40 <= data.len(), "headers come before the payload");
    assert_eq!(read.has_sack(), read.sack_blocks().next().is_some());
    let mut masked = data.to_vec();
    assert_eq!(mask_sack(&mut masked), read.has_sack() && !read.has_signature());
    let again = TcpPacket::read(&masked).expect("options still hold together");
    assert_eq!((again.flow(), again.ack()), (read.flow(), read.ack()));
    assert_eq!(again.has_sack(), read.has_sack() && read.has_signature());
}

/// A truncated number expands to a number that truncates to it, as near as there is.
fn expansion(data: &[u8]) {
    let mut input = Input::new(data);
    let low = input.u64();
    // Counters stay far below 2^48: one datagram a nanosecond would take three days.
    let expected = input.u64() >> 16;
    let number = TruncatedPacketNumber(low as u32);
    let full = number.expand(PacketNumber(expected));
    assert_eq!(full.truncate(), number);
    assert!(full.0.abs_diff(expected) <= 1 << 31 || full.0 < 1 << 32, "{full:?} for {expected}");
    let seq = TruncatedBondSeq(low as u32 & 0x00ff_ffff);
    let full = seq.expand(BondSeq(expected));
    assert_eq!(full.truncate(), seq);
    assert!(full.0.abs_diff(expected) <= 1 << 23 || full.0 < 1 << 24, "{full:?} for {expected}");
}
