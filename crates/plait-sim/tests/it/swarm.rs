//! Seeds of the swarm. `plait-lab swarm` runs more of them, and repeats one.

use std::time::Duration;

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

/// A third peer at the provider holds a key and seals whatever it likes.
#[test]
fn seeds_hold_beside_a_hostile_peer() {
    let failed: Vec<String> = (1..=20)
        .filter_map(|seed| {
            let violation = swarm::run_beside_hostile(seed, FaultKinds::STANDARD, None).err()?;
            Some(format!("plait-lab swarm --hostile --seed {seed}   # {violation}"))
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

/// Links change their address in an idle bond shortly before everything heals.
#[test]
fn regression_a_path_to_an_address_that_is_gone_is_not_up() {
    for seed in [5694, 7340, 8179, 8181] {
        let outcome = swarm::run(seed, FaultKinds::STANDARD, None);
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}

/// Bonds in which both sides begin at once, sleeping paths whose NAT forgets them, a peer that dies
/// after a handshake that brought no path: all links heal, and all paths come back.
#[test]
fn regression_every_path_comes_back() {
    for seed in [1209, 1716, 2954, 3021, 5785, 9543] {
        let outcome = swarm::run(seed, FaultKinds::STANDARD, None);
        assert!(outcome.is_ok(), "seed {seed}: {outcome:?}");
    }
}

/// An idle bond whose links are all metered was renewed every two minutes, and woken for it.
#[test]
fn regression_an_idle_metered_bond_is_nearly_silent() {
    let paths = swarm::idle::measure(true, Duration::from_secs(3600)).expect("the checkers hold");
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert!(path.packets <= 20, "{} packets in an hour", path.packets);
    }
}
