//! Why a client did not get its connection. Each reason has a count of its own, and is told to the
//! client in the words of the way it came in.

use std::sync::atomic::{AtomicU64, Ordering};

use fast_socks5::ReplyError;
use hyper::StatusCode;

use crate::convert::ErrorCode;

/// Why a client did not get its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Its address is in none of the networks that may use the proxy.
    #[error("this address may not use the proxy; its owner sets `allow`")]
    ClientNotAllowed,
    /// It gave no name and password, or wrong ones.
    #[error("name and password are missing or wrong")]
    Unauthorized,
    /// Its request cannot be read.
    #[error("the request cannot be read")]
    Malformed,
    /// Its request did not come in time.
    #[error("the request did not come in time")]
    RequestTimeout,
    /// It asked for what this proxy does not do.
    #[error("this proxy makes TCP connections, and nothing else")]
    Unsupported,
    /// It wants to go where no client may.
    #[error("the proxy does not connect to this address or port; its owner sets `deny_to`")]
    TargetForbidden,
    /// It wants to go to the proxy itself.
    #[error("that is the proxy itself: the connection would go in circles")]
    Loop,
    /// The server's name has no address.
    #[error("the server's name has no address")]
    NameUnknown,
    /// No way leads to the server.
    #[error("the server cannot be reached")]
    Unreachable,
    /// The server does not accept connections there.
    #[error("the server refused the connection")]
    ServerRefused,
    /// The server did not answer in time.
    #[error("the server did not answer in time")]
    ConnectTimeout,
    /// The next proxy failed, or does not want this one.
    #[error("the next proxy refused, or does not work")]
    UpstreamFailed,
    /// The proxy has all the connections that it may have.
    #[error("the proxy has all the connections that it may have; try again")]
    TooManyConnections,
    /// This client has all the connections that it may have.
    #[error("this address has all the connections that it may have")]
    ClientTooMany,
    /// The machine ran out of something.
    #[error("the proxy's machine has no room for another connection")]
    NoResources,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::ClientNotAllowed,
        Self::Unauthorized,
        Self::Malformed,
        Self::RequestTimeout,
        Self::Unsupported,
        Self::TargetForbidden,
        Self::Loop,
        Self::NameUnknown,
        Self::Unreachable,
        Self::ServerRefused,
        Self::ConnectTimeout,
        Self::UpstreamFailed,
        Self::TooManyConnections,
        Self::ClientTooMany,
        Self::NoResources,
    ];

    /// Its name in status and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientNotAllowed => "client_not_allowed",
            Self::Unauthorized => "unauthorized",
            Self::Malformed => "malformed",
            Self::RequestTimeout => "request_timeout",
            Self::Unsupported => "unsupported",
            Self::TargetForbidden => "target_forbidden",
            Self::Loop => "loop",
            Self::NameUnknown => "name_unknown",
            Self::Unreachable => "unreachable",
            Self::ServerRefused => "server_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::UpstreamFailed => "upstream_failed",
            Self::TooManyConnections => "too_many_connections",
            Self::ClientTooMany => "client_too_many",
            Self::NoResources => "no_resources",
        }
    }

    /// Whether whatever this client asks for will be refused.
    pub(crate) const fn is_of_client(self) -> bool {
        matches!(self, Self::ClientNotAllowed | Self::TooManyConnections | Self::ClientTooMany)
    }

    /// What an HTTP client is told (RFC 9110, section 15).
    pub(crate) const fn http(self) -> StatusCode {
        match self {
            Self::ClientNotAllowed | Self::TargetForbidden => StatusCode::FORBIDDEN,
            Self::Unauthorized => StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Unsupported => StatusCode::NOT_IMPLEMENTED,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::NameUnknown | Self::Unreachable | Self::ServerRefused | Self::UpstreamFailed => {
                StatusCode::BAD_GATEWAY
            }
            Self::ConnectTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::ClientTooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::TooManyConnections | Self::NoResources => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What a SOCKS client is told (RFC 1928, section 6).
    pub(crate) const fn socks(self) -> ReplyError {
        match self {
            Self::ClientNotAllowed | Self::Unauthorized | Self::TargetForbidden | Self::Loop => {
                ReplyError::ConnectionNotAllowed
            }
            Self::Unsupported => ReplyError::CommandNotSupported,
            Self::NameUnknown | Self::Unreachable => ReplyError::HostUnreachable,
            Self::ServerRefused => ReplyError::ConnectionRefused,
            Self::ConnectTimeout => ReplyError::TtlExpired,
            _ => ReplyError::GeneralFailure,
        }
    }

    /// What a Convert client is told (RFC 8803, section 6.2.8).
    pub(crate) const fn convert(self) -> ErrorCode {
        match self {
            Self::ClientNotAllowed | Self::Unauthorized | Self::TargetForbidden | Self::Loop => {
                ErrorCode::NotAuthorized
            }
            Self::Malformed | Self::RequestTimeout => ErrorCode::MalformedMessage,
            Self::Unsupported => ErrorCode::UnsupportedMessage,
            Self::NameUnknown | Self::Unreachable | Self::ConnectTimeout => {
                ErrorCode::DestinationUnreachable
            }
            Self::ServerRefused => ErrorCode::ConnectionReset,
            Self::UpstreamFailed => ErrorCode::NetworkFailure,
            Self::TooManyConnections | Self::ClientTooMany | Self::NoResources => {
                ErrorCode::ResourceExceeded
            }
        }
    }

    /// Why, by a converter's answer.
    pub(crate) const fn from_convert(code: ErrorCode) -> Self {
        match code {
            ErrorCode::DestinationUnreachable => Self::Unreachable,
            ErrorCode::ConnectionReset => Self::ServerRefused,
            ErrorCode::NotAuthorized => Self::TargetForbidden,
            _ => Self::UpstreamFailed,
        }
    }

    /// Why, by the status that a proxy answered a CONNECT with.
    pub(crate) fn from_http(status: StatusCode) -> Self {
        match status {
            StatusCode::FORBIDDEN => Self::TargetForbidden,
            StatusCode::LOOP_DETECTED => Self::Loop,
            StatusCode::GATEWAY_TIMEOUT => Self::ConnectTimeout,
            StatusCode::BAD_GATEWAY => Self::Unreachable,
            _ => Self::UpstreamFailed,
        }
    }

    /// Why, by the reply of a SOCKS proxy.
    pub(crate) const fn from_socks(reply: &ReplyError) -> Self {
        match reply {
            ReplyError::ConnectionNotAllowed => Self::TargetForbidden,
            ReplyError::NetworkUnreachable | ReplyError::HostUnreachable => Self::Unreachable,
            ReplyError::ConnectionRefused => Self::ServerRefused,
            ReplyError::TtlExpired | ReplyError::ConnectionTimeout => Self::ConnectTimeout,
            _ => Self::UpstreamFailed,
        }
    }

    /// Why a connection attempt failed.
    pub(crate) fn from_connect(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Self::ServerRefused,
            ErrorKind::TimedOut => Self::ConnectTimeout,
            // EMFILE, ENFILE, ENOBUFS, ENOMEM, and no port left.
            ErrorKind::OutOfMemory | ErrorKind::AddrNotAvailable => Self::NoResources,
            _ if [24, 23, 105].map(Some).contains(&error.raw_os_error()) => Self::NoResources,
            _ => Self::Unreachable,
        }
    }
}

/// How often each reason was given.
#[derive(Debug, Default)]
pub(crate) struct Refusals([AtomicU64; Refusal::ALL.len()]);

impl Refusals {
    pub(crate) fn count(&self, refusal: Refusal) {
        self.of(refusal).fetch_add(1, Ordering::Relaxed);
    }

    fn of(&self, refusal: Refusal) -> &AtomicU64 {
        // `ALL` stands in the order of declaration; a test holds it to that.
        &self.0[refusal as usize]
    }

    /// Names and counts of those that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = Refusal::ALL.iter();
        counts.map(|refusal| (refusal.name(), self.of(*refusal).load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reason_has_its_own_place_name_and_words() {
        for (index, refusal) in Refusal::ALL.iter().enumerate() {
            assert_eq!(*refusal as usize, index, "{refusal:?}");
        }
        let names: BTreeSet<_> = Refusal::ALL.map(Refusal::name).into();
        let words: BTreeSet<_> = Refusal::ALL.map(|refusal| refusal.to_string()).into();
        assert_eq!((names.len(), words.len()), (Refusal::ALL.len(), Refusal::ALL.len()));
    }

    #[test]
    fn what_the_next_proxy_says_is_passed_on() {
        for refusal in [Refusal::TargetForbidden, Refusal::Unreachable, Refusal::ServerRefused] {
            assert_eq!(Refusal::from_convert(refusal.convert()), refusal);
            assert_eq!(Refusal::from_socks(&refusal.socks()), refusal);
        }
        assert_eq!(Refusal::from_http(Refusal::Loop.http()), Refusal::Loop);
        assert_eq!(Refusal::from_http(Refusal::Unauthorized.http()), Refusal::UpstreamFailed);
    }

    #[test]
    fn reasons_are_counted_one_by_one() {
        let refusals = Refusals::default();
        refusals.count(Refusal::Loop);
        refusals.count(Refusal::Loop);
        let given: Vec<_> = refusals.given().filter(|(_, count)| *count > 0).collect();
        assert_eq!(given, [("loop", 2)]);
    }
}
