//! How connections end, and what an end says to the other besides bytes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use plait_net::tcp::reset_on_close;
use plait_proxy::config::{Config, Limits, WayIn};
use socket2::SockRef;

use crate::site::{LOCALHOST, Running, bytes, config, echo, exchange, server, stream};

/// A proxy whose both sides are plain TCP.
fn plain() -> Running {
    let mut config = config(WayIn::Http);
    config.listeners[0].multipath = false;
    Running::start(Config { multipath_out: false, ..config })
}

#[test]
fn a_clients_reset_reaches_the_server_and_a_servers_the_client() {
    for proxy in [plain(), Running::of(WayIn::Http)] {
        let (address, served) = server(|mut stream| {
            stream.read_exact(&mut [0; 5]).unwrap();
            stream.read(&mut [0]).unwrap_err().kind()
        });
        let mut client = proxy.tunnel(address);
        client.write_all(b"hello").unwrap();
        proxy.wait_until("it is carried", |proxy| proxy.up_bytes == 5);
        reset_on_close(&client).unwrap();
        drop(client);
        assert_eq!(served.join().unwrap(), ErrorKind::ConnectionReset);

        let (address, _) = server(|mut stream| {
            stream.read_exact(&mut [0; 5]).unwrap();
            reset_on_close(&stream).unwrap();
        });
        let mut client = proxy.tunnel(address);
        client.write_all(b"hello").unwrap();
        assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        proxy.wait_until("both are counted", |proxy| proxy.ended["reset"] == 2);
    }
}

#[test]
fn a_reset_is_seen_while_the_other_end_does_not_read() {
    let proxy = plain();
    let (address, served) = server(|stream| {
        // Neither reads nor writes until its connection has failed.
        let begun = Instant::now();
        while stream.take_error().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it is never told");
            thread::sleep(Duration::from_millis(5));
        }
    });
    let mut client = proxy.tunnel(address);
    client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    while client.write(&bytes(1 << 20)).is_ok() {}
    reset_on_close(&client).unwrap();
    drop(client);
    served.join().unwrap();
}

#[test]
fn an_urgent_byte_stays_urgent_and_in_its_place() {
    let proxy = plain();
    let (address, served) = server(|mut stream| {
        SockRef::from(&stream).set_out_of_band_inline(true).unwrap();
        let mut got: Vec<u8> = Vec::new();
        let mut marks = Vec::new();
        loop {
            // The mark is known once what it marks is there.
            stream.peek(&mut [0]).unwrap();
            if plait_net::tcp::at_urgent_mark(&stream).unwrap() {
                marks.push(got.len());
            }
            let mut buffer = [0; 64];
            match stream.read(&mut buffer).unwrap() {
                0 => return (got, marks),
                count => got.extend(&buffer[..count]),
            }
        }
    });
    let mut client = proxy.tunnel(address);
    client.write_all(b"before").unwrap();
    SockRef::from(&client).send_out_of_band(b"!").unwrap();
    client.write_all(b"after").unwrap();
    drop(client);
    let (got, marks) = served.join().unwrap();
    assert_eq!(got, b"before!after");
    assert_eq!(marks, [6]);
}

#[test]
fn an_urgent_byte_is_an_ordinary_one_where_there_is_mptcp() {
    let mut config = config(WayIn::Http);
    config.listeners[0].multipath = false;
    // The server's side is MPTCP; the server here speaks it as well.
    let proxy = Running::start(config);
    let (address, _) = echo();
    let mut client = proxy.tunnel(address);
    client.write_all(b"before").unwrap();
    SockRef::from(&client).send_out_of_band(b"!").unwrap();
    assert_eq!(exchange(client, b"after"), b"before!after");
}

#[test]
fn a_slow_reader_slows_its_sender_and_costs_no_memory() {
    let proxy = plain();
    let (address, served) = server(|mut stream| {
        thread::sleep(Duration::from_millis(500));
        let mut count = 0;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return count,
                read => count += read,
            }
        }
    });
    let mut client = proxy.tunnel(address);
    let sent = 64 << 20;
    let writer = thread::spawn(move || {
        client.write_all(&bytes(sent)).unwrap();
    });
    thread::sleep(Duration::from_millis(300));
    // What is on the way: the kernel's buffers of four sockets, and a pipe.
    assert!(proxy.snapshot().up_bytes < 32 << 20, "{:?}", proxy.snapshot());
    writer.join().unwrap();
    assert_eq!(served.join().unwrap(), sent);
}

#[test]
fn an_idle_connection_is_given_up_and_a_busy_one_is_not() {
    // Long beside the pauses below: a machine may stop for a second.
    let limits = Limits { idle_timeout: Duration::from_millis(1500), ..Limits::default() };
    let proxy = Running::start(Config { limits, ..config(WayIn::Http) });
    let (address, _) = server(|mut stream| stream.read(&mut [0; 99]).map_err(|error| error.kind()));
    let mut client = proxy.tunnel(address);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.snapshot().ended["idle"], 1);

    let (address, _) = echo();
    let mut client = proxy.tunnel(address);
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(100));
        client.write_all(b"x").unwrap();
    }
    assert_eq!(exchange(client, b""), [b'x'; 20]);
    assert_eq!(proxy.snapshot().ended["idle"], 1);
}

#[test]
fn a_proxy_that_is_told_to_end_lets_open_connections_finish() {
    let mut proxy = Running::of(WayIn::Http);
    let (address, _) = echo();
    let client = proxy.tunnel(address);
    proxy.stop.drain();
    thread::sleep(Duration::from_millis(100));
    assert!(TcpStream::connect(proxy.address).is_err(), "nobody new comes in");
    assert_eq!(exchange(client, b"the last words"), b"the last words");
    proxy.join();
}

#[test]
fn a_proxy_that_is_told_to_end_does_not_wait_for_ever() {
    let limits = Limits { drain: Duration::from_millis(200), ..Limits::default() };
    let mut proxy = Running::start(Config { limits, ..config(WayIn::Http) });
    let (address, _) = server(|mut stream| stream.read(&mut [0; 9]).map_err(|error| error.kind()));
    let mut client = proxy.tunnel(address);
    let begun = Instant::now();
    proxy.stop.drain();
    proxy.join();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(client.read(&mut [0; 9]).map_or(true, |count| count == 0));
}

#[test]
fn nothing_is_left_of_a_thousand_connections() {
    let proxy = Running::of(WayIn::Http);
    let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(1000) {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(b"x");
        }
    });
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    for round in 0..10 {
        let clients: Vec<_> = (0..100).map(|_| proxy.tunnel(address)).collect();
        for mut client in clients {
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            assert_eq!(got, b"x", "{round}");
        }
    }
    let ended = proxy.wait_until("all end", |proxy| proxy.open == 0);
    assert_eq!(ended.ended["complete"] + ended.ended["reset"], 1000);
    // Kept pipes have two each; other tests run beside this one.
    assert!(descriptors() < 1500, "{}", descriptors());
}

/// A port on which nothing answers: its queue of waiting connections is full.
pub(crate) fn mute_server() -> (TcpListener, Vec<TcpStream>, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((LOCALHOST, 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    (listener, vec![stream(address)], address)
}
