//! Faults that showed on the ladder.

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

/// Two radios whose rates swing cut the flow at each fall, and it did not fill them again before
/// the next: 38 Mbit/s, where the better one carried 49 bare.
#[test]
fn regression_a_flow_keeps_its_window_while_radios_are_slow() {
    let mbit = goodput_mbit("swings/both");
    assert!(mbit > 46.0, "{mbit} Mbit/s");
}

/// Behind a token bucket, full each time that it had rested, a path looked well every second and a
/// half: 36 Mbit/s, where the other had 43.
#[test]
fn regression_a_path_that_turns_bad_each_time_it_is_used_is_left_alone() {
    let mbit = goodput_mbit("shaped/little-after-a-megabyte");
    assert!(mbit > 40.5, "{mbit} Mbit/s");
}

/// A flow whose window filled the near path had half of it for as long as nobody knew what the far
/// one carries, from which nothing came. In 8 s 158 of 349 Mbit/s.
#[test]
fn regression_a_far_path_of_which_little_comes_is_left_soon() {
    let mbit = goodput_mbit("far/trickle-beside-cable");
    assert!(mbit > 342.0, "{mbit} Mbit/s");
}
