//! Where a search begins.

use plait_proto::faults::Faults;

use super::action::Action;
use super::world::World;

/// The gateways, and the state in which the search starts.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Links of the customer.
    pub links: usize,
    /// The links are metered.
    pub metered: bool,
    /// The provider knows the customer's address and initiates too.
    pub both_seek: bool,
    /// A second gateway with the customer's key may start.
    pub has_clone: bool,
    /// The customer's NAT may assign another port.
    pub moves: bool,
    /// The provider's state file holds the customer's last address.
    pub remembers: bool,
    /// The bond is up, and has carried packets both ways.
    pub begins_up: bool,
}

const PAIR: Setup = Setup {
    name: "bond",
    about: "a bond of one link that has carried packets",
    links: 1,
    metered: false,
    both_seek: false,
    has_clone: false,
    moves: false,
    remembers: true,
    begins_up: true,
};

impl Setup {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self { remembers: false, ..PAIR },
        Self {
            name: "beginning",
            about: "both gateways have just started",
            begins_up: false,
            ..PAIR
        },
        Self {
            name: "clone",
            about: "a bond, and a second gateway with the customer's key",
            has_clone: true,
            ..PAIR
        },
        Self {
            name: "mutual",
            about: "both sides begin, and the customer's NAT may change its port",
            both_seek: true,
            moves: true,
            begins_up: false,
            ..PAIR
        },
        Self { name: "links", about: "a bond of two links", links: 2, ..PAIR },
        Self { name: "metered", about: "a bond that falls asleep", metered: true, ..PAIR },
    ];

    /// The setup of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setup| setup.name == name)
    }

    /// The world after a sequence of actions.
    pub fn replay(self, put_back: Faults, actions: &[Action]) -> World {
        let mut world = World::new(self, put_back);
        for action in actions {
            world.apply(*action);
        }
        world
    }
}
