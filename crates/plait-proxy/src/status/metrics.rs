//! A snapshot in the text format of Prometheus (version 0.0.4).

use std::fmt::{Display, Write as _};

use super::Snapshot;

/// The metrics' text. Connections are not told one by one: their number has no bound.
pub fn metrics(snapshot: &Snapshot) -> String {
    let mut text = Text(String::new());
    text.one("uptime_seconds", "gauge", "Time since the start.", snapshot.uptime_s);
    text.one("connections", "gauge", "Connections that are open.", snapshot.open);
    let help = "Connections that were accepted.";
    text.one("connections_accepted_total", "counter", help, snapshot.accepted);
    let help = "Connections that were closed unheard.";
    text.one("connections_dropped_total", "counter", help, snapshot.dropped);
    text.head("connections_ended_total", "counter", "Relayed connections by how they ended.");
    for (how, count) in &snapshot.ended {
        text.labelled("connections_ended_total", &[("how", how)], count);
    }
    text.head("refused_total", "counter", "Connections that were refused, by the reason.");
    for (reason, count) in &snapshot.refused {
        text.labelled("refused_total", &[("reason", reason)], count);
    }
    text.head("bytes_total", "counter", "Bytes carried: up from clients, down to them.");
    text.labelled("bytes_total", &[("direction", "up")], snapshot.up_bytes);
    text.labelled("bytes_total", &[("direction", "down")], snapshot.down_bytes);
    if !snapshot.accesses.is_empty() {
        text.head("access_bytes_total", "counter", "Bytes carried over each access.");
    }
    for access in &snapshot.accesses {
        for (direction, bytes) in [("received", access.received_bytes), ("sent", access.sent_bytes)]
        {
            let labels = [("access", access.name.as_str()), ("direction", direction)];
            text.labelled("access_bytes_total", &labels, bytes);
        }
    }
    text.0
}

struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP plait_proxy_{name} {help}");
        let _ = writeln!(self.0, "# TYPE plait_proxy_{name} {kind}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "plait_proxy_{name} {value}");
    }

    fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(self.0, "plait_proxy_{name}{{{}}} {value}", labels.join(","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::AccessView;
    use super::*;

    #[test]
    fn counts_stand_under_their_names() {
        let snapshot = Snapshot {
            uptime_s: 1.5,
            listeners: vec![],
            upstream: None,
            open: 2,
            accepted: 9,
            dropped: 1,
            up_bytes: 10,
            down_bytes: 20,
            ended: [("complete".into(), 6)].into(),
            refused: [("loop".into(), 1)].into(),
            accesses: vec![AccessView {
                name: "a \"b\"".into(),
                received_bytes: 3,
                sent_bytes: 4,
                share: 1.0,
            }],
            connections: vec![],
        };
        let text = metrics(&snapshot);
        for line in [
            "plait_proxy_uptime_seconds 1.5",
            "plait_proxy_connections 2",
            "plait_proxy_refused_total{reason=\"loop\"} 1",
            "plait_proxy_bytes_total{direction=\"down\"} 20",
            "plait_proxy_access_bytes_total{access=\"a \\\"b\\\"\",direction=\"sent\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a line has a first word");
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        }
    }
}
