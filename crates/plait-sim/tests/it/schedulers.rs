//! What schedulers must do with two links. The golden tables `open-schedulers` and
//! `closed-schedulers` show the rest of it.

use plait_sim::run::run_cell;
use plait_sim::scenario::CellResult;

use crate::scenarios::small;

/// Bytes of an inner packet, and its payload's; the same packet on a link.
const PAYLOAD_BYTES: f64 = 1448.0;
const OUTER_BYTES: f64 = 1560.0;

/// The cells of a small scenario whose name holds this, run once.
fn cells(name: &str, holding: &str) -> Vec<CellResult> {
    let experiment = small(name);
    let cells = experiment.cells.iter().filter(|cell| cell.name.contains(holding));
    cells.map(|cell| run_cell(cell, 1).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

#[test]
fn min_rtt_uses_the_sum_of_both_links() {
    let found = cells("open-schedulers", "scheduler=min-rtt");
    for (cell, sum_mbit) in found.iter().zip([124.0, 60.0]) {
        let goodput = cell.metrics["goodput_mbit.bulk"] * OUTER_BYTES / PAYLOAD_BYTES;
        assert!(goodput >= 0.95 * sum_mbit, "{}: {goodput} of {sum_mbit} Mbit/s", cell.cell);
        // Two packets of 10,000, rounded.
        for link in ["a", "b"] {
            let lost = cell.metrics[&format!("link_loss_percent.{link}")];
            assert!(lost < 0.025, "{}: {lost} % lost, {link} overflows alone", cell.cell);
        }
    }
}

#[test]
fn earliest_delivery_is_nowhere_slower_than_the_first_link_alone() {
    let bonds = cells("closed-schedulers", "over=earliest-delivery");
    let alone = cells("closed-schedulers", "over=first link alone");
    assert_eq!((bonds.len(), alone.len()), (5, 5));
    for (bond, alone) in bonds.iter().zip(alone) {
        let [bonded, single] = [bond, &alone].map(|cell| cell.metrics["goodput_mbit.bulk"]);
        assert!(bonded >= 0.98 * single, "{}: {bonded} and {single} Mbit/s", bond.cell);
    }
}

/// The controllers go on believing in the link that fell, which is the worst case, and there is
/// always something to send.
#[test]
fn a_link_that_falls_is_left_and_taken_back() {
    let found = cells("falling-link", "");
    let of = |name: &str| found[0].metrics[name];
    for phase in ["before", "falling", "fallen", "returning", "back"] {
        let steady = of(&format!("steady_{phase}_mbit"));
        assert!(steady >= 0.98 * 30.0, "the steady link stays full {phase}: {steady} Mbit/s");
    }
    for phase in ["before", "back"] {
        let full = of(&format!("falling_{phase}_mbit"));
        assert!(full >= 0.98 * 30.0, "the other is full {phase}: {full} Mbit/s");
    }
    let queue = of("queue_fallen_ms");
    assert!(queue <= 60.0, "it is not queued on: {queue} ms");
    for (phase, mbit) in [("fallen", 2.0), ("returning", 30.0)] {
        let used = of(&format!("falling_{phase}_mbit"));
        assert!(used >= 0.5 * mbit, "it is watched and comes back, {phase}: {used} Mbit/s");
    }
}
