//! The DSCP field of inner packets (RFC 2474), read as a class that the configuration names.

/// Codepoints, as a set; each is below 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dscps(u64);

impl Dscps {
    /// Number of codepoints.
    pub const COUNT: u16 = 64;

    /// Whether the packet's codepoint is one of them. A packet that is too short has none.
    #[inline]
    pub fn contain(self, packet: &[u8]) -> bool {
        self.0 != 0 && of(packet).is_some_and(|codepoint| self.0 >> codepoint & 1 == 1)
    }

    /// The codepoints, lowest first.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        (0..Self::COUNT).filter(move |codepoint| self.0 >> codepoint & 1 == 1)
    }
}

impl FromIterator<u16> for Dscps {
    /// # Panics
    /// A codepoint of 64 or more.
    fn from_iter<I: IntoIterator<Item = u16>>(codepoints: I) -> Self {
        let bit = |codepoint: u16| {
            assert!(codepoint < Self::COUNT, "a codepoint has six bits");
            1 << codepoint
        };
        Self(codepoints.into_iter().map(bit).fold(0, |all, bit: u64| all | bit))
    }
}

/// The codepoint of an IP packet.
fn of(packet: &[u8]) -> Option<u8> {
    match packet {
        [first, traffic_class, ..] if first >> 4 == 4 => Some(traffic_class >> 2),
        [first, second, ..] if first >> 4 == 6 => Some((first & 0xf) << 2 | second >> 6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_where_each_version_has_it() {
        let expedited = Dscps::from_iter([46]);
        assert!(expedited.contain(&[0x45, 46 << 2 | 1]), "beside any ECN codepoint");
        assert!(expedited.contain(&[0x60 | 46 >> 2, (46 & 3) << 6]));
        assert!(!expedited.contain(&[0x45, 0]) && !expedited.contain(&[0x60, 0]));
        assert!(Dscps::from_iter([0]).contain(&[0x45, 3]));
        assert!(!Dscps::default().contain(&[0x45, 0]), "nothing is in an empty set");
        assert!(!Dscps::from_iter(0..64).contain(&[0x45]), "too short");
    }

    #[test]
    fn the_set_keeps_what_it_was_made_of() {
        let set = Dscps::from_iter([63, 0, 46, 46]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 46, 63]);
    }
}
