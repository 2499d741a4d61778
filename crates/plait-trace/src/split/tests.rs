use proptest::prelude::*;

use super::*;
use crate::capture::Capture;
use crate::capture::tests::{pcap, pcapng};
use crate::segment::tests::{frame, segment};

const CLIENT: [&str; 2] = ["10.1.0.1:5000", "10.2.0.1:5001"];
const SERVER: &str = "10.9.0.1:80";

fn split(file: &[u8], filter: Filter) -> Report {
    let mut capture = Capture::open(file).unwrap();
    let mut splitter = Splitter::new(filter);
    while let Ok(Some(packet)) = capture.next_packet() {
        match Segment::parse(&packet) {
            Ok(segment) => splitter.segment(packet.at_ns, &segment),
            Err(why) => splitter.skip(packet.at_ns, why),
        }
    }
    splitter.report()
}

/// A SYN from a client, with options.
fn syn(client: &str, seq: u32, options: &[u8]) -> Vec<u8> {
    let mut segment = segment(client, SERVER);
    (segment.syn, segment.ack, segment.payload_bytes, segment.seq) = (true, false, 0, seq);
    frame(&segment, options)
}

fn data(client: &str, seq: u32, bytes: u32, options: &[u8]) -> Vec<u8> {
    let mut segment = segment(client, SERVER);
    (segment.seq, segment.payload_bytes) = (seq, bytes);
    frame(&segment, options)
}

fn capable(bytes: u8) -> Vec<u8> {
    let mut option = vec![30, bytes, 0x01, 0x01];
    option.extend([1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1]);
    option.truncate(bytes.into());
    option
}

/// A mapping of data with numbers of eight bytes.
fn dss(dsn: u64, length: u16) -> Vec<u8> {
    let mut option = vec![30, 18, 0x20, 0x04 | 0x08];
    option.extend(dsn.to_be_bytes());
    option.extend([0, 0, 0, 1]);
    option.extend(length.to_be_bytes());
    option
}

/// The token of the server, by the key 8 to 1.
fn server_token() -> u32 {
    let parsed = crate::segment::Mptcp::parse(&capable(20), false);
    parsed.capable[1].unwrap().token
}

fn join(token: u32) -> Vec<u8> {
    let mut option = vec![30, 12, 0x10, 2];
    option.extend(token.to_be_bytes());
    option.extend([9; 4]);
    option
}

fn two_subflows() -> Vec<(u64, Vec<u8>)> {
    let mut packets = vec![
        (0, syn(CLIENT[0], 100, &[30, 4, 0x01, 0x01])),
        (10, data(CLIENT[0], 101, 0, &capable(20))),
        (20, data(CLIENT[0], 101, 1000, &dss(5000, 1000))),
        (30, syn(CLIENT[1], 900, &join(server_token()))),
        (1_000_040, data(CLIENT[1], 901, 500, &dss(6000, 500))),
        // What the first lost, the second sends again, with more.
        (1_000_050, data(CLIENT[1], 1401, 1000, &dss(5000, 1000))),
        (2_000_060, data(CLIENT[0], 1101, 100, &dss(6500, 100))),
    ];
    packets.push((2_000_070, vec![0; 60]));
    packets
}

#[test]
fn subflows_are_told_apart_and_the_stream_counts_once() {
    for file in [pcap(&two_subflows()), pcapng(&two_subflows())] {
        let report = split(&file, Filter::default());
        assert_eq!((report.capture.packets, report.capture.not_tcp), (8, 1));
        let [connection] = &report.connections[..] else { panic!("{report:?}") };
        assert!(connection.mptcp);
        assert_eq!(connection.client_token.as_deref(), Some("66840dda"));
        assert_eq!(connection.data_bytes(), [1600, 0]);
        let bytes: Vec<_> = connection.subflows.iter().map(|s| (s.joined, s.out.bytes)).collect();
        assert_eq!(bytes, [(false, 1100), (true, 1500)]);
        let [first, second] = [0, 1].map(|at| &connection.subflows[at].out);
        assert_eq!(first.bins.iter().sum::<u64>(), 1100);
        assert!((first.mbps - 1100.0 * 8.0 / 2.000_04 / 1e6).abs() < 1e-6, "{}", first.mbps);
        assert!((first.share + second.share - 1.0).abs() < 1e-9);
    }
}

#[test]
fn filters_are_by_port_and_token() {
    let file = pcap(&two_subflows());
    let filter = Filter { ports: vec![5001], ..Filter::default() };
    let report = split(&file, filter);
    assert_eq!(report.connections[0].subflows.len(), 1);
    assert_eq!(report.capture.filtered, 4);
    let filter = |token| Filter { tokens: vec![token], ..Filter::default() };
    assert_eq!(split(&file, filter(server_token())).connections.len(), 1);
    assert_eq!(split(&file, filter(1)).connections.len(), 0);
}

#[test]
fn a_connection_older_than_the_capture_is_grouped_by_its_token() {
    let packets = [
        (0, syn(CLIENT[0], 1, &join(7))),
        (1, syn(CLIENT[1], 1, &join(7))),
        (2, data(CLIENT[0], 2, 10, &dss(1, 10))),
        (3, data("10.3.0.1:9", 2, 10, &[])),
    ];
    let report = split(&pcap(&packets), Filter::default());
    let subflows: Vec<_> = report.connections.iter().map(|one| one.subflows.len()).collect();
    assert_eq!(subflows, [2, 1]);
    assert_eq!(report.connections[0].tokens(), "?/00000007");
    let [plain, ..] = report.connections[1].subflows[..].as_ref() else { panic!() };
    assert_eq!((plain.out.bytes, report.connections[1].mptcp), (10, false));
}

#[test]
fn a_port_that_is_used_again_is_another_connection() {
    let packets = [
        (0, syn(CLIENT[0], 100, &[])),
        (1, syn(CLIENT[0], 100, &[])),
        (2, data(CLIENT[0], 101, 10, &[])),
        (3, data(CLIENT[0], 101, 10, &[])),
        (4, syn(CLIENT[0], 7_000_000, &[])),
        (5, data(CLIENT[0], 7_000_001, 20, &[])),
    ];
    let report = split(&pcap(&packets), Filter::default());
    let out: Vec<_> = report.connections.iter().map(|one| one.subflows[0].out.clone()).collect();
    let bytes: Vec<_> = out.iter().map(|way| (way.bytes, way.repeated_bytes)).collect();
    assert_eq!(bytes, [(10, 10), (20, 0)]);
}

#[test]
fn more_connections_than_the_bound_are_summed_up() {
    let mut splitter = Splitter::new(Filter::default());
    for port in 0..FLOWS_MAX as u32 + 3 {
        let mut segment = segment(CLIENT[0], SERVER);
        segment.from.set_port(port as u16);
        splitter.segment(u64::from(port), &segment);
    }
    let report = splitter.report();
    assert_eq!(report.connections.len(), FLOWS_MAX);
    assert_eq!((report.capture.beyond_segments, report.capture.beyond_bytes), (3, 300));
}

proptest! {
    /// However segments of two subflows are cut, repeated and reordered, the sums are right.
    #[test]
    fn sums_are_those_of_the_streams(
        pieces in proptest::collection::vec((0_usize..2, 1_u32..1400, any::<bool>()), 1..60),
        start in any::<u32>(),
    ) {
        let mut sent = [0_u32; 2];
        let mut packets = vec![
            (0, syn(CLIENT[0], start, &[30, 4, 0x01, 0x01])),
            (1, data(CLIENT[0], start.wrapping_add(1), 0, &capable(20))),
            (2, syn(CLIENT[1], start, &join(server_token()))),
        ];
        let mut at = 3;
        for (subflow, bytes, again) in &pieces {
            let seq = start.wrapping_add(1).wrapping_add(sent[*subflow]);
            let dsn = u64::from(sent[0] + sent[1]) + 1;
            let packet = data(CLIENT[*subflow], seq, *bytes, &dss(dsn, *bytes as u16));
            for _ in 0..=usize::from(*again) {
                at += 70_000;
                packets.push((at, packet.clone()));
            }
            sent[*subflow] += bytes;
        }
        let report = split(&pcap(&packets), Filter::default());
        prop_assert_eq!(report.connections.len(), 1);
        let connection = &report.connections[0];
        prop_assert_eq!(connection.data_bytes(), [u64::from(sent[0] + sent[1]), 0]);
        for (subflow, sent) in connection.subflows.iter().zip(sent) {
            prop_assert_eq!(subflow.out.bytes, u64::from(sent));
            prop_assert_eq!(subflow.out.bins.iter().sum::<u64>(), u64::from(sent));
        }
    }
}
