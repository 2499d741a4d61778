//! Links on a medium: what they have in place of a rate.

use std::collections::BTreeMap;

use plait_proto::time::Duration;
use plait_proto::units::Rate;
use plait_toml::{Bounds, Node, Problem, Section, Value};

use super::super::error::no_such;
use super::super::medium::{DBM, Kind};
use super::{Capacity, DirectionSpec, OF_DIRECTION, QueueSpec, limits, read_behind};
use crate::air::{Aggregate, Mode, RadioConfig, Width, calibration, path_loss_db};
use crate::link::{Discipline, Room};

/// A link's radio.
#[derive(Clone, PartialEq, Debug)]
pub struct AirSpec {
    /// The medium's name.
    pub medium: String,
    /// How its radio sends.
    pub radio: RadioConfig,
}

impl AirSpec {
    /// What the link carries alone and undisturbed, in one direction, at the IP layer.
    pub fn capacity(&self) -> Rate {
        Rate::from_bits_per_second(calibration::capacity_bps(&self.radio).round() as u64)
    }
}

/// Options that belong to links on a medium only.
pub(super) const OPTIONS: &[&str] = &[
    "width_mhz",
    "centre_mhz",
    "streams",
    "tx_power_dbm",
    "distance_m",
    "path_loss_db",
    "capacity_mbit",
    "frame_packets",
    "frame_air_ms",
    "retries",
];
/// Options of other links that a medium decides.
pub(super) const DECIDED: &[&str] = &[
    "rate_mbit",
    "trace",
    "rate_steps",
    "rate_repeat_s",
    "course",
    "policer",
    "shaper",
    "grants",
    "aggregation",
    "queue",
    "queue_ms",
    "queue_bytes",
    "queue_scales",
];

const CENTRE_MHZ: Bounds = Bounds::new(4900.0, 7125.0, "megahertz");
const DISTANCE_M: Bounds = Bounds::new(0.1, 1000.0, "metres");
const LOSS_DB: Bounds = Bounds::new(0.0, 200.0, "decibels");
const AIR_MS: Bounds = Bounds::new(0.1, 5.4, "milliseconds");

/// Middle of the 5 GHz band; transmit power and distance of 003.
const DEFAULT_CENTRE_MHZ: f64 = 5500.0;
const DEFAULT_TX_POWER_DBM: f64 = 17.0;
const DEFAULT_DISTANCE_M: f64 = 3.0;
/// 003's queues: between 300 and 450 packets.
pub(super) const QUEUE_PACKETS: u64 = 400;
/// Longest frame of usual drivers.
const FRAME_AIR_MS: f64 = 4.0;
/// As ath9k: a packet is given up after so many.
const RETRIES: u32 = 30;

/// Reads a link's radio; `None` when it is on no medium that is known.
pub(super) fn read(section: &mut Section<'_>, kinds: &BTreeMap<&str, Kind>) -> Option<AirSpec> {
    if let Some(Node { value: Value::List(_), .. }) = section.get("medium") {
        let text = "a link in more than one medium";
        section.problem("medium", Problem::new(text, "name one, as in medium = \"air\""));
        section.know(OPTIONS);
        section.know(&["queue_packets"]);
        return None;
    }
    let medium = section.text("medium");
    let kind = medium.as_ref().and_then(|medium| kinds.get(medium.as_str()));
    if let (Some(medium), None) = (&medium, kind) {
        let known = kinds.keys().map(|name| (*name).to_owned()).collect();
        section.problem("medium", no_such("medium", medium, known));
    }
    let Kind { standard, antennas } = kind.copied().unwrap_or_default();
    let width = read_width(section);
    let streams = section.integer("streams", (1, 4), "streams").unwrap_or(1);
    let centre_mhz = section.number("centre_mhz", CENTRE_MHZ).unwrap_or(DEFAULT_CENTRE_MHZ);
    let tx_power_dbm = section.number("tx_power_dbm", DBM).unwrap_or(DEFAULT_TX_POWER_DBM);
    let loss_db = read_loss(section, centre_mhz) + antennas.splitters_db();
    let most = standard.window();
    let packets_max = section.integer("frame_packets", (1, most.into()), "packets").unwrap_or(most);
    let air_ms = section.number("frame_air_ms", AIR_MS).unwrap_or(FRAME_AIR_MS);
    let retries_max = section.integer("retries", (0, 1000), "retries").unwrap_or(RETRIES);
    let room = section.integer("queue_packets", (1, 1 << 20), "packets").unwrap_or(QUEUE_PACKETS);
    let radio = RadioConfig {
        mode: Mode { standard, width: width.unwrap_or(Width::Mhz80), streams },
        centre_mhz,
        tx_power_dbm,
        path_loss_db: loss_db,
        aggregate: Aggregate { packets_max, air_max: Duration::from_secs_f64(air_ms / 1e3) },
        retries_max,
        queue_packets: room,
        rate_scale: 1.0,
    };
    let radio = read_capacity(section, radio);
    kind?;
    Some(AirSpec { medium: medium?, radio: radio? }).filter(|_| width.is_some())
}

/// Reads a direction of a link on a medium: what happens to packets that have crossed the air.
pub(super) fn read_way<'a>(
    mut own: Section<'a>,
    link: &mut Section<'a>,
    rtt: Option<(f64, f64)>,
    air: Option<&AirSpec>,
) -> Option<DirectionSpec> {
    own.know(OF_DIRECTION);
    own.no_effect(DECIDED, "medium", "links without a medium");
    own.no_effect(&["queue_packets"], "medium", "the link as a whole");
    let behind = read_behind(&mut own, link, rtt);
    own.finish();
    let (air, behind) = air.zip(behind)?;
    let room = Room::Packets(air.radio.queue_packets);
    let queue = QueueSpec { discipline: Discipline::DropTail, room };
    let plain = DirectionSpec::new(Capacity::Fixed(air.capacity()), behind.delay);
    Some(behind.of(DirectionSpec { queue, ..plain }))
}

fn read_width(section: &mut Section<'_>) -> Option<Width> {
    if !section.holds_any(&["width_mhz"]) {
        section.know(&["width_mhz"]);
        return Some(Width::Mhz80);
    }
    let mhz: u16 = section.integer("width_mhz", (1, 10_000), "megahertz")?;
    let found = Width::ALL.iter().find(|(known, _)| *known == mhz).map(|(_, width)| *width);
    if found.is_none() {
        let known: Vec<String> = Width::ALL.iter().map(|(known, _)| known.to_string()).collect();
        let text = format!("no channel is {mhz} MHz wide");
        let help = format!("choose one of: {}", known.join(", "));
        section.problem("width_mhz", Problem::new(text, help));
    }
    found
}

fn read_loss(section: &mut Section<'_>, centre_mhz: f64) -> f64 {
    if section.holds_any(&["path_loss_db"]) {
        section.no_effect(&["distance_m"], "path_loss_db", "links without path_loss_db");
        return section.number("path_loss_db", LOSS_DB).unwrap_or_default();
    }
    section.know(&["path_loss_db"]);
    let distance_m = section.number("distance_m", DISTANCE_M).unwrap_or(DEFAULT_DISTANCE_M);
    path_loss_db(distance_m, centre_mhz)
}

/// Scales the radio's rates to a capacity, if one is stated.
fn read_capacity(section: &mut Section<'_>, radio: RadioConfig) -> Option<RadioConfig> {
    if !section.holds_any(&["capacity_mbit"]) {
        section.know(&["capacity_mbit"]);
        return Some(radio);
    }
    let mbit = section.number("capacity_mbit", limits::MBIT)?;
    match calibration::rate_scale(&radio, mbit * 1e6) {
        Some(rate_scale) => Some(RadioConfig { rate_scale, ..radio }),
        None => {
            let packets = radio.aggregate.packets_max;
            let text = format!("frames of {packets} packets never carry {mbit} Mbit/s");
            let help = "allow more packets in a frame (frame_packets), or state less";
            section.problem("capacity_mbit", Problem::new(text, help));
            None
        }
    }
}
