//! What goes wrong, and when.

use std::collections::BTreeMap;

use plait_proto::time::{Duration, Instant};

use super::draw::Draw;
use super::plan::LinkPlan;
use crate::link::{LinkConfig, Loss};

/// One thing that happens to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// One direction of a link silently loses everything from now on. Cuts are counted: it carries
    /// again after as many [`Action::Join`].
    Cut {
        /// The link.
        link: usize,
        /// 0 up, 1 down.
        way: usize,
    },
    /// Undoes one [`Action::Cut`].
    Join {
        /// The link.
        link: usize,
        /// 0 up, 1 down.
        way: usize,
    },
    /// One direction of a link has another configuration from now on.
    Change {
        /// The link.
        link: usize,
        /// 0 up, 1 down.
        way: usize,
        /// The configuration.
        config: LinkConfig,
    },
    /// The customer's address on this link changes; datagrams to the old one are lost.
    Rebind {
        /// The link.
        link: usize,
    },
    /// A gateway dies and loses its state.
    Kill {
        /// 0 the customer's, 1 the provider's.
        side: usize,
    },
    /// A dead gateway starts again.
    Start {
        /// 0 the customer's, 1 the provider's.
        side: usize,
    },
    /// A gateway's wall clock jumps by so many seconds; a gateway reads it when it starts.
    WallClock {
        /// 0 the customer's, 1 the provider's.
        side: usize,
        /// Seconds forwards.
        seconds: i64,
    },
    /// The customer's gateway loses the link: interface gone.
    Unplug {
        /// The link.
        link: usize,
    },
    /// The link is there again.
    Plug {
        /// The link.
        link: usize,
    },
}

/// Optional faults, besides those that every bond must survive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultKinds {
    /// NAT rebinding: a path's source address changes.
    pub rebinding: bool,
    /// A wall clock that goes backwards before a restart.
    pub earlier_clock: bool,
    /// Links that are removed and added.
    pub plugging: bool,
}

impl FaultKinds {
    /// All of them.
    pub const ALL: Self = Self { rebinding: true, earlier_clock: true, plugging: true };
    /// Those that a bond must survive.
    pub const STANDARD: Self = Self::ALL;
}

/// Collects the faults of a plan.
#[derive(Debug)]
pub(super) struct Faults<'a> {
    draw: &'a mut Draw,
    kinds: FaultKinds,
    links: &'a [LinkPlan],
    begin: Instant,
    end: Instant,
    /// Until when each gateway is dead or newly started.
    restarts: [Vec<(Instant, Instant)>; 2],
    actions: BTreeMap<(Instant, usize), Action>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(
        draw: &'a mut Draw,
        kinds: FaultKinds,
        links: &'a [LinkPlan],
        begin: Instant,
        end: Instant,
    ) -> Self {
        let restarts = [Vec::new(), Vec::new()];
        Self { draw, kinds, links, begin, end, restarts, actions: BTreeMap::new() }
    }

    /// How many faults a short run has.
    pub(super) fn count(&mut self) -> u64 {
        if self.draw.one_in(8) { 0 } else { self.draw.spread(1, 16) }
    }

    /// One more fault.
    pub(super) fn add(&mut self) {
        let span = self.end.since(self.begin).as_micros() as u64;
        let at = self.begin + Duration::from_micros(self.draw.between(0, span));
        let length = self.draw.millis_spread(20, 30_000);
        match self.draw.between(0, 11) {
            0..=2 => self.outage(at, length),
            3 => self.all_out(at, length),
            4 => self.change(at, length, |draw, config| {
                config.loss = Loss::Bernoulli(draw.percent(100));
            }),
            5 => self.change(at, length, |draw, config| {
                config.delay = config.delay * draw.between(1, 30) as u32 / 10;
                config.jitter = draw.millis(0, 80);
            }),
            6 => self.change(at, length, |draw, config| {
                let rate = config.rate.bits_per_second() / draw.between(2, 20);
                config.rate = plait_proto::units::Rate::from_bits_per_second(rate.max(100_000));
            }),
            7 | 8 => self.restart(at),
            9 => self.wall_clock(at),
            10 if self.kinds.rebinding => {
                let link = self.draw.index(self.links.len());
                self.push(at, Action::Rebind { link });
            }
            11 if self.kinds.plugging => {
                let link = self.draw.index(self.links.len());
                self.push(at, Action::Unplug { link });
                self.push(at + length, Action::Plug { link });
            }
            _ => self.outage(at, length),
        }
    }

    /// One link, one way or both.
    fn outage(&mut self, at: Instant, length: Duration) {
        let link = self.draw.index(self.links.len());
        for way in self.draw.pick([&[0, 1][..], &[0, 1], &[0], &[1]]) {
            self.push(at, Action::Cut { link, way: *way });
            self.push(at + length, Action::Join { link, way: *way });
        }
    }

    /// All links, or all but one.
    fn all_out(&mut self, at: Instant, length: Duration) {
        let spared = self.draw.between(0, 2 * self.links.len() as u64) as usize;
        let ways = self.draw.pick([&[0, 1][..], &[0, 1], &[0], &[1]]);
        for link in (0..self.links.len()).filter(|link| *link != spared) {
            for way in ways {
                self.push(at, Action::Cut { link, way: *way });
                self.push(at + length, Action::Join { link, way: *way });
            }
        }
    }

    fn change(
        &mut self,
        at: Instant,
        length: Duration,
        change: impl FnOnce(&mut Draw, &mut LinkConfig),
    ) {
        let (link, way) = (self.draw.index(self.links.len()), self.draw.index(2));
        let base = self.links[link].ways[way];
        let mut config = base;
        change(self.draw, &mut config);
        self.push(at, Action::Change { link, way, config });
        self.push(at + length, Action::Change { link, way, config: base });
    }

    fn restart(&mut self, at: Instant) {
        let side = self.draw.index(2);
        let back = at + self.draw.millis_spread(1, 10_000);
        let overlaps = |(from, to): &(Instant, Instant)| at <= *to && *from <= back;
        if self.restarts[side].iter().any(overlaps) {
            return;
        }
        self.restarts[side].push((at, back));
        self.push(at, Action::Kill { side });
        self.push(back, Action::Start { side });
    }

    fn wall_clock(&mut self, at: Instant) {
        let side = self.draw.index(2);
        let seconds = self.draw.spread(1, 1 << 20) as i64;
        let back = self.kinds.earlier_clock && self.draw.one_in(2);
        self.push(at, Action::WallClock { side, seconds: if back { -seconds } else { seconds } });
        self.restart(at + Duration::from_millis(1));
    }

    fn push(&mut self, at: Instant, action: Action) {
        self.actions.insert((at, self.actions.len()), action);
    }

    /// All actions in their order; healing replaces those that would come after it.
    pub(super) fn finish(self) -> Vec<(Instant, Action)> {
        let end = self.end;
        let sorted = self.actions.into_iter().map(|((at, _), action)| (at, action));
        sorted.filter(|(at, _)| *at < end).collect()
    }
}
