//! Computes the state after each action from one state, with few replays.
//!
//! A state cannot be copied, so each action would need its own replay. Two kinds of actions can
//! share one: actions that change only the network, or replace a process, are undone, and a longer
//! wait continues where a shorter one ended.

use core::time::Duration;

use plait_proto::faults::Faults;

use super::action::Action;
use super::setup::Setup;
use super::world::{Saved, World};

/// The states that follow a state after one action.
#[derive(Debug)]
pub struct Branches<'a> {
    setup: Setup,
    put_back: Faults,
    actions: &'a [Action],
    /// The state itself.
    here: Option<Box<World>>,
    /// The state after so much time in which nothing else happened.
    later: Option<(Box<World>, Duration)>,
    shown: Shown,
    /// Undoable actions still to be tried: they need the state itself.
    undone_left: usize,
}

/// Where the state of the last look is held.
#[derive(Debug)]
enum Shown {
    Nowhere,
    Here(Box<Saved>),
    Later,
    Apart(Box<World>),
}

impl<'a> Branches<'a> {
    /// The branches of the state to which these actions lead.
    pub fn new(setup: Setup, put_back: Faults, actions: &'a [Action]) -> Self {
        Self {
            setup,
            put_back,
            actions,
            here: None,
            later: None,
            shown: Shown::Nowhere,
            undone_left: 0,
        }
    }

    /// What can happen next while there may be `faults` in all.
    pub fn enabled(&mut self, faults: u32) -> Vec<Action> {
        let here = self.here.take().unwrap_or_else(|| self.replay());
        let enabled = here.enabled(faults.saturating_sub(here.faults()));
        self.here = Some(here);
        self.undone_left = enabled.iter().filter(|action| action.can_be_undone()).count();
        enabled
    }

    /// The fingerprint of the state after one of the enabled actions.
    pub fn look(&mut self, action: Action) -> u64 {
        if let (Shown::Here(saved), Some(here)) =
            (core::mem::replace(&mut self.shown, Shown::Nowhere), &mut self.here)
        {
            here.restore(*saved);
        }
        match action {
            Action::Step => {
                let mut world = self.apart();
                let began = world.now();
                world.apply(action);
                let passed = world.now().since(began);
                self.show_later(world, passed)
            }
            Action::Wait(ms) => {
                let wait = Action::wait(ms);
                let shorter = self.later.take().filter(|(_, passed)| *passed <= wait);
                let (mut world, passed) = shorter.unwrap_or_else(|| (self.apart(), Duration::ZERO));
                world.run_for(wait - passed);
                self.show_later(world, wait)
            }
            _ if action.can_be_undone() => {
                let mut here = self.here.take().unwrap_or_else(|| self.replay());
                self.undone_left = self.undone_left.saturating_sub(1);
                let saved = here.apply_for_now(action);
                let fingerprint = here.fingerprint();
                self.here = Some(here);
                self.shown = Shown::Here(Box::new(saved));
                fingerprint
            }
            _ => {
                let mut world = self.apart();
                world.apply(action);
                let fingerprint = world.fingerprint();
                self.shown = Shown::Apart(world);
                fingerprint
            }
        }
    }

    /// The state of the last look, to be consumed.
    pub fn take(&mut self) -> Option<Box<World>> {
        match core::mem::replace(&mut self.shown, Shown::Nowhere) {
            Shown::Nowhere => None,
            Shown::Here(_) => self.here.take(),
            Shown::Later => self.later.take().map(|(world, _)| world),
            Shown::Apart(world) => Some(world),
        }
    }

    fn show_later(&mut self, world: Box<World>, passed: Duration) -> u64 {
        let fingerprint = world.fingerprint();
        self.later = Some((world, passed));
        self.shown = Shown::Later;
        fingerprint
    }

    /// The state in a world that may be consumed.
    fn apart(&mut self) -> Box<World> {
        let not_needed = if self.undone_left == 0 { self.here.take() } else { None };
        not_needed.unwrap_or_else(|| self.replay())
    }

    fn replay(&self) -> Box<World> {
        Box::new(self.setup.replay(self.put_back, self.actions))
    }
}
