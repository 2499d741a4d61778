//! Hostile datagrams: a third each random, mutated captures and replays.

use plait_sim::prng::Prng;

/// Longest random datagram: what fits an Ethernet packet.
const BYTES_MAX: usize = 1472;
/// Bits flipped in a datagram, at most.
const FLIPS_MAX: u64 = 8;
/// Bytes of a datagram's front that are put onto another's body, at most.
const SPLICE_MAX: u64 = 64;

/// A source of hostile datagrams.
#[derive(Debug)]
pub(super) struct Datagrams<'a> {
    captures: &'a [Vec<u8>],
    /// Chosen as often as `captures`, when there are any.
    fresh: Vec<Vec<u8>>,
    prng: Prng,
    made: u64,
}

impl<'a> Datagrams<'a> {
    /// From these captures, of which there is at least one.
    pub(super) fn new(captures: &'a [Vec<u8>], seed: u64) -> Self {
        assert!(!captures.is_empty(), "invariant: hostile datagrams are made from captures");
        Self { captures, fresh: Vec::new(), prng: Prng::new(seed), made: 0 }
    }

    /// Adds these captures to the first ones, in place of those of the last renewal.
    pub(super) fn renew(&mut self, captures: Vec<Vec<u8>>) {
        self.fresh = captures;
    }

    /// Writes the next one into `datagram`.
    pub(super) fn next_into(&mut self, datagram: &mut Vec<u8>) {
        datagram.clear();
        match self.made % 3 {
            0 => self.random(datagram),
            1 => self.mutated(datagram),
            _ => self.pick_into(datagram),
        }
        self.made += 1;
    }

    fn below(&mut self, limit: usize) -> usize {
        assert!(limit > 0, "invariant: a choice has at least one possibility");
        usize::try_from(self.prng.up_to(limit as u64 - 1)).unwrap_or(0)
    }

    fn pick(&mut self) -> &[u8] {
        let choice = self.prng.next_u64();
        let from =
            if choice & 1 == 0 || self.fresh.is_empty() { self.captures } else { &self.fresh };
        let index = usize::try_from(choice >> 32).unwrap_or(0) % from.len();
        &from[index]
    }

    fn pick_into(&mut self, datagram: &mut Vec<u8>) {
        datagram.extend_from_slice(self.pick());
    }

    fn random(&mut self, datagram: &mut Vec<u8>) {
        let length = self.below(BYTES_MAX + 1);
        while datagram.len() < length {
            datagram.extend_from_slice(&self.prng.next_u64().to_le_bytes());
        }
        datagram.truncate(length);
    }

    fn mutated(&mut self, datagram: &mut Vec<u8>) {
        self.pick_into(datagram);
        match self.below(4) {
            0 => datagram.truncate(self.below(datagram.len().max(1))),
            1 => self.splice(datagram),
            2 => {
                // Flips bits only in the header, which decides how the rest is read.
                let bytes = datagram.len().min(16);
                self.flip_bits(&mut datagram[..bytes]);
            }
            _ => self.flip_bits(datagram),
        }
    }

    fn flip_bits(&mut self, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        for _ in 0..=self.prng.up_to(FLIPS_MAX - 1) {
            let at = self.below(bytes.len());
            bytes[at] ^= 1 << self.prng.up_to(7);
        }
    }

    /// The front of one datagram on the body of another.
    fn splice(&mut self, datagram: &mut [u8]) {
        let length = usize::try_from(1 + self.prng.up_to(SPLICE_MAX - 1)).unwrap_or(1);
        let front = self.pick();
        let length = length.min(front.len()).min(datagram.len());
        datagram[..length].copy_from_slice(&front[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_turn() {
        let captures = [vec![0x14; 100], vec![0x15; 40]];
        let mut datagrams = Datagrams::new(&captures, 1);
        let (mut datagram, mut mutated) = (Vec::new(), 0);
        for round in 0..300 {
            datagrams.next_into(&mut datagram);
            assert!(datagram.len() <= BYTES_MAX);
            let is_capture = captures.contains(&datagram);
            match round % 3 {
                0 => assert!(!is_capture),
                1 => mutated += usize::from(!is_capture),
                _ => assert!(is_capture),
            }
        }
        // Two flips may meet in one bit, and a datagram may be spliced with itself.
        assert!(mutated > 70, "{mutated}");
    }

    #[test]
    fn fresh_captures_join_the_first() {
        let captures = [vec![1; 50]];
        let mut datagrams = Datagrams::new(&captures, 3);
        datagrams.renew(vec![vec![2; 50]]);
        let (mut datagram, mut replays) = (Vec::new(), [0; 2]);
        for round in 0..300 {
            datagrams.next_into(&mut datagram);
            if round % 3 == 2 {
                replays[usize::from(datagram[0]) - 1] += 1;
            }
        }
        assert!(replays.iter().all(|count| *count > 20), "{replays:?}");
        datagrams.renew(Vec::new());
        datagrams.next_into(&mut datagram);
    }

    #[test]
    fn short_captures_are_no_trouble() {
        let captures = [Vec::new(), vec![1]];
        let mut datagrams = Datagrams::new(&captures, 2);
        let mut datagram = Vec::new();
        (0..1000).for_each(|_| datagrams.next_into(&mut datagram));
    }
}
