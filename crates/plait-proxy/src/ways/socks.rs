//! SOCKS 5 (RFC 1928), with names and passwords (RFC 1929) where there are users.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use fast_socks5::Socks5Command;
use fast_socks5::server::states::CommandRead;
use fast_socks5::server::{Socks5ServerProtocol, SocksServerError};
use fast_socks5::util::target_addr::TargetAddr;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::refusal::Refusal;
use crate::session::Session;
use crate::target::{Host, Target};

type Request = (Socks5ServerProtocol<TcpStream, CommandRead>, Socks5Command, TargetAddr);

pub(super) async fn serve(session: Session, stream: TcpStream) {
    let limit = session.shared.config.limits.request_timeout;
    let (protocol, command, target) = match timeout(limit, read_request(&session, stream)).await {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => return session.refused(reason(&error)),
        Err(_) => return session.refused(Refusal::RequestTimeout),
    };
    let connected = match command {
        Socks5Command::TCPConnect => session.connect(target_of(target)).await,
        Socks5Command::TCPBind | Socks5Command::UDPAssociate => {
            session.refused(Refusal::Unsupported);
            Err(Refusal::Unsupported)
        }
    };
    match connected {
        Ok(server) => {
            let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            let bound = server.stream.local_addr().unwrap_or(unspecified);
            if let Ok(stream) = protocol.reply_success(bound).await {
                session.tunnel(stream, server, Bytes::new()).await;
            }
        }
        // A client that is gone needs no answer.
        Err(refusal) => drop(protocol.reply_error(&refusal.socks()).await),
    }
}

async fn read_request(session: &Session, stream: TcpStream) -> Result<Request, SocksServerError> {
    let protocol = match &session.shared.config.clients.users {
        None => Socks5ServerProtocol::accept_no_auth(stream).await?,
        Some(users) => {
            let know = |name: String, password: String| users.know(&name, &password);
            Socks5ServerProtocol::accept_password_auth(stream, know).await?.0
        }
    };
    protocol.read_command().await
}

fn target_of(target: TargetAddr) -> Option<Target> {
    match target {
        TargetAddr::Ip(address) if address.port() != 0 => Some(address.into()),
        TargetAddr::Domain(name, port) if port != 0 => {
            Some(Target { host: Host::parse(&name)?, port })
        }
        _ => None,
    }
}

/// The library has told the client.
fn reason(error: &SocksServerError) -> Refusal {
    match error {
        SocksServerError::AuthMethodUnacceptable(_)
        | SocksServerError::AuthenticationRejected
        | SocksServerError::EmptyUsername
        | SocksServerError::EmptyPassword => Refusal::Unauthorized,
        SocksServerError::UnknownCommand(_) => Refusal::Unsupported,
        _ => Refusal::Malformed,
    }
}
