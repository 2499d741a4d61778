//! Fetches files, each over its own connection: measures the time, checks every byte, and reads the
//! kernel's view of the sender. The lab has its own server, so that it can query the sender's
//! socket and serve over the kernel's MPTCP.
//!
//! The client sends the number of bytes that it wants (8 bytes, big endian), the server sends
//! these, and the client answers with one byte when it has them all.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plait_net::netns::{NetNs, wait_readable};
use plait_net::tcp::{self, TcpInfo};
use plait_sim::prng::Prng;
use socket2::Socket;

use super::stream::Transport;
use super::{Target, TcpCounters};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A download without a byte for this long has failed.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);
/// Longest sleep: an end is noticed within this time.
const SLEEP_MAX: Duration = Duration::from_millis(20);
const CHUNK_BYTES: usize = 256 << 10;
/// The sender's congestion control (RFC 9438), the same on every carrier.
pub(crate) const FETCH_CONGESTION: &str = "cubic";

/// The kernel's view of a download's sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SenderView {
    /// TCP_INFO at the download's end; for MPTCP, of the first subflow.
    pub(crate) info: TcpInfo,
    /// TCP counters of the server during the download.
    pub(crate) counters: TcpCounters,
}

/// A download.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fetched {
    /// From the first segment of the handshake to the last byte, or until it failed.
    pub(crate) time: Duration,
    pub(crate) asked_bytes: u64,
    pub(crate) got_bytes: u64,
    /// Whether the bytes received are the file's.
    pub(crate) is_intact: bool,
    /// `None` when the download did not complete.
    pub(crate) sender: Option<SenderView>,
}

impl Fetched {
    pub(crate) fn is_complete(&self) -> bool {
        self.got_bytes == self.asked_bytes
    }

    /// Payload over the total time.
    pub(crate) fn rate_bps(&self) -> u64 {
        let bits = u128::from(self.got_bytes) * 8 * 1_000_000;
        u64::try_from(bits / self.time.as_micros().max(1)).unwrap_or(u64::MAX)
    }
}

/// Serves a file until it is dropped; each client chooses how much of it to fetch.
#[derive(Debug)]
pub(crate) struct FileServer<'a> {
    netns: &'a NetNs,
    address: SocketAddr,
    transport: Transport,
    content: Arc<[u8]>,
    seen: Mutex<Receiver<TcpInfo>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<'a> FileServer<'a> {
    /// Serves on an address of `netns`; no download may be longer than `bytes_max`.
    pub(crate) fn start(
        netns: &'a NetNs,
        address: IpAddr,
        transport: Transport,
        bytes_max: u64,
    ) -> Result<Self> {
        let listener = transport.open(netns)?;
        listener.bind(&SocketAddr::new(address, 0).into())?;
        listener.listen(1)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?.as_socket().context("an address of IP")?;
        let content = random_bytes(usize::try_from(bytes_max)?);
        let (tell, seen) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let content_served = Arc::clone(&content);
        let stopped = Arc::clone(&stop);
        let service = Service { listener, content: content_served, tell, stop: stopped };
        let thread = std::thread::Builder::new().name("files".into());
        let thread = thread.spawn(move || service.run())?;
        let (seen, thread) = (Mutex::new(seen), Some(thread));
        Ok(Self { netns, address, transport, content, seen, stop, thread })
    }

    /// Fetches `bytes` of the file; a download that stops half-way is also a result.
    pub(crate) fn fetch(&self, target: Target<'_>, bytes: u64) -> Result<Fetched> {
        let expected = usize::try_from(bytes).ok().and_then(|bytes| self.content.get(..bytes));
        let expected = expected.context("a download is no longer than the server's file")?;
        let seen = self.seen.lock().expect("no thread panics while it waits for a sender's view");
        // Drops the leftovers of an earlier failed download.
        while seen.try_recv().is_ok() {}
        let before = TcpCounters::of(self.netns)?;
        let start = Instant::now();
        let mut socket = self.connect(target)?;
        socket.set_read_timeout(Some(SILENCE_LIMIT))?;
        socket.write_all(&bytes.to_be_bytes())?;
        let (got, is_intact) = receive(&mut socket, expected);
        let time = start.elapsed();
        let mut sender = None;
        if got == expected.len() {
            socket.write_all(b".")?;
            let info = seen.recv_timeout(SILENCE_LIMIT).context("the server says nothing")?;
            let counters = TcpCounters::of(self.netns)?.since(before);
            sender = Some(SenderView { info, counters });
        }
        Ok(Fetched { time, asked_bytes: bytes, got_bytes: got as u64, is_intact, sender })
    }

    fn connect(&self, target: Target<'_>) -> Result<TcpStream> {
        ensure!(target.server == self.address.ip(), "the server listens on {}", self.address);
        let socket = self.transport.open(target.client)?;
        if let Some(source) = target.bind {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        let connected = socket.connect_timeout(&self.address.into(), CONNECT_LIMIT);
        connected.with_context(|| format!("cannot connect to {}", self.address))?;
        Ok(socket.into())
    }
}

impl Drop for FileServer<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Reads until everything has arrived or nothing more comes; returns the length, and whether the
/// content is right.
fn receive(socket: &mut TcpStream, expected: &[u8]) -> (usize, bool) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut got, mut is_intact) = (0, true);
    while got < expected.len() {
        let length = match socket.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        is_intact &= expected.get(got..got + length) == Some(&chunk[..length]);
        got += length;
    }
    (got, is_intact)
}

/// Incompressible, and the same in every run.
pub(crate) fn random_bytes(length: usize) -> Arc<[u8]> {
    let mut prng = Prng::new(length as u64);
    let words = (0..length.div_ceil(8)).flat_map(|_| prng.next_u64().to_le_bytes());
    words.take(length).collect()
}

/// The server's thread.
#[derive(Debug)]
struct Service {
    listener: Socket,
    content: Arc<[u8]>,
    tell: Sender<TcpInfo>,
    stop: Arc<AtomicBool>,
}

impl Service {
    fn run(self) {
        while !self.stop.load(Ordering::Relaxed) {
            let _later = wait_readable(self.listener.as_fd(), SLEEP_MAX);
            let Ok((socket, _)) = self.listener.accept() else { continue };
            // The client notices a failed download; nobody waits for the view then.
            if let Ok(info) = self.serve(socket.into()) {
                let _gone = self.tell.send(info);
            }
        }
    }

    fn serve(&self, mut socket: TcpStream) -> Result<TcpInfo> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(SLEEP_MAX))?;
        socket.set_write_timeout(Some(SLEEP_MAX))?;
        tcp::set_congestion(&socket, FETCH_CONGESTION)?;
        // Unsent data must not be sent after the lab ends.
        tcp::reset_on_close(&socket)?;
        let mut asked = [0; 8];
        self.read_all(&mut socket, &mut asked)?;
        let asked = usize::try_from(u64::from_be_bytes(asked))?;
        let content = self.content.get(..asked).context("more than the file has")?;
        self.write_all(&mut socket, content)?;
        self.read_all(&mut socket, &mut [0])?;
        Ok(tcp::info(&socket)?)
    }

    fn read_all(&self, socket: &mut TcpStream, mut buffer: &mut [u8]) -> Result<()> {
        while !buffer.is_empty() {
            match socket.read(buffer) {
                Ok(0) => anyhow::bail!("closed by the client"),
                Ok(length) => buffer = &mut buffer[length..],
                Err(error) if self.waits_on(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn write_all(&self, socket: &mut TcpStream, mut content: &[u8]) -> Result<()> {
        while !content.is_empty() {
            match socket.write(&content[..content.len().min(CHUNK_BYTES)]) {
                Ok(length) => content = &content[length..],
                Err(error) if self.waits_on(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether a call timed out only for the stop check, and the server is not to stop.
    fn waits_on(&self, error: &std::io::Error) -> bool {
        let kinds = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
        kinds.contains(&error.kind()) && !self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The client's result when the server sends `sent` instead of `expected`.
    fn receive_from(sent: Vec<u8>, expected: &[u8]) -> (usize, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            listener.accept().unwrap().0.write_all(&sent).unwrap();
        });
        let got = receive(&mut TcpStream::connect(address).unwrap(), expected);
        server.join().unwrap();
        got
    }

    #[test]
    fn what_came_is_compared_byte_for_byte() {
        let file = random_bytes(700_001);
        assert!(file.len() == 700_001 && file == random_bytes(700_001));
        assert_eq!(receive_from(file.to_vec(), &file), (700_001, true));
        let mut changed = file.to_vec();
        changed[600_000] ^= 1;
        assert_eq!(receive_from(changed, &file), (700_001, false));
        assert_eq!(receive_from(file[..9].to_vec(), &file), (9, true));
        let beyond = [&file[..], b"x"].concat();
        assert!(!receive_from(beyond, &file).1);
    }

    #[test]
    fn the_rate_is_of_what_came() {
        let fetched = Fetched {
            time: Duration::from_millis(500),
            asked_bytes: 2_000_000,
            got_bytes: 1_000_000,
            is_intact: true,
            sender: None,
        };
        assert_eq!((fetched.rate_bps(), fetched.is_complete()), (16_000_000, false));
    }
}
