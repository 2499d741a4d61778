//! A small web server of the lab's own: it gives as many bytes as the path asks for, over TCP or
//! MPTCP, and both ends know what they are.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_lc_rs::digest::{Context as Digest, SHA256};
use plait_net::netns::{NetNs, wait_readable};
use plait_net::tcp::set_congestion;

use crate::measure::{FETCH_CONGESTION, Transport, random_bytes};

/// A prime, so that what is moved or left out cannot fit by chance.
const BLOCK_BYTES: usize = 1_048_573;
const SLEEP_MAX: Duration = Duration::from_millis(20);
const HEAD_BYTES_MAX: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(60);

/// The content: this block over and over.
fn block() -> Arc<[u8]> {
    random_bytes(BLOCK_BYTES)
}

/// The SHA-256 sum of the first `bytes`.
pub(crate) fn sum_of(bytes: u64) -> Vec<u8> {
    let block = block();
    let mut digest = Digest::new(&SHA256);
    let mut rest = bytes;
    while rest > 0 {
        let part = rest.min(BLOCK_BYTES as u64);
        digest.update(&block[..part as usize]);
        rest -= part;
    }
    digest.finish().as_ref().to_vec()
}

/// A server in a namespace, until it is dropped.
#[derive(Debug)]
pub(crate) struct ByteServer {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ByteServer {
    /// Serves on an address of `netns`, on a port of the kernel's choice.
    pub(crate) fn start(netns: &NetNs, address: IpAddr, transport: Transport) -> Result<Self> {
        let socket = transport.open(netns)?;
        socket.bind(&SocketAddr::new(address, 0).into())?;
        socket.listen(1024)?;
        socket.set_nonblocking(true)?;
        // Connections take it from their listener.
        set_congestion(&socket, FETCH_CONGESTION)?;
        let address = socket.local_addr()?.as_socket().context("an address of IP")?;
        let (listener, block) = (TcpListener::from(socket), block());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("web".into());
        let thread = thread.spawn(move || serve(&listener, &block, &stopped))?;
        Ok(Self { address, stop, thread: Some(thread) })
    }
}

impl Drop for ByteServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, block: &Arc<[u8]>, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let is_ready = wait_readable(listener.as_fd(), SLEEP_MAX);
        if !is_ready.unwrap_or(false) {
            continue;
        }
        while let Ok((stream, _)) = listener.accept() {
            let block = Arc::clone(block);
            // A client that is gone is one less.
            let _ = std::thread::Builder::new().spawn(move || answer(stream, &block));
        }
    }
}

/// Answers requests until the client goes.
fn answer(mut stream: TcpStream, block: &[u8]) {
    if stream.set_nonblocking(false).is_err() || stream.set_read_timeout(Some(PATIENCE)).is_err() {
        return;
    }
    let _ = stream.set_nodelay(true);
    while let Some(bytes) = read_request(&mut stream) {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        let mut rest = bytes;
        let mut sent = stream.write_all(head.as_bytes());
        while rest > 0 && sent.is_ok() {
            let part = rest.min(block.len() as u64);
            sent = stream.write_all(&block[..part as usize]);
            rest -= part;
        }
        if sent.is_err() {
            return;
        }
    }
}

/// How many bytes `GET /N` asks for.
fn read_request(stream: &mut TcpStream) -> Option<u64> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 && head.len() < HEAD_BYTES_MAX => {
                head.extend(&buffer[..count]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.strip_prefix("GET /")?;
    path.split(' ').next()?.parse().ok()
}
