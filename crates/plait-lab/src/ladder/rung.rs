//! What a rung is: links, what is sent over them, and the real case that they stand for.

use std::fmt;

use plait_proto::congestion;

/// A set of link conditions with a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rung {
    /// Its kind and its own name: `rates/village`.
    pub(crate) name: &'static str,
    /// The real case behind it.
    pub(crate) stands_for: &'static str,
    pub(crate) links: &'static [Link],
    pub(crate) load: Load,
    /// Whether it also runs in namespaces, in real time: one of most kinds does.
    pub(crate) on_netns: bool,
}

pub(super) const fn rung(
    name: &'static str,
    stands_for: &'static str,
    links: &'static [Link],
    load: Load,
) -> Rung {
    Rung { name, stands_for, links, load, on_netns: false }
}

impl Rung {
    pub(super) const fn on_netns(self) -> Self {
        Self { on_netns: true, ..self }
    }

    /// The part of the name before the slash.
    pub(crate) fn kind(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(kind, _)| kind)
    }

    /// Whether the sum of the links is promised: nothing is lost and nothing changes, rates are up
    /// to 1:5, round trips up to 100 ms and 1:3, and CUBIC or BBR sends.
    pub(crate) fn is_steady(&self) -> bool {
        let calm = |link: &Link| {
            link.losses == Losses::None && link.course == Course::Steady && link.jitter_ms == 0
        };
        let span = |of: fn(&Link) -> u32| {
            let values = || self.links.iter().map(of);
            (values().min().unwrap_or(0), values().max().unwrap_or(0))
        };
        let (slowest, fastest) = span(|link| link.down_kbit);
        let (nearest, farthest) = span(|link| link.rtt_ms);
        self.links.iter().all(calm)
            && fastest <= 5 * slowest
            && farthest <= 100
            && farthest <= 3 * nearest
            && matches!(self.load.inner, Some(Inner::Cubic | Inner::Bbr))
    }

    /// Whether something happens at a time of its own, so that a run has to last until then.
    pub(crate) fn has_events(&self) -> bool {
        self.links.iter().any(|link| link.course != Course::Steady)
    }

    /// The largest round-trip time without any queue, in milliseconds.
    pub(crate) fn base_rtt_ms(&self) -> u32 {
        self.links.iter().map(|link| link.rtt_ms).max().unwrap_or(0)
    }
}

/// A link. What is not said is calm: a queue of 50 ms, no loss, no jitter, a steady rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    /// Rate at the IP layer towards the customer.
    pub(crate) down_kbit: u32,
    /// Rate at the IP layer towards the provider.
    pub(crate) up_kbit: u32,
    pub(crate) rtt_ms: u32,
    /// How long a full queue takes at the link's rate, either way.
    pub(crate) queue_ms: u32,
    /// Largest extra delay of a round trip.
    pub(crate) jitter_ms: u32,
    pub(crate) losses: Losses,
    pub(crate) course: Course,
}

/// Packets lost on a link, either way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Losses {
    None,
    /// Each on its own, in a thousand.
    Random {
        permille: u32,
    },
    /// Runs of so many packets on average are lost (Gilbert 1960); in a thousand of all.
    Bursts {
        permille: u32,
        packets: u32,
    },
}

/// What becomes of a link's rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Course {
    Steady,
    /// It wanders as a mobile network's does; the number tells one course from another.
    Mobile(u32),
    /// It changes every 15 s and stands still for a moment then, as with low satellites.
    Satellite(u32),
    /// Neighbours take half of it or more, for a second or so at a time.
    Shared(u32),
    /// It falls to a share of itself for some time.
    Falls {
        to_permille: u32,
        from_s: u32,
        until_s: u32,
    },
    /// Everything is lost for some time.
    Dies {
        from_s: u32,
        until_s: u32,
    },
}

impl Link {
    /// A link of so many megabits per second either way, at this round-trip time.
    pub(super) const fn new(name: &'static str, mbit: u32, rtt_ms: u32) -> Self {
        Self {
            name,
            down_kbit: mbit * 1000,
            up_kbit: mbit * 1000,
            rtt_ms,
            queue_ms: 50,
            jitter_ms: 0,
            losses: Losses::None,
            course: Course::Steady,
        }
    }

    pub(super) const fn up(self, mbit: u32) -> Self {
        Self { up_kbit: mbit * 1000, ..self }
    }

    pub(super) const fn rtt(self, rtt_ms: u32) -> Self {
        Self { rtt_ms, ..self }
    }

    pub(super) const fn queue(self, queue_ms: u32) -> Self {
        Self { queue_ms, ..self }
    }

    pub(super) const fn jitter(self, jitter_ms: u32) -> Self {
        Self { jitter_ms, ..self }
    }

    pub(super) const fn loss(self, permille: u32) -> Self {
        Self { losses: Losses::Random { permille }, ..self }
    }

    pub(super) const fn bursts(self, permille: u32, packets: u32) -> Self {
        Self { losses: Losses::Bursts { permille, packets }, ..self }
    }

    pub(super) const fn course(self, course: Course) -> Self {
        Self { course, ..self }
    }

    pub(super) const fn falls(self, to_permille: u32, from_s: u32, until_s: u32) -> Self {
        self.course(Course::Falls { to_permille, from_s, until_s })
    }

    pub(super) const fn dies(self, from_s: u32, until_s: u32) -> Self {
        self.course(Course::Dies { from_s, until_s })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbit = |kbit: u32| f64::from(kbit) / 1000.0;
        write!(f, "{} {}/{}", self.name, mbit(self.down_kbit), mbit(self.up_kbit))?;
        write!(f, " {} ms", self.rtt_ms)?;
        if self.jitter_ms > 0 {
            write!(f, "..{}", self.rtt_ms + self.jitter_ms)?;
        }
        if self.queue_ms != 50 {
            write!(f, ", queue {} ms", self.queue_ms)?;
        }
        let percent = |permille: u32| f64::from(permille) / 10.0;
        match self.losses {
            Losses::None => {}
            Losses::Random { permille } => write!(f, ", loses {} %", percent(permille))?,
            Losses::Bursts { permille, packets } => {
                write!(f, ", loses {} % in runs of {packets}", percent(permille))?;
            }
        }
        match self.course {
            Course::Steady => Ok(()),
            Course::Mobile(_) => f.write_str(", mobile trace"),
            Course::Satellite(_) => f.write_str(", satellite trace"),
            Course::Shared(_) => f.write_str(", shared trace"),
            Course::Falls { to_permille, from_s, until_s } => {
                write!(f, ", falls to {} % from {from_s} to {until_s} s", percent(to_permille))
            }
            Course::Dies { from_s, until_s } => {
                write!(f, ", dead from {from_s} to {until_s} s")
            }
        }
    }
}

/// Who decides how fast an application sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Inner {
    Reno,
    /// Linux's.
    Cubic,
    Bbr,
}

impl Inner {
    /// The controller of the TCP model, by name: a build may lack it.
    pub(super) const fn controller(self) -> &'static str {
        match self {
            Self::Reno => "new-reno",
            Self::Cubic => "cubic-linux",
            Self::Bbr => "bbr",
        }
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reno => "Reno",
            Self::Cubic => "CUBIC",
            Self::Bbr => "BBR",
        })
    }
}

/// What is sent through the bond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Load {
    /// The congestion control of its flows; `None` for UDP at a constant rate.
    pub(crate) inner: Option<Inner>,
    /// Flows in each direction.
    pub(crate) flows: u32,
    /// Rate of UDP's payload; zero with congestion control.
    pub(crate) kbit: u32,
    /// Whether the senders are like QUIC's: paced, with a receive window that never ends.
    pub(crate) like_quic: bool,
    /// Whether as much is sent up as down.
    pub(crate) both_ways: bool,
}

impl Load {
    pub(super) const fn tcp(inner: Inner) -> Self {
        Self { inner: Some(inner), flows: 1, kbit: 0, like_quic: false, both_ways: false }
    }

    pub(super) const fn quic(inner: Inner) -> Self {
        Self { like_quic: true, ..Self::tcp(inner) }
    }

    pub(super) const fn udp(mbit: u32) -> Self {
        Self { inner: None, flows: 1, kbit: mbit * 1000, like_quic: false, both_ways: false }
    }

    pub(super) const fn flows(self, flows: u32) -> Self {
        Self { flows, ..self }
    }

    pub(super) const fn both_ways(self) -> Self {
        Self { both_ways: true, ..self }
    }

    /// Whether the TCP model of this build has the load's congestion control.
    pub(crate) fn is_known(&self) -> bool {
        let known = |inner: Inner| inner.controller().parse::<congestion::Algorithm>().is_ok();
        self.inner.is_none_or(known)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner {
            None => write!(f, "UDP {} Mbit/s", self.kbit / 1000)?,
            Some(inner) => {
                let kind = if self.like_quic { "QUIC-like " } else { "" };
                write!(f, "{} {kind}{inner}", self.flows)?;
            }
        }
        f.write_str(if self.both_ways { ", both ways" } else { "" })
    }
}
