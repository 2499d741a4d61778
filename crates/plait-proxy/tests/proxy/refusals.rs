//! Clients that do not get what they want: each is told why, and each reason has its count.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plait_proxy::config::{Clients, Config, Limits, Upstream, WayIn, WayOut};
use plait_proxy::convert::{self, Answer, ErrorCode, Tlv};
use plait_proxy::{Proxy, Refusal, Users};

use crate::ends::mute_server;
use crate::site::{LOCALHOST, Running, config, echo, read_head};
use crate::ways::read_convert;

/// What a way in answers to a request for a server.
fn http(proxy: &Running, target: &str) -> String {
    let mut stream = proxy.connect();
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    read_head(&mut stream)
}

fn socks(proxy: &Running, server: SocketAddr) -> u8 {
    let mut stream = proxy.connect();
    let SocketAddr::V4(v4) = server else { panic!("loopback is IPv4") };
    let port = v4.port().to_be_bytes();
    let request = [&[5, 1, 0, 5, 1, 0, 1][..], &v4.ip().octets(), &port].concat();
    stream.write_all(&request).unwrap();
    let mut replies = [0; 12];
    stream.read_exact(&mut replies).unwrap();
    replies[3]
}

fn convert(proxy: &Running, server: SocketAddr) -> Answer {
    let mut stream = proxy.connect();
    stream.write_all(&convert::encode(&convert::request_for(server)).unwrap()).unwrap();
    Answer::of(&read_convert(&mut stream))
}

/// A port that nothing listens on.
fn closed_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind((LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// Proxies of each way in that can tell why.
fn each(change: impl Fn(&mut Config)) -> [Running; 3] {
    [WayIn::Http, WayIn::Socks, WayIn::Convert].map(|way| {
        let mut config = config(way);
        change(&mut config);
        Running::start(config)
    })
}

fn expect(
    proxies: &[Running; 3],
    server: SocketAddr,
    refusal: Refusal,
    told: (u16, u8, ErrorCode),
) {
    let [by_http, by_socks, by_convert] = proxies;
    let head = http(by_http, &server.to_string());
    assert!(head.starts_with(&format!("HTTP/1.1 {}", told.0)), "{refusal}: {head}");
    assert!(head.contains(&format!("x-plait-refusal: {}", refusal.name())), "{head}");
    assert_eq!(socks(by_socks, server), told.1, "{refusal}");
    assert_eq!(convert(by_convert, server), Answer::Failed(told.2), "{refusal}");
    for proxy in proxies {
        proxy.wait_until(refusal.name(), |proxy| proxy.refused[refusal.name()] == 1);
    }
}

#[test]
fn who_may_not_use_it_is_told() {
    let (server, _) = echo();
    let proxies = each(|config| config.clients.allow = vec!["192.0.2.0/24".parse().unwrap()]);
    let told = (403, 2, ErrorCode::NotAuthorized);
    expect(&proxies, server, Refusal::ClientNotAllowed, told);
}

#[test]
fn where_nobody_may_go_is_told() {
    let (server, _) = echo();
    // Loopback is out of reach unless it is allowed.
    let proxies = each(|config| config.reach.allow.clear());
    let told = (403, 2, ErrorCode::NotAuthorized);
    expect(&proxies, server, Refusal::TargetForbidden, told);
    let proxies = each(|config| config.reach.ports = vec![1..=1]);
    expect(&proxies, server, Refusal::TargetForbidden, told);
}

#[test]
fn a_server_that_refuses_or_never_answers_is_told() {
    let proxies = each(|_| ());
    expect(&proxies, closed_port(), Refusal::ServerRefused, (502, 5, ErrorCode::ConnectionReset));
    let (_listener, _waiting, mute) = mute_server();
    let proxies = each(|config| config.limits.connect_timeout = Duration::from_millis(300));
    let told = (504, 6, ErrorCode::DestinationUnreachable);
    expect(&proxies, mute, Refusal::ConnectTimeout, told);
}

#[test]
fn a_way_back_to_the_proxy_is_told() {
    // The port has to be known before the proxy starts.
    for way in [WayIn::Http, WayIn::Socks, WayIn::Convert, WayIn::Redirect] {
        let address = closed_port();
        let mut config = config(way);
        config.listeners[0].address = address;
        let proxy = Running::start(config);
        match way {
            WayIn::Http => assert!(http(&proxy, &address.to_string()).contains("508")),
            WayIn::Socks => assert_eq!(socks(&proxy, address), 2),
            WayIn::Convert => {
                assert_eq!(convert(&proxy, address), Answer::Failed(ErrorCode::NotAuthorized));
            }
            // A connection that nothing redirected: its destination is the proxy.
            _ => assert!(proxy.connect().read(&mut [0]).is_err()),
        }
        assert_eq!(proxy.refused("loop"), 1, "{way:?}");
    }
}

#[test]
fn a_name_without_an_address_is_told() {
    let proxy = Running::of(WayIn::Http);
    assert!(http(&proxy, "nowhere.invalid:80").starts_with("HTTP/1.1 502"));
    assert_eq!(proxy.refused("name_unknown"), 1);
}

#[test]
fn what_cannot_be_read_is_told() {
    let proxy = Running::of(WayIn::Http);
    let ask = |text: &[u8]| {
        let mut stream = proxy.connect();
        stream.write_all(text).unwrap();
        read_head(&mut stream)
    };
    for (text, status) in [
        (&b"CONNECT nothing HTTP/1.1\r\n\r\n"[..], "400"),
        (b"CONNECT a:b:c HTTP/1.1\r\n\r\n", "400"),
        (b"GET /own HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
        (b"GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "501"),
        (b"\x16\x03\x01 no HTTP at all\r\n\r\n", "400"),
    ] {
        let head = ask(text);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{text:?}: {head}");
    }
    proxy.wait_until("all are counted", |proxy| {
        (proxy.refused["malformed"], proxy.refused["unsupported"]) == (4, 1)
    });

    let proxy = Running::of(WayIn::Convert);
    let mut stream = proxy.connect();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let told = read_convert(&mut stream);
    assert_eq!(told.tlvs, [Tlv::Error(ErrorCode::MalformedMessage, vec![])]);
    assert_eq!(proxy.refused("malformed"), 1);

    let proxy = Running::of(WayIn::Socks);
    let mut stream = proxy.connect();
    // Bind; and then a version that is none of SOCKS 5.
    stream.write_all(&[5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80]).unwrap();
    let mut replies = [0; 12];
    stream.read_exact(&mut replies).unwrap();
    assert_eq!(replies[3], 7);
    proxy.connect().write_all(&[4, 1, 0, 80]).unwrap();
    proxy.wait_until("both are counted", |proxy| {
        (proxy.refused["malformed"], proxy.refused["unsupported"]) == (1, 1)
    });
}

#[test]
fn a_client_that_is_too_slow_is_let_go() {
    let proxies = each(|config| config.limits.request_timeout = Duration::from_millis(200));
    let begun = Instant::now();
    let waiting = proxies.each_ref().map(|proxy| {
        let mut stream = proxy.connect();
        stream.write_all(b"C").unwrap();
        stream
    });
    for (proxy, mut stream) in proxies.iter().zip(waiting) {
        let _ = stream.read_to_end(&mut Vec::new());
        proxy.wait_until("it is counted", |proxy| {
            proxy.refused["request_timeout"] + proxy.refused["malformed"] == 1
        });
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn bounds_are_told_and_do_not_last() {
    let limits = Limits { connections_per_client_max: 2, ..Limits::default() };
    let proxy = Running::start(Config { limits, ..config(WayIn::Http) });
    let open: Vec<TcpStream> = (0..2).map(|_| proxy.tunnel(echo().0)).collect();
    assert!(http(&proxy, &echo().0.to_string()).starts_with("HTTP/1.1 429"));
    drop(open);
    proxy.wait_until("they end", |proxy| proxy.open == 0);
    proxy.tunnel(echo().0);
    let limits = Limits { connections_max: 0, ..Limits::default() };
    let proxy = Running::start(Config { limits, ..config(WayIn::Http) });
    assert!(http(&proxy, &echo().0.to_string()).starts_with("HTTP/1.1 503"));
}

#[test]
fn the_next_proxys_reasons_come_through() {
    let far = Running::of(WayIn::Convert);
    let near = far.before(WayIn::Http, WayOut::Convert);
    assert!(http(&near, &closed_port().to_string()).contains("x-plait-refusal: server_refused"));
    // Where nobody may go is not asked for.
    let (address, way) = (far.address, WayOut::Http);
    let upstream = Some(Upstream { address, way, multipath: true, user: None });
    let mut strict = Config { upstream, ..config(WayIn::Http) };
    strict.reach.allow.clear();
    let strict = Running::start(strict);
    assert!(http(&strict, &echo().0.to_string()).starts_with("HTTP/1.1 403"));
    // A next proxy that is none, and one that is not there.
    let (no_proxy, _) = echo();
    for address in [no_proxy, closed_port()] {
        let limits = Limits { connect_timeout: Duration::from_secs(1), ..Limits::default() };
        let upstream =
            Some(Upstream { address, way: WayOut::Convert, multipath: true, user: None });
        let near = Running::start(Config { upstream, limits, ..config(WayIn::Http) });
        let head = http(&near, &echo().0.to_string());
        assert!(head.starts_with("HTTP/1.1 50"), "{head}");
    }
}

#[test]
fn what_contradicts_itself_does_not_start() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(WayIn::Http);
        change(&mut config);
        let error = Proxy::open(config).expect_err("it must not start");
        assert!(!error.help().is_empty());
        error.to_string()
    };
    assert!(refused(&|config| config.listeners.clear()).contains("[[listen]]"));
    let strange = |config: &mut Config| config.congestion = Some("no such thing".into());
    assert!(refused(&strange).contains("no such thing"));
    assert!(refused(&|config| config.clients = Clients::default()).contains("`allow`"));
    let address: SocketAddr = "127.0.0.1:3128".parse().unwrap();
    let with_users = |config: &mut Config, way| {
        config.listeners[0].way = way;
        config.clients.users = Some(Users::parse("ann:x").unwrap());
    };
    for way in [WayIn::Convert, WayIn::Redirect, WayIn::Tproxy] {
        assert!(refused(&|config| with_users(config, way)).contains("cannot be asked"));
    }
    assert!(
        refused(&|config| {
            config.listeners[0].address = address;
            config.upstream =
                Some(Upstream { address, way: WayOut::Http, multipath: true, user: None });
        })
        .contains("in circles")
    );
    let taken = std::net::TcpListener::bind((LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    assert!(refused(&|config| config.listeners[0].address = address).contains("cannot listen"));
    let address = SocketAddr::from(([192, 0, 2, 1], 3128));
    assert!(refused(&|config| config.listeners[0].address = address).contains("cannot listen"));
}
