//! A proxy's answer as tables for people.

use std::collections::BTreeMap;

use plait_proxy::status::{AccessView, ConnectionView, Snapshot};

use crate::cli::format::{bytes, duration, percent};
use crate::output::Style;
use crate::proxy::Report;

/// Connections that are shown; the JSON answer has more.
const SHOWN_MAX: usize = 20;

/// The whole answer.
pub(super) fn text(report: &Report, style: Style) -> String {
    let Snapshot { uptime_s, open, accepted, .. } = &report.snapshot;
    let snapshot = &report.snapshot;
    let uptime = duration(*uptime_s as u64);
    let mut text = format!("{}  proxy, up for {uptime}\n", style.bold(&report.identity.name));
    for listener in &snapshot.listeners {
        let protocols = if listener.multipath { "MPTCP and TCP" } else { "TCP" };
        text.push_str(&format!("  {} on {}, {protocols}\n", listener.way, listener.address));
    }
    if !report.identity.sandbox.is_empty() {
        text.push_str(&format!("  sandbox: {}\n", report.identity.sandbox.join(", ")));
    }
    let next = snapshot.upstream.as_deref().unwrap_or("the servers themselves");
    text.push_str(&format!("  connects to: {next}\n"));
    text.push_str(&format!(
        "  connections: {open} open, {accepted} accepted; up {}, down {}\n",
        bytes(snapshot.up_bytes),
        bytes(snapshot.down_bytes)
    ));
    text.push_str(&counts("ended", &snapshot.ended));
    text.push_str(&counts("refused", &snapshot.refused));
    if snapshot.dropped > 0 {
        text.push_str(&format!(
            "  closed unheard, as too many were refused: {}\n",
            snapshot.dropped
        ));
    }
    if !snapshot.accesses.is_empty() {
        text.push_str(&accesses(&snapshot.accesses, style));
    }
    if !snapshot.connections.is_empty() {
        text.push_str(&connections(snapshot, style));
    }
    text
}

/// A line of counts that are not zero; nothing when all are.
fn counts(title: &str, counts: &BTreeMap<String, u64>) -> String {
    let there: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{} {count}", name.replace('_', " ")))
        .collect();
    if there.is_empty() { String::new() } else { format!("  {title}: {}\n", there.join(", ")) }
}

fn accesses(accesses: &[AccessView], style: Style) -> String {
    let mut text = format!("\n{}\n", style.bold("accesses"));
    text.push_str(&format!("  {:<16}{:>9}{:>14}{:>14}\n", "name", "share %", "received", "sent"));
    for access in accesses {
        text.push_str(&format!(
            "  {:<16}{:>9}{:>14}{:>14}\n",
            access.name,
            percent(access.share),
            bytes(access.received_bytes),
            bytes(access.sent_bytes)
        ));
    }
    text
}

fn connections(snapshot: &Snapshot, style: Style) -> String {
    let shown = snapshot.connections.len().min(SHOWN_MAX);
    let title = match snapshot.open - shown {
        0 => "connections".to_owned(),
        more => format!("connections (the {shown} oldest; {more} more)"),
    };
    let mut text = format!("\n{}\n", style.bold(&title));
    for connection in &snapshot.connections[..shown] {
        text.push_str(&connection_text(connection));
    }
    text
}

fn connection_text(connection: &ConnectionView) -> String {
    let mut text = format!(
        "  {} {} to {}, {}: up {}, down {}\n",
        connection.way,
        connection.client,
        connection.target.as_deref().unwrap_or("(not yet said)"),
        duration(connection.age_s as u64),
        bytes(connection.up_bytes),
        bytes(connection.down_bytes)
    );
    for subflow in &connection.subflows {
        let access = subflow.access.as_ref().map(|name| format!("{name}, "));
        text.push_str(&format!(
            "    {} {} to {}: {}rtt {:.1} ms, received {}, sent {}, again {}\n",
            subflow.side,
            subflow.local,
            subflow.remote,
            access.unwrap_or_default(),
            subflow.srtt_ms,
            bytes(subflow.received_bytes),
            bytes(subflow.sent_bytes),
            subflow.retransmits
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_state_is_shown() {
        let json = r#"{"kind":"proxy","name":"proxy0","sandbox":["landlock","seccomp"],
            "uptime_s":61.5,
            "listeners":[{"address":"10.0.0.1:3128","way":"http","multipath":true}],
            "upstream":"convert 192.0.2.1:5124","open":2,"accepted":9,"dropped":0,
            "up_bytes":1500,"down_bytes":2000000,"ended":{"complete":6,"idle":0,"reset":1},
            "refused":{"loop":0,"name_unknown":3},
            "accesses":[{"name":"lte","received_bytes":1000,"sent_bytes":500000,"share":0.25}],
            "connections":[{"id":1,"client":"10.0.0.7:1000","way":"http","target":"a.example:443",
            "age_s":3.2,"up_bytes":10,"down_bytes":20,"subflows":[{"side":"client","access":"lte",
            "local":"10.0.0.1:3128","remote":"10.0.0.7:1000","srtt_ms":12.34,"retransmits":2,
            "received_bytes":10,"sent_bytes":20}]}]}"#;
        assert!(Report::is_in(json));
        let report: Report = serde_json::from_str(json).unwrap();
        let expected = "\
proxy0  proxy, up for 1 min 1 s
  http on 10.0.0.1:3128, MPTCP and TCP
  sandbox: landlock, seccomp
  connects to: convert 192.0.2.1:5124
  connections: 2 open, 9 accepted; up 1.5 kB, down 2.0 MB
  ended: complete 6, reset 1
  refused: name unknown 3

accesses
  name              share %      received          sent
  lte                  25.0        1.0 kB      500.0 kB

connections (the 1 oldest; 1 more)
  http 10.0.0.7:1000 to a.example:443, 3 s: up 10 B, down 20 B
    client 10.0.0.1:3128 to 10.0.0.7:1000: lte, rtt 12.3 ms, received 10 B, sent 20 B, again 2
";
        assert_eq!(text(&report, Style::PLAIN), expected);
    }
}
