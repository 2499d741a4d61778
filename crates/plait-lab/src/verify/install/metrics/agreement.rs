//! The metrics beside `plait status --json`: each figure that both have, of every peer and path.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use serde_json::Value;

use crate::figure::Figure;
use crate::gateway::{Gateway, Scrape};

/// A metric of a peer or path, the status' field, and what of the field's unit is one of the
/// metric's. Counters end in `_total`.
type Same = (&'static str, &'static str, f64);

const OF_PEERS: &[Same] = &[
    ("peer_handshakes_total", "/handshakes", 1.0),
    ("peer_inner_mtu_bytes", "/inner_mtu_bytes", 1.0),
    ("peer_inner_sent_packets_total", "/inner_sent_packets", 1.0),
    ("peer_inner_sent_bytes_total", "/inner_sent_bytes", 1.0),
    ("peer_inner_delivered_packets_total", "/inner_delivered_packets", 1.0),
    ("peer_inner_delivered_bytes_total", "/inner_delivered_bytes", 1.0),
    ("peer_backlog_packets", "/backlog/packets", 1.0),
    ("peer_backlog_bytes", "/backlog/bytes", 1.0),
    ("peer_repaired_packets_total", "/backlog/repaired_packets", 1.0),
    ("peer_copied_bytes_total", "/backlog/copied_bytes", 1.0),
    ("resequencer_at_once_packets_total", "/resequencer/at_once", 1.0),
    ("resequencer_waited_packets_total", "/resequencer/waited", 1.0),
    ("resequencer_wait_longest_seconds", "/resequencer/waiting_max_us", 1e6),
    ("resequencer_waiting_packets", "/resequencer/waiting_now_packets", 1.0),
    ("resequencer_given_up_total", "/resequencer/given_up", 1.0),
    ("resequencer_duplicate_packets_total", "/resequencer/duplicates", 1.0),
];

const OF_PATHS: &[Same] = &[
    ("path_up", "/in_use", 1.0),
    ("path_standby", "/standby", 1.0),
    ("path_metered", "/metered", 1.0),
    ("path_price_class", "/price", 1.0),
    ("path_weight", "/weight", 1.0),
    ("path_rtt_seconds", "/srtt_us", 1e6),
    ("path_rtt_min_seconds", "/min_rtt_us", 1e6),
    ("path_rtt_variation_seconds", "/jitter_us", 1e6),
    ("path_delay_excess_seconds", "/delay_excess_us", 1e6),
    ("path_loss_ratio", "/loss_ratio", 1.0),
    ("path_mtu_bytes", "/mtu_bytes", 1.0),
    ("path_in_flight_bytes", "/in_flight_bytes", 1.0),
    ("path_window_bytes", "/window_bytes", 1.0),
    ("path_pacing_bytes_per_second", "/pacing_rate_bps", 8.0),
    ("path_capacity_bytes_per_second", "/capacity_bps", 8.0),
    ("path_delivery_bytes_per_second", "/delivery_rate_bps", 8.0),
    ("path_sent_packets_total", "/sent_packets", 1.0),
    ("path_sent_bytes_total", "/sent_bytes", 1.0),
    ("path_control_packets_total", "/control_packets", 1.0),
    ("path_rescued_packets_total", "/rescued_packets", 1.0),
    ("path_received_packets_total", "/received_packets", 1.0),
    ("path_received_bytes_total", "/received_bytes", 1.0),
    ("path_delivered_bytes_total", "/delivered_bytes", 1.0),
    ("path_lost_packets_total", "/lost_packets", 1.0),
    ("path_late_packets_total", "/late_packets", 1.0),
    ("path_reported_lost_packets_total", "/reported_lost_packets", 1.0),
];

/// What was compared.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    compared: u64,
    /// Gauges that changed between the two scrapes: what the status had meanwhile is open.
    changed: u64,
    wrong: Vec<String>,
}

impl Agreement {
    /// A scrape, the status, and a scrape again: a counter of the status lies between those of the
    /// scrapes, and what is alike in both is the same in the status.
    pub(super) fn of(gateway: &mut Gateway, netns: &NetNs, at: SocketAddr) -> Result<Self> {
        let before = Scrape::take(netns, at)?;
        let status = gateway.status_json(netns)?.context("the gateway says nothing")?;
        // The first text may be given out again for a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let after = Scrape::take(netns, at)?;
        let mut agreement = Self::default();
        agreement.compare([&before.samples, &after.samples], &status);
        Ok(agreement)
    }

    fn compare(&mut self, scrapes: [&BTreeMap<String, f64>; 2], status: &Value) {
        for peer in status["peers"].as_array().into_iter().flatten() {
            let key = peer["public_key"].as_str().unwrap_or_default();
            let label: String = key.chars().take(8).collect();
            for same in OF_PEERS {
                self.one(scrapes, same, &format!("peer=\"{label}\""), peer);
            }
            for path in peer["paths"].as_array().into_iter().flatten() {
                let name = path["name"].as_str().unwrap_or_default();
                for same in OF_PATHS {
                    self.one(scrapes, same, &format!("peer=\"{label}\",path=\"{name}\""), path);
                }
            }
        }
        for (reason, count) in status["drops"].as_object().into_iter().flatten() {
            let same = ("drops_total", "", 1.0);
            self.one(scrapes, &same, &format!("reason=\"{reason}\""), count);
        }
    }

    fn one(
        &mut self,
        [before, after]: [&BTreeMap<String, f64>; 2],
        (metric, field, scale): &Same,
        labels: &str,
        of: &Value,
    ) {
        let told = of.pointer(field).unwrap_or(&Value::Null);
        let told = told.as_f64().or_else(|| told.as_bool().map(|is_so| is_so.into()));
        let series = format!("plait_{metric}{{{labels}}}");
        let shown = [before.get(&series).copied(), after.get(&series).copied()];
        let Some(told) = told else {
            // Neither has a value, or it came or went meanwhile.
            self.changed += u64::from(shown != [None; 2]);
            return;
        };
        let told = told / scale;
        let near = |shown: f64| (shown - told).abs() <= 1e-9 * told.abs();
        let agrees = match shown {
            [Some(first), Some(second)] if metric.ends_with("_total") => {
                first <= told && told <= second
            }
            [Some(first), Some(second)] if first == second => near(first),
            [Some(_), Some(_)] | [None, Some(_)] | [Some(_), None] => {
                self.changed += 1;
                return;
            }
            [None, None] => false,
        };
        self.compared += 1;
        if !agrees {
            self.wrong.push(format!("{series}: {told} between {shown:?}"));
        }
    }

    pub(super) fn figures(&self, source: &'static str) -> Vec<Figure> {
        for wrong in self.wrong.iter().take(10) {
            crate::output::note(format!("install.5: {wrong}"));
        }
        vec![
            Figure::count("figures compared with plait status --json", self.compared)
                .at_least(30_000.0, source),
            Figure::count("of others, changed meanwhile", self.changed),
            Figure::none("figures that do not agree", self.wrong.len() as u64, source),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_figure_that_differs_is_found() {
        let samples = |rtt: f64, sent: f64| {
            BTreeMap::from([
                ("plait_path_rtt_seconds{peer=\"abcdefgh\",path=\"dsl\"}".to_owned(), rtt),
                ("plait_path_sent_bytes_total{peer=\"abcdefgh\",path=\"dsl\"}".to_owned(), sent),
            ])
        };
        let path = json!({ "name": "dsl", "srtt_us": 13_000, "sent_bytes": 10 });
        let status = json!({ "peers": [{ "public_key": "abcdefghijk=", "paths": [path] }] });
        let wrong = |first: (f64, f64), second: (f64, f64)| {
            let mut agreement = Agreement::default();
            let scrapes = [samples(first.0, first.1), samples(second.0, second.1)];
            agreement.compare([&scrapes[0], &scrapes[1]], &status);
            (agreement.compared, agreement.wrong.len())
        };
        assert_eq!(wrong((0.013, 9.0), (0.013, 11.0)), (2, 0));
        assert_eq!(wrong((0.014, 9.0), (0.014, 11.0)), (2, 1));
        assert_eq!(wrong((0.013, 11.0), (0.013, 12.0)), (2, 1));
        assert_eq!(wrong((0.012, 10.0), (0.013, 10.0)), (1, 0), "it changed meanwhile");
    }
}
