//! The Internet checksum (RFC 1071): sums of 16-bit words in one's complement.

/// A sum in progress. Words are added in the machine's byte order and come out in the wire's,
/// which one's complement allows (RFC 1071 section 2B).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds `data`, padded with a zero byte when its length is odd; so only the last piece of a
    /// message may be odd. At most 2^32 bytes in all.
    #[must_use]
    pub fn bytes(self, data: &[u8]) -> Self {
        // Two wide sums that do not wait for each other take 16 bytes at a time.
        let mut sums = [0u128; 2];
        let mut add = |block: &[u8; 16]| {
            let block = u128::from_ne_bytes(*block);
            sums[0] += block & u128::from(u64::MAX);
            sums[1] += block >> 64;
        };
        let (blocks, rest) = data.as_chunks::<16>();
        blocks.iter().for_each(&mut add);
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        add(&last);
        // 2^32 and 2^64 are 1 modulo 2^16 - 1, so the parts of a wide sum simply add up.
        let sum = sums[0] + sums[1];
        let folded = (sum & 0xffff_ffff) + (sum >> 32 & 0xffff_ffff) + (sum >> 64);
        Self(self.0 + folded as u64)
    }

    /// Adds one word.
    #[must_use]
    pub fn word(self, word: u16) -> Self {
        Self(self.0 + u64::from(word.to_be()))
    }

    /// Subtracts a word that was added before.
    #[must_use]
    pub fn without_word(self, word: u16) -> Self {
        self.word(!word)
    }

    /// The sum in wire order: the partial checksum, when only the pseudo-header was added.
    pub fn partial(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (sum as u16).to_ne_bytes()
    }

    /// The complement of the sum in wire order: the value of a checksum field.
    pub fn checksum(self) -> [u8; 2] {
        self.partial().map(|byte| !byte)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 section 4.1, word by word.
    fn reference(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn rfc_1071_section_3_example() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::new().bytes(&data).partial(), [0xdd, 0xf2]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_reference(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(u16::from_be_bytes(Sum::new().bytes(&data).checksum()),
                reference(&data));
        }

        #[test]
        fn pieces_and_words_add_up(
            data in proptest::collection::vec(any::<u8>(), 4..300),
            cut in 0usize..150,
            word in any::<u16>(),
        ) {
            let cut = (cut * 2).min(data.len() & !1);
            let whole = Sum::new().bytes(&data);
            let pieces = Sum::new().bytes(&data[..cut]).bytes(&data[cut..]);
            prop_assert_eq!(whole.partial(), pieces.partial());
            let mut extended = word.to_be_bytes().to_vec();
            extended.extend_from_slice(&data);
            prop_assert_eq!(whole.word(word).partial(), Sum::new().bytes(&extended).partial());
            // Zero has two forms in one's complement; compare modulo 0xffff.
            let back = u16::from_be_bytes(whole.word(word).without_word(word).partial());
            prop_assert_eq!(back % 0xffff, u16::from_be_bytes(whole.partial()) % 0xffff);
        }
    }
}
