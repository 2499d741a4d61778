//! Opens and binds the socket.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::sys;

/// Bytes asked for each of the kernel's buffers: 30 ms at 1 Gbit/s.
const KERNEL_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Where a socket listens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BindTo {
    /// The only interface to send and receive on; `None`: any.
    pub interface: Option<String>,
    /// The local address; `None`: every address of both families.
    pub address: Option<IpAddr>,
    /// The local port; zero: any free port.
    pub port: u16,
    /// The mark of its packets (SO_MARK), by which packet filters know them; needs CAP_NET_ADMIN.
    pub mark: Option<u32>,
}

impl fmt::Display for BindTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{}", SocketAddr::new(address, self.port))?,
            None => write!(f, "port {}", self.port)?,
        }
        match &self.interface {
            Some(interface) => write!(f, " on {interface}"),
            None => Ok(()),
        }
    }
}

/// Why a socket could not be opened, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// There is no interface of that name.
    #[error(
        "cannot listen on {to}: the interface {interface} does not exist: plug it in or correct \
         its name"
    )]
    NoSuchInterface {
        /// What was asked for.
        to: BindTo,
        /// The interface.
        interface: String,
    },
    /// The interface may not be chosen.
    #[error(
        "cannot listen on {to}: no permission to bind to the interface {interface}: give the \
         program CAP_NET_RAW"
    )]
    InterfaceDenied {
        /// What was asked for.
        to: BindTo,
        /// The interface.
        interface: String,
    },
    /// Another socket has the port.
    #[error(
        "cannot listen on {to}: the port is in use: stop the other program or choose another port"
    )]
    PortInUse {
        /// What was asked for.
        to: BindTo,
    },
    /// The port is below 1024 or otherwise reserved.
    #[error(
        "cannot listen on {to}: no permission for this port: choose one from 1024 up or give the \
         program CAP_NET_BIND_SERVICE"
    )]
    PortDenied {
        /// What was asked for.
        to: BindTo,
    },
    /// The address is not one of this machine's.
    #[error(
        "cannot listen on {to}: this machine does not have the address: correct it or leave it out"
    )]
    AddressUnavailable {
        /// What was asked for.
        to: BindTo,
    },
    /// Any other refusal of the kernel.
    #[error("cannot listen on {to}: {action} failed")]
    Io {
        /// What was asked for.
        to: BindTo,
        /// The step that failed.
        action: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A bound socket with large buffers.
pub(super) fn open(to: &BindTo) -> Result<std::net::UdpSocket, BindError> {
    let address = to.address.map(|address| address.to_canonical());
    let result = match address {
        Some(address) => open_at(to, address, false),
        None => match open_at(to, Ipv6Addr::UNSPECIFIED.into(), true) {
            Err(error) if is_ipv6_off(&error) => open_at(to, Ipv4Addr::UNSPECIFIED.into(), false),
            result => result,
        },
    };
    Ok(result?.into())
}

/// Whether a socket of both families failed because IPv6 is off.
fn is_ipv6_off(error: &BindError) -> bool {
    match error {
        BindError::AddressUnavailable { .. } => true,
        BindError::Io { source, .. } => matches!(
            source.raw_os_error(),
            Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ENOPROTOOPT)
        ),
        _ => false,
    }
}

fn open_at(to: &BindTo, address: IpAddr, both_families: bool) -> Result<Socket, BindError> {
    let failed = |action| move |source| BindError::Io { to: to.clone(), action, source };
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
        .map_err(failed("opening the socket"))?;
    if address.is_ipv6() {
        socket.set_only_v6(!both_families).map_err(failed("choosing the address families"))?;
    }
    if let Some(interface) = &to.interface {
        socket
            .bind_device(Some(interface.as_bytes()))
            .map_err(|error| interface_error(to, interface, error))?;
    }
    if let Some(mark) = to.mark {
        socket.set_mark(mark).map_err(failed("marking the socket"))?;
    }
    enlarge_buffers(&socket);
    socket.set_nonblocking(true).map_err(failed("making the socket nonblocking"))?;
    socket
        .bind(&SocketAddr::new(address, to.port).into())
        .map_err(|error| address_error(to, error))?;
    Ok(socket)
}

/// Best effort: without the right to force sizes the kernel grants what net.core.rmem_max and
/// wmem_max allow.
fn enlarge_buffers(socket: &Socket) {
    if sys::socket::force_recv_buffer(socket.as_fd(), KERNEL_BUFFER_BYTES).is_err() {
        let _ = socket.set_recv_buffer_size(KERNEL_BUFFER_BYTES);
    }
    if sys::socket::force_send_buffer(socket.as_fd(), KERNEL_BUFFER_BYTES).is_err() {
        let _ = socket.set_send_buffer_size(KERNEL_BUFFER_BYTES);
    }
}

fn interface_error(to: &BindTo, interface: &str, source: io::Error) -> BindError {
    let (to, interface) = (to.clone(), interface.to_owned());
    match source.raw_os_error() {
        Some(libc::ENODEV) => BindError::NoSuchInterface { to, interface },
        Some(libc::EPERM | libc::EACCES) => BindError::InterfaceDenied { to, interface },
        _ => BindError::Io { to, action: "binding to the interface", source },
    }
}

fn address_error(to: &BindTo, source: io::Error) -> BindError {
    let to = to.clone();
    match source.raw_os_error() {
        Some(libc::EADDRINUSE) => BindError::PortInUse { to },
        Some(libc::EACCES | libc::EPERM) => BindError::PortDenied { to },
        Some(libc::EADDRNOTAVAIL) => BindError::AddressUnavailable { to },
        _ => BindError::Io { to, action: "binding to the address", source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_want_of_ipv6_leads_to_ipv4_alone() {
        let to = BindTo::default;
        let failed = |code| BindError::Io {
            to: to(),
            action: "opening the socket",
            source: io::Error::from_raw_os_error(code),
        };
        assert!(is_ipv6_off(&failed(libc::EAFNOSUPPORT)));
        assert!(is_ipv6_off(&address_error(
            &to(),
            io::Error::from_raw_os_error(libc::EADDRNOTAVAIL)
        )));
        assert!(!is_ipv6_off(&failed(libc::EMFILE)));
        assert!(!is_ipv6_off(&BindError::PortInUse { to: to() }));
    }

    #[test]
    fn an_error_names_what_was_asked_for() {
        let to = BindTo {
            interface: Some("wan0".to_owned()),
            address: Some(Ipv6Addr::LOCALHOST.into()),
            port: 7,
            mark: None,
        };
        let text = address_error(&to, io::Error::from_raw_os_error(libc::EACCES)).to_string();
        assert!(text.starts_with("cannot listen on [::1]:7 on wan0: no permission"), "{text}");
        assert_eq!(BindTo { port: 9, ..BindTo::default() }.to_string(), "port 9");
    }
}
