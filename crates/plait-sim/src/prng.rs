//! The seeded generator of the simulator and the lab's links. Never for keys.

/// `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
/// figure 17): eight bytes of state, integers only, the same sequence on every machine.
#[derive(Clone, Debug)]
pub struct Prng {
    state: u64,
}

impl Prng {
    /// A generator whose whole sequence depends only on `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `max`, both included. The bias is below 2^-64 times the range.
    pub fn up_to(&mut self, max: u64) -> u64 {
        let scaled = u128::from(self.next_u64()) * (u128::from(max) + 1);
        (scaled >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Prng;

    #[test]
    fn sequence_is_splitmix64() {
        // First outputs of the published generator for seed 1234567.
        let mut prng = Prng::new(1_234_567);
        assert_eq!(prng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(prng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn both_ends_of_the_range_occur() {
        let mut prng = Prng::new(1);
        let mut seen = [0_u32; 4];
        for _ in 0..400 {
            seen[usize::try_from(prng.up_to(3)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
        assert_eq!(prng.up_to(0), 0);
    }
}
