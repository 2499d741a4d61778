//! Target `dida_ops`: packets of both directions, time and configurations into DIDA.
//!
//! Whatever happens: every packet from a client goes on at once, is held, or was held and went on,
//! or was discarded and counted; nothing of it changes but its SACK option; nothing is kept beyond
//! its time; the bounds hold; a timer that is due has an effect.

use core::net::IpAddr;

use plait_proto::dida::{
    Dida, DidaConfig, GapFilled, HoldPolicy, ReleasedUntil, SackHandling, Upstream,
};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::tcp::{
    SackBlock, TcpFlags, TcpFlow, TcpPacket, TcpSegment, TcpSeq, mask_sack,
};

use crate::input::Input;
use crate::reached;

const STEPS_MAX: usize = 2000;
const HOLD_MAX: Duration = Duration::from_millis(300);
/// Each hold that ends and each flow that is forgotten takes one call at most.
const FIRES_MAX: usize = 2 * STEPS_MAX;
const SEGMENT_BYTES: u32 = 500;

/// Runs the operations in `data`.
pub fn dida_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut case = Case::new(&mut input);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        case.step(&mut input);
        case.check();
    }
    case.advance(HOLD_MAX);
    let stats = case.dida.stats();
    reached::statistics("dida_ops", &format!("{stats:?}"));
    assert_eq!((stats.held_now, stats.kept_now_bytes), (0, 0), "nothing is held for ever");
    case.advance(case.dida.config().idle);
    assert_eq!((case.dida.stats().flows, case.dida.poll_timeout()), (0, None));
}

struct Case {
    dida: Dida,
    now: Instant,
    given_in: u64,
    /// Held packets and originals of masked ones that may come out, by the time of their arrival,
    /// without their SACK blocks.
    withheld: Vec<(Instant, Vec<u8>)>,
    /// SACK blocks were filtered at some time: what is owed may come out more than once.
    has_filtered: bool,
    came_out: u64,
}

impl Case {
    fn new(input: &mut Input<'_>) -> Self {
        let config = config(input);
        Self {
            dida: Dida::new(config),
            now: Instant::from_millis(1),
            given_in: 0,
            withheld: Vec::new(),
            has_filtered: config.sack == SackHandling::Filter,
            came_out: 0,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 16 {
            0..=3 => {
                let packet = segment(input, false);
                self.down(&packet);
            }
            4..=9 => {
                let packet = segment(input, true);
                self.up(packet);
            }
            10 => {
                let packet = damaged(input);
                self.down(&packet);
                self.up(packet);
            }
            11 => {
                let length = usize::from(input.u8());
                let packet = input.bytes(length).to_vec();
                self.down(&packet);
                self.up(packet);
            }
            12 => self.advance(Duration::from_millis(input.u8().into())),
            13 => self.advance(Duration::from_micros(input.u16().into())),
            14 => {
                let difference = Duration::from_millis(input.u8().into());
                self.dida.set_delay_difference(ends(input, false).destination, difference);
            }
            _ => {
                let config = config(input);
                self.has_filtered |= config.sack == SackHandling::Filter;
                self.dida.reconfigure(self.now, config);
                self.drain();
            }
        }
    }

    fn down(&mut self, packet: &[u8]) {
        self.dida.handle_downstream(self.now, packet);
        self.drain();
    }

    fn up(&mut self, packet: Vec<u8>) {
        self.given_in += 1;
        let mut after = packet.clone();
        let upstream = self.dida.handle_upstream(self.now, &mut after);
        self.drain();
        if upstream == Upstream::Held {
            assert_eq!(after, packet, "what is held is not changed");
            let read = TcpPacket::read(&packet).expect("only TCP is held");
            assert!(is_plain(&read), "{read:?} is held");
            self.withheld.push((self.now, without_blocks(&packet)));
        } else if after != packet {
            assert_eq!(without_blocks(&after), without_blocks(&packet), "only SACK options change");
            let read = TcpPacket::read(&packet).expect("only TCP is masked");
            let is_pure = read.payload_bytes() == 0 && !read.has_signature();
            assert!(is_pure && (is_plain(&read) || self.has_filtered), "{read:?} is masked");
            self.withheld.push((self.now, without_blocks(&packet)));
        }
    }

    fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut fires = 0;
        while let Some(due) = self.dida.poll_timeout().filter(|due| *due <= end) {
            fires += 1;
            assert!(fires <= FIRES_MAX, "a timer that is due must have an effect");
            self.now = due.max(self.now);
            self.dida.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(packet) = self.dida.poll_transmit() {
            let packet = without_blocks(&packet);
            let position = self.withheld.iter().position(|(_, known)| *known == packet);
            let position = position.expect("it was withheld");
            if !self.has_filtered {
                let (since, _) = self.withheld.remove(position);
                let took = self.now.since(since);
                assert!(took <= HOLD_MAX, "withheld for {took:?}");
            }
            self.came_out += 1;
        }
    }

    fn check(&self) {
        let stats = self.dida.stats();
        let ends = stats.held_ends;
        assert_eq!(stats.forwarded.total() + stats.held, self.given_in, "{stats:?}");
        assert_eq!(stats.held, ends.total() + stats.held_now, "{stats:?}");
        assert_eq!(self.came_out, ends.total() - ends.discarded + stats.unmasked, "{stats:?}");
        let config = self.dida.config();
        assert!(stats.flows <= config.flows_max as u64, "{} flows", stats.flows);
        assert!(stats.kept_now_bytes <= config.held_bytes_max as u64, "{stats:?}");
        let due = self.dida.poll_timeout();
        assert!(due.is_none() == (stats.flows == 0), "known flows have a timer");
    }
}

/// The packet with NOPs in place of its SACK option.
fn without_blocks(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    mask_sack(&mut packet);
    packet
}

fn config(input: &mut Input<'_>) -> DidaConfig {
    DidaConfig {
        hold: input.pick([
            HoldPolicy::Optimum,
            HoldPolicy::Fixed(Duration::from_millis(40)),
            HoldPolicy::PlainOptimum,
            HoldPolicy::Printed,
            HoldPolicy::NetGrowth,
            HoldPolicy::DelayDifference,
            HoldPolicy::Off,
        ]),
        sack: input.pick(SackHandling::ALL),
        on_gap_filled: input.pick(GapFilled::ALL),
        released_until: input.pick(ReleasedUntil::ALL),
        hold_max: HOLD_MAX,
        flows_max: input.pick([4096, 1, 2, 0]),
        held_bytes_max: input.pick([8 << 20, 0, 60, 300]),
        held_packets_per_flow_max: input.pick([4096, 0, 1, 3]),
        idle: Duration::from_secs(input.pick([300, 0, 1])),
        rto_floor: Duration::from_millis(input.pick([200, 0, 1000])),
    }
}

/// Whether DIDA may withhold anything of it.
fn is_plain(read: &TcpPacket<'_>) -> bool {
    let flags = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::URG;
    read.payload_bytes() == 0
        && read.flags().any(TcpFlags::ACK)
        && !read.flags().any(flags)
        && !read.has_dsack()
        && !read.has_signature()
}

fn ends(input: &mut Input<'_>, is_upstream: bool) -> TcpFlow {
    let bits = input.u8();
    let (source, destination) = if bits & 4 == 0 {
        (IpAddr::from([192, 0, 2, 1]), IpAddr::from([10, 0, 0, 2]))
    } else {
        (IpAddr::from([1, 0, 0, 0, 0, 0, 0, 1_u16]), IpAddr::from([1, 0, 0, 0, 0, 0, 0, 2_u16]))
    };
    let flow =
        TcpFlow { source, destination, source_port: 443, destination_port: u16::from(bits & 3) };
    if is_upstream { flow.reversed() } else { flow }
}

/// A well-formed segment whose numbers lie close together, or a few of them far apart.
fn segment(input: &mut Input<'_>, is_upstream: bool) -> Vec<u8> {
    let flow = ends(input, is_upstream);
    let base = if input.u8() == 0xff { input.u16() << 2 } else { 0 };
    let number = |input: &mut Input<'_>| {
        TcpSeq(u32::from(base) << 16).plus(u32::from(input.u8() % 16) * SEGMENT_BYTES)
    };
    let (seq, ack) = (number(input), number(input));
    let what = input.u8();
    let blocks = [0, 1].map(|_| SackBlock { left: number(input), right: number(input) });
    let payload = vec![0; SEGMENT_BYTES as usize];
    let mut segment = TcpSegment::new(flow, seq, ack, &[]);
    segment.sack = &blocks[..usize::from(what & 3).min(2)];
    if is_upstream != (what & 4 == 0) {
        segment.payload = &payload;
    }
    match what >> 4 {
        0 => segment.flags = TcpFlags(input.u8()),
        1 => segment.window = input.u16(),
        2..=5 => segment.timestamps = Some((input.u8().into(), input.u8().into())),
        _ => {}
    }
    segment.to_packet()
}

/// A segment with a few bytes changed, or cut short.
fn damaged(input: &mut Input<'_>) -> Vec<u8> {
    let is_upstream = input.flag();
    let mut packet = segment(input, is_upstream);
    for _ in 0..input.u8() % 4 {
        let at = input.index(packet.len().min(120));
        packet[at] = input.u8();
    }
    if input.flag() {
        packet.truncate(input.index(packet.len()));
    }
    packet
}
