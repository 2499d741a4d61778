//! The course of a window over an ideal path, as a table: a whole window is acknowledged per round
//! trip, and a loss is found in the round in which the window passes a given size. It documents
//! behaviour, so that a review sees what moved.

use core::fmt::Write;

use super::*;

const SEGMENT: u64 = 1448;

/// The window at the end of each of `marks`, in tenths of a segment.
fn course(config: ControllerConfig, rtt: Duration, ceiling: u64, marks: &[u64]) -> Vec<u64> {
    let mut controller = config.build(Start::ten_segments(SEGMENT));
    let mut now = Instant::ZERO;
    let mut windows = Vec::new();
    for &mark in marks {
        while now < at(mark) {
            now += rtt;
            let window = controller.window();
            if window > ceiling * SEGMENT {
                controller.on_loss(&Loss { now, flight_bytes: window });
                continue;
            }
            for _ in 0..window / SEGMENT {
                let now_sent = Sent { now, bytes: SEGMENT, in_flight_bytes: window };
                let newest = controller.on_sent(&now_sent);
                controller.on_ack(&AckSample { newest, ..acked(now, SEGMENT, rtt) });
            }
        }
        windows.push((controller.window() * 10 + SEGMENT / 2) / SEGMENT);
    }
    windows
}

#[test]
fn growth_is_as_recorded() {
    let marks = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600];
    let mut table =
        String::from("controller  RTT ms ceiling | window in tenths of a segment at ms");
    for mark in marks {
        write!(table, " {mark:6}").unwrap();
    }
    table.push('\n');
    for algorithm in [Algorithm::NewReno, Algorithm::Cubic] {
        for rtt_ms in [10, 50, 200] {
            for ceiling in [50, 400, 3000] {
                // The ideal path has no queue: delay must not end slow start.
                let slow_start = Some(SlowStart::Standard);
                let config = ControllerConfig { slow_start, ..algorithm.into() };
                let windows = course(config, ms(rtt_ms), ceiling, &marks);
                write!(table, "{algorithm:11} {rtt_ms:6} {ceiling:7} | {:32}", "").unwrap();
                for window in windows {
                    write!(table, " {window:6}").unwrap();
                }
                table.push('\n');
            }
        }
    }
    let recorded = include_str!("growth.txt");
    assert!(table == recorded, "the table is now\n{table}");
}
