//! Code shared by `plait measure` and the gateway that serves it.
//!
//! - [`wire`]: the messages between them
//! - [`transfer`]: sends and counts a flow of limited time and bytes

pub(crate) mod transfer;
pub(crate) mod wire;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use plait_proto::wire::ip::Inner;

/// The longest measurement that a service takes part in.
pub(crate) const SESSION_TIME_MAX: Duration = Duration::from_secs(1800);
/// The longest single flow. Shorter than a pin lives.
pub(crate) const FLOW_TIME_MAX: Duration = Duration::from_secs(40);
/// The most bytes that a service sends and receives in one measurement.
pub(crate) const SESSION_BYTES_MAX: u64 = 100_000_000_000;

const TCP: u8 = 6;

/// One direction of a TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flow {
    /// Where it comes from.
    pub(crate) from: SocketAddr,
    /// Where it goes to.
    pub(crate) to: SocketAddr,
}

impl Flow {
    /// The flow between two ends, given as socket addresses.
    pub(crate) fn new(from: SocketAddr, to: SocketAddr) -> Self {
        let plain = |address: SocketAddr| SocketAddr::new(canonical(address.ip()), address.port());
        Self { from: plain(from), to: plain(to) }
    }

    /// The flow in the protocol's form.
    pub(crate) fn inner(&self) -> Inner {
        Inner {
            source: self.from.ip(),
            destination: self.to.ip(),
            protocol: TCP,
            ports: u32::from(self.from.port()) << 16 | u32::from(self.to.port()),
        }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.from, self.to)
    }
}

/// The address, with IPv4 unmapped from IPv6.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Commands to a running gateway over its control socket, besides the status request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// A measurement with the peer of this key begins, for so many seconds at most. The answer
    /// gives the addresses at which the peer may answer.
    Begin {
        /// Key in base64.
        peer: String,
        /// The longest it may take.
        seconds: u32,
    },
    /// The measurement with the peer has ended.
    End {
        /// Key in base64.
        peer: String,
    },
    /// Pin a flow to a path.
    Pin {
        /// The path's id.
        path: u8,
        /// The flow.
        flow: Flow,
    },
    /// Unpin a flow.
    Unpin {
        /// The flow.
        flow: Flow,
    },
}

/// A line that is not a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown request: expected status, measure or pin")]
pub(crate) struct UnknownCommand;

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin { peer, seconds } => write!(f, "measure begin {peer} {seconds}"),
            Self::End { peer } => write!(f, "measure end {peer}"),
            Self::Pin { path, flow } => write!(f, "pin {path} {flow}"),
            Self::Unpin { flow } => write!(f, "unpin {flow}"),
        }
    }
}

impl FromStr for Command {
    type Err = UnknownCommand;

    fn from_str(line: &str) -> Result<Self, UnknownCommand> {
        fn number<T: FromStr>(text: &str) -> Result<T, UnknownCommand> {
            text.parse().map_err(|_| UnknownCommand)
        }
        let flow = |from, to| Ok(Flow::new(number(from)?, number(to)?));
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words {
            ["measure", "begin", peer, seconds] => {
                Ok(Self::Begin { peer: peer.to_owned(), seconds: number(seconds)? })
            }
            ["measure", "end", peer] => Ok(Self::End { peer: peer.to_owned() }),
            ["pin", path, from, to] => Ok(Self::Pin { path: number(path)?, flow: flow(from, to)? }),
            ["unpin", from, to] => Ok(Self::Unpin { flow: flow(from, to)? }),
            _ => Err(UnknownCommand),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: &str, to: &str) -> Flow {
        Flow::new(from.parse().unwrap(), to.parse().unwrap())
    }

    #[test]
    fn commands_are_lines_and_back() {
        let v4 = flow("10.99.0.2:4000", "10.99.0.1:7789");
        let v6 = flow("[fd99::2]:1", "[fd99::1]:65535");
        let peer = String::from("S0VZ");
        for command in [
            Command::Begin { peer: peer.clone(), seconds: 60 },
            Command::End { peer },
            Command::Pin { path: 255, flow: v4 },
            Command::Unpin { flow: v6 },
        ] {
            assert_eq!(command.to_string().parse(), Ok(command));
        }
        for line in [
            "",
            "pin",
            "pin 256 10.0.0.1:1 10.0.0.2:1",
            "pin 1 10.0.0.1 10.0.0.2",
            "unpin 10.0.0.1:1",
            "measure begin KEY -1",
            "measure begin KEY 1 2",
        ] {
            assert_eq!(line.parse::<Command>(), Err(UnknownCommand), "{line}");
        }
    }

    #[test]
    fn a_flow_is_what_the_protocol_reads_in_its_packets() {
        let disguised = flow("[::ffff:10.99.0.2]:258", "10.99.0.1:772");
        let inner = disguised.inner();
        assert_eq!((inner.source, inner.protocol), ([10, 99, 0, 2].into(), 6));
        assert_eq!(inner.ports.to_be_bytes(), [1, 2, 3, 4]);
    }
}
