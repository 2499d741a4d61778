//! The actions of the search.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::network::Side;

/// One step of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Time passes until the next datagram of a handshake, or the first of a new session, has
    /// arrived; for 1.1 s at most.
    Step,
    /// The second such datagram in flight arrives before the first, which goes to another side.
    Overtake,
    /// So many milliseconds pass.
    Wait(u32),
    /// A side's host sends three packets.
    Send(Side),
    /// The next datagram to a side is lost.
    Drop(Side),
    /// It arrives twice, the second time a second and a half later.
    Duplicate(Side),
    /// It arrives a second and a half later.
    Delay(Side),
    /// Nothing arrives at a side from now on.
    Cut(Side),
    /// Nothing arrives at either.
    CutBoth,
    /// Everything arrives again.
    Mend,
    /// A side's process ends and starts again.
    Restart(Side),
    /// The customer's NAT assigns another port.
    Move,
    /// A second gateway with the customer's key starts at another address.
    Clone,
    /// It ends without a farewell.
    CloneGone,
    /// It says farewell and ends.
    CloneLeaves,
}

/// The waiting times: until one more attempt, several attempts, until a metered path sleeps, and
/// until a session is renewed.
const WAITS_MS: [u32; 4] = [300, 2_500, 12_000, 125_000];
const SIDES: [Side; 2] = [Side::Customer, Side::Provider];

impl Action {
    /// Every action, in the notation of a sequence.
    fn all_words() -> String {
        sentence(&Self::all().collect::<Vec<_>>())
    }

    /// Every action there is, in the order in which they are tried.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_sides = [
            Self::Send as fn(Side) -> Self,
            Self::Drop,
            Self::Duplicate,
            Self::Delay,
            Self::Cut,
            Self::Restart,
        ];
        let of_sides = of_sides.into_iter().flat_map(|make| SIDES.map(make));
        let alone = [
            Self::CutBoth,
            Self::Mend,
            Self::Move,
            Self::Clone,
            Self::CloneGone,
            Self::CloneLeaves,
        ];
        let time = [Self::Step, Self::Overtake].into_iter().chain(WAITS_MS.map(Self::Wait));
        time.chain(of_sides).chain(alone)
    }

    /// Whether it counts as a fault.
    pub const fn is_fault(self) -> bool {
        match self {
            Self::Drop(_)
            | Self::Duplicate(_)
            | Self::Delay(_)
            | Self::Cut(_)
            | Self::CutBoth
            | Self::Restart(_)
            | Self::Move
            | Self::Clone => true,
            Self::Step
            | Self::Overtake
            | Self::Wait(_)
            | Self::Send(_)
            | Self::Mend
            | Self::CloneGone
            | Self::CloneLeaves => false,
        }
    }

    /// Whether it changes only the network between the gateways.
    const fn is_on_network(self) -> bool {
        match self {
            Self::Drop(_)
            | Self::Duplicate(_)
            | Self::Delay(_)
            | Self::Cut(_)
            | Self::CutBoth
            | Self::Mend
            | Self::Move => true,
            Self::Step
            | Self::Overtake
            | Self::Wait(_)
            | Self::Send(_)
            | Self::Restart(_)
            | Self::Clone
            | Self::CloneGone
            | Self::CloneLeaves => false,
        }
    }

    /// The side whose process it replaces, starts or ends, if it changes nothing else.
    pub(super) const fn replaces(self) -> Option<Side> {
        match self {
            Self::Restart(side) => Some(side),
            Self::Clone | Self::CloneGone => Some(Side::Clone),
            _ => None,
        }
    }

    /// Whether it can be [undone](super::World::restore).
    pub const fn can_be_undone(self) -> bool {
        self.is_on_network() || self.replaces().is_some()
    }

    /// Whether it changes only what [`World::heal`](super::World::heal) resets first: then the
    /// state after it heals like the state before.
    pub const fn is_undone_by_healing(self) -> bool {
        matches!(self, Self::Cut(_) | Self::CutBoth | Self::Mend | Self::CloneGone)
    }

    pub(super) const fn wait(ms: u32) -> Duration {
        Duration::from_millis(ms as u64)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step => f.write_str("step"),
            Self::Overtake => f.write_str("overtake"),
            Self::Wait(ms) => write!(f, "wait-{ms}"),
            Self::Send(side) => write!(f, "send-{side}"),
            Self::Drop(side) => write!(f, "drop-{side}"),
            Self::Duplicate(side) => write!(f, "duplicate-{side}"),
            Self::Delay(side) => write!(f, "delay-{side}"),
            Self::Cut(side) => write!(f, "cut-{side}"),
            Self::CutBoth => f.write_str("cut-both"),
            Self::Mend => f.write_str("mend"),
            Self::Restart(side) => write!(f, "restart-{side}"),
            Self::Move => f.write_str("move"),
            Self::Clone => f.write_str("clone"),
            Self::CloneGone => f.write_str("clone-gone"),
            Self::CloneLeaves => f.write_str("clone-leaves"),
        }
    }
}

/// A word that is not an action.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no action; the actions are: {all}", all = Action::all_words())]
pub struct NotAnAction(String);

impl FromStr for Action {
    type Err = NotAnAction;

    fn from_str(word: &str) -> Result<Self, NotAnAction> {
        let known = Self::all().find(|action| action.to_string() == word);
        known.ok_or_else(|| NotAnAction(word.to_owned()))
    }
}

/// A sequence of actions as text.
pub fn sentence(actions: &[Action]) -> String {
    let words: Vec<String> = actions.iter().map(Action::to_string).collect();
    words.join(" ")
}
