//! A proxy, its servers and its clients.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plait_proxy::config::{Clients, Config, Limits, Listener, Reach, Upstream, WayIn, WayOut};
use plait_proxy::status::{Observer, Snapshot};
use plait_proxy::{Proxy, Reloader, Stop};

pub(crate) const LOCALHOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A proxy that everyone on this machine may use, for servers on this machine.
pub(crate) fn config(way: WayIn) -> Config {
    let networks = ["127.0.0.0/8".parse().expect("a network")];
    Config {
        listeners: vec![Listener {
            address: SocketAddr::from((LOCALHOST, 0)),
            way,
            multipath: !way.is_transparent(),
        }],
        clients: Clients { allow: networks.to_vec(), users: None },
        reach: Reach { deny: vec![], allow: networks.to_vec(), ports: vec![] },
        upstream: None,
        multipath_out: true,
        congestion: None,
        accesses: vec![],
        limits: Limits { drain: Duration::from_secs(5), ..Limits::default() },
    }
}

/// A running proxy; it ends with the test.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    observer: Observer,
    pub(crate) stop: Stop,
    pub(crate) reloader: Reloader,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(config: Config) -> Self {
        let proxy = Proxy::open(config).expect("the configuration is sound");
        let (observer, stop, reloader) = (proxy.observer(), proxy.stop(), proxy.reloader());
        let address = proxy.addresses()[0].1;
        let thread = thread::spawn(move || proxy.run().expect("threads can be had"));
        Self { address, observer, stop, reloader, thread: Some(thread) }
    }

    pub(crate) fn of(way: WayIn) -> Self {
        Self::start(config(way))
    }

    /// A proxy whose next one is this one.
    pub(crate) fn before(&self, way: WayIn, out: WayOut) -> Self {
        let upstream =
            Some(Upstream { address: self.address, way: out, multipath: true, user: None });
        Self::start(Config { upstream, ..config(way) })
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.observer.snapshot(100)
    }

    pub(crate) fn refused(&self, reason: &str) -> u64 {
        self.snapshot().refused[reason]
    }

    /// Waits until its picture is as wanted.
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let begun = Instant::now();
        loop {
            let snapshot = self.snapshot();
            if wanted(&snapshot) {
                return snapshot;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}: {snapshot:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        stream(self.address)
    }

    /// A connection through it to `server`, by CONNECT.
    pub(crate) fn tunnel(&self, server: SocketAddr) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n").expect("it listens");
        let head = read_head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        stream
    }

    /// Waits until it has ended.
    pub(crate) fn join(&mut self) {
        self.thread.take().expect("it is joined once").join().expect("it did not panic");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.drain();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn stream(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("the time is not zero");
    stream
}

/// Reads the head of an HTTP message, and not a byte more.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).expect("an answer comes") == 0 {
            break;
        }
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A server for one connection, with what it shall do.
pub(crate) fn server<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind((LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let thread = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client comes");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("the time is not zero");
        serve(stream)
    });
    (address, thread)
}

/// A server that gives back all it got, once its client has said that this was all.
pub(crate) fn echo() -> (SocketAddr, JoinHandle<usize>) {
    server(|mut stream| {
        let mut got = Vec::new();
        stream.read_to_end(&mut got).expect("the client ends in order");
        stream.write_all(&got).expect("the client reads");
        got.len()
    })
}

/// Sends bytes in one direction, says that they were all, and reads what comes back.
pub(crate) fn exchange(mut stream: TcpStream, bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).expect("the other end reads");
    stream.shutdown(std::net::Shutdown::Write).expect("it is connected");
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("the other end ends in order");
    got
}

/// Bytes that show when some are lost or out of order.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index % 251) as u8).collect()
}
