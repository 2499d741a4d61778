//! Forged datagrams before two live endpoints: a drop count and no other effect.

use plait_pair::{CUSTOMER, Datagram, PROVIDER, Pair, packet};
use plait_proto::time::Duration;

use crate::input::Input;
use crate::pair::{default_bond, pair};

const ATTACKS_MAX: usize = 200;
const PACKETS: u32 = 6;
/// First byte of an initiation: a replayed one gets the same response again.
const INITIATION: u8 = 0x11;

/// Feeds the endpoints what the bytes make of real datagrams, then the real ones, which must work.
pub fn open_datagram(data: &[u8]) {
    let mut input = Input::new(data);
    let stage = input.u8() % 3;
    let mut scene = Scene::at(stage);
    for _ in 0..ATTACKS_MAX {
        if input.is_empty() {
            break;
        }
        scene.attack(&mut input);
    }
    scene.finish(stage);
}

/// A pair with real datagrams held back.
struct Scene {
    pair: Pair,
    /// Authentic and new to their receivers.
    fresh: Vec<Datagram>,
    /// Delivered before.
    used: Vec<Datagram>,
}

impl Scene {
    /// Stage 0 holds the initiations, 1 the responses, 2 data and control both ways.
    fn at(stage: u8) -> Self {
        let mut pair = pair(default_bond(), Vec::new());
        pair.held = Some(Vec::new());
        pair.start();
        let mut used = Vec::new();
        if stage > 0 {
            Self::pass(&mut pair, &mut used);
        }
        if stage > 1 {
            for _ in 0..6 {
                Self::pass(&mut pair, &mut used);
            }
            for number in 0..PACKETS {
                for side in [CUSTOMER, PROVIDER] {
                    pair.send(side, &[packet(side, number as u16 % 2, number)]);
                }
            }
            // Long enough for marks, too short for silence.
            pair.run_for(Duration::from_millis(20));
        }
        let fresh = pair.held.clone().unwrap_or_default();
        Self { pair, fresh, used }
    }

    /// Delivers what is held; what comes of it is held again.
    fn pass(pair: &mut Pair, used: &mut Vec<Datagram>) {
        let now = pair.held.replace(Vec::new()).unwrap_or_default();
        pair.run_for(Duration::from_millis(10));
        for datagram in &now {
            pair.inject(datagram.to, datagram.link, &datagram.bytes);
        }
        used.extend(now);
    }

    fn attack(&mut self, input: &mut Input<'_>) {
        let forged = self.forge(input);
        if forged.bytes.is_empty() || self.is_authentic_and_fresh(&forged) {
            return;
        }
        let replayed_initiation = forged.bytes[0] == INITIATION
            && self.used.iter().any(|used| used.to == forged.to && used.bytes == forged.bytes);
        let before = self.visible();
        let drops = self.pair.sides[forged.to].drop_total();
        self.pair.inject(forged.to, forged.link, &forged.bytes);
        let dropped = self.pair.sides[forged.to].drop_total() - drops;
        if replayed_initiation {
            assert!(dropped <= 1, "a replay is dropped once or answered as before");
            return;
        }
        assert_eq!(dropped, 1, "a forged datagram is counted: {forged:?}");
        assert_eq!(self.visible(), before, "a forged datagram has no effect: {forged:?}");
    }

    /// What the outside sees of both sides, apart from drops.
    fn visible(&mut self) -> String {
        let now = self.pair.now;
        let delivered = self.pair.delivered.each_ref().map(Vec::len);
        let sides = self.pair.sides.each_mut();
        let sides = sides.map(|side| (side.poll_timeout(now), side.status(now).peers));
        format!("{sides:?} {delivered:?} {}", self.pair.captured.len())
    }

    fn is_authentic_and_fresh(&self, forged: &Datagram) -> bool {
        self.fresh.iter().any(|fresh| fresh.to == forged.to && fresh.bytes == forged.bytes)
    }

    fn real(&self, input: &mut Input<'_>) -> Datagram {
        let all = self.fresh.len() + self.used.len();
        let at = input.index(all);
        self.fresh.iter().chain(&self.used).nth(at).expect("something was sent").clone()
    }

    fn forge(&self, input: &mut Input<'_>) -> Datagram {
        let mut forged = self.real(input);
        match input.u8() % 8 {
            0 => {}
            1 | 2 => {
                for _ in 0..=input.u8() % 4 {
                    let at = input.index(forged.bytes.len());
                    forged.bytes[at] ^= 1 << (input.u8() & 7);
                }
            }
            3 => forged.bytes.truncate(input.index(forged.bytes.len())),
            4 => {
                let more = usize::from(input.u8());
                forged.bytes.extend_from_slice(input.bytes(more));
            }
            5 => {
                let other = self.real(input).bytes;
                let at = input.index(forged.bytes.len().min(other.len()));
                forged.bytes.truncate(at);
                forged.bytes.extend_from_slice(&other[at..]);
            }
            6 => {
                let at = input.index(forged.bytes.len());
                let length = usize::from(input.u8() & 15);
                let bytes = input.bytes(length);
                let end = (at + bytes.len()).min(forged.bytes.len());
                forged.bytes[at..end].copy_from_slice(&bytes[..end - at]);
            }
            _ => {
                let length = usize::from(input.u8());
                forged.bytes = input.bytes(length).to_vec();
            }
        }
        let turn = input.u8();
        forged.link ^= usize::from(turn & 1);
        forged.to ^= usize::from(turn & 0xe0 == 0xe0);
        forged
    }

    /// The real datagrams come after all the forged ones, and work.
    fn finish(mut self, stage: u8) {
        self.pair.release();
        self.pair.run_for(Duration::from_secs(3));
        for side in [CUSTOMER, PROVIDER] {
            assert_eq!(self.pair.paths_up(side), 2, "both paths are up at side {side}");
            if stage > 1 {
                let got = self.pair.delivered[side].len();
                assert_eq!(got, PACKETS as usize, "what was held back is delivered at {side}");
            }
        }
        for side in [CUSTOMER, PROVIDER] {
            let before = self.pair.delivered[1 - side].len();
            self.pair.send(side, &[packet(side, 1, PACKETS)]);
            self.pair.run_for(Duration::from_millis(100));
            assert_eq!(self.pair.delivered[1 - side].len(), before + 1, "the bond works on");
        }
    }
}
