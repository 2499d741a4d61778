//! A radio link: two ends on one channel, and what the medium knows of it.
//!
//! Both ends share the channel: one exchange at a time, down or up.

use plait_proto::time::{Duration, Instant};

use super::aggregate::{ACCESS_MEAN, AIFS, Aggregate, EXTENDED, SLOT};
use super::counters::AirCounters;
use super::coupling::{Debt, free_space_db};
use super::interferer::{Effect, Interferer};
use super::mcs::{Mcs, Mode};
use super::sender::{Frame, Sender};
use crate::packet::Way;
use crate::prng::Prng;

/// Thermal noise per hertz at 290 K, and a receiver's own, in dBm and decibels.
const NOISE_DBM_PER_HZ: f64 = -174.0;
const NOISE_FIGURE_DB: f64 = 7.0;
/// Free space up to here, then with the power 3.5 of the distance (TGn channel model B).
const BREAKPOINT_M: f64 = 5.0;
const FAR_EXPONENT: f64 = 3.5;

/// A radio link's configuration; the same for both ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RadioConfig {
    /// Standard, width, streams.
    pub mode: Mode,
    /// Middle of the channel, in megahertz.
    pub centre_mhz: f64,
    /// Power of each transmitter, in dBm.
    pub tx_power_dbm: f64,
    /// Loss between transmitter and receiver, antennas included, in decibels.
    pub path_loss_db: f64,
    /// How much a frame may hold.
    pub aggregate: Aggregate,
    /// How often a subframe is sent again before the radio gives the packet up.
    pub retries_max: u32,
    /// Packets that each end keeps, those under way included; one more is dropped.
    pub queue_packets: u64,
    /// Rates of the schemes over those of the standard: other than 1 where the link is to have a
    /// given capacity.
    pub rate_scale: f64,
}

impl RadioConfig {
    /// Signal over noise without interference, in decibels.
    pub fn clean_db(&self) -> f64 {
        self.received_dbm() - self.noise_dbm()
    }

    /// Signal over interference and noise, in decibels: Shannon's, in linear units.
    pub(super) fn disturbed_db(&self, interference_mw: f64) -> f64 {
        self.received_dbm() - 10.0 * (milliwatts(self.noise_dbm()) + interference_mw).log10()
    }

    fn received_dbm(&self) -> f64 {
        self.tx_power_dbm - self.path_loss_db
    }

    fn noise_dbm(&self) -> f64 {
        NOISE_DBM_PER_HZ + 10.0 * (self.mode.width.mhz() * 1e6).log10() + NOISE_FIGURE_DB
    }

    /// The schemes with this radio's rates, slowest first.
    pub(super) fn schemes(&self) -> Vec<Mcs> {
        let mut schemes = self.mode.schemes();
        schemes.iter_mut().for_each(|mcs| mcs.rate_bps *= self.rate_scale);
        schemes
    }
}

/// Loss over a distance indoors, in decibels.
pub fn path_loss_db(distance_m: f64, centre_mhz: f64) -> f64 {
    let free = free_space_db(distance_m.min(BREAKPOINT_M), centre_mhz);
    free + 10.0 * FAR_EXPONENT * (distance_m / BREAKPOINT_M).max(1.0).log10()
}

pub(super) fn milliwatts(dbm: f64) -> f64 {
    10_f64.powf(dbm / 10.0)
}

/// What a radio does.
#[derive(Debug)]
pub(super) enum State {
    /// Nothing waits, since then.
    Idle { since: Instant },
    /// It waits for its turn, pays what it owes from `pays_from` on, and begins at `begins` if it
    /// senses nothing before.
    Waiting { pays_from: Instant, begins: Instant, way: Way },
    /// An exchange is on the air.
    Sending { begun: Instant, until: Instant, frame: Frame },
}

#[derive(Debug)]
pub(super) struct Radio<P> {
    pub(super) config: RadioConfig,
    pub(super) schemes: Vec<Mcs>,
    /// In the order of [`Way`].
    pub(super) senders: [Sender<P>; 2],
    pub(super) state: State,
    pub(super) interferers: Vec<Interferer>,
    pub(super) counters: AirCounters,
    /// End of the last frame of another radio that it senses.
    sensed_until: Instant,
    debt: Debt,
    /// Slots, ties between the two ends, and the fate of subframes.
    prng: Prng,
}

impl<P> Radio<P> {
    pub(super) fn new(config: RadioConfig, seed: u64) -> Self {
        Self {
            config,
            schemes: config.schemes(),
            senders: [Sender::new(), Sender::new()],
            state: State::Idle { since: Instant::ZERO },
            interferers: Vec::new(),
            counters: AirCounters::default(),
            sensed_until: Instant::ZERO,
            debt: Debt::default(),
            prng: Prng::new(seed),
        }
    }

    /// When it begins or ends an exchange; `None` when it is idle.
    pub(super) fn next_at(&self) -> Option<Instant> {
        match self.state {
            State::Idle { .. } => None,
            State::Waiting { begins, .. } => Some(begins),
            State::Sending { until, .. } => Some(until),
        }
    }

    /// Waits for its turn if it is idle and anything waits.
    pub(super) fn wake(&mut self, now: Instant) {
        if let State::Idle { since } = self.state {
            self.debt.pay(now.since(since));
            self.contend(now, false);
        }
    }

    /// Waits for its turn from `now` on: until nothing is sensed, then for what it owes, the
    /// arbitration space and the slots of that end which has drawn fewer. `deferred` when what it
    /// waited for so far was in vain.
    fn contend(&mut self, now: Instant, deferred: bool) {
        let mut first: Option<(u64, Way)> = None;
        for way in Way::BOTH {
            let sender = &self.senders[way as usize];
            if !sender.has_work() {
                continue;
            }
            let slots = self.prng.up_to(sender.window_slots.into());
            // Equal numbers collide on a real channel; here either end is as likely to be first.
            let wins = match first {
                None => true,
                Some((other, _)) if other == slots => self.prng.up_to(1) == 1,
                Some((other, _)) => slots < other,
            };
            if wins {
                first = Some((slots, way));
            }
        }
        let Some((slots, way)) = first else {
            self.state = State::Idle { since: now };
            return;
        };
        let since = now.max(self.sensed_until);
        let deferred = deferred || since > now;
        if deferred {
            self.counters.deferrals += 1;
        }
        // The other one's next turn belongs to the frame that was sensed: it pays nothing.
        let (extended, turn) =
            if deferred { (EXTENDED, ACCESS_MEAN) } else { (Duration::ZERO, Duration::ZERO) };
        let slots = u32::try_from(slots).expect("a window has 1023 slots at most");
        let begins = since + self.debt.left() + extended + AIFS + SLOT * slots;
        self.state = State::Waiting { pays_from: since + turn, begins, way };
    }

    /// Begins the exchange that it waited for; returns when it ends, and the share of that time
    /// which a frame of this many packets would take if it were one of many full ones.
    pub(super) fn begin(&mut self, now: Instant) -> (Instant, f64) {
        let State::Waiting { way, .. } = self.state else {
            unreachable!("only a radio that waits begins an exchange")
        };
        self.debt = Debt::default();
        let sender = &mut self.senders[way as usize];
        let scheme = sender.control.choose(&self.schemes, self.config.clean_db());
        let frame = sender.compose(way, scheme, &self.config);
        let until = now + frame.exchange;
        self.counters.frames += 1;
        self.counters.subframes += u64::from(frame.packets);
        self.counters.mcs_total += u64::from(scheme.index) * u64::from(frame.packets);
        self.counters.on_air += frame.exchange;
        let worth = frame.worth(&self.config);
        self.state = State::Sending { begun: now, until, frame };
        (until, worth)
    }

    /// Senses a frame of another radio.
    pub(super) fn sense(&mut self, begin: Instant, end: Instant) {
        let sensed_before = self.sensed_until;
        self.sensed_until = self.sensed_until.max(end);
        match self.state {
            State::Idle { .. } => {}
            State::Waiting { pays_from, .. } => {
                self.debt.pay(begin.since(pays_from));
                self.contend(begin, true);
            }
            State::Sending { until, .. } => {
                let lost = end.min(until).since(begin.max(sensed_before));
                if lost > Duration::ZERO {
                    // With the time that the other one waited for its turn.
                    self.debt.owe(lost + ACCESS_MEAN);
                }
            }
        }
    }

    /// Ends the exchange on the air: what arrived goes out.
    pub(super) fn finish(&mut self) {
        let idle = State::Idle { since: Instant::ZERO };
        let state = std::mem::replace(&mut self.state, idle);
        let State::Sending { begun, until, frame } = state else {
            unreachable!("only a radio that sends ends an exchange")
        };
        let fates = Fates {
            config: &self.config,
            interferers: &self.interferers,
            prng: &mut self.prng,
            way: frame.way,
        };
        let sender = &mut self.senders[frame.way as usize];
        sender.settle(begun, until, &frame, fates, &mut self.counters);
        self.contend(until, false);
    }
}

/// What happens to what is on the air.
pub(super) struct Fates<'a> {
    config: &'a RadioConfig,
    interferers: &'a [Interferer],
    prng: &'a mut Prng,
    way: Way,
}

/// What a subframe meets at its receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Met {
    pub(super) destroyed: bool,
    /// Power of interference, in milliwatts.
    pub(super) interference_mw: f64,
}

impl Fates<'_> {
    pub(super) fn met(&self, at: Instant) -> Met {
        let mut met = Met { destroyed: false, interference_mw: 0.0 };
        for interferer in self.interferers {
            if interferer.way != self.way || !interferer.is_sending(at) {
                continue;
            }
            match interferer.effect {
                Effect::Destroys => met.destroyed = true,
                Effect::Power(dbm) => met.interference_mw += milliwatts(dbm),
            }
        }
        met
    }

    pub(super) fn retries_max(&self) -> u32 {
        self.config.retries_max
    }

    pub(super) fn sinr_db(&self, met: Met) -> f64 {
        self.config.disturbed_db(met.interference_mw)
    }

    /// One trial; certain outcomes draw nothing.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        const CERTAIN: f64 = 1e-9;
        if probability >= 1.0 - CERTAIN {
            return true;
        }
        (self.prng.next_u64() as f64) < probability * u64::MAX as f64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::mcs::{Standard, Width};
    use super::*;

    /// A link over three metres.
    pub(in crate::air) fn near(width: Width) -> RadioConfig {
        RadioConfig {
            mode: Mode { standard: Standard::Ac, width, streams: 1 },
            centre_mhz: 5_410.0,
            tx_power_dbm: 17.0,
            path_loss_db: path_loss_db(3.0, 5_410.0),
            aggregate: Aggregate { packets_max: 64, air_max: Duration::from_millis(4) },
            retries_max: 30,
            queue_packets: 400,
            rate_scale: 1.0,
        }
    }

    #[test]
    fn the_signal_falls_with_distance_and_width() {
        // 3 m at 5410 MHz: 56.7 dB in free space; noise -87.97 dBm in 80 MHz.
        let clean = near(Width::Mhz80).clean_db();
        assert!((clean - (17.0 - 56.65 + 87.97)).abs() < 0.1, "{clean}");
        assert!((near(Width::Mhz20).clean_db() - clean - 6.02).abs() < 0.01);
        let far = path_loss_db(50.0, 5_410.0) - path_loss_db(5.0, 5_410.0);
        assert!((far - 35.0).abs() < 1e-9, "{far}");
    }

    #[test]
    fn interference_counts_in_linear_units() {
        let config = near(Width::Mhz80);
        // As strong as the noise: half of the signal over both.
        let noise_mw = milliwatts(config.noise_dbm());
        assert!((config.disturbed_db(noise_mw) - (config.clean_db() - 3.01)).abs() < 0.01);
    }
}
