//! Status lines for output that is not a terminal, as text and as JSON Lines.

use std::collections::BTreeMap;
use std::time::Duration;

use plait_proto::resequencer::{Released, ResequencerStats};
use plait_proto::stats::{AttemptsStatus, PathState};
use plait_proto::units::Rate;
use serde::Serialize;

use super::glyphs::state_word;
use super::model::{Gateway, Model, Path, Peer, Rates};
use crate::cli::format::{self, milliseconds, path_traits, percent};

/// A line for each peer and each path, every one with the time since the start of watching.
pub(super) fn text(model: &Model, now: Duration) -> String {
    let time = format!("{:8.1} s", now.as_secs_f64());
    let gateway = match (&model.failure, &model.gateway) {
        (Some(failure), _) => return format!("{time}  no answer: {}\n", failure.what),
        (None, None) => return format!("{time}  no answer yet\n"),
        (None, Some(gateway)) => gateway,
    };
    let mut text = String::new();
    for peer in &gateway.peers {
        text.push_str(&format!("{time}  {}  {}\n", gateway.tun, peer_text(peer)));
        for line in format::contact_lines(&peer.status, peer.contact.as_ref()) {
            text.push_str(&format!("{time}    {line}\n"));
        }
        for path in &peer.paths {
            text.push_str(&format!("{time}    {}\n", path_text(path)));
        }
    }
    if gateway.peers.is_empty() {
        text.push_str(&format!("{time}  {}  no peers\n", gateway.tun));
    }
    text
}

fn peer_text(peer: &Peer) -> String {
    let status = &peer.status;
    format!(
        "peer {:.12}  {}  {}  waiting {} packets, {}",
        status.public_key,
        status.state,
        rates_text(peer.rates),
        status.resequencer.waiting_now_packets,
        format::bytes(status.resequencer.waiting_now_bytes)
    )
}

fn path_text(path: &Path) -> String {
    let status = &path.status;
    let share = path.share.map_or_else(|| "-".into(), |share| format!("{:.0}", share * 100.0));
    format!(
        "{}  {}  {}  rtt {} ms  jitter {} ms  loss {} %  share {share} %  {}; {}",
        status.name,
        state_word(status),
        rates_text(path.rates),
        milliseconds(status.srtt_us),
        milliseconds(status.jitter_us),
        percent(status.loss_ratio),
        status.reason,
        path_traits(status).join(", ")
    )
}

fn rates_text(rates: Option<Rates>) -> String {
    let rate = |bps: f64| Rate::from_bits_per_second(bps.round() as u64);
    rates.map_or_else(
        || "out -  in -".into(),
        |rates| format!("out {}  in {}", rate(rates.out_bps), rate(rates.in_bps)),
    )
}

/// One record: a tick as a JSON document on one line.
#[derive(Serialize)]
struct Record<'a> {
    /// Seconds since the start of watching.
    t_s: f64,
    /// Why there is no answer; the last answer is then not repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(flatten)]
    gateway: Option<GatewayRecord<'a>>,
}

#[derive(Serialize)]
struct GatewayRecord<'a> {
    tun: &'a str,
    uptime_s: u64,
    /// Restarts seen since the start of watching.
    restarts: u32,
    peers: Vec<PeerRecord<'a>>,
    /// Drops since the gateway's start.
    drops: &'a BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct PeerRecord<'a> {
    public_key: &'a str,
    state: &'a str,
    /// Why it does not answer.
    trouble: Option<&'a str>,
    /// Attempts to reach it.
    attempts: Option<&'a AttemptsStatus>,
    out_bps: Option<u64>,
    in_bps: Option<u64>,
    paths: Vec<PathRecord<'a>>,
    /// Counters since the gateway's start.
    resequencer: &'a ResequencerStats,
    /// Packets that ended their wait since the record before.
    released: Option<Released>,
}

#[derive(Serialize)]
struct PathRecord<'a> {
    id: u8,
    name: &'a str,
    state: PathState,
    reason: &'a str,
    remote: &'a str,
    in_use: bool,
    standby: bool,
    metered: bool,
    out_bps: Option<u64>,
    in_bps: Option<u64>,
    share: Option<f64>,
    srtt_us: Option<u64>,
    jitter_us: Option<u64>,
    loss_ratio: f64,
    mtu_bytes: Option<u32>,
}

/// The tick as one line of JSON.
pub(super) fn json(model: &Model, now: Duration) -> serde_json::Result<String> {
    let error = match (&model.failure, &model.gateway) {
        (Some(failure), _) => Some(failure.what.as_str()),
        (None, None) => Some("no answer yet"),
        (None, Some(_)) => None,
    };
    let answered = model.gateway.as_ref().filter(|_| error.is_none());
    let record = Record {
        t_s: now.as_millis() as f64 / 1e3,
        error,
        gateway: answered.map(|gateway| gateway_record(gateway, model.restarts)),
    };
    Ok(serde_json::to_string(&record)? + "\n")
}

fn gateway_record(gateway: &Gateway, restarts: u32) -> GatewayRecord<'_> {
    GatewayRecord {
        tun: &gateway.tun,
        uptime_s: gateway.uptime_s,
        restarts,
        peers: gateway.peers.iter().map(peer_record).collect(),
        drops: &gateway.drops,
    }
}

fn peer_record(peer: &Peer) -> PeerRecord<'_> {
    PeerRecord {
        public_key: &peer.status.public_key,
        state: &peer.status.state,
        trouble: peer.contact.as_ref().and_then(|contact| contact.trouble.as_deref()),
        attempts: peer.status.attempts.as_ref(),
        out_bps: whole_bps(peer.rates, |rates| rates.out_bps),
        in_bps: whole_bps(peer.rates, |rates| rates.in_bps),
        paths: peer.paths.iter().map(path_record).collect(),
        resequencer: &peer.status.resequencer,
        released: peer.released,
    }
}

fn path_record(path: &Path) -> PathRecord<'_> {
    let status = &path.status;
    PathRecord {
        id: status.id,
        name: &status.name,
        state: status.state,
        reason: &status.reason,
        remote: &status.remote,
        in_use: status.in_use,
        standby: status.standby,
        metered: status.metered,
        out_bps: whole_bps(path.rates, |rates| rates.out_bps),
        in_bps: whole_bps(path.rates, |rates| rates.in_bps),
        share: path.share.map(|share| (share * 1e4).round() / 1e4),
        srtt_us: status.srtt_us,
        jitter_us: status.jitter_us,
        loss_ratio: status.loss_ratio,
        mtu_bytes: status.mtu_bytes,
    }
}

fn whole_bps(rates: Option<Rates>, which: fn(Rates) -> f64) -> Option<u64> {
    rates.map(|rates| which(rates).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answer, path, peer};
    use super::*;

    fn watched() -> Model {
        let mut model = Model::default();
        let lte = |sent| path("lte", 1, sent, 0);
        let first = vec![peer(vec![path("dsl", 0, 0, 0), lte(0)])];
        model.answered(Duration::ZERO, answer(first, 10));
        let second = vec![peer(vec![path("dsl", 0, 600_000, 150_000), lte(250_000)])];
        model.answered(Duration::from_secs(1), answer(second, 11));
        model
    }

    #[test]
    fn a_tick_in_text_has_a_line_for_each_peer_and_path() {
        let mut model = watched();
        let lines = text(&model, Duration::from_secs(1));
        let expected = "     \
            1.0 s  plait0  peer peer-key-in-  up  out 6.8 Mbit/s  in 1.2 Mbit/s  \
            waiting 12 packets, 14.4 kB\n     \
            1.0 s    dsl  up  out 4.8 Mbit/s  in 1.2 Mbit/s  rtt 13.2 ms  jitter 0.8 ms  \
            loss 0.5 %  share 75 %  answers; to 192.0.2.1:7788, mtu 1500\n     \
            1.0 s    lte  up  out 2.0 Mbit/s  in 0.0 kbit/s  rtt 13.2 ms  jitter 0.8 ms  \
            loss 0.5 %  share 25 %  answers; to 192.0.2.1:7788, mtu 1500\n";
        assert_eq!(lines, expected);
        model.failed(Duration::from_secs(2), "gone".into());
        assert_eq!(text(&model, Duration::from_secs(2)), "     2.0 s  no answer: gone\n");
    }

    #[test]
    fn a_tick_in_json_is_one_line_with_computed_rates() {
        let mut model = watched();
        let line = json(&model, Duration::from_millis(1000)).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        let record: serde_json::Value = serde_json::from_str(&line).unwrap();
        let dsl = &record["peers"][0]["paths"][0];
        assert_eq!(record["t_s"], 1.0);
        assert_eq!((&dsl["out_bps"], &dsl["share"]), (&4_800_000.into(), &0.75.into()));
        assert_eq!(record["peers"][0]["in_bps"], 1_200_000);
        assert!(record.get("error").is_none());
        model.failed(Duration::from_secs(2), "gone".into());
        let line = json(&model, Duration::from_secs(2)).unwrap();
        assert_eq!(line, "{\"t_s\":2.0,\"error\":\"gone\"}\n");
    }
}
