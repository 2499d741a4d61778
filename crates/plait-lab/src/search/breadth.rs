//! The search itself: breadth first, level by level, so that the first sequence found is a shortest
//! one and results do not depend on the number of threads.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use plait_proto::faults::Faults;
use plait_sim::search::{Action, Branches, Setup, sentence};
use serde::Serialize;

use crate::worker::pool;

/// States that a thread takes at a time to find their successors.
const JOB_STATES: usize = 32;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Actions of the longest sequence.
    pub(crate) depth: u32,
    /// Faults of any sequence.
    pub(crate) faults: u32,
    pub(crate) threads: usize,
    /// When to give up.
    pub(crate) until: Option<Instant>,
    /// Stop after this many violations.
    pub(crate) violations: usize,
}

/// A sequence that ends in a violation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) setup: &'static str,
    pub(crate) actions: String,
    pub(crate) violation: String,
    /// Runs it again.
    pub(crate) command: String,
}

/// The result of a search of one setup.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Searched {
    pub(crate) setup: &'static str,
    /// The depth to which all sequences were tried.
    pub(crate) depth: u32,
    /// Sequences that were run and whose end state was inspected: the start, and every action in
    /// every new state.
    pub(crate) states: u64,
    /// Of these, states with different fingerprints.
    pub(crate) distinct: u64,
    /// States watched until they had healed. States that heal like their predecessor are not
    /// watched again.
    pub(crate) healed: u64,
    /// Distinct states first reached by sequences of one action, of two, and so on.
    pub(crate) levels: Vec<u64>,
    pub(crate) elapsed_s: f64,
    /// Whether time ran out before the depth was reached.
    pub(crate) cut_short: bool,
    pub(crate) found: Vec<Found>,
}

/// The origin of a state: an action in another state.
#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    action: Action,
}

/// The state after one more action.
struct Next {
    action: Action,
    fingerprint: u64,
    healed: bool,
    violation: Option<String>,
}

/// Why a search ends early.
enum Stop {
    Time,
    Enough,
}

struct Search<'a> {
    setup: Setup,
    put_back: Faults,
    bounds: &'a Bounds,
    nodes: Vec<Node>,
    searched: Searched,
}

/// Tries every sequence; `tell` gets how many parts of the next depth are done, and of how many.
pub(crate) fn search(
    setup: Setup,
    put_back: Faults,
    bounds: &Bounds,
    mut tell: impl FnMut(&Searched, usize, usize),
) -> Searched {
    let searched = Searched {
        setup: setup.name,
        depth: 0,
        states: 1,
        distinct: 1,
        healed: 0,
        levels: Vec::new(),
        elapsed_s: 0.0,
        cut_short: false,
        found: Vec::new(),
    };
    let started = Instant::now();
    let mut search = Search { setup, put_back, bounds, nodes: Vec::new(), searched };
    // The start state is not a node: its number is one that no node has.
    let mut level = vec![u32::MAX];
    let mut start = setup.replay(put_back, &[]);
    let mut seen = HashSet::from([start.fingerprint()]);
    if let Err(violation) = start.heal() {
        search.searched.found.push(search.found(&[], violation.to_string()));
        level.clear();
    }
    search.searched.healed = 1;
    while search.searched.depth < bounds.depth && !level.is_empty() {
        let stop = search.go_deeper(&mut level, &mut seen, &mut tell);
        match stop {
            None => search.searched.depth += 1,
            Some(Stop::Time) => search.searched.cut_short = true,
            Some(Stop::Enough) => {}
        }
        if stop.is_some() {
            break;
        }
    }
    search.searched.elapsed_s = started.elapsed().as_secs_f64();
    search.searched
}

impl Search<'_> {
    /// Tries every action in every state of a level, and replaces the level by the new states.
    fn go_deeper(
        &mut self,
        level: &mut Vec<u32>,
        seen: &mut HashSet<u64>,
        tell: &mut impl FnMut(&Searched, usize, usize),
    ) -> Option<Stop> {
        let (mut fresh, mut new_level, mut new_nodes) = (HashSet::new(), Vec::new(), Vec::new());
        let first_new = self.nodes.len() as u32;
        let jobs: Vec<&[u32]> = level.chunks(JOB_STATES).collect();
        let (this, known): (&Self, &HashSet<u64>) = (self, seen);
        let (mut searched, mut jobs_done) = (self.searched.clone(), 0);
        let work = |job: usize| this.successors(jobs[job], known);
        let result = pool::in_order_on(self.bounds.threads, jobs.len(), work, |done| {
            let Some(done) = done else { return Ok(()) };
            for (before, next) in done {
                searched.states += 1;
                searched.healed += u64::from(next.healed);
                if known.contains(&next.fingerprint) || !fresh.insert(next.fingerprint) {
                    continue;
                }
                searched.distinct += 1;
                if let Some(violation) = next.violation {
                    let actions = [this.actions(before), vec![next.action]].concat();
                    searched.found.push(this.found(&actions, violation));
                    if searched.found.len() >= this.bounds.violations {
                        return Err(Stop::Enough);
                    }
                    continue;
                }
                new_level.push(first_new + new_nodes.len() as u32);
                new_nodes.push(Node { before, action: next.action });
            }
            jobs_done += 1;
            tell(&searched, jobs_done, jobs.len());
            let is_late = this.bounds.until.is_some_and(|until| Instant::now() >= until);
            if is_late { Err(Stop::Time) } else { Ok(()) }
        });
        self.searched = searched;
        self.searched.levels.push(new_level.len() as u64);
        self.nodes.extend(new_nodes);
        seen.extend(fresh);
        *level = new_level;
        result.err()
    }

    /// The sequence that leads to a state.
    fn actions(&self, mut state: u32) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(node) = self.nodes.get(state as usize) {
            actions.push(node.action);
            state = node.before;
        }
        actions.reverse();
        actions
    }

    /// The states after every action in each state, with the state's number.
    fn successors(&self, states: &[u32], known: &HashSet<u64>) -> Vec<(u32, Next)> {
        let mut met = HashSet::new();
        let mut all = Vec::new();
        for state in states {
            let actions = self.actions(*state);
            let mut branches = Branches::new(self.setup, self.put_back, &actions);
            for action in branches.enabled(self.bounds.faults) {
                let next = successor(&mut branches, action, |fingerprint| {
                    !known.contains(&fingerprint) && met.insert(fingerprint)
                });
                all.push((*state, next));
            }
        }
        all
    }

    fn found(&self, actions: &[Action], violation: String) -> Found {
        let (setup, actions) = (self.setup.name, sentence(actions));
        let command = format!("plait-lab search --setup {setup} --replay {actions:?}");
        Found { setup, actions, violation, command }
    }
}

/// The state after an action, watched if it is new. A panic of the core counts as a violation.
fn successor(
    branches: &mut Branches<'_>,
    action: Action,
    mut is_new: impl FnMut(u64) -> bool,
) -> Next {
    let mut fingerprint = 0;
    let mut healed = false;
    let run = AssertUnwindSafe(|| {
        fingerprint = branches.look(action);
        // The preceding state was watched when it was new.
        if !is_new(fingerprint) || action.is_undone_by_healing() {
            return None;
        }
        healed = true;
        let mut world = branches.take().expect("what was looked at is there");
        world.heal().err().map(|violation| violation.to_string())
    });
    let violation = catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Some(format!("panic: {}", text.unwrap_or("without a word")))
    });
    Next { action, fingerprint, healed, violation }
}

/// A time so many minutes from now.
pub(crate) fn in_minutes(minutes: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(minutes * 60.0)
}
