//! Connects to the next proxy and tells it where to go.

use std::io;
use std::net::SocketAddr;

use fast_socks5::client::{Config as SocksConfig, Socks5Stream};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{AuthenticationMethod, Socks5Command, SocksError};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::PROXY_AUTHORIZATION;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::Dialled;
use crate::config::{Upstream, WayOut};
use crate::convert::{self, Answer, HEADER_BYTES};
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::sockets::connect;
use crate::target::{Host, Target};
use crate::users::basic;

/// A connection to `target` by way of `upstream`.
pub(super) async fn dial(
    shared: &Shared,
    upstream: &Upstream,
    target: &Target,
) -> Result<Dialled, Refusal> {
    match upstream.way {
        WayOut::Convert => by_convert(shared, upstream, target).await.map(Dialled::from),
        WayOut::Http => by_http(stream_to(shared, upstream, false).await?, upstream, target).await,
        WayOut::Socks => {
            let stream = stream_to(shared, upstream, false).await?;
            by_socks(stream, upstream, target).await.map(Dialled::from)
        }
    }
}

async fn stream_to(
    shared: &Shared,
    upstream: &Upstream,
    fast_open: bool,
) -> Result<TcpStream, Refusal> {
    connect(upstream.address, shared.manner(upstream.multipath, fast_open)).await.map_err(|error| {
        log::debug!("the next proxy, {}: {error}", upstream.address);
        Refusal::UpstreamFailed
    })
}

/// Convert knows addresses only (RFC 8803, section 6.2.5): names are looked up here.
async fn by_convert(
    shared: &Shared,
    upstream: &Upstream,
    target: &Target,
) -> Result<TcpStream, Refusal> {
    let mut failure = Refusal::NameUnknown;
    for server in shared.addresses_of(target).await? {
        match convert_to(shared, upstream, server).await {
            Ok(stream) => return Ok(stream),
            Err(refusal) => failure = refusal,
        }
    }
    Err(failure)
}

async fn convert_to(
    shared: &Shared,
    upstream: &Upstream,
    server: SocketAddr,
) -> Result<TcpStream, Refusal> {
    let stream = ask_by_convert(shared, upstream, server).await?;
    read_answer(&stream).await?;
    Ok(stream)
}

/// A connection to the next proxy that was told where to go, and has not answered yet. What is sent
/// over it now goes to the server, if there is a connection (RFC 8803, section 4.1).
pub(super) async fn ask_by_convert(
    shared: &Shared,
    upstream: &Upstream,
    server: SocketAddr,
) -> Result<TcpStream, Refusal> {
    let mut stream = stream_to(shared, upstream, true).await?;
    let request = convert::encode(&convert::request_for(server))
        .expect("a request for one server is shorter than a message may be");
    stream.write_all(&request).await.map_err(|error| failed(&error))?;
    Ok(stream)
}

fn failed(error: &dyn std::fmt::Display) -> Refusal {
    log::debug!("the next proxy: {error}");
    Refusal::UpstreamFailed
}

/// Reads a converter's answer, and not a byte more.
pub(crate) async fn read_answer(stream: &TcpStream) -> Result<(), Refusal> {
    let mut header = [0; HEADER_BYTES];
    read_exact(stream, &mut header).await.map_err(|error| failed(&error))?;
    let length = convert::length_of(header).map_err(|error| failed(&error))?;
    let mut body = vec![0; length - HEADER_BYTES];
    read_exact(stream, &mut body).await.map_err(|error| failed(&error))?;
    let message = convert::decode(&body).map_err(|error| failed(&error))?;
    match Answer::of(&message) {
        Answer::Connected => Ok(()),
        Answer::Failed(code) => Err(Refusal::from_convert(code)),
    }
}

/// Reads from a stream that is shared.
async fn read_exact(stream: &TcpStream, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.readable().await?;
        match stream.try_read(bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes = &mut bytes[read..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn by_http(
    stream: TcpStream,
    upstream: &Upstream,
    target: &Target,
) -> Result<Dialled, Refusal> {
    let failed = |error: hyper::Error| {
        log::debug!("the next proxy, {}: {error}", upstream.address);
        Refusal::UpstreamFailed
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let connection = tokio::spawn(connection.with_upgrades());
    let mut request = Request::builder().method(Method::CONNECT).uri(target.to_string());
    if let Some((name, password)) = &upstream.user {
        request = request.header(PROXY_AUTHORIZATION, basic(name, password));
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|_| Refusal::Malformed)?;
    let response = sender.send_request(request).await.map_err(failed)?;
    let status = response.status();
    if !status.is_success() {
        connection.abort();
        return Err(Refusal::from_http(status));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(failed)?;
    let parts = upgraded.downcast::<TokioIo<TcpStream>>().map_err(|_| Refusal::UpstreamFailed)?;
    // A server that speaks first may have been read along with the proxy's answer.
    Ok(Dialled { first: parts.read_buf, ..parts.io.into_inner().into() })
}

async fn by_socks(
    stream: TcpStream,
    upstream: &Upstream,
    target: &Target,
) -> Result<TcpStream, Refusal> {
    let user = upstream.user.clone();
    let method =
        user.map(|(username, password)| AuthenticationMethod::Password { username, password });
    let address = match &target.host {
        Host::Address(address) => TargetAddr::Ip(SocketAddr::new(*address, target.port)),
        Host::Name(name) => TargetAddr::Domain(name.clone(), target.port),
    };
    let asked = async {
        let mut socks = Socks5Stream::use_stream(stream, method, SocksConfig::default()).await?;
        socks.request(Socks5Command::TCPConnect, address).await?;
        Ok(socks.get_socket())
    };
    asked.await.map_err(|error: SocksError| match error {
        SocksError::ReplyError(reply) => Refusal::from_socks(&reply),
        error => {
            log::debug!("the next proxy, {}: {error}", upstream.address);
            Refusal::UpstreamFailed
        }
    })
}
