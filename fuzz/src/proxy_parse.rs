//! Target `proxy_parse`: what the proxy reads of strangers, on any bytes: Convert messages, the
//! names and ports of servers, files of users.
//!
//! What is read is written back so that it is read the same; an answer to any message can be
//! written.

use plait_proxy::convert::{
    Asked, HEADER_BYTES, MESSAGE_BYTES_MAX, asked_for, decode, encode, length_of,
};
use plait_proxy::{Target, Users};

use crate::reached;

/// Reads the bytes in every way.
pub fn proxy_parse(data: &[u8]) {
    convert(data);
    let text = String::from_utf8_lossy(data);
    if let Some(target) = Target::parse(&text, Some(80)) {
        reached::feature("proxy_parse target".into());
        assert_eq!(Target::parse(&target.to_string(), None), Some(target), "it is read the same");
    }
    if Users::parse(&text).is_ok() {
        reached::feature("proxy_parse users".into());
    }
}

fn convert(data: &[u8]) {
    if let Some(header) = data.first_chunk::<HEADER_BYTES>()
        && let Ok(length) = length_of(*header)
    {
        assert!((HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length), "a message has bounds");
    }
    let read = decode(data);
    if let Ok(message) = &read {
        for tlv in &message.tlvs {
            reached::feature(format!("proxy_parse {:?}", core::mem::discriminant(tlv)));
        }
        // The longest input is shorter than the longest message.
        if let Some(written) = encode(message) {
            let again = decode(&written[HEADER_BYTES..]);
            assert_eq!(again.as_ref().map(|again| again.tlvs.len()), Ok(message.tlvs.len()));
        }
    }
    let answer = match asked_for(read) {
        Ok(Asked::Connect(server)) => {
            assert!(server.port() != 0, "a server has a port");
            return reached::feature("proxy_parse connect".into());
        }
        Ok(Asked::Answer(answer)) | Err(answer) => answer,
    };
    assert!(encode(&answer).is_some(), "an answer fits into a message");
}
