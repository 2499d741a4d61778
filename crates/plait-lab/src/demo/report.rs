//! The demo's report in words.

use super::{Outcome, RATIO_MIN, Row};
use crate::measure::{mbit, percent};
use crate::output::Table;
use crate::topology::LinkSpec;

/// Above this share of the links' sum, something disturbed the links while they were measured
/// alone.
const SPOILING_SUM_PERCENT: u64 = 105;
/// Lateness above which the figures are not reliable.
const SPOILING_P99_US: u64 = 5_000;

pub(super) fn introduction(links: &[LinkSpec]) -> String {
    let links: Vec<String> = links.iter().map(LinkSpec::describe).collect();
    format!(
        "A customer with two access links ({}) downloads from a server. Everything is real but \
         the links.\n",
        links.join("; ")
    )
}

pub(super) fn table(rows: &[Row]) -> Table {
    const HEADS: [&str; 8] =
        ["", "TCP Mbit/s", "re-sent", "UDP Mbit/s", "of", "lost", "out of order", "file Mbit/s"];
    let mut table = Table::of_numbers(&HEADS);
    for row in rows {
        table.row([
            row.setup.to_owned(),
            mbit(row.tcp.throughput_bps),
            percent(row.tcp.retransmits_ppm()),
            mbit(row.udp.throughput_bps),
            mbit(row.udp_offered_bps),
            percent(row.udp.loss_ppm()),
            row.udp.out_of_order_packets.to_string(),
            mbit(row.file.throughput_bps),
        ]);
    }
    table
}

pub(super) fn closing(rows: &[Row], outcome: &Outcome, has_bar: bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    if let Some(row) = rows.first() {
        lines.push(format!(
            "TCP: one flow with {} at the sender. File: {} MB over HTTP, {} at the server, SHA-256 \
             compared.",
            row.tcp.congestion,
            row.file.bytes / 1_000_000,
            row.file.congestion
        ));
    }
    let [bare_dsl, bare_lte, dsl, lte, _] = rows else { return lines };
    lines.push(format!(
        "Aggregation ratio A_r {}, aggregation benefit A_b {}, against the links alone through \
         plait: {} + {} Mbit/s (bare: {} + {}).",
        permille(outcome.aggregation_ratio_permille),
        permille(outcome.aggregation_benefit_permille),
        mbit(dsl.tcp.throughput_bps),
        mbit(lte.tcp.throughput_bps),
        mbit(bare_dsl.tcp.throughput_bps),
        mbit(bare_lte.tcp.throughput_bps),
    ));
    lines.push(lateness(outcome));
    lines.push(outcome.machine.sentence());
    lines.push(String::new());
    lines.extend(sentence_of(rows));
    if has_bar && !outcome.passed {
        lines
            .push(format!("That is less than plait promises: {} of the sum.", permille(RATIO_MIN)));
    }
    lines
}

pub(super) fn lateness(outcome: &Outcome) -> String {
    let late = outcome.lateness;
    let verdict = if late.p99_us > SPOILING_P99_US {
        "; the machine was too busy for figures to rely on"
    } else {
        ""
    };
    format!(
        "The emulated links released packets {} us late on average, {} us at the 99th percentile, \
         {} us at most{verdict}.",
        late.mean_us, late.p99_us, late.max_us
    )
}

/// The result of all rows, in plain words.
pub(super) fn sentence_of(rows: &[Row]) -> Option<String> {
    let [bare_dsl, bare_lte, dsl, lte, bond] = rows else { return None };
    Some(sentence(bond, [dsl, lte], [bare_dsl, bare_lte]))
}

/// The result, in plain words.
fn sentence(bond: &Row, alone: [&Row; 2], bare: [&Row; 2]) -> String {
    let [a, b] = alone.map(|row| row.tcp.throughput_bps);
    let (fastest, sum, bonded) = (a.max(b), a + b, bond.tcp.throughput_bps);
    let bare = bare.map(|row| row.tcp.throughput_bps).into_iter().max().unwrap_or_default();
    let times = |fastest: u64| {
        let times = bonded * 100 / fastest.max(1);
        format!("{}.{:02}", times / 100, times % 100)
    };
    let order = match bond.udp.out_of_order_packets {
        0 => "no packet arrived out of order".to_owned(),
        count => format!("{count} UDP packets arrived out of order"),
    };
    let share = bonded * 100 / sum.max(1);
    let doubt = if share > SPOILING_SUM_PERCENT {
        " That is more than both links give: something disturbed them alone, so measure again."
    } else {
        ""
    };
    format!(
        "One download through the bond ran at {} Mbit/s: {} times the faster link alone through \
         plait, {} times it without plait, and {share} % of both together through plait; \
         {order}.{doubt}",
        mbit(bonded),
        times(fastest),
        times(bare),
    )
}

fn permille(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", value.abs() / 1000, value.abs() % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::over_time::OverTime;
    use crate::measure::{DownloadFigures, TcpFigures, UdpFigures};

    fn row(setup: &'static str, tcp_bps: u64, out_of_order_packets: u64) -> Row {
        let congestion = String::from("cubic");
        Row {
            setup,
            tcp: TcpFigures {
                throughput_bps: tcp_bps,
                retransmits: 12,
                segments: 10_000,
                congestion: congestion.clone(),
            },
            udp_offered_bps: 50_000_000,
            udp: UdpFigures {
                throughput_bps: 49_900_000,
                packets: 10_000,
                lost_packets: 20,
                out_of_order_packets,
            },
            file: DownloadFigures { throughput_bps: 55_000_000, bytes: 5_000_000, congestion },
            over_time: OverTime::default(),
        }
    }

    #[test]
    fn table_has_a_line_for_each_setup() {
        let lines = table(&[row("dsl, bare", 61_000_000, 0)]).lines();
        assert_eq!(lines.len(), 3);
        let cells: Vec<&str> = lines[2].split("  ").filter(|cell| !cell.is_empty()).collect();
        let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
        let expected = ["dsl, bare", "61.0", "0.12 %", "49.9", "50.0", "0.20 %", "0", "55.0"];
        assert_eq!(cells, expected);
    }

    #[test]
    fn what_was_seen_is_said_plainly() {
        let (dsl, lte) = (row("d", 60_000_000, 0), row("l", 40_000_000, 0));
        let (bare_dsl, bare_lte) = (row("bd", 62_500_000, 0), row("bl", 41_000_000, 0));
        let sentence = |bond: &Row, alone| sentence(bond, alone, [&bare_dsl, &bare_lte]);
        assert_eq!(
            sentence(&row("b", 90_000_000, 0), [&dsl, &lte]),
            "One download through the bond ran at 90.0 Mbit/s: 1.50 times the faster link alone \
             through plait, 1.44 times it without plait, and 90 % of both together through plait; \
             no packet arrived out of order."
        );
        let doubted = sentence(&row("b", 106_000_000, 0), [&dsl, &lte]);
        assert!(doubted.ends_with("disturbed them alone, so measure again."), "{doubted}");
        assert!(!sentence(&row("b", 105_000_000, 0), [&dsl, &lte]).contains("disturbed"));
        assert!(sentence(&row("b", 1, 3), [&dsl, &lte]).contains("3 UDP packets"));
    }

    #[test]
    fn thousandths_keep_their_sign() {
        assert_eq!(permille(-61), "-0.061");
        assert_eq!(permille(1_042), "1.042");
    }
}
