//! A short search that runs with the other tests.

use plait_proto::faults::Faults;
use plait_sim::search::Setup;

use super::breadth::{Bounds, search};

fn bounds(depth: u32, threads: usize) -> Bounds {
    Bounds { depth, faults: 2, threads, until: None, violations: 1 }
}

#[test]
fn short_sequences_leave_no_bond_dead() {
    for setup in Setup::ALL {
        let searched = search(setup, Faults::default(), &bounds(4, 2), |_, _, _| ());
        assert!(searched.found.is_empty(), "{:?}", searched.found);
        assert_eq!((searched.depth, searched.cut_short), (4, false));
    }
}

#[test]
fn threads_make_no_difference() {
    let setup = Setup::named("clone").expect("a setup");
    let [one, two] = [1, 2].map(|threads| {
        let searched = search(setup, Faults::default(), &bounds(3, threads), |_, _, _| ());
        (searched.states, searched.distinct, searched.healed)
    });
    assert_eq!(one, two);
}
