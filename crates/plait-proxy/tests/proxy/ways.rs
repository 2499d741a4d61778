//! Every way in and out carries a connection whole.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use plait_proxy::Users;
use plait_proxy::config::{Access, Clients, Config, Limits, Upstream, WayIn, WayOut};
use plait_proxy::convert::{self, Answer, Message, Tlv};

use crate::site::{Running, bytes, config, echo, exchange, read_head, server};

const MEGABYTE: usize = 1 << 20;

fn socks_to(proxy: &Running, server: SocketAddr) -> TcpStream {
    let mut stream = proxy.connect();
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).unwrap();
    assert_eq!(chosen, [5, 0]);
    let SocketAddr::V4(v4) = server else { panic!("loopback is IPv4") };
    let port = v4.port().to_be_bytes();
    stream.write_all(&[&[5, 1, 0, 1][..], &v4.ip().octets(), &port].concat()).unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..2], [5, 0]);
    stream
}

pub(crate) fn read_convert(stream: &mut TcpStream) -> Message {
    let mut header = [0; convert::HEADER_BYTES];
    stream.read_exact(&mut header).unwrap();
    let length = convert::length_of(header).unwrap();
    let mut body = vec![0; length - convert::HEADER_BYTES];
    stream.read_exact(&mut body).unwrap();
    convert::decode(&body).unwrap()
}

#[test]
fn connect_carries_both_directions_and_the_end_of_each() {
    let proxy = Running::of(WayIn::Http);
    let (server, served) = echo();
    let sent = bytes(8 * MEGABYTE);
    assert!(exchange(proxy.tunnel(server), &sent) == sent);
    assert_eq!(served.join().unwrap(), sent.len());
    let closed = proxy.wait_until("it ends", |proxy| proxy.ended["complete"] == 1);
    let count = sent.len() as u64;
    assert_eq!((closed.open, closed.up_bytes, closed.down_bytes), (0, count, count));
}

#[test]
fn bytes_that_follow_a_request_at_once_are_not_lost() {
    let proxy = Running::of(WayIn::Http);
    let (server, _) = echo();
    let mut stream = proxy.connect();
    write!(stream, "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\nearly ").unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200"));
    assert_eq!(exchange(stream, b"late"), b"early late");
}

#[test]
fn a_server_that_speaks_first_is_heard() {
    let proxy = Running::of(WayIn::Http);
    let (server, _) = server(|mut stream| stream.write_all(b"220 ready\r\n").unwrap());
    let mut greeting = Vec::new();
    proxy.tunnel(server).read_to_end(&mut greeting).unwrap();
    assert_eq!(greeting, b"220 ready\r\n");
}

#[test]
fn socks_carries_a_connection_by_address_and_by_name() {
    let proxy = Running::of(WayIn::Socks);
    let (server, _) = echo();
    let sent = bytes(MEGABYTE);
    assert!(exchange(socks_to(&proxy, server), &sent) == sent);

    let (server, _) = echo();
    let mut stream = proxy.connect();
    let port = server.port().to_be_bytes();
    stream.write_all(&[&[5, 1, 0][..], &[5, 1, 0, 3, 9], b"localhost", &port].concat()).unwrap();
    let mut replies = [0; 12];
    stream.read_exact(&mut replies).unwrap();
    assert_eq!(replies[..4], [5, 0, 5, 0]);
    assert_eq!(exchange(stream, b"by name"), b"by name");
}

#[test]
fn convert_carries_a_connection_and_tells_what_it_supports() {
    let proxy = Running::of(WayIn::Convert);
    let (server, _) = echo();
    let request = convert::encode(&convert::request_for(server)).unwrap();
    let mut stream = proxy.connect();
    stream.write_all(&[&request[..], b"early "].concat()).unwrap();
    assert_eq!(Answer::of(&read_convert(&mut stream)), Answer::Connected);
    assert_eq!(exchange(stream, b"late"), b"early late");

    let mut stream = proxy.connect();
    let info = convert::encode(&Message { tlvs: vec![Tlv::Info] }).unwrap();
    stream.write_all(&info).unwrap();
    // 30 is MPTCP's option.
    assert_eq!(read_convert(&mut stream).tlvs, [Tlv::SupportedTcpExtensions(vec![30])]);
}

#[test]
fn two_proxies_carry_a_connection_by_every_way_between_them() {
    let ways = [
        (WayIn::Convert, WayOut::Convert),
        (WayIn::Http, WayOut::Http),
        (WayIn::Socks, WayOut::Socks),
    ];
    for (way_in, way_out) in ways {
        let far = Running::of(way_in);
        let near = far.before(WayIn::Http, way_out);
        let (server, _) = echo();
        let sent = bytes(MEGABYTE);
        assert!(exchange(near.tunnel(server), &sent) == sent, "{way_out:?}");
        let far = far.wait_until("it ends", |far| far.ended["complete"] == 1);
        assert_eq!(far.up_bytes, sent.len() as u64, "{way_out:?}");
    }
}

#[test]
fn a_plain_request_reaches_its_server_in_the_servers_own_form() {
    let proxy = Running::of(WayIn::Http);
    let (server, heads) = server(|mut stream| {
        [(); 2].map(|()| {
            let head = read_head(&mut stream);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x-own\r\n\
                          X-Own: 1\r\nX-Kept: 1\r\n\r\nok";
            stream.write_all(answer.as_bytes()).unwrap();
            head
        })
    });
    let mut stream = proxy.connect();
    for path in ["/a?b=c", ""] {
        let request = format!(
            "GET http://{server}{path} HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: \
             keep-alive\r\nProxy-Authorization: Basic x\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
    }
    for _ in 0..2 {
        let head = read_head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("x-kept"), "{head}");
        assert!(!head.contains("x-own"), "{head}");
        let mut body = [0; 2];
        stream.read_exact(&mut body).unwrap();
        assert_eq!(&body, b"ok");
    }
    let [first, second] = heads.join().unwrap();
    assert!(first.starts_with("GET /a?b=c HTTP/1.1") && second.starts_with("GET / HTTP/1.1"));
    assert!(first.contains(&format!("host: {server}")) && first.contains("via: 1.1 plait-"));
    assert!(!first.to_lowercase().contains("proxy-"), "{first}");
}

/// An upgraded connection was no longer counted, nor within any bound.
#[test]
fn regression_a_connection_that_changes_its_protocol_stays_counted() {
    let proxy = Running::of(WayIn::Http);
    let (server, served) = server(|mut stream| {
        let head = read_head(&mut stream);
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                      Upgrade: echo\r\n\r\nfirst ";
        stream.write_all(answer.as_bytes()).unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        stream.write_all(&got).unwrap();
        head
    });
    let mut stream = proxy.connect();
    let request = format!(
        "GET http://{server}/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 101"));
    let open = proxy.wait_until("it is relayed", |proxy| proxy.down_bytes == 6);
    assert_eq!(open.open, 1);
    assert_eq!(exchange(stream, b"words"), b"first words");
    assert!(served.join().unwrap().contains("upgrade: echo"));
    proxy.wait_until("it ends", |proxy| (proxy.open, proxy.ended["complete"]) == (0, 1));
}

/// What came in one segment with the next proxy's answer made the connection fail.
#[test]
fn regression_a_greeting_beside_the_next_proxys_answer_is_heard() {
    let (far, _) = server(|mut stream| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n220 ready\r\n").unwrap();
    });
    let upstream = Some(Upstream { address: far, way: WayOut::Http, multipath: true, user: None });
    let near = Running::start(Config { upstream, ..config(WayIn::Http) });
    let mut greeting = Vec::new();
    near.tunnel(echo().0).read_to_end(&mut greeting).unwrap();
    assert_eq!(greeting, b"220 ready\r\n");
}

#[test]
fn a_server_that_closed_a_kept_connection_is_asked_again() {
    let proxy = Running::of(WayIn::Http);
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let server = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            read_head(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
    });
    let mut stream = proxy.connect();
    for _ in 0..2 {
        write!(stream, "GET http://{server}/ HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert!(read_head(&mut stream).starts_with("HTTP/1.1 200"));
        stream.read_exact(&mut [0; 2]).unwrap();
    }
}

#[test]
fn users_prove_who_they_are() {
    let users = Some(Users::parse("ann:secret\n").unwrap());
    let clients = Clients { users, ..config(WayIn::Http).clients };
    let http = Running::start(Config { clients: clients.clone(), ..config(WayIn::Http) });
    let ask = |authorization: &str| {
        let (server, _) = echo();
        let mut stream = http.connect();
        let text = format!("CONNECT {server} HTTP/1.1\r\nHost: x\r\n{authorization}\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        read_head(&mut stream)
    };
    assert!(ask("Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n").starts_with("HTTP/1.1 200"));
    let refused = ask("");
    assert!(refused.starts_with("HTTP/1.1 407") && refused.contains("proxy-authenticate: Basic"));
    assert!(ask("Proxy-Authorization: Basic YW5uOndyb25n\r\n").starts_with("HTTP/1.1 407"));
    assert_eq!(http.refused("unauthorized"), 2);

    let socks = Running::start(Config { clients, ..config(WayIn::Socks) });
    for (password, accepted) in [(&b"secret"[..], 0), (b"wrong!", 1)] {
        let mut stream = socks.connect();
        stream.write_all(&[5, 1, 2]).unwrap();
        stream.write_all(&[&[1, 3][..], b"ann", &[6], password].concat()).unwrap();
        let mut replies = [0; 4];
        stream.read_exact(&mut replies).unwrap();
        assert_eq!((replies[..3].to_vec(), replies[3] != 0), (vec![5, 2, 1], accepted != 0));
    }
    socks.wait_until("it is counted", |socks| socks.refused["unauthorized"] == 1);
}

#[test]
fn the_shares_of_accesses_are_told() {
    let access = |name: &str, network: &str| Access {
        name: name.into(),
        networks: vec![network.parse().expect("a network")],
    };
    let accesses = vec![access("none", "192.0.2.0/24"), access("loopback", "127.0.0.0/8")];
    let proxy =
        Running::start(Config { accesses, limits: Limits::default(), ..config(WayIn::Http) });
    let (server, _) = echo();
    let sent = bytes(MEGABYTE);
    exchange(proxy.tunnel(server), &sent);
    let ended = proxy.wait_until("it ends", |proxy| proxy.open == 0);
    let shares: Vec<f64> = ended.accesses.iter().map(|access| access.share).collect();
    assert_eq!(shares, [0.0, 1.0]);
    // Both sides of the proxy are on loopback here, and each carries all of it in each direction;
    // request and answer are few bytes.
    let all = 2 * MEGABYTE as u64;
    let loopback = &ended.accesses[1];
    assert!((all..all + 500).contains(&loopback.received_bytes), "{loopback:?}");
    assert!((all..all + 500).contains(&loopback.sent_bytes), "{loopback:?}");
}
