//! Rates over time, and the layer at which a rate is given.

use plait_proto::time::Duration;
use plait_proto::units::Rate;
use plait_toml::{Bounds, Problem, Section};

use super::span::millis;

/// The layer at which a rate is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// `offered`: payload of UDP that the application hands to its socket.
    Offered,
    /// `wire`: IP packets on a link. Inside the bond that is the inner packet with the tunnel's
    /// framing around it; copies and control datagrams are not counted.
    Wire,
    /// `goodput`: payload that the receiver gets, in order. Without loss, the load that reaches a
    /// goodput equals that goodput.
    Goodput,
}

impl Layer {
    /// All layers.
    pub const ALL: [(&'static str, Self); 3] =
        [("offered", Self::Offered), ("wire", Self::Wire), ("goodput", Self::Goodput)];
}

/// Headers between an application's payload and a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// The application's payload in one packet, in bytes.
    pub payload_bytes: u32,
    /// Other bytes of the same packet on a link.
    pub header_bytes: u32,
}

/// IPv4 and UDP headers of an application's packet, in bytes.
pub const UDP_HEADER_BYTES: u32 = 20 + 8;
/// plait's framing of an inner packet on a path over IPv4: IPv4, UDP and its own 32 bytes.
pub const TUNNEL_BYTES: u32 = 20 + 8 + 32;

impl Framing {
    /// UDP over IPv4, inside the bond or on a bare link.
    pub const fn udp(payload_bytes: u32, inside_bond: bool) -> Self {
        let tunnel_bytes = if inside_bond { TUNNEL_BYTES } else { 0 };
        Self { payload_bytes, header_bytes: UDP_HEADER_BYTES + tunnel_bytes }
    }

    /// The length of one packet on a link, in bytes.
    pub const fn wire_bytes(self) -> u32 {
        self.payload_bytes + self.header_bytes
    }

    /// The load to offer for `rate` given at `layer`, in bits per second.
    pub fn offered(self, rate: f64, layer: Layer) -> f64 {
        match layer {
            Layer::Offered | Layer::Goodput => rate,
            Layer::Wire => rate * f64::from(self.payload_bytes) / f64::from(self.wire_bytes()),
        }
    }

    /// The rate at `layer` of an offered load without loss, in bits per second.
    pub fn told_at(self, offered: f64, layer: Layer) -> f64 {
        match layer {
            Layer::Offered | Layer::Goodput => offered,
            Layer::Wire => offered * f64::from(self.wire_bytes()) / f64::from(self.payload_bytes),
        }
    }
}

/// An offered load over time: bits per second of UDP payload.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// The same throughout.
    Constant(f64),
    /// Each rate from its time on; zero before the first. Times since the application's start.
    Steps(Vec<(Duration, f64)>),
    /// 002 section 5.2.
    Ramp(Ramp),
}

impl Shape {
    /// The load at this time after the application's start.
    pub fn at(&self, since_start: Duration) -> Rate {
        let bits = match self {
            Self::Constant(bits) => *bits,
            Self::Steps(steps) => {
                let passed = steps.iter().rev().find(|(from, _)| *from <= since_start);
                passed.map_or(0.0, |(_, bits)| *bits)
            }
            Self::Ramp(ramp) => ramp.at(since_start),
        };
        Rate::from_bits_per_second(bits.round() as u64)
    }
}

/// 002's ramp: an exponential rise in geometric steps, a hold, and a return.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ramp {
    /// Rate at the start and after the return, in bits per second.
    pub low: f64,
    /// Rate during the hold, in bits per second.
    pub high: f64,
    /// Time from `low` to `high`.
    pub rise: Duration,
    /// Time at `high`.
    pub hold: Duration,
    /// Time from `high` back to `low`.
    pub fall: Duration,
    /// The rate changes this often, during the rise and during the return.
    pub step: Duration,
    /// The course of the return.
    pub course: Return,
}

/// The course of a ramp's return; 002 only says "logarithmic".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// `logarithmic`: with x from 0 to 1 over the return, the fallen share is ln(1 + (e-1)x): quick
    /// at first, then slower.
    Logarithmic,
    /// `geometric`: the mirror image of the rise.
    Geometric,
}

impl Ramp {
    /// How long the ramp takes as a whole.
    pub fn length(&self) -> Duration {
        self.rise + self.hold + self.fall
    }

    fn at(&self, since_start: Duration) -> f64 {
        let grow = |share: f64| self.low * (self.high / self.low).powf(share);
        let Some(after_rise) = since_start.checked_sub(self.rise) else {
            return grow(self.stepped_share(since_start, self.rise));
        };
        let Some(after_hold) = after_rise.checked_sub(self.hold) else { return self.high };
        if after_hold >= self.fall {
            return self.low;
        }
        let share = self.stepped_share(after_hold, self.fall);
        match self.course {
            Return::Geometric => grow(1.0 - share),
            Return::Logarithmic => {
                let fallen = (1.0 + (core::f64::consts::E - 1.0) * share).ln();
                self.high - (self.high - self.low) * fallen
            }
        }
    }

    fn stepped_share(&self, elapsed: Duration, whole: Duration) -> f64 {
        let steps = elapsed.as_nanos() / self.step.as_nanos();
        let at_step = self.step.as_secs_f64() * steps as f64;
        (at_step / whole.as_secs_f64()).min(1.0)
    }
}

/// Reads `rate = { shape = …, layer = …, … }` into an offered load. `None` when a problem was
/// noted.
pub(super) fn read(mut section: Section<'_>, framing: Framing) -> Option<(Shape, Layer)> {
    if !section.holds_any(&["layer"]) {
        section.missing("layer", "layer = \"wire\"");
    }
    let layer = section.choice("layer", &Layer::ALL);
    let kinds = [("constant", Kind::Constant), ("steps", Kind::Steps), ("ramp-002", Kind::Ramp)];
    let misspelt = section.holds_any(&["shape"]);
    let kind = section.choice("shape", &kinds).or((!misspelt).then_some(Kind::Constant));
    let told = match kind {
        Some(kind) => {
            forbid_others(&mut section, kind);
            match kind {
                Kind::Constant => mbit(&mut section, "mbit").map(Shape::Constant),
                Kind::Steps => read_steps(&mut section),
                Kind::Ramp => read_ramp(&mut section),
            }
        }
        None => {
            section.know(&[OF_CONSTANT, OF_STEPS, OF_RAMP].concat());
            None
        }
    };
    section.finish();
    let (told, layer) = told.zip(layer)?;
    let offered = |bits: f64| framing.offered(bits, layer);
    let shape = match told {
        Shape::Constant(bits) => Shape::Constant(offered(bits)),
        Shape::Steps(steps) => {
            Shape::Steps(steps.into_iter().map(|(from, bits)| (from, offered(bits))).collect())
        }
        Shape::Ramp(ramp) => {
            Shape::Ramp(Ramp { low: offered(ramp.low), high: offered(ramp.high), ..ramp })
        }
    };
    Some((shape, layer))
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Constant,
    Steps,
    Ramp,
}

const OF_CONSTANT: &[&str] = &["mbit"];
const OF_STEPS: &[&str] = &["steps"];
const OF_RAMP: &[&str] =
    &["low_mbit", "high_mbit", "rise_s", "hold_s", "fall_s", "step_ms", "return"];
const MBIT: Bounds = Bounds::new(0.001, 100_000.0, "Mbit/s");
const MBIT_OR_NONE: Bounds = Bounds::new(0.0, 100_000.0, "Mbit/s");

impl Kind {
    fn setting(self) -> &'static str {
        match self {
            Self::Constant => "shape = \"constant\"",
            Self::Steps => "shape = \"steps\"",
            Self::Ramp => "shape = \"ramp-002\"",
        }
    }
}

fn forbid_others(section: &mut Section<'_>, kind: Kind) {
    for (other, keys) in
        [(Kind::Constant, OF_CONSTANT), (Kind::Steps, OF_STEPS), (Kind::Ramp, OF_RAMP)]
    {
        if other != kind {
            section.no_effect(keys, kind.setting(), other.setting());
        }
    }
}

/// A rate that must be there, in bits per second.
fn mbit(section: &mut Section<'_>, key: &'static str) -> Option<f64> {
    if !section.holds_any(&[key]) {
        section.know(&[key]);
        let example = match key {
            "low_mbit" => "low_mbit = 63",
            "high_mbit" => "high_mbit = 105",
            _ => "mbit = 10",
        };
        section.missing(key, example);
        return None;
    }
    Some(section.number(key, MBIT)? * 1e6)
}

fn read_steps(section: &mut Section<'_>) -> Option<Shape> {
    if !section.holds_any(OF_STEPS) {
        section.know(OF_STEPS);
        section.missing("steps", "steps = [[0, 10], [5, 20]]");
        return None;
    }
    let expected = "a list of pairs [seconds since the start, Mbit/s]";
    let steps = section.pairs("steps", (Bounds::SECONDS, MBIT_OR_NONE), expected)?;
    if steps.is_empty() || !steps.is_sorted_by(|a, b| a.0 < b.0) {
        let help = "write pairs [seconds, Mbit/s], at least one, each later than the one before";
        section.problem("steps", Problem::new("the steps are not in order of time", help));
        return None;
    }
    let step = |(from, mbit)| (Duration::from_secs_f64(from), mbit * 1e6);
    Some(Shape::Steps(steps.into_iter().map(step).collect()))
}

fn read_ramp(section: &mut Section<'_>) -> Option<Shape> {
    const LENGTH: Bounds = Bounds::new(0.001, 86_400.0, "seconds");
    let low = mbit(section, "low_mbit");
    let high = mbit(section, "high_mbit");
    let length = |section: &mut Section<'_>, key, default| {
        Duration::from_secs_f64(section.number(key, LENGTH).unwrap_or(default))
    };
    let rise = length(section, "rise_s", 15.0);
    let hold = Duration::from_secs_f64(section.number("hold_s", Bounds::SECONDS).unwrap_or(10.0));
    let fall = length(section, "fall_s", 15.0);
    let step = section.number("step_ms", Bounds::new(1.0, 60_000.0, "milliseconds"));
    let step = millis(step.unwrap_or(200.0));
    let courses = [("logarithmic", Return::Logarithmic), ("geometric", Return::Geometric)];
    let course = section.choice("return", &courses).unwrap_or(Return::Logarithmic);
    let (low, high) = low.zip(high)?;
    if low > high {
        let text = format!("the ramp rises from {} to {} Mbit/s", low / 1e6, high / 1e6);
        let problem = Problem::new(text, "let high_mbit be at least low_mbit");
        section.problem("high_mbit", problem);
        return None;
    }
    Some(Shape::Ramp(Ramp { low, high, rise, hold, fall, step, course }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAMP: Ramp = Ramp {
        low: 63e6,
        high: 105e6,
        rise: Duration::from_secs(15),
        hold: Duration::from_secs(10),
        fall: Duration::from_secs(15),
        step: Duration::from_millis(200),
        course: Return::Logarithmic,
    };

    fn kbit(shape: &Shape, millis: u64) -> u64 {
        shape.at(Duration::from_millis(millis)).bits_per_second() / 1000
    }

    #[test]
    fn layers_differ_by_the_headers() {
        // 1460 bytes of payload: 1488 as a packet, 1548 with plait's framing.
        let (inside, bare) = (Framing::udp(1460, true), Framing::udp(1460, false));
        assert_eq!((inside.wire_bytes(), bare.wire_bytes()), (1548, 1488));
        let offered = |framing: Framing, layer| framing.offered(63e6, layer).round();
        assert_eq!(offered(inside, Layer::Wire), 59_418_605.0);
        assert_eq!(offered(bare, Layer::Wire), 61_814_516.0);
        assert_eq!(offered(inside, Layer::Offered), 63e6);
        assert_eq!(offered(inside, Layer::Goodput), 63e6);
        for (_, layer) in Layer::ALL {
            let back = inside.told_at(inside.offered(63e6, layer), layer);
            assert!((back - 63e6).abs() < 1e-3, "{layer:?} {back}");
        }
    }

    #[test]
    fn the_ramp_rises_in_geometric_steps() {
        let shape = Shape::Ramp(RAMP);
        assert_eq!([0, 199, 200, 399].map(|t| kbit(&shape, t)), [63_000, 63_000, 63_430, 63_430]);
        // Half of 15 s lies in step 37 of 75.
        assert_eq!(kbit(&shape, 7_500), (63_000.0 * (105.0_f64 / 63.0).powf(37.0 / 75.0)) as u64);
        assert_eq!(
            [15_000, 24_999, 40_000, 90_000].map(|t| kbit(&shape, t)),
            [105_000, 105_000, 63_000, 63_000]
        );
    }

    #[test]
    fn the_return_has_two_courses() {
        let logarithmic = Shape::Ramp(RAMP);
        let geometric = Shape::Ramp(Ramp { course: Return::Geometric, ..RAMP });
        for shape in [&logarithmic, &geometric] {
            assert_eq!(kbit(shape, 25_000), 105_000);
            let falls = (126..200).all(|i| kbit(shape, i * 200) < kbit(shape, i * 200 - 200));
            assert!(falls, "{shape:?}");
        }
        assert_eq!(kbit(&geometric, 32_400), kbit(&geometric, 7_600));
        // x = 0.5: a share of 1 - ln(1 + 0.859) of the fall remains.
        let left = 1.0 - (1.0 + 0.5 * (core::f64::consts::E - 1.0)).ln();
        let Shape::Ramp(ramp) = logarithmic else { unreachable!("made as a ramp") };
        let half =
            Ramp { step: Duration::from_millis(100), ..ramp }.at(Duration::from_millis(32_500));
        assert!((half - (63e6 + 42e6 * left)).abs() < 1.0, "{half}");
    }

    #[test]
    fn steps_hold_until_the_next() {
        let at = Duration::from_secs;
        let shape = Shape::Steps(vec![(at(1), 5e6), (at(3), 0.0)]);
        assert_eq!([0, 999, 1_000, 2_999, 3_000].map(|t| kbit(&shape, t)), [0, 0, 5000, 5000, 0]);
    }
}
