//! Seeds of the swarm. `plait-lab swarm` runs more of them, and repeats one.

use plait_sim::swarm::{self, FaultKinds};

#[test]
fn three_hundred_seeds_hold() {
    let failed: Vec<String> = (1..=300)
        .filter_map(|seed| {
            let violation = swarm::run(seed, FaultKinds::STANDARD, None).err()?;
            Some(format!("plait-lab swarm --seed {seed}   # {violation}"))
        })
        .collect();
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn a_seed_is_a_run() {
    let run = || swarm::run(3, FaultKinds::STANDARD, None);
    let first = run();
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(first, run());
}
