//! Radio links side by side.

use plait_proto::time::Instant;

use super::calibration;
use super::counters::AirCounters;
use super::coupling::Coupling;
use super::interferer::Interferer;
use super::radio::{Radio, RadioConfig, State};
use super::sender::{Arrival, SenderCounters};
use crate::packet::Way;
use crate::prng::Prng;
use crate::ratio::Ratio;

/// Radio links that share the air, which carry payloads of type `P`.
#[derive(Debug)]
pub struct Medium<P> {
    radios: Vec<Radio<P>>,
    coupling: Coupling,
    /// For each interferer, its radio and its place there.
    interferers: Vec<(usize, usize)>,
    /// Which of two that begin at one moment is first.
    prng: Prng,
}

impl<P> Medium<P> {
    /// A silent medium whose radios do not sense each other. Each radio has its own seed: what it
    /// does does not depend on radios that it does not sense.
    pub fn new(radios: &[(RadioConfig, u64)]) -> Self {
        let seeds: Vec<u64> = radios.iter().map(|(_, seed)| *seed).collect();
        let mixed = seeds.iter().fold(0, |mixed: u64, seed| mixed.rotate_left(1) ^ seed);
        Self {
            radios: radios.iter().map(|(config, seed)| Radio::new(*config, *seed)).collect(),
            coupling: Coupling::none(&seeds),
            interferers: Vec::new(),
            prng: Prng::new(mixed),
        }
    }

    /// Adds a foreign transmitter, which is known by the number of those before it.
    pub fn add_interferer(&mut self, interferer: Interferer) {
        let of_radio = &mut self.radios[interferer.radio].interferers;
        self.interferers.push((interferer.radio, of_radio.len()));
        of_radio.push(interferer);
    }

    /// Puts a packet of `bytes` bytes at the IP layer in; says whether there was room.
    pub fn send(&mut self, now: Instant, radio: usize, way: Way, bytes: u64, payload: P) -> bool {
        self.advance(now);
        let radio = &mut self.radios[radio];
        let room = radio.config.queue_packets;
        let taken = radio.senders[way as usize].take_in(bytes, payload, room);
        if taken {
            radio.wake(now);
        }
        taken
    }

    /// Takes out the next packet that has arrived in a direction; those of one radio in the order
    /// in which they were sent.
    pub fn poll(&mut self, now: Instant, way: Way) -> Option<Arrival<P>> {
        self.advance(now);
        let first = |radio: &Radio<P>| Some(radio.senders[way as usize].arrived.front()?.0);
        let of_radio = |(at, radio): (usize, &Radio<P>)| Some((first(radio)?, at));
        let (_, at) = self.radios.iter().enumerate().filter_map(of_radio).min()?;
        let (due, bytes, payload) = self.radios[at].senders[way as usize].arrived.pop_front()?;
        Some(Arrival { due, radio: at, bytes, payload })
    }

    /// The earliest time at which something happens on the air or has arrived; `None` while nothing
    /// waits.
    pub fn next_event(&self) -> Option<Instant> {
        Way::BOTH.into_iter().filter_map(|way| self.next_event_of(way)).min()
    }

    /// The same without what has arrived in the other direction.
    pub fn next_event_of(&self, way: Way) -> Option<Instant> {
        let of_radio = |radio: &Radio<P>| {
            let arrived = radio.senders[way as usize].arrived.front();
            arrived.map(|first| first.0).into_iter().chain(radio.next_at()).min()
        };
        self.radios.iter().filter_map(of_radio).min()
    }

    /// From now on `radio` senses this share of the frames of `from`.
    pub fn set_coupling(&mut self, now: Instant, radio: usize, from: usize, share: Ratio) {
        self.advance(now);
        self.coupling.set(radio, from, share);
    }

    /// From now on both ends of a radio link send with this power, in dBm.
    pub fn set_tx_power(&mut self, now: Instant, radio: usize, dbm: f64) {
        self.advance(now);
        self.radios[radio].config.tx_power_dbm = dbm;
    }

    /// Switches an interferer on or off.
    pub fn set_interferer(&mut self, now: Instant, number: usize, on: bool) {
        self.advance(now);
        let (radio, place) = self.interferers[number];
        self.radios[radio].interferers[place].on = on;
    }

    /// How many radio links there are.
    pub fn count(&self) -> usize {
        self.radios.len()
    }

    /// A radio's configuration.
    pub fn config(&self, radio: usize) -> &RadioConfig {
        &self.radios[radio].config
    }

    /// What a radio has done.
    pub fn counters(&self, radio: usize) -> AirCounters {
        self.radios[radio].counters
    }

    /// What one direction of a radio link was given and has dropped.
    pub fn sender(&self, radio: usize, way: Way) -> SenderCounters {
        self.radios[radio].senders[way as usize].counters
    }

    /// Bytes that one direction of a radio link keeps.
    pub fn waiting_bytes(&self, radio: usize, way: Way) -> u64 {
        self.radios[radio].senders[way as usize].waiting_bytes()
    }

    /// Packets that one direction of a radio link keeps.
    pub fn waiting_packets(&self, radio: usize, way: Way) -> u64 {
        self.radios[radio].senders[way as usize].waiting_packets()
    }

    /// The exchange of a radio that is on the air: when it began, and when it ends.
    pub fn on_air(&self, radio: usize) -> Option<(Instant, Instant)> {
        match self.radios[radio].state {
            State::Sending { begun, until, .. } => Some((begun, until)),
            State::Idle { .. } | State::Waiting { .. } => None,
        }
    }

    /// What a radio link carries alone, without interference, at the IP layer, in bits per second.
    pub fn capacity_bps(&self, radio: usize) -> f64 {
        calibration::capacity_bps(&self.radios[radio].config)
    }

    fn advance(&mut self, now: Instant) {
        while let Some((at, radio)) = self.next_turn().filter(|(at, _)| *at <= now) {
            if matches!(self.radios[radio].state, State::Sending { .. }) {
                self.radios[radio].finish();
                continue;
            }
            let (until, worth) = self.radios[radio].begin(at);
            for other in 0..self.radios.len() {
                if self.coupling.senses(other, radio, worth) {
                    self.radios[other].sense(at, until);
                }
            }
        }
    }

    /// The radio that is next to begin or to end, and when. At one moment ends come before
    /// beginnings; among beginnings each is as likely to be first.
    fn next_turn(&mut self) -> Option<(Instant, usize)> {
        let turn = |(at, radio): (usize, &Radio<P>)| {
            let begins = matches!(radio.state, State::Waiting { .. });
            Some((radio.next_at()?, begins, at))
        };
        let (at, begins, first) = self.radios.iter().enumerate().filter_map(turn).min()?;
        if !begins {
            return Some((at, first));
        }
        let same: Vec<usize> = (first..self.radios.len())
            .filter(|other| self.radios[*other].next_at() == Some(at))
            .collect();
        if same.len() == 1 {
            return Some((at, first));
        }
        let chosen = self.prng.up_to(same.len() as u64 - 1);
        Some((at, same[chosen as usize]))
    }
}
