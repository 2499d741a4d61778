//! Sockets on the loopback interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::*;

/// The content of one buffer: its metadata and the datagrams in it.
type Received = (ReceivedMeta, Vec<Vec<u8>>);

/// Receives until `count` datagrams are there; loopback delivers at once, so the wait is short.
fn receive(socket: &mut UdpSocket, count: usize) -> Vec<Received> {
    let mut received: Vec<Received> = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(5);
    while received.iter().map(|(_, datagrams)| datagrams.len()).sum::<usize>() < count {
        assert!(Instant::now() < deadline, "only these came: {received:?}");
        socket
            .recv(&mut |meta, buffer| {
                let datagrams = buffer.chunks(meta.stride).map(<[u8]>::to_vec).collect();
                received.push((meta, datagrams));
            })
            .unwrap();
    }
    received
}

fn bind(address: Option<IpAddr>) -> UdpSocket {
    UdpSocket::bind(&BindTo { address, ..BindTo::default() }).unwrap()
}

/// Whether this machine has `::1`.
fn has_ipv6_loopback() -> bool {
    std::net::UdpSocket::bind("[::1]:0").is_ok()
}

#[test]
fn a_run_of_datagrams_arrives_with_its_marks() {
    let v4: IpAddr = Ipv4Addr::LOCALHOST.into();
    let v6: IpAddr = Ipv6Addr::LOCALHOST.into();
    let mut cases = vec![(Some(v4), Some(v4), v4), (None, None, v4), (Some(v4), None, v4)];
    if has_ipv6_loopback() {
        cases.extend([(Some(v6), Some(v6), v6), (None, None, v6)]);
    }
    for (from, to, address) in cases {
        let (mut sender, mut receiver) = (bind(from), bind(to));
        let contents: Vec<u8> = (0..10_050).map(|at| (at / 1000) as u8).collect();
        let destination = SocketAddr::new(address, receiver.local_addr().unwrap().port());
        sender
            .send(&Transmit {
                destination,
                source: Some(address),
                ecn: 2,
                contents: &contents,
                segment_size: Some(1000),
            })
            .unwrap();
        let received = receive(&mut receiver, 11);
        for (meta, _) in &received {
            let port = sender.local_addr().unwrap().port();
            assert_eq!(meta.source, SocketAddr::new(address, port));
            assert_eq!((meta.destination, meta.ecn), (Some(address), 2), "{from:?} {to:?}");
        }
        let datagrams: Vec<_> = received.into_iter().flat_map(|(_, datagrams)| datagrams).collect();
        let expected: Vec<_> = contents.chunks(1000).map(<[u8]>::to_vec).collect();
        assert_eq!(datagrams, expected, "from {from:?} to {to:?} at {address}");
        let counters = sender.counters();
        assert_eq!((counters.sent_datagrams, counters.refused_segmentation), (11, 0));
        assert_eq!(counters.sends, if sender.max_segments() > 1 { 1 } else { 11 });
    }
}

#[test]
fn a_source_address_is_obeyed() {
    let (mut sender, mut receiver) = (bind(None), bind(None));
    let port = receiver.local_addr().unwrap().port();
    let source = Ipv4Addr::new(127, 1, 2, 3).into();
    let destination = SocketAddr::from(([127, 0, 0, 9], port));
    sender
        .send(&Transmit {
            destination,
            source: Some(source),
            ecn: 0,
            contents: b"hello",
            segment_size: None,
        })
        .unwrap();
    let received = receive(&mut receiver, 1);
    assert_eq!(received[0].0.source.ip(), source);
    assert_eq!(received[0].0.destination, Some(destination.ip()));
    assert_eq!((received[0].0.stride, received[0].0.ecn), (5, 0));
}

#[test]
fn nothing_waiting_is_zero_buffers() {
    let mut socket = bind(None);
    assert_eq!(socket.recv(&mut |_, _| panic!("nothing was sent")).unwrap(), 0);
}

#[test]
fn an_empty_datagram_has_a_stride() {
    let (mut sender, mut receiver) = (bind(None), bind(None));
    let port = receiver.local_addr().unwrap().port();
    let destination = SocketAddr::from(([127, 0, 0, 1], port));
    sender
        .send(&Transmit { destination, source: None, ecn: 0, contents: &[], segment_size: None })
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut seen = None;
    while seen.is_none() {
        assert!(Instant::now() < deadline, "the datagram came");
        receiver.recv(&mut |meta, buffer| seen = Some((meta.stride, buffer.len()))).unwrap();
    }
    assert_eq!(seen, Some((1, 0)));
}

#[test]
fn a_refusal_costs_neither_ecn_nor_segmentation() {
    let (mut sender, mut receiver) = (bind(None), bind(None));
    let port = receiver.local_addr().unwrap().port();
    let good = Transmit {
        destination: SocketAddr::from(([127, 0, 0, 1], port)),
        source: None,
        ecn: 1,
        contents: &[7; 3000],
        segment_size: Some(1000),
    };
    let impossible = Transmit { source: Some(Ipv4Addr::new(224, 0, 0, 1).into()), ..good };
    let segments = sender.max_segments();
    let error = sender.send(&impossible).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "a multicast address is no source");
    assert_eq!(sender.max_segments(), segments);
    sender.send(&good).unwrap();
    let received = receive(&mut receiver, 3);
    assert!(received.iter().all(|(meta, _)| meta.ecn == 1));
}

#[test]
fn a_datagram_that_cannot_be_is_an_error() {
    let mut sender = bind(Some(Ipv4Addr::LOCALHOST.into()));
    let error = sender
        .send(&Transmit {
            destination: SocketAddr::from(([127, 0, 0, 1], 9)),
            source: None,
            ecn: 0,
            contents: &[0; 65_508],
            segment_size: None,
        })
        .unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
}

#[test]
fn bind_errors_say_what_is_wrong() {
    let first = bind(None);
    let port = first.local_addr().unwrap().port();
    let error = UdpSocket::bind(&BindTo { port, ..BindTo::default() }).unwrap_err();
    assert!(matches!(error, BindError::PortInUse { .. }), "{error}");
    let to = BindTo { interface: Some("no-such-if0".to_owned()), ..BindTo::default() };
    let error = UdpSocket::bind(&to).unwrap_err();
    assert!(matches!(&error, BindError::NoSuchInterface { interface, .. }
        if interface == "no-such-if0"));
    assert!(error.to_string().contains("no-such-if0 does not exist"), "{error}");
    let address = Some(Ipv4Addr::new(192, 0, 2, 77).into());
    let error = UdpSocket::bind(&BindTo { address, ..BindTo::default() }).unwrap_err();
    assert!(matches!(error, BindError::AddressUnavailable { .. }), "{error}");
}

#[test]
fn a_socket_on_an_interface_has_large_buffers() {
    let to = BindTo { interface: Some("lo".to_owned()), ..BindTo::default() };
    let socket = UdpSocket::bind(&to).unwrap();
    let (recv, send) = socket.buffer_sizes().unwrap();
    let machine = crate::machine::Machine::inspect();
    let granted = |limit: Option<u64>| if machine.net_admin { 4 << 20 } else { limit.unwrap_or(0) };
    // CAP_NET_ADMIN inside a user namespace does not count, so only the allowed part is certain.
    let sure = |limit: Option<u64>| granted(limit).min(limit.unwrap_or(0)) as usize;
    assert!(recv >= sure(machine.rmem_max) && send >= sure(machine.wmem_max), "{recv} {send}");
}
