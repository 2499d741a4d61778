//! What a converter makes of a request, and a client of the answer (RFC 8803, sections 4 and 5).

use std::net::SocketAddr;

use super::codec::{Connect, ErrorCode, MalformedMessage, Message, Tlv};

/// The kind of the TCP option of MPTCP (RFC 8684): the extension that this converter offers.
const MPTCP_OPTION: u8 = 30;

/// What a client's first message asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A connection to this server.
    Connect(SocketAddr),
    /// Nothing but an answer, after which the connection ends.
    Answer(Message),
}

/// What a client's message asks for. `Err` is the message to answer with before the connection
/// ends.
///
/// # Errors
/// The message, or something in it, is not supported.
pub fn asked_for(read: Result<Message, MalformedMessage>) -> Result<Asked, Message> {
    let message = match read {
        Ok(message) => message,
        Err(MalformedMessage::Version(_)) => {
            // Section 6.2.8: the value lists the versions that are spoken.
            return Err(error(ErrorCode::UnsupportedVersion, vec![1]));
        }
        Err(_) => return Err(error(ErrorCode::MalformedMessage, vec![])),
    };
    let mut connect = None;
    let mut wants_info = false;
    for tlv in message.tlvs {
        match tlv {
            // A message has one Connect TLV at most (section 6.2.5).
            Tlv::Connect(_) if connect.is_some() => {
                return Err(error(ErrorCode::MalformedMessage, vec![]));
            }
            Tlv::Connect(one) => connect = Some(one),
            Tlv::Info => wants_info = true,
            // A converter that asks for none may be given one.
            Tlv::Cookie(_) => {}
            Tlv::Unknown(kind) => return Err(error(ErrorCode::UnsupportedMessage, vec![kind])),
            // These are a converter's to send.
            Tlv::ExtendedTcpHeader(_) | Tlv::SupportedTcpExtensions(_) | Tlv::Error(..) => {
                return Err(error(ErrorCode::MalformedMessage, vec![]));
            }
        }
    }
    match connect {
        Some(connect) => wanted_server(&connect),
        None if wants_info => Ok(Asked::Answer(supported())),
        None => Err(error(ErrorCode::MalformedMessage, vec![])),
    }
}

fn wanted_server(connect: &Connect) -> Result<Asked, Message> {
    let kinds = option_kinds(&connect.tcp_options);
    let kinds = kinds.ok_or_else(|| error(ErrorCode::MalformedMessage, vec![]))?;
    let unsupported: Vec<u8> = kinds.into_iter().filter(|kind| *kind != MPTCP_OPTION).collect();
    if unsupported.is_empty() {
        Ok(Asked::Connect(connect.server))
    } else {
        Err(error(ErrorCode::UnsupportedTcpOption, unsupported))
    }
}

/// The kinds of TCP options (RFC 9293, section 3.1); `None` when they cannot be read.
fn option_kinds(mut options: &[u8]) -> Option<Vec<u8>> {
    let mut kinds = Vec::new();
    loop {
        match *options {
            [] | [0, ..] => return Some(kinds),
            [1, ref rest @ ..] => options = rest,
            // An option without data may stand as its kind alone at the end: section 6.2.5 asks for
            // options to be used, not for their content.
            [kind] => {
                kinds.push(kind);
                return Some(kinds);
            }
            [kind, length, ..] => {
                kinds.push(kind);
                options = options.get(usize::from(length.max(2))..)?;
            }
        }
    }
}

/// The answer to Info.
fn supported() -> Message {
    Message { tlvs: vec![Tlv::SupportedTcpExtensions(vec![MPTCP_OPTION])] }
}

fn error(code: ErrorCode, detail: Vec<u8>) -> Message {
    Message { tlvs: vec![Tlv::Error(code, detail)] }
}

/// The answer that a connection was made, or why not. The server's TCP options are not told: a
/// program does not see them.
pub fn answer_to(result: Result<(), ErrorCode>) -> Message {
    match result {
        Ok(()) => Message { tlvs: vec![Tlv::ExtendedTcpHeader(vec![])] },
        Err(code) => error(code, vec![]),
    }
}

/// A client's request for a connection to `server`.
pub fn request_for(server: SocketAddr) -> Message {
    Message { tlvs: vec![Tlv::Connect(Connect { server, tcp_options: vec![] })] }
}

/// What a converter answered to a request for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// What follows is the server's.
    Connected,
    /// There is no connection.
    Failed(ErrorCode),
}

impl Answer {
    /// Reads an answer. One without an Error TLV means that there is a connection (section 5.2).
    pub fn of(message: &Message) -> Self {
        let code = message.tlvs.iter().find_map(|tlv| match tlv {
            Tlv::Error(code, _) => Some(*code),
            _ => None,
        });
        code.map_or(Self::Connected, Self::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 443))
    }

    fn with(tcp_options: &[u8]) -> Result<Asked, Message> {
        let connect = Connect { server: server(), tcp_options: tcp_options.to_vec() };
        asked_for(Ok(Message { tlvs: vec![Tlv::Connect(connect)] }))
    }

    fn refused(code: ErrorCode, detail: &[u8]) -> Result<Asked, Message> {
        Err(error(code, detail.to_vec()))
    }

    #[test]
    fn a_request_is_answered_as_its_content_demands() {
        let asked = |tlvs| asked_for(Ok(Message { tlvs }));
        let malformed = refused(ErrorCode::MalformedMessage, &[]);
        let connect = request_for(server()).tlvs;
        let twice = [connect.clone(), connect.clone()].concat();
        assert_eq!(asked(connect.clone()), Ok(Asked::Connect(server())));
        assert_eq!(
            asked([connect, vec![Tlv::Cookie(vec![1; 4])]].concat()),
            Ok(Asked::Connect(server()))
        );
        assert_eq!(asked(twice), malformed);
        assert_eq!(asked(vec![]), malformed);
        assert_eq!(asked(vec![Tlv::Error(ErrorCode::NotAuthorized, vec![])]), malformed);
        assert_eq!(
            asked(vec![Tlv::Info]),
            Ok(Asked::Answer(Message { tlvs: vec![Tlv::SupportedTcpExtensions(vec![30])] }))
        );
        assert_eq!(
            asked(vec![Tlv::Unknown(0x77)]),
            refused(ErrorCode::UnsupportedMessage, &[0x77])
        );
        assert_eq!(
            asked_for(Err(MalformedMessage::Version(2))),
            refused(ErrorCode::UnsupportedVersion, &[1])
        );
        assert_eq!(asked_for(Err(MalformedMessage::PortZero)), malformed);
    }

    #[test]
    fn tcp_options_are_supported_or_named() {
        // Nothing, padding, MPTCP in both forms.
        for options in [&[][..], &[1, 1, 0], &[30, 2], &[30], &[1, 30, 4, 0, 0, 30]] {
            assert_eq!(with(options), Ok(Asked::Connect(server())), "{options:?}");
        }
        // Fast open and user timeout are not.
        let unsupported = refused(ErrorCode::UnsupportedTcpOption, &[34, 28]);
        assert_eq!(with(&[34, 2, 28, 4, 0, 1]), unsupported);
        // An option that is longer than what is there.
        assert_eq!(with(&[30, 12, 0]), refused(ErrorCode::MalformedMessage, &[]));
    }

    #[test]
    fn an_answer_says_whether_there_is_a_connection() {
        assert_eq!(Answer::of(&answer_to(Ok(()))), Answer::Connected);
        assert_eq!(Answer::of(&Message::default()), Answer::Connected);
        let code = ErrorCode::DestinationUnreachable;
        assert_eq!(Answer::of(&answer_to(Err(code))), Answer::Failed(code));
    }
}
