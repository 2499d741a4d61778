//! Makes the media of a scenario, and lets events happen to them. Both back-ends use it.

use plait_proto::time::Instant;

use crate::air::{
    AirCounters, Arrival, Effect, Interferer, Medium, RadioConfig, SenderCounters, calibration,
    estimate_coupling,
};
use crate::prng::Prng;
use crate::ratio::Ratio;
use crate::scenario::medium::{Antennas, Disturbs, InterfererSpec};
use crate::scenario::{Action, MediumSpec, Scenario};
use crate::world::Way;

/// A scenario's medium with the links on it. Between medium and receiver there is still each link's
/// own delay, loss and outages.
#[derive(Debug)]
pub struct Air<P> {
    medium: Medium<P>,
    spec: MediumSpec,
    /// For each radio, its link: name, and number among the scenario's.
    links: Vec<(String, usize)>,
    /// Names of the interferers that the medium has, in their order.
    interferers: Vec<String>,
}

impl<P> Air<P> {
    /// All media of a scenario that have links, in the order of their names.
    pub fn all(scenario: &Scenario, prng: &mut Prng) -> Vec<Self> {
        let media = scenario.media.iter();
        let one = |(name, spec): (&String, &MediumSpec)| {
            let on_it = scenario.links.iter().enumerate().filter_map(|(at, (link, of_link))| {
                let air = of_link.air.as_ref().filter(|air| air.medium == *name)?;
                Some((link.clone(), at, air.radio))
            });
            let members: Vec<(String, usize, RadioConfig)> = on_it.collect();
            (!members.is_empty()).then(|| Self::new(spec, members, prng))
        };
        media.filter_map(one).collect()
    }

    fn new(spec: &MediumSpec, members: Vec<(String, usize, RadioConfig)>, prng: &mut Prng) -> Self {
        let radios: Vec<(RadioConfig, u64)> =
            members.iter().map(|(_, _, radio)| (*radio, prng.next_u64())).collect();
        let mut medium = Medium::new(&radios);
        let links: Vec<(String, usize)> =
            members.into_iter().map(|(name, at, _)| (name, at)).collect();
        let mut interferers = Vec::new();
        for one in &spec.interferers {
            let Some(radio) = links.iter().position(|(name, _)| *name == one.link) else {
                continue;
            };
            medium.add_interferer(interferer(one, radio, &radios[radio].0, prng.next_u64()));
            interferers.push(one.name.clone());
        }
        let mut air = Self { medium, spec: spec.clone(), links, interferers };
        air.couple(Instant::ZERO);
        air
    }

    /// The radio of a link, by the link's number.
    pub fn radio_of(&self, link: usize) -> Option<usize> {
        self.links.iter().position(|(_, at)| *at == link)
    }

    /// The link of a radio, by its number.
    pub fn link_of(&self, radio: usize) -> usize {
        self.links[radio].1
    }

    /// Puts a packet in, as [`Medium::send`].
    pub fn send(&mut self, now: Instant, radio: usize, way: Way, bytes: u64, payload: P) -> bool {
        self.medium.send(now, radio, way, bytes, payload)
    }

    /// Takes out the next packet that has crossed the air, as [`Medium::poll`].
    pub fn poll(&mut self, now: Instant, way: Way) -> Option<Arrival<P>> {
        self.medium.poll(now, way)
    }

    /// When to poll again.
    pub fn next_event(&self) -> Option<Instant> {
        self.medium.next_event()
    }

    /// When to poll a direction again, as [`Medium::next_event_of`].
    pub fn next_event_of(&self, way: Way) -> Option<Instant> {
        self.medium.next_event_of(way)
    }

    /// What a radio's direction was given and dropped, what it keeps, and what the radio did.
    pub fn view(&self, radio: usize, way: Way) -> AirView {
        AirView {
            sender: self.medium.sender(radio, way),
            waiting_bytes: self.medium.waiting_bytes(radio, way),
            radio: self.medium.counters(radio),
        }
    }

    /// Lets an event happen, if it is one of this medium's.
    pub fn happen(&mut self, now: Instant, action: &Action) {
        let radio = |name: &String| self.links.iter().position(|(known, _)| known == name);
        match action {
            Action::Power(link, dbm) => {
                if let Some(radio) = radio(link) {
                    self.medium.set_tx_power(now, radio, *dbm);
                    self.couple(now);
                }
            }
            Action::Coupling(link, from, share) => {
                if let Some((radio, from)) = radio(link).zip(radio(from)) {
                    let (link, from_name) = (link.clone(), self.links[from].0.clone());
                    self.spec.set_coupling(link, from_name, *share);
                    self.medium.set_coupling(now, radio, from, *share);
                }
            }
            Action::Interferer(name, on) => {
                if let Some(number) = self.interferers.iter().position(|known| known == name) {
                    self.medium.set_interferer(now, number, *on);
                }
            }
            _ => {}
        }
    }

    /// Sets who senses whom: as stated, or as the antennas have it.
    fn couple(&mut self, now: Instant) {
        let count = self.links.len();
        for radio in 0..count {
            for from in (0..count).filter(|from| *from != radio) {
                let share = self.share(radio, from);
                self.medium.set_coupling(now, radio, from, share);
            }
        }
    }

    fn share(&self, radio: usize, from: usize) -> Ratio {
        if self.spec.antennas == Antennas::Shared {
            return Ratio::ONE;
        }
        let stated = self.spec.stated(&self.links[radio].0, &self.links[from].0);
        let estimated = || {
            let of = |radio| self.medium.config(radio);
            self.spec.apart_m.map(|apart_m| estimate_coupling(of(radio), of(from), apart_m))
        };
        stated.or_else(estimated).unwrap_or(Ratio::ZERO)
    }
}

/// One direction of a radio link, and its radio, seen from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AirView {
    /// What the direction was given and has dropped.
    pub sender: SenderCounters,
    /// Bytes that it keeps.
    pub waiting_bytes: u64,
    /// What the radio did, both directions.
    pub radio: AirCounters,
}

fn interferer(spec: &InterfererSpec, radio: usize, config: &RadioConfig, seed: u64) -> Interferer {
    let InterfererSpec { way, period, on, .. } = *spec;
    let (air, effect) = match spec.disturbs {
        Disturbs::Share(share) => {
            let taken = f64::from(share.ppm()) / 1e6;
            (calibration::interferer_air(config, taken, period), Effect::Destroys)
        }
        Disturbs::Power { dbm, air } => (air, Effect::Power(dbm)),
    };
    Interferer { radio, way, period, air, effect, on, seed }
}
