//! The world itself, and faults that a sequence is known to show.

use plait_proto::faults::Faults;

use super::{Action, Setup, World, sentence};

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
