//! MPTCP sockets (RFC 8684) as Linux has them, and what their subflows did.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::sys::socket::{MPTCP_SUBFLOW_ADDRS, MPTCP_TCPINFO, TCP_INFO_BYTES_MAX, mptcp_list};
use crate::tcp::TcpInfo;

/// Subflows of a connection that are looked at; the kernel has 8 at most by itself, and more only
/// when a program adds them.
const SUBFLOWS_MAX: usize = 16;

/// One of a connection's subflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subflow {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// What it did.
    pub info: TcpInfo,
}

/// A socket for streams of this family.
///
/// # Errors
/// With `multipath`: the kernel has no MPTCP, or it is off in this network namespace
/// ([`is_missing`]).
pub fn stream_socket(domain: Domain, multipath: bool) -> io::Result<Socket> {
    let protocol = if multipath { Protocol::MPTCP } else { Protocol::TCP };
    Socket::new(domain, Type::STREAM, Some(protocol))
}

/// Whether an error of [`stream_socket`] means that there is no MPTCP here.
pub fn is_missing(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [libc::EPROTONOSUPPORT, libc::ENOPROTOOPT, libc::EINVAL].map(Some).contains(&code)
}

/// The subflows of a connection; `None` when it is plain TCP, or has fallen back to it.
///
/// # Errors
/// Not a stream socket, or no connection.
pub fn subflows(socket: impl AsFd) -> io::Result<Option<Vec<Subflow>>> {
    let socket = socket.as_fd();
    let mut infos = List::new(TCP_INFO_BYTES_MAX);
    let mut addresses = List::new(ADDRESSES_BYTES);
    let read = infos
        .read(|bytes| mptcp_list(socket, MPTCP_TCPINFO, bytes))
        .and_then(|()| addresses.read(|bytes| mptcp_list(socket, MPTCP_SUBFLOW_ADDRS, bytes)));
    match read {
        Err(error) if is_plain(&error) => return Ok(None),
        read => read?,
    }
    // One that came or went between the two calls makes the lists differ: the next look is right.
    let pairs = infos.entries().zip(addresses.entries());
    let subflows = pairs.filter_map(|(info, addresses)| {
        let (local, remote) = addresses.split_at(ADDRESS_BYTES);
        Some(Subflow {
            local: parse_address(local)?,
            remote: parse_address(remote)?,
            info: TcpInfo::parse(info),
        })
    });
    Ok(Some(subflows.collect()))
}

/// Errors of a socket that is not MPTCP, or no longer.
fn is_plain(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [libc::EOPNOTSUPP, libc::ENOPROTOOPT].map(Some).contains(&code)
}

/// Bytes of `struct __kernel_sockaddr_storage`, and of two.
const ADDRESS_BYTES: usize = 128;
const ADDRESSES_BYTES: usize = 2 * ADDRESS_BYTES;

/// A buffer as the kernel fills it: `struct mptcp_subflow_data` and then an entry per subflow.
struct List {
    bytes: Vec<u8>,
    entry_bytes: usize,
    count: usize,
}

impl List {
    /// Four words: own size, number of subflows, size of an entry there and here.
    const HEAD_BYTES: usize = 16;

    fn new(entry_bytes: usize) -> Self {
        let bytes = vec![0; Self::HEAD_BYTES + SUBFLOWS_MAX * entry_bytes];
        Self { bytes, entry_bytes, count: 0 }
    }

    fn read(&mut self, ask: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<()> {
        self.bytes[0..4].copy_from_slice(&(Self::HEAD_BYTES as u32).to_ne_bytes());
        self.bytes[12..16].copy_from_slice(&(self.entry_bytes as u32).to_ne_bytes());
        ask(&mut self.bytes)?;
        let number = self.bytes[4..8].try_into().map_or(0, u32::from_ne_bytes);
        self.count = (number as usize).min(SUBFLOWS_MAX);
        Ok(())
    }

    fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes[Self::HEAD_BYTES..].chunks_exact(self.entry_bytes).take(self.count)
    }
}

/// Reads a `struct sockaddr`.
fn parse_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(0..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let address: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?).into(),
        libc::AF_INET6 => {
            let v6 = Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?);
            IpAddr::from(v6).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair(multipath: bool) -> Option<(TcpStream, TcpStream)> {
        let listener = match stream_socket(Domain::IPV4, multipath) {
            Err(error) if is_missing(&error) => {
                eprintln!("skipped: there is no MPTCP here: {error}");
                return None;
            }
            socket => socket.unwrap(),
        };
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(1).unwrap();
        let listener = TcpListener::from(listener);
        let sender = stream_socket(Domain::IPV4, multipath).unwrap();
        sender.connect(&listener.local_addr().unwrap().into()).unwrap();
        Some((sender.into(), listener.accept().unwrap().0))
    }

    #[test]
    fn a_connection_lists_its_subflows() {
        let Some((mut sender, mut receiver)) = pair(true) else { return };
        sender.write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        let subflows = subflows(&receiver).unwrap().expect("both ends speak MPTCP");
        assert_eq!(subflows.len(), 1);
        assert_eq!(subflows[0].remote, sender.local_addr().unwrap());
        assert_eq!(subflows[0].local, receiver.local_addr().unwrap());
        assert_eq!(subflows[0].info.bytes_received, 5000);
    }

    #[test]
    fn plain_tcp_has_none() {
        let (sender, _receiver) = pair(false).expect("there is TCP everywhere");
        assert_eq!(subflows(&sender).unwrap(), None);
        assert!(subflows(std::io::stdin()).is_err());
    }
}
