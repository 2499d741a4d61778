//! Another configuration for a running proxy.

use std::io::{Read as _, Write as _};

use plait_proxy::config::{Clients, Config, Limits, WayIn};

use crate::site::{Running, config, echo, exchange, read_head, server};

#[test]
fn who_comes_later_meets_the_new_configuration_and_who_was_there_goes_on() {
    let proxy = Running::of(WayIn::Http);
    let (address, served) = echo();
    let early = proxy.tunnel(address);
    let strict = Config {
        clients: Clients { allow: vec!["192.0.2.0/24".parse().unwrap()], users: None },
        ..config(WayIn::Http)
    };
    assert_eq!(proxy.reloader.apply(strict).unwrap(), Vec::<&str>::new());
    let mut late = proxy.connect();
    write!(late, "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    assert!(read_head(&mut late).starts_with("HTTP/1.1 403"));
    assert_eq!(proxy.refused("client_not_allowed"), 1);
    assert_eq!(exchange(early, b"still here"), b"still here");
    assert_eq!(served.join().unwrap(), 10);
}

#[test]
fn bounds_are_followed_and_what_needs_a_restart_is_told() {
    let proxy = Running::of(WayIn::Http);
    let mut other = config(WayIn::Socks);
    other.congestion = Some("reno".into());
    other.limits = Limits { connections_per_client_max: 1, ..other.limits };
    assert_eq!(proxy.reloader.apply(other).unwrap(), ["[[listen]]", "[proxy] congestion"]);
    let (address, served) = server(|mut stream| {
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
    });
    // Its listener still speaks HTTP.
    let first = proxy.tunnel(address);
    let mut second = proxy.connect();
    write!(second, "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    assert!(read_head(&mut second).starts_with("HTTP/1.1 429"));
    drop(first);
    served.join().unwrap();
}

#[test]
fn what_contradicts_itself_changes_nothing() {
    let proxy = Running::of(WayIn::Http);
    let nobody = Config { clients: Clients::default(), ..config(WayIn::Http) };
    let error = proxy.reloader.apply(nobody).unwrap_err();
    assert!(error.to_string().contains("allow"), "{error}");
    let (address, served) = echo();
    assert_eq!(exchange(proxy.tunnel(address), b"as before"), b"as before");
    served.join().unwrap();
}
