//! Far paths beside near ones: faults that showed on the ladder.

use plait_sim::run::run_cell;

use crate::scenarios::repository;

/// Goodput of the bond on a rung of the ladder, in Mbit/s.
fn goodput_mbit(rung: &str) -> f64 {
    let experiment = repository(&format!("ladder/{rung}.toml"), &["carriers=[\"bond\"]"]);
    let [cell] = &experiment.cells[..] else { panic!("one cell was asked for") };
    run_cell(cell, 1).expect("the scenario runs").metrics["bond_goodput_mbit"]
}

/// After a change of satellite, 100 ms without an answer, both ends found the near path dead four
/// times a second: its acknowledgements came over the far one, too late. 27.8 of 52.5 Mbit/s.
#[test]
fn regression_a_near_path_beside_a_far_one_comes_back_for_good() {
    let mbit = goodput_mbit("satellites/beside-geo");
    assert!(mbit > 45.0, "{mbit} Mbit/s");
}

/// The far path was taken to carry what a flow with the window of the near one had sent over it in
/// its first round trips. 4.3 Mbit/s of 105.
#[test]
fn regression_a_far_path_is_found_to_carry_more_than_a_small_window_shows() {
    let mbit = goodput_mbit("far/slow-beside-geo");
    assert!(mbit > 20.0, "{mbit} Mbit/s");
}
