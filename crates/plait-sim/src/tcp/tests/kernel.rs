//! Each end alone against connections of a kernel, packet by packet: it is given what arrived at
//! the kernel's end, when it did, and must send what the kernel sent.

use plait_proto::congestion::{Algorithm, ControllerConfig};

use super::*;

/// So far apart two acknowledgements are the same.
const AT_ONCE: Duration = Duration::from_micros(50);

/// A line of a capture.
#[derive(Debug)]
enum Event {
    Syn,
    SynAck { window: u64 },
    Data(Segment),
    Ack(Segment),
}

/// A segment with data that a sender sent: its start, and whether it had been sent before.
type Sending = (u64, bool);

fn capture(text: &str) -> Vec<(Instant, Event)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).unwrap_or_else(|| panic!("no event: {line}"))).collect()
}

fn parse(line: &str) -> Option<(Instant, Event)> {
    let mut words = line.split_whitespace();
    let micros: u64 = words.next()?.parse().ok()?;
    let kind = words.next()?;
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    let flags = Flags { syn: false, ack: true };
    let event = match kind {
        "SYN" => Event::Syn,
        "SYN-ACK" => Event::SynAck { window: number()? },
        "DATA" => {
            let (seq, len, ts_ms, ts_echo_ms) = (number()?, number()?, number()?, number()?);
            Event::Data(Segment { seq, len, ts_ms, ts_echo_ms, flags, ..Segment::default() })
        }
        "ACK" => {
            let (ack, window, ts_ms, ts_echo_ms) = (number()?, number()?, number()?, number()?);
            let blocks = words.map(|word| {
                let (start, end) = word.split_once('-').expect("a block has two ends");
                let edge = |edge: &str| edge.parse().expect("an edge is a number");
                SeqRange { start: edge(start), end: edge(end) }
            });
            let sack = sack_option(ack, blocks.collect());
            Event::Ack(Segment {
                ack,
                window,
                ts_ms,
                ts_echo_ms,
                sack,
                flags,
                ..Segment::default()
            })
        }
        _ => return None,
    };
    Some((Instant::ZERO + Duration::from_micros(micros), event))
}

/// The first block reports a duplicate where it is acknowledged or inside the second (RFC 2883).
fn sack_option(ack: u64, mut blocks: Vec<SeqRange>) -> SackOption {
    let is_dsack = blocks.first().is_some_and(|first| {
        first.end <= ack || blocks.get(1).is_some_and(|second| second.contains(*first))
    });
    let dsack = is_dsack.then(|| blocks.remove(0));
    SackOption::new(dsack, blocks)
}

/// The share of the kernel's acknowledgements that the receiver sends, too, at the same time and
/// with the same blocks.
fn same_acks(text: &str, sack: bool) -> f64 {
    // Reports beyond a gap are not compressed there (`tcp_comp_sack_nr` 0).
    let config = ReceiverConfig { sack, is_of_today: false, ..ReceiverConfig::default() };
    let mut receiver = TcpReceiver::new(config);
    let (mut kernel, mut ours) = (Vec::new(), Vec::new());
    for (now, event) in capture(text) {
        while let Some(due) = receiver.poll_timeout().filter(|due| *due <= now) {
            receiver.handle_timeout(due);
            ours.extend(receiver.poll_transmit(due).map(|ack| (due, ack)));
        }
        match event {
            Event::Syn => {
                let flags = Flags { syn: true, ack: false };
                receiver.handle_segment(now, &Segment { flags, ..Segment::default() });
                receiver.poll_transmit(now).expect("a SYN is answered");
            }
            Event::SynAck { .. } => {}
            Event::Data(data) => {
                receiver.handle_segment(now, &data);
                ours.extend(receiver.poll_transmit(now).map(|ack| (now, ack)));
                receiver.poll_deliver();
            }
            Event::Ack(ack) => kernel.push((now, ack)),
        }
    }
    let mut ours = ours.into_iter().peekable();
    let same = kernel.iter().filter(|(at, ack)| {
        while ours.next_if(|(ours, _)| *ours + AT_ONCE < *at).is_some() {}
        ours.next_if(|(_, ours)| ours.ack == ack.ack && ours.sack == ack.sack).is_some()
    });
    same.count() as f64 / kernel.len() as f64
}

#[test]
fn a_receiver_acknowledges_as_linux() {
    let with_sack = same_acks(include_str!("kernel/sack-3-receiver.txt"), true);
    assert!(with_sack > 0.95, "{with_sack}");
    let without = same_acks(include_str!("kernel/no-sack-3-receiver.txt"), false);
    assert!(without > 0.98, "{without}");
}

/// What the kernel and the sender send, given the same acknowledgements.
fn sendings(text: &str, recovery: Recovery) -> [Vec<Sending>; 2] {
    let controller = ControllerConfig::from(Algorithm::CubicLinux);
    let config =
        SenderConfig { recovery, reordering_max: 3, controller, ..SenderConfig::default() };
    let mut sender = TcpSender::new(config);
    let [mut kernel, mut ours] = [Vec::new(), Vec::new()];
    let send = |sender: &mut TcpSender, now, ours: &mut Vec<Sending>| {
        while let Some(segment) = sender.poll_transmit(now) {
            note(ours, &segment);
        }
    };
    for (now, event) in capture(text) {
        while let Some(due) = sender.poll_timeout().filter(|due| *due <= now) {
            sender.handle_timeout(due);
            send(&mut sender, due, &mut ours);
        }
        match event {
            Event::Syn => {}
            Event::SynAck { window } => {
                let flags = Flags { syn: true, ack: true };
                sender.handle_segment(now, &Segment { flags, window, ..Segment::default() });
            }
            Event::Data(data) => note(&mut kernel, &data),
            Event::Ack(ack) => sender.handle_segment(now, &ack),
        }
        send(&mut sender, now, &mut ours);
    }
    [kernel, ours]
}

fn note(sendings: &mut Vec<Sending>, segment: &Segment) {
    if segment.len > 0 {
        let is_again = sendings.iter().any(|(seq, _)| *seq == segment.seq);
        sendings.push((segment.seq, is_again));
    }
}

#[test]
fn a_sender_sends_again_what_linux_does_in_the_same_order() {
    let sack3 = Recovery::Sack { dup_threshold: DupThreshold::Fixed(3) };
    let captures = [
        (include_str!("kernel/sack-3-sender.txt"), sack3, 100),
        (include_str!("kernel/no-sack-3-sender.txt"), Recovery::NewReno, 200),
    ];
    for (text, recovery, least) in captures {
        let [kernel, ours] = sendings(text, recovery);
        let again = |sendings: &[Sending]| {
            sendings.iter().filter(|(_, again)| *again).map(|(seq, _)| *seq).collect::<Vec<_>>()
        };
        assert!(again(&kernel).len() >= least, "{}", again(&kernel).len());
        assert_eq!(again(&ours), again(&kernel), "{recovery:?}");
        let highest = |sendings: &[Sending]| sendings.iter().map(|(seq, _)| *seq).max();
        let off = highest(&ours).unwrap().abs_diff(highest(&kernel).unwrap());
        // Linux cuts its bursts at the pieces that the application wrote.
        assert!(off <= 4 * 1448, "{recovery:?}: {off} bytes apart");
    }
}
