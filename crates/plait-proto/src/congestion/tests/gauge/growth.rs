//! The course of the pacing rate and the window, as a table. It documents behaviour, so that a
//! review sees what moved.

use core::fmt::Write;

use super::*;

const MARKS: [u64; 12] = [50, 100, 200, 400, 800, 1600, 3200, 6400, 6800, 8000, 10_000, 12_800];

#[test]
fn growth_is_as_recorded() {
    let mut table = String::from(
        "Link: Mbit/s, RTT ms, queue ms, loss ppm, Mbit/s from 6.4 to 8 s; \
         pacing rate in kbit/s and window in segments at ms\n",
    );
    write!(table, "{:24} |", "").unwrap();
    for mark in MARKS {
        write!(table, " {mark:10}").unwrap();
    }
    table.push('\n');
    for (mbit, rtt_ms, queue_ms, loss_ppm, fall) in [
        (10, 10, 50, 0, 10),
        (10, 50, 50, 0, 10),
        (50, 5, 50, 0, 50),
        (50, 40, 50, 0, 50),
        (50, 40, 5, 0, 50),
        (50, 40, 1000, 0, 50),
        (50, 40, 50, 20_000, 50),
        (50, 40, 50, 50_000, 50),
        (50, 200, 50, 0, 50),
        (30, 30, 50, 0, 2),
        (30, 30, 1000, 0, 2),
        (30, 30, 50, 0, 15),
    ] {
        let changes = vec![(at(6_400), Rate::from_mbit(fall)), (at(8_000), Rate::from_mbit(mbit))];
        let spec = Spec { loss_ppm, changes, ..clean(mbit, rtt_ms, queue_ms) };
        let mut channel = Channel::new(spec, Demand::Endless);
        write!(table, "{mbit:3} {rtt_ms:4} {queue_ms:5} {loss_ppm:6} {fall:3} |").unwrap();
        for mark in MARKS {
            channel.run_until(at(mark));
            let rate = channel.controller.pacing_rate().unwrap_or(Rate::ZERO);
            let kbit = (rate.bits_per_second() + 500) / 1000;
            write!(table, " {kbit:6} {:3}", channel.controller.window() / S).unwrap();
        }
        table.push('\n');
    }
    let recorded = include_str!("growth.txt");
    assert!(table == recorded, "the table is now\n{table}");
}
