//! Tests the world itself, and faults that known sequences reveal.

use plait_proto::faults::Faults;

use super::{Action, Branches, Setup, World, sentence};

fn replay(setup: &str, actions: &str) -> World {
    let actions: Vec<Action> =
        actions.split_whitespace().map(|word| word.parse().expect("an action")).collect();
    Setup::named(setup).expect("a setup").replay(Faults::default(), &actions)
}

#[test]
fn every_setup_heals_from_its_start() {
    for setup in Setup::ALL {
        let mut world = setup.replay(Faults::default(), &[]);
        assert_eq!(world.heal(), Ok(()), "{}", setup.name);
    }
}

#[test]
fn a_sequence_is_written_and_read() {
    for action in Action::all() {
        assert_eq!(action.to_string().parse(), Ok(action));
    }
    let text = sentence(&[Action::Step, Action::Wait(300), Action::Clone]);
    assert_eq!(text, "step wait-300 clone");
    assert!("stap".parse::<Action>().unwrap_err().to_string().contains("clone-gone"));
}

#[test]
fn a_replay_is_the_same_each_time() {
    let actions = "clone step step step drop-provider wait-2500 send-customer step";
    let prints = [1, 2].map(|_| replay("clone", actions).fingerprint());
    assert_eq!(prints[0], prints[1]);
    assert_ne!(prints[0], replay("clone", "clone step").fingerprint());
}

/// Looks at all branches of a state, takes some, and compares each with its own replay.
#[test]
fn branches_that_share_replays_are_those_that_do_not() {
    for (setup, actions) in [
        ("clone", "clone step step step drop-provider"),
        ("metered", "wait-2500 cut-customer send-provider"),
        ("mutual", "step"),
        ("beginning", "step duplicate-provider wait-300"),
    ] {
        let setup = Setup::named(setup).expect("a setup");
        let before: Vec<Action> =
            actions.split_whitespace().map(|word| word.parse().expect("an action")).collect();
        for take_every in 1..=4 {
            let mut branches = Branches::new(setup, Faults::default(), &before);
            for (place, action) in branches.enabled(3).into_iter().enumerate() {
                let mut alone = setup.replay(Faults::default(), &before);
                alone.apply(action);
                assert_eq!(branches.look(action), alone.fingerprint(), "{} {action}", setup.name);
                if place % take_every == 0 {
                    let taken = branches.take().expect("it was looked at");
                    assert_eq!(taken.now(), alone.now());
                    assert_eq!(taken.on_the_way(), alone.on_the_way(), "{} {action}", setup.name);
                    assert_eq!(taken.faults(), alone.faults());
                }
            }
        }
    }
}

/// Actions that healing undoes lead to states that need no second look.
#[test]
fn healing_undoes_cuts_and_clones_that_are_gone() {
    for (setup, actions) in [
        ("bond", "send-customer step"),
        ("clone", "restart-customer clone step cut-provider send-provider"),
        ("links", "cut-customer wait-2500"),
    ] {
        let setup = Setup::named(setup).expect("a setup");
        let before: Vec<Action> =
            actions.split_whitespace().map(|word| word.parse().expect("an action")).collect();
        let healed = |more: &[Action]| {
            let mut world = setup.replay(Faults::default(), &[&before, more].concat());
            let result = world.heal();
            (result, world.now(), world.status(), world.on_the_way())
        };
        let alone = healed(&[]);
        for action in Action::all().filter(|action| action.is_undone_by_healing()) {
            assert_eq!(healed(&[action]), alone, "{} {action}", setup.name);
        }
    }
}
