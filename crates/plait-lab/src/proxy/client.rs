//! A client: it asks a web server for bytes, directly or by way of a proxy, and says everything
//! that it has to say at once, so that no way costs a round trip that it need not cost.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use aws_lc_rs::digest::{Context as Digest, SHA256};
use plait_net::netns::NetNs;
use plait_net::tcp::set_congestion;

use crate::measure::{FETCH_CONGESTION, Transport};

const PATIENCE: Duration = Duration::from_secs(30);
/// MTU, heads and lengths of Convert's answer: one TLV without options.
const CONVERT_ANSWER_BYTES: usize = 8;

/// How a client comes to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// By itself; also where the kernel leads it to a proxy without its knowledge.
    Direct,
    /// HTTP CONNECT at this proxy.
    Connect(SocketAddr),
    /// A request with a whole URL to this proxy.
    Plain(SocketAddr),
    /// SOCKS 5.
    Socks(SocketAddr),
    /// The 0-RTT TCP Convert Protocol.
    Convert(SocketAddr),
}

/// What came.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Came {
    /// From the first packet of the handshake to the first byte of the answer.
    pub(crate) first_byte: Duration,
    /// To the last one.
    pub(crate) whole: Duration,
    pub(crate) bytes: u64,
    /// SHA-256 of the body; empty when it was not asked for.
    pub(crate) sum: Vec<u8>,
}

impl Came {
    /// Payload over the whole time, bits per second.
    pub(crate) fn rate_bps(&self) -> u64 {
        (self.bytes as f64 * 8.0 / self.whole.as_secs_f64()) as u64
    }
}

impl Route {
    /// Asks `server` for so many bytes, from `netns`.
    pub(crate) fn fetch(
        self,
        netns: &NetNs,
        transport: Transport,
        server: SocketAddr,
        bytes: u64,
    ) -> Result<Came> {
        self.ask(netns, transport, server, bytes, Some(Digest::new(&SHA256)))
    }

    /// The same without a sum, which takes processor time from what is measured.
    pub(crate) fn fetch_unchecked(
        self,
        netns: &NetNs,
        transport: Transport,
        server: SocketAddr,
        bytes: u64,
    ) -> Result<Came> {
        self.ask(netns, transport, server, bytes, None)
    }

    fn ask(
        self,
        netns: &NetNs,
        transport: Transport,
        server: SocketAddr,
        bytes: u64,
        mut digest: Option<Digest>,
    ) -> Result<Came> {
        let begun = Instant::now();
        let mut stream = self.open(netns, transport, server)?;
        let request = match self {
            Self::Plain(_) => {
                format!("GET http://{server}/{bytes} HTTP/1.1\r\nHost: {server}\r\n\r\n")
            }
            _ => format!("GET /{bytes} HTTP/1.1\r\nHost: {server}\r\n\r\n"),
        };
        stream.write_all(&[&self.question(server)[..], request.as_bytes()].concat())?;
        self.read_answer(&mut stream)?;
        let head = read_head(&mut stream)?;
        let first_byte = begun.elapsed();
        ensure!(head.starts_with("HTTP/1.1 200"), "the answer was: {head}");
        let (mut rest, mut buffer) = (bytes, vec![0; 256 << 10]);
        while rest > 0 {
            let most = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            let read = stream.read(&mut buffer[..most]).context("in the middle of the answer")?;
            ensure!(read > 0, "the answer ended {rest} bytes early");
            if let Some(digest) = &mut digest {
                digest.update(&buffer[..read]);
            }
            rest -= read as u64;
        }
        let sum = digest.map(|digest| digest.finish().as_ref().to_vec()).unwrap_or_default();
        Ok(Came { first_byte, whole: begun.elapsed(), bytes, sum })
    }

    /// A connection to the server by this way, or to the proxy that will lead there.
    pub(crate) fn open(
        self,
        netns: &NetNs,
        transport: Transport,
        server: SocketAddr,
    ) -> Result<TcpStream> {
        let to = match self {
            Self::Direct => server,
            Self::Connect(proxy)
            | Self::Plain(proxy)
            | Self::Socks(proxy)
            | Self::Convert(proxy) => proxy,
        };
        let socket = transport.open(netns)?;
        set_congestion(&socket, FETCH_CONGESTION)?;
        socket
            .connect_timeout(&to.into(), PATIENCE)
            .with_context(|| format!("cannot connect to {to}"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_tcp_nodelay(true)?;
        Ok(socket.into())
    }

    /// What the proxy is asked.
    pub(crate) fn question(self, server: SocketAddr) -> Vec<u8> {
        let SocketAddr::V4(v4) = server else { return Vec::new() };
        let (address, port) = (v4.ip().octets(), v4.port().to_be_bytes());
        match self {
            Self::Direct | Self::Plain(_) => Vec::new(),
            Self::Connect(_) => {
                format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n").into_bytes()
            }
            Self::Socks(_) => [&[5, 1, 0, 5, 1, 0, 1][..], &address, &port].concat(),
            Self::Convert(_) => {
                let mapped = v4.ip().to_ipv6_mapped().octets();
                [&[1, 6, 0x22, 0x63, 0x0a, 5][..], &port, &mapped].concat()
            }
        }
    }

    /// Reads what the proxy says before the server's first byte.
    pub(crate) fn read_answer(self, stream: &mut TcpStream) -> Result<()> {
        match self {
            Self::Direct | Self::Plain(_) => {}
            Self::Connect(_) => {
                let head = read_head(stream)?;
                ensure!(head.starts_with("HTTP/1.1 200"), "the proxy said: {head}");
            }
            Self::Socks(_) => {
                let mut answer = [0; 12];
                stream.read_exact(&mut answer)?;
                ensure!(answer[..4] == [5, 0, 5, 0], "the proxy said: {answer:?}");
            }
            Self::Convert(_) => {
                let mut answer = [0; CONVERT_ANSWER_BYTES];
                stream.read_exact(&mut answer)?;
                // 0x14: the server's TCP options, of which this proxy tells none.
                ensure!(answer[4] == 0x14, "the proxy said: {answer:?}");
            }
        }
        Ok(())
    }
}

/// Reads the head of an HTTP message, and not a byte more.
fn read_head(stream: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 || head.len() > 8192 {
            bail!("no answer, but: {}", String::from_utf8_lossy(&head));
        }
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
