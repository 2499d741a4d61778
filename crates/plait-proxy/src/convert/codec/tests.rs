use proptest::prelude::*;

use super::*;

fn connect(server: &str) -> Message {
    let server = server.parse().expect("a socket address");
    Message { tlvs: vec![Tlv::Connect(Connect { server, tcp_options: vec![] })] }
}

fn read(bytes: &[u8]) -> Result<Message, MalformedMessage> {
    let header = *bytes.first_chunk().expect("a message has a header");
    assert_eq!(length_of(header)?, bytes.len());
    decode(&bytes[HEADER_BYTES..])
}

#[test]
fn a_connect_is_laid_out_as_in_the_rfc() {
    let bytes = encode(&connect("192.0.2.1:443")).unwrap();
    let expected = [
        &[1, 6, 0x22, 0x63, 0x0a, 5, 1, 0xbb][..],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1],
    ]
    .concat();
    assert_eq!(bytes, expected);
    assert_eq!(read(&bytes), Ok(connect("192.0.2.1:443")));
}

#[test]
fn an_error_carries_its_code_and_what_belongs_to_it() {
    let error = Tlv::Error(ErrorCode::UnsupportedMessage, vec![0x42]);
    let bytes = encode(&Message { tlvs: vec![error.clone()] }).unwrap();
    assert_eq!(bytes[4..], [0x1e, 1, 2, 0x42]);
    assert_eq!(read(&bytes).unwrap().tlvs, [error]);
    for (code, number) in ErrorCode::KNOWN {
        assert_eq!((code.code(), ErrorCode::of(number)), (number, code));
    }
}

#[test]
fn what_is_no_message_is_told() {
    assert_eq!(length_of(*b"GET "), Err(MalformedMessage::NoConvert));
    assert_eq!(length_of([2, 1, 0x22, 0x63]), Err(MalformedMessage::Version(2)));
    assert_eq!(length_of([1, 0, 0x22, 0x63]), Err(MalformedMessage::TooShort));
    let of_kind = |kind| Err(MalformedMessage::TlvLength(kind));
    // A length of zero would never end; one beyond the message would read past it.
    assert_eq!(decode(&[1, 0, 0, 0]), of_kind(1));
    assert_eq!(decode(&[1, 2, 0, 0]), of_kind(1));
    assert_eq!(decode(&[0x0a, 4, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), of_kind(0x0a));
    assert_eq!(decode(&[0x16]), of_kind(0x16));
    let mut bytes = encode(&connect("192.0.2.1:443")).unwrap();
    bytes[6..8].fill(0);
    assert_eq!(read(&bytes), Err(MalformedMessage::PortZero));
}

#[test]
fn a_message_that_is_too_long_is_not_made() {
    let cookie = |words: usize| Message { tlvs: vec![Tlv::Cookie(vec![7; words * WORD])] };
    assert_eq!(encode(&cookie(253)).map(|bytes| bytes.len()), Some(MESSAGE_BYTES_MAX));
    assert_eq!(encode(&cookie(254)), None);
    assert_eq!(encode(&cookie(300)), None);
}

fn bytes_without_padding() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1..=u8::MAX, 0..40)
}

fn any_tlv() -> impl Strategy<Value = Tlv> {
    let server = (any::<IpAddr>(), 1..=u16::MAX).prop_map(SocketAddr::from);
    prop_oneof![
        Just(Tlv::Info),
        (server, bytes_without_padding()).prop_map(|(server, tcp_options)| {
            let server = SocketAddr::new(server.ip().to_canonical(), server.port());
            Tlv::Connect(Connect { server, tcp_options })
        }),
        bytes_without_padding().prop_map(Tlv::ExtendedTcpHeader),
        bytes_without_padding().prop_map(Tlv::SupportedTcpExtensions),
        (0..5usize).prop_map(|words| Tlv::Cookie(vec![9; words * WORD])),
        (any::<u8>(), bytes_without_padding())
            .prop_map(|(code, detail)| Tlv::Error(ErrorCode::of(code), detail)),
    ]
}

proptest! {
    #[test]
    fn what_was_written_is_read(tlvs in prop::collection::vec(any_tlv(), 0..5)) {
        let message = Message { tlvs };
        let bytes = encode(&message).unwrap();
        prop_assert_eq!(read(&bytes), Ok(message));
    }

    /// Any bytes are read or refused, and what is read can be written again.
    #[test]
    fn random_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = decode(&body) {
            prop_assert!(message.tlvs.len() <= body.len() / WORD);
            prop_assert!(encode(&message).is_some());
        }
    }
}
