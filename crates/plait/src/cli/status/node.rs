//! A steering node's answer as tables for people.

use plait_proto::dida::DidaStats;
use plait_proto::steer::{AttachmentState, AttachmentStatus, ClientStatus};

use crate::cli::format::{bytes, duration, milliseconds, percent};
use crate::output::Style;
use crate::steer::{Report, Way};

/// Headings of a client's table; the first two columns are aligned left, the others right.
const HEADINGS: [&str; 9] =
    ["attachment", "state", "share %", "weight", "price", "rtt ms", "jitter", "packets", "sent"];

/// The whole answer.
pub(super) fn text(report: &Report, style: Style) -> String {
    let node = &report.node;
    let mut text = format!(
        "{}  steering node, up for {}  policy {}, per {}\n",
        style.bold(&report.tun),
        duration(report.uptime_s),
        node.policy,
        node.granularity
    );
    for client in &node.clients {
        text.push('\n');
        text.push_str(&client_text(client, &report.ways, style));
    }
    if let Some(dida) = &node.dida {
        text.push_str(&format!("\n{}\n{}", style.bold("DIDA"), dida_text(dida)));
    }
    if node.unknown > 0 {
        text.push_str(&format!("\nof no known client, passed on: {}\n", node.unknown));
    }
    if !node.drops.is_empty() {
        text.push_str(&format!("\n{}\n", style.bold("drops")));
        let width = node.drops.keys().map(String::len).max().unwrap_or(0);
        for (reason, count) in &node.drops {
            text.push_str(&format!("  {reason:width$}  {count:>12}\n"));
        }
    }
    text
}

fn client_text(client: &ClientStatus, ways: &[Way], style: Style) -> String {
    let counters = &client.counters;
    let mut text =
        format!("{} {}  {}\n", style.bold("client"), client.name, client.addresses.join(", "));
    let difference = match client.delay_difference_us {
        Some(us) => format!("; delay difference {} ms", milliseconds(Some(us))),
        None => String::new(),
    };
    text.push_str(&format!("  flows {}{difference}\n", client.flows));
    text.push_str(&format!(
        "  packets down: steered {}; on the primary: first of a flow {}, SYN/FIN/RST {}, other \
         {}, no other attachment {}\n",
        counters.steered,
        counters.first,
        counters.control,
        counters.other + counters.fragments + counters.opaque,
        counters.last_resort
    ));
    text.push_str(&format!(
        "  packets up: {} ({}), held or discarded {}\n",
        counters.upstream_packets,
        bytes(counters.upstream_bytes),
        counters.held
    ));
    text.push_str(&table(client, ways, style));
    text
}

fn table(client: &ClientStatus, ways: &[Way], style: Style) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(client.attachments.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..HEADINGS.len()).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let mut line = format!("  {:<w$}  ", row[0], w = widths[0]);
        let state = format!("{:<w$}", row[1], w = widths[1]);
        let attachment = index.checked_sub(1).map(|index| &client.attachments[index]);
        line.push_str(&match attachment.map(|one| one.state) {
            Some(AttachmentState::Up) => style.green(&state),
            Some(AttachmentState::Unproven) => style.yellow(&state),
            Some(_) => style.red(&state),
            None => state,
        });
        for (cell, width) in row.iter().zip(&widths).skip(2) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        text.push_str(&if index == 0 { style.bold(&line) } else { line });
        text.push('\n');
        if let Some(attachment) = attachment {
            text.push_str(&format!("    {}\n", traits(client, attachment, ways)));
        }
    }
    text
}

fn row(attachment: &AttachmentStatus) -> [String; HEADINGS.len()] {
    [
        attachment.name.clone(),
        attachment.state.name().into(),
        percent(attachment.share),
        attachment.weight.map_or_else(|| "-".into(), |weight| weight.to_string()),
        attachment.price.to_string(),
        milliseconds(attachment.rtt_us),
        milliseconds(attachment.rtt_variation_us),
        attachment.packets.to_string(),
        bytes(attachment.bytes),
    ]
}

/// Where an attachment leads, how, and the reason for its state.
fn traits(client: &ClientStatus, attachment: &AttachmentStatus, ways: &[Way]) -> String {
    let way =
        ways.iter().find(|way| way.client == client.name && way.attachment == attachment.name);
    let to = match attachment.addresses.is_empty() {
        true => "as it is".to_owned(),
        false => format!("to {}", attachment.addresses.join(", ")),
    };
    let through = way.map_or_else(String::new, |way| format!(", {}", way.through));
    let reason = match way {
        Some(way) if !way.there => way.reason.as_str(),
        Some(way) if way.rule_missing => {
            "the client answers, but lacks its rule: plait steer --client-rules"
        }
        _ => attachment.reason.as_str(),
    };
    format!("{to}{through}: {reason}")
}

fn dida_text(dida: &DidaStats) -> String {
    let ends = &dida.held_ends;
    let gaps = dida.gaps_filled + dida.gaps_expired + dida.gaps_given_up;
    let mean_us = dida.gap_total_us.checked_div(gaps);
    format!(
        "  holds for {} ms now; flows {}\n  \
         duplicate ACKs held {} (now {}): discarded {}, forwarded {}, released {}\n  \
         SACK options masked {}; gaps {}: filled {}, expired {}, given up {} (mean {} ms, longest \
         {} ms)\n  \
         data segments {}, of which retransmitted {}\n",
        milliseconds(Some(dida.hold_us)),
        dida.flows,
        dida.held,
        dida.held_now,
        ends.discarded,
        ends.forwarded,
        ends.expired + ends.overflowed + ends.evicted + ends.stopped,
        dida.masked,
        dida.gaps,
        dida.gaps_filled,
        dida.gaps_expired,
        dida.gaps_given_up,
        milliseconds(mean_us),
        milliseconds(Some(dida.gap_max_us)),
        dida.data_segments,
        dida.retransmissions
    )
}

#[cfg(test)]
mod tests {
    use plait_proto::steer::{AttachmentConfig, ClientConfig, Node, NodeConfig};
    use plait_proto::time::Instant;

    use super::*;

    #[test]
    fn an_attachment_that_is_not_there_says_why() {
        let config = NodeConfig {
            clients: vec![ClientConfig {
                name: "phone".into(),
                address: std::net::IpAddr::from([10, 1, 0, 1]).into(),
                attachments: vec![
                    AttachmentConfig::primary("lte"),
                    AttachmentConfig::at("wifi", [10, 2, 0, 1].into()),
                ],
            }],
            dida: Some(plait_proto::dida::DidaConfig::default()),
            ..NodeConfig::default()
        };
        let way = |attachment: &str, through: &str, reason: &str| Way {
            client: "phone".into(),
            attachment: attachment.into(),
            through: through.into(),
            there: reason.is_empty(),
            reason: reason.into(),
            rule_missing: false,
        };
        let report = Report {
            kind: "steering-node".into(),
            tun: "steer0".into(),
            uptime_s: 75,
            node: Node::new(config, 1).status(Instant::ZERO),
            ways: vec![
                way("lte", "the host's routes", ""),
                way("wifi", "dev wlan0", "no interface called wlan0"),
            ],
            ignored_packets: 0,
        };
        let text = text(&report, Style::PLAIN);
        assert!(
            text.starts_with(
                "steer0  steering node, up for 1 min 15 s  policy inverse-rtt, per packet\n"
            ),
            "{text}"
        );
        assert!(text.contains("\n    as it is, the host's routes: "), "{text}");
        let wifi = "\n    to 10.2.0.1, dev wlan0: no interface called wlan0\n";
        assert!(text.contains(wifi), "{text}");
        assert!(text.contains("duplicate ACKs held 0 (now 0)"), "{text}");
        assert!(!report.all_up());
        let json = serde_json::to_string(&report).unwrap();
        assert!(Report::is_in(&json));
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
