//! `plait-lab bench --steer`: measures a steering node's core in process: packets per second of one
//! core, and the processing time per packet. TUN devices and the kernel are not included.

use std::time::Instant as Clock;

use anyhow::Result;
use plait_net::clock::thread_cpu_time;
use plait_proto::dida::DidaConfig;
use plait_proto::steer::{
    AttachmentConfig, ClientConfig, Downstream, Node, NodeConfig, Policy, Upstream,
};
use plait_proto::time::{Duration, Instant};
use serde::Serialize;

use super::More;
use crate::cli::BenchArgs;
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::measure::median;
use crate::output::{Meter, Output, Table, Verdict};

/// Bytes of a data packet, and of its IPv4 and TCP headers.
const PACKET_BYTES: usize = 1500;
const HEADER_BYTES: usize = 40;
const DATA_BYTES: u32 = (PACKET_BYTES - HEADER_BYTES) as u32;
/// Consecutive data packets of one flow, as TCP sends them.
const TRAIN: u32 = 10;
/// Virtual time between two packets: 1.2 Gbit/s of full packets.
const PACKET_TIME: Duration = Duration::from_micros(10);
const SERVER: [u8; 4] = [192, 0, 2, 9];
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const ON_WIFI: [u8; 4] = [10, 1, 0, 1];

/// How often, and how many packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteeringPlan {
    pub(crate) runs: usize,
    pub(crate) trains: u32,
    /// Trains in which every packet is timed.
    pub(crate) timed_trains: u32,
}

impl SteeringPlan {
    pub(crate) fn of(quick: bool) -> Self {
        match quick {
            true => Self { runs: 3, trains: 10_000, timed_trains: 5_000 },
            false => Self { runs: 5, trains: 100_000, timed_trains: 20_000 },
        }
    }
}

/// The client's acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Acks {
    /// Nothing.
    None,
    /// An acknowledgement for each packet.
    InOrder,
    /// The same, but in each train the fourth packet arrives after the eighth: four duplicates, of
    /// which DIDA holds two and then discards them.
    Disorder,
}

/// A kind of traffic.
#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    flows: u16,
    acks: Acks,
    dida: bool,
}

const LOADS: [Load; 6] = [
    Load { name: "down, 1 flow", flows: 1, acks: Acks::None, dida: false },
    Load { name: "down, 1000 flows", flows: 1000, acks: Acks::None, dida: false },
    Load { name: "down and ACKs, 1000 flows", flows: 1000, acks: Acks::InOrder, dida: false },
    Load { name: "the same with DIDA", flows: 1000, acks: Acks::InOrder, dida: true },
    Load { name: "DIDA, 1 flow in disorder", flows: 1, acks: Acks::Disorder, dida: true },
    Load { name: "DIDA, 1000 in disorder", flows: 1000, acks: Acks::Disorder, dida: true },
];

/// How much of one kind of traffic a core carries.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SteeringRow {
    load: &'static str,
    /// Packets of both directions, per run.
    packets: u64,
    /// Median of the runs.
    cpu_ns: u64,
    /// 99th percentile of the time that a packet spends in the node; median of the runs.
    packet_p99_ns: u64,
    /// ACKs that DIDA held, of the last run.
    held: u64,
}

impl SteeringRow {
    fn packets_per_second(&self) -> f64 {
        self.packets as f64 * 1e9 / self.cpu_ns as f64
    }

    fn packet_ns(&self) -> f64 {
        self.cpu_ns as f64 / self.packets as f64
    }

    /// The row for the machine interface.
    fn figures(&self) -> [Figure; 3] {
        let name = |what: &str| format!("steering, {}: {what}", self.load);
        [
            Figure::number(name("one core"), self.packets_per_second() / 1e6, "Mpackets/s"),
            Figure::number(name("per packet"), self.packet_ns(), "ns"),
            Figure::number(name("99th percentile"), self.packet_p99_ns as f64, "ns"),
        ]
    }
}

pub(crate) fn run(args: &BenchArgs, output: &Output) -> Result<Verdict> {
    let machine = Machine::detect();
    let plan = SteeringPlan::of(args.quick);
    let rows = print(plan, &machine, output)?;
    let figures: Vec<Figure> = rows.iter().flat_map(SteeringRow::figures).collect();
    let more = More { machine, runs: plan.runs };
    output.record("summary", &Summary::new("bench", &figures, more))?;
    Ok(Verdict::Good)
}

/// Measures, and prints the table.
pub(super) fn print(
    plan: SteeringPlan,
    machine: &Machine,
    output: &Output,
) -> Result<Vec<SteeringRow>> {
    let rows = measure_all(plan);
    output.records("measurement", &rows)?;
    output.lines(table(&rows).lines())?;
    output.line("")?;
    output.line(format!(
        "The steering node's core in process, two attachments, {PACKET_BYTES}-byte packets, CPU \
         time on one core; median of {}. {}",
        plan.runs,
        machine.sentence()
    ))?;
    Ok(rows)
}

/// Measures every kind of traffic.
fn measure_all(plan: SteeringPlan) -> Vec<SteeringRow> {
    let mut meter = Meter::new("steering node", "runs", LOADS.len() * plan.runs);
    LOADS.iter().map(|load| measure_row(plan, load, &mut meter)).collect()
}

fn measure_row(plan: SteeringPlan, load: &Load, meter: &mut Meter) -> SteeringRow {
    let (mut times, mut percentiles) = (Vec::new(), Vec::new());
    let (mut packets, mut held) = (0, 0);
    for _ in 0..plan.runs {
        let mut traffic = Traffic::new(load);
        // Warm-up, so that tables have grown.
        traffic.send(u32::from(load.flows) * 2, &mut None);
        let (packets_before, before) = (traffic.packets, thread_cpu_time());
        traffic.send(plan.trains, &mut None);
        times.push((thread_cpu_time() - before).as_nanos() as u64);
        packets = traffic.packets - packets_before;
        let mut timed = Some(Vec::new());
        traffic.send(plan.timed_trains, &mut timed);
        percentiles.push(percentile_99(timed.unwrap_or_default()));
        held = traffic.node.status(traffic.now).clients[0].counters.held;
        meter.finished_one();
    }
    let (cpu_ns, packet_p99_ns) = (median(times), median(percentiles));
    SteeringRow { load: load.name, packets, cpu_ns, packet_p99_ns, held }
}

/// The 99th percentile.
fn percentile_99(mut times: Vec<u64>) -> u64 {
    assert!(!times.is_empty(), "a timed part sends packets");
    times.sort_unstable();
    times[(times.len() * 99).div_ceil(100) - 1]
}

/// A node between a server and a client, and the traffic between them.
struct Traffic {
    node: Node,
    now: Instant,
    acks: Acks,
    /// Next byte of each flow.
    next: Vec<u32>,
    /// The flow whose turn it is.
    turn: usize,
    down: Vec<u8>,
    up: Vec<u8>,
    packets: u64,
}

impl Traffic {
    fn new(load: &Load) -> Self {
        let client = ClientConfig {
            name: "client".into(),
            address: std::net::IpAddr::from(CLIENT).into(),
            attachments: vec![
                AttachmentConfig::primary("lte"),
                AttachmentConfig::at("wifi", ON_WIFI.into()),
            ],
        };
        let config = NodeConfig {
            clients: vec![client],
            policy: Policy::Fixed,
            probe: None,
            dida: load.dida.then(DidaConfig::default),
            ..NodeConfig::default()
        };
        Self {
            node: Node::new(config, 1),
            now: Instant::ZERO,
            acks: load.acks,
            next: vec![0; load.flows.into()],
            turn: 0,
            down: packet(SERVER, CLIENT, PACKET_BYTES),
            up: packet(CLIENT, SERVER, HEADER_BYTES),
            packets: 0,
        }
    }

    /// Sends trains of the flows in turn. Times each packet if there is a list for it.
    fn send(&mut self, trains: u32, times: &mut Option<Vec<u64>>) {
        for _ in 0..trains {
            let flow = self.turn;
            self.turn = (flow + 1) % self.next.len();
            let first = self.next[flow];
            for n in 0..TRAIN {
                self.data(flow, first.wrapping_add(n * DATA_BYTES), times);
            }
            let end = |packets: u32| first.wrapping_add(packets * DATA_BYTES);
            let acks: &[u32] = match self.acks {
                Acks::None => &[],
                Acks::InOrder => &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
                Acks::Disorder => &[1, 2, 3, 3, 3, 3, 3, 8, 9, 10],
            };
            for packets in acks {
                self.ack(flow, end(*packets), times);
            }
            self.next[flow] = end(TRAIN);
            // Once for each batch, like a driver.
            if self.node.poll_timeout().is_some_and(|due| due <= self.now) {
                self.node.handle_timeout(self.now);
            }
            while self.node.poll_transmit().is_some() {}
        }
    }

    /// A data packet to the client. The node has changed the previous one, so the headers are
    /// written again.
    fn data(&mut self, flow: usize, seq: u32, times: &mut Option<Vec<u64>>) {
        self.down[16..20].copy_from_slice(&CLIENT);
        self.down[22..24].copy_from_slice(&(flow as u16 + 1).to_be_bytes());
        self.down[24..28].copy_from_slice(&seq.to_be_bytes());
        self.tick();
        let (node, now, packet) = (&mut self.node, self.now, &mut self.down);
        let verdict = timed(times, || node.handle_downstream(now, packet));
        assert!(matches!(verdict, Downstream::Forward(_)), "the client is known");
    }

    fn ack(&mut self, flow: usize, ack: u32, times: &mut Option<Vec<u64>>) {
        self.up[20..22].copy_from_slice(&(flow as u16 + 1).to_be_bytes());
        self.up[28..32].copy_from_slice(&ack.to_be_bytes());
        self.tick();
        let (node, now, packet) = (&mut self.node, self.now, &mut self.up);
        let verdict = timed(times, || node.handle_upstream(now, packet));
        assert!(matches!(verdict, Upstream::Forward | Upstream::Held), "the client is known");
    }

    fn tick(&mut self) {
        self.now += PACKET_TIME;
        self.packets += 1;
    }
}

/// Runs `work`, and records its time if there is a list for it.
fn timed<T>(times: &mut Option<Vec<u64>>, work: impl FnOnce() -> T) -> T {
    let Some(times) = times else { return work() };
    let before = Clock::now();
    let result = work();
    times.push(u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX));
    result
}

/// A TCP segment with the port 80 at the server. Its checksums are wrong, which a node does not
/// notice.
fn packet(from: [u8; 4], to: [u8; 4], bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    packet[..2].copy_from_slice(&[0x45, 0]);
    packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 6]);
    packet[12..16].copy_from_slice(&from);
    packet[16..20].copy_from_slice(&to);
    let server_port = if from == SERVER { 20..22 } else { 22..24 };
    packet[server_port].copy_from_slice(&80_u16.to_be_bytes());
    packet[32..36].copy_from_slice(&[0x50, 0x10, 0xff, 0xff]);
    packet
}

/// The rows as a table for people.
fn table(rows: &[SteeringRow]) -> Table {
    let heads = ["steering", "Mpackets/s", "ns per packet", "99 % ns", "held"];
    let mut table = Table::of_numbers(&heads);
    for row in rows {
        table.row([
            row.load.to_owned(),
            format!("{:.2}", row.packets_per_second() / 1e6),
            format!("{:.0}", row.packet_ns()),
            row.packet_p99_ns.to_string(),
            row.held.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_traffic_is_measured() {
        let plan = SteeringPlan { runs: 1, trains: 4000, timed_trains: 1000 };
        let rows = measure_all(plan);
        assert_eq!(rows.len(), LOADS.len());
        for (row, load) in rows.iter().zip(&LOADS) {
            let both = if load.acks == Acks::None { 1 } else { 2 };
            assert_eq!(row.packets, u64::from(plan.trains * TRAIN) * both, "{row:?}");
            assert!(row.cpu_ns > 0 && row.packet_p99_ns > 0, "{row:?}");
            let is_in_disorder = load.acks == Acks::Disorder;
            assert_eq!(row.held > 0, is_in_disorder, "{row:?}");
        }
    }

    #[test]
    fn both_attachments_carry_their_share() {
        let mut traffic = Traffic::new(&LOADS[0]);
        traffic.send(1001, &mut None);
        let status = traffic.node.status(traffic.now);
        let packets: Vec<u64> = status.clients[0].attachments.iter().map(|it| it.packets).collect();
        assert_eq!(packets, [5010, 5000]);
    }

    #[test]
    fn a_percentile_is_one_of_the_times() {
        assert_eq!(percentile_99((1..=100).rev().collect()), 99);
        assert_eq!(percentile_99(vec![7]), 7);
    }
}
