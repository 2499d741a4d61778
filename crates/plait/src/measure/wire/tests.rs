use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn message() -> impl Strategy<Value = Message> {
    let purpose = (0..3_usize).prop_map(|at| Purpose::ALL[at]);
    let why = (0..7_usize).prop_map(|at| Refusal::ALL[at]);
    let join = (any::<Token>(), purpose, option::of(any::<u8>()), any::<u32>(), any::<u64>());
    prop_oneof![
        any::<u16>().prop_map(|seconds| Message::Open { seconds }),
        any::<Token>().prop_map(|token| Message::Welcome { token }),
        (why, "[a-z ä]{0,200}").prop_map(|(why, text)| Message::Refused { why, text }),
        join.prop_map(|(token, purpose, path, millis, bytes)| Message::Join {
            token,
            purpose,
            path,
            millis,
            bytes
        }),
        "[a-z]{0,15}".prop_map(|congestion| Message::Ready { congestion }),
        Just(Message::Go),
        any::<u64>().prop_map(|stamp| Message::Echo { stamp }),
        vec(any::<u32>(), 0..COUNTS_MAX).prop_map(|bytes| Message::Counted { bytes }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(messages in vec(message(), 0..5)) {
        let mut stream = Vec::new();
        for message in &messages {
            message.write(&mut stream).expect("memory takes all");
        }
        let mut stream = stream.as_slice();
        for message in messages {
            prop_assert_eq!(Message::read(&mut stream).expect("it was written"), message);
        }
        prop_assert!(matches!(Message::read(&mut stream), Err(WireError::Closed)));
    }

    #[test]
    fn a_message_that_is_cut_is_an_error(message in message(), cut in any::<u16>()) {
        let bytes = message.to_bytes();
        let cut = usize::from(cut) % bytes.len();
        let error = Message::read(&mut &bytes[..cut]).expect_err("something is missing");
        let expected = if cut == 0 {
            matches!(error, WireError::Closed)
        } else {
            matches!(error, WireError::Truncated)
        };
        prop_assert!(expected, "{cut}: {error:?}");
    }

    #[test]
    fn reading_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Message::parse(&bytes);
        let mut stream = bytes.as_slice();
        while Message::read(&mut stream).is_ok() {}
    }

    #[test]
    fn a_known_kind_with_any_body_is_read_or_refused(
        kind in 0..10_u8,
        body in vec(any::<u8>(), 0..60),
    ) {
        let bytes = [&[kind][..], &body].concat();
        if let Ok(message) = Message::parse(&bytes) {
            // A reason of a later version is read as [`Refusal::Other`].
            let (again, _) = message.kind_and_body();
            prop_assert_eq!(again, kind);
        }
    }
}

#[test]
fn an_open_is_these_bytes() {
    let bytes = Message::Open { seconds: 258 }.to_bytes();
    assert_eq!(bytes, [0, 8, 1, b'p', b'l', b't', b'm', 1, 1, 2]);
}

#[test]
fn lengths_are_bounded_before_anything_is_kept() {
    for length in [0_u16, 16_385, u16::MAX] {
        let error = Message::read(&mut &length.to_be_bytes()[..]).expect_err("no such length");
        assert!(matches!(error, WireError::BadLength(n) if n == usize::from(length)), "{error}");
    }
    let too_many = [vec![COUNTED], vec![0; 4 * (COUNTS_MAX + 1)]].concat();
    assert!(matches!(Message::parse(&too_many), Err(WireError::BadBody(COUNTED))));
}

#[test]
fn strangers_and_other_versions_are_told_apart() {
    let open = |mark: &[u8], version: u8| [&[OPEN], mark, &[version, 0, 9]].concat();
    let parse = |bytes: Vec<u8>| Message::parse(&bytes).expect_err("not version 1");
    assert!(matches!(parse(open(b"pltm", 2)), WireError::UnknownVersion(2)));
    assert!(matches!(parse(open(b"GET ", 1)), WireError::BadMark));
    assert!(matches!(parse(vec![OPEN, b'p']), WireError::BadMark));
    assert!(matches!(parse(vec![77]), WireError::UnknownKind(77)));
    let longer = [Message::Go.to_bytes()[2..].to_vec(), vec![0]].concat();
    assert!(matches!(parse(longer), WireError::BadBody(GO)));
    let with_bell = [vec![REFUSED, 0], b"\x07".to_vec()].concat();
    assert!(matches!(parse(with_bell), WireError::BadBody(REFUSED)));
}

#[test]
fn a_long_refusal_is_cut_between_characters() {
    let text = "ä".repeat(TEXT_BYTES_MAX);
    let message = Message::Refused { why: Refusal::Busy, text };
    let read = Message::read(&mut message.to_bytes().as_slice()).expect("cut to its bound");
    let Message::Refused { text, .. } = read else { panic!("{read:?}") };
    assert_eq!(text.len(), TEXT_BYTES_MAX);
}
