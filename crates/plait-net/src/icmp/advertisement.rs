//! Router advertisements as they are written, and router solicitations as they are checked
//! (RFC 4861 sections 4.1, 4.2 and 6.1.1).

use std::net::Ipv6Addr;
use std::time::Duration;

/// Types of the messages.
pub(super) const SOLICITATION: u8 = 133;
pub(super) const ADVERTISEMENT: u8 = 134;
/// Options (RFC 4861 section 4.6, RFC 8106 section 5.1).
const SOURCE_LINK_ADDRESS: u8 = 1;
const PREFIX: u8 = 3;
const MTU: u8 = 5;
const DNS_SERVERS: u8 = 25;
/// Options are counted in units of so many bytes.
const UNIT_BYTES: usize = 8;
/// Type, code, checksum and reserved bytes.
const SOLICITATION_BYTES_MIN: usize = 8;
/// What only a neighbour can send: no router has counted it down.
const NEIGHBOURS_HOPS: u8 = 255;
/// What hosts put into their packets.
const HOPS: u8 = 64;
/// Flags of a prefix: hosts in it are neighbours; hosts give themselves addresses in it.
const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
/// The prefix length with which hosts give themselves addresses (RFC 4862 section 5.5.3, RFC 4291
/// section 2.5.1).
pub const AUTONOMOUS_LENGTH: u8 = 64;

/// A prefix that hosts on the link use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdvertisedPrefix {
    /// The network.
    pub prefix: Ipv6Addr,
    /// Its length.
    pub length: u8,
    /// How long hosts keep addresses in it.
    pub valid: Duration,
    /// How long they begin connections from these; zero keeps only what runs.
    pub preferred: Duration,
}

/// What a router tells the hosts on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advertisement {
    /// How long it is a default router; zero when it is none.
    pub lifetime: Duration,
    /// The prefixes of the link.
    pub prefixes: Vec<AdvertisedPrefix>,
    /// Bytes of the longest packet that hosts should send.
    pub mtu: Option<u32>,
    /// Name servers.
    pub dns: Vec<Ipv6Addr>,
    /// How long these are to be asked.
    pub dns_lifetime: Duration,
}

impl Advertisement {
    /// The message, with zeros for the checksum, which the kernel sets.
    pub fn message(&self) -> Vec<u8> {
        let lifetime = u16::try_from(self.lifetime.as_secs()).unwrap_or(u16::MAX);
        let mut message = vec![ADVERTISEMENT, 0, 0, 0, HOPS, 0];
        message.extend(lifetime.to_be_bytes());
        // Reachable time and retransmission timer: as hosts please.
        message.extend([0; 8]);
        for prefix in &self.prefixes {
            let AdvertisedPrefix { prefix, length, valid, preferred } = prefix;
            let autonomous = if *length == AUTONOMOUS_LENGTH { AUTONOMOUS } else { 0 };
            message.extend([PREFIX, 4, *length, ON_LINK | autonomous]);
            message.extend(seconds(*valid));
            message.extend(seconds((*preferred).min(*valid)));
            message.extend([0; 4]);
            message.extend(prefix.octets());
        }
        if let Some(mtu) = self.mtu {
            message.extend([MTU, 1, 0, 0]);
            message.extend(mtu.to_be_bytes());
        }
        // The length counts units of eight bytes in one byte.
        let servers = &self.dns[..self.dns.len().min(127)];
        if !servers.is_empty() {
            message.extend([DNS_SERVERS, 1 + 2 * servers.len() as u8, 0, 0]);
            message.extend(seconds(self.dns_lifetime));
            servers.iter().for_each(|server| message.extend(server.octets()));
        }
        message
    }
}

/// A lifetime; what is too long for the field is kept below its word for "for ever".
fn seconds(time: Duration) -> [u8; 4] {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX).min(u32::MAX - 1).to_be_bytes()
}

/// Why a solicitation counts for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoSolicitation {
    /// It came from beyond the link.
    #[error("a hop limit of {0}: it did not come from this link")]
    FromAfar(u8),
    /// It is shorter than its header.
    #[error("{0} bytes are too few")]
    TooShort(usize),
    /// It is another message.
    #[error("type {0} and code {1} are of another message")]
    Other(u8, u8),
    /// An option ends beyond the message, or has no length.
    #[error("an option's length is wrong")]
    Option,
    /// A host without an address says where to find it.
    #[error("the unspecified address with a link-layer address")]
    Nobody,
}

/// Checks a solicitation that the kernel passed, whose checksum it has checked.
///
/// # Errors
/// It is to be ignored.
pub fn check_solicitation(
    message: &[u8],
    source: Ipv6Addr,
    hop_limit: u8,
) -> Result<(), NoSolicitation> {
    if hop_limit != NEIGHBOURS_HOPS {
        return Err(NoSolicitation::FromAfar(hop_limit));
    }
    let Some((header, mut options)) = message.split_at_checked(SOLICITATION_BYTES_MIN) else {
        return Err(NoSolicitation::TooShort(message.len()));
    };
    if header[..2] != [SOLICITATION, 0] {
        return Err(NoSolicitation::Other(header[0], header[1]));
    }
    while let [kind, units, ..] = options {
        let bytes = usize::from(*units) * UNIT_BYTES;
        if bytes == 0 || bytes > options.len() {
            return Err(NoSolicitation::Option);
        }
        if *kind == SOURCE_LINK_ADDRESS && source.is_unspecified() {
            return Err(NoSolicitation::Nobody);
        }
        options = &options[bytes..];
    }
    if options.is_empty() { Ok(()) } else { Err(NoSolicitation::Option) }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);

    fn word(bytes: &[u8]) -> Duration {
        Duration::from_secs(u32::from_be_bytes(bytes.try_into().unwrap()).into())
    }

    fn address(bytes: &[u8]) -> Ipv6Addr {
        <[u8; 16]>::try_from(bytes).unwrap().into()
    }

    /// Reads a message as a host does.
    fn read(message: &[u8]) -> Advertisement {
        assert_eq!(message[..6], [134, 0, 0, 0, 64, 0]);
        let lifetime = u16::from_be_bytes([message[6], message[7]]);
        let mut read = Advertisement {
            lifetime: Duration::from_secs(lifetime.into()),
            prefixes: Vec::new(),
            mtu: None,
            dns: Vec::new(),
            dns_lifetime: Duration::ZERO,
        };
        let mut options = &message[16..];
        while !options.is_empty() {
            let (option, rest) = options.split_at(usize::from(options[1]) * 8);
            match option[0] {
                PREFIX => {
                    assert_eq!(option[3] & ON_LINK, ON_LINK);
                    assert_eq!(option[3] & AUTONOMOUS != 0, option[2] == 64);
                    read.prefixes.push(AdvertisedPrefix {
                        length: option[2],
                        valid: word(&option[4..8]),
                        preferred: word(&option[8..12]),
                        prefix: address(&option[16..]),
                    });
                }
                MTU => read.mtu = Some(u32::from_be_bytes(option[4..8].try_into().unwrap())),
                DNS_SERVERS => {
                    read.dns_lifetime = word(&option[4..8]);
                    read.dns = option[8..].chunks(16).map(address).collect();
                }
                other => panic!("option {other}"),
            }
            options = rest;
        }
        read
    }

    prop_compose! {
        fn prefixes()(
            prefix: u128,
            length in 0..=128_u8,
            valid in 0..u32::MAX,
            share in 0..=100_u64,
        ) -> AdvertisedPrefix {
            let valid = Duration::from_secs(valid.into());
            let preferred = Duration::from_secs(valid.as_secs() * share / 100);
            AdvertisedPrefix { prefix: Ipv6Addr::from(prefix), length, valid, preferred }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            lifetime: u16,
            prefixes in vec(prefixes(), 0..8),
            mtu: Option<u32>,
            dns in vec(any::<u128>().prop_map(Ipv6Addr::from), 0..5),
            dns_lifetime in 0..u32::MAX,
        ) {
            let dns_lifetime = if dns.is_empty() { 0 } else { dns_lifetime };
            let advertisement = Advertisement {
                lifetime: Duration::from_secs(lifetime.into()),
                prefixes,
                mtu,
                dns,
                dns_lifetime: Duration::from_secs(dns_lifetime.into()),
            };
            prop_assert_eq!(read(&advertisement.message()), advertisement);
        }

        /// Whatever comes is an answer, and only what is long enough is taken.
        #[test]
        fn no_message_is_too_odd(message in vec(any::<u8>(), 0..200), hops: u8) {
            let checked = check_solicitation(&message, HOST, hops);
            if checked.is_ok() {
                prop_assert!(hops == 255 && message.len() >= 8 && message.len() % 8 == 0);
            }
        }

        /// A sound one with options of any kind, then cut or with one byte changed to anything.
        #[test]
        fn options_are_walked_to_their_end(
            kinds in vec((2_u8.., 1..6_u8), 0..6),
            cut in 0..8_usize,
        ) {
            let mut message = vec![133, 0, 9, 9, 0, 0, 0, 0];
            for (kind, units) in &kinds {
                message.extend([*kind, *units]);
                message.resize(message.len() + usize::from(*units) * 8 - 2, 7);
            }
            let whole = check_solicitation(&message, HOST, 255);
            prop_assert_eq!(whole, Ok(()));
            message.truncate(message.len() - cut);
            prop_assert_eq!(check_solicitation(&message, HOST, 255).is_ok(), cut == 0);
        }
    }

    #[test]
    fn lifetimes_do_not_wrap() {
        let long = Duration::from_secs(1 << 40);
        assert_eq!(seconds(long), [0xff, 0xff, 0xff, 0xfe]);
        let prefix =
            AdvertisedPrefix { prefix: HOST, length: 64, valid: Duration::ZERO, preferred: long };
        let advertisement = Advertisement {
            lifetime: long,
            prefixes: vec![prefix],
            mtu: None,
            dns: Vec::new(),
            dns_lifetime: long,
        };
        let read = read(&advertisement.message());
        assert_eq!(read.lifetime.as_secs(), 65_535);
        assert_eq!(read.prefixes[0].preferred, Duration::ZERO, "never longer than it is valid");
    }

    #[test]
    fn only_a_neighbours_sound_solicitation_is_taken() {
        use NoSolicitation::*;
        let plain = [133, 0, 1, 2, 0, 0, 0, 0];
        let with = |option: &[u8]| [&plain[..], option].concat();
        let nobody = Ipv6Addr::UNSPECIFIED;
        for (message, source, hops, expected) in [
            (plain.to_vec(), HOST, 255, Ok(())),
            (plain.to_vec(), nobody, 255, Ok(())),
            (plain.to_vec(), HOST, 254, Err(FromAfar(254))),
            (plain[..7].to_vec(), HOST, 255, Err(TooShort(7))),
            (vec![134, 0, 1, 2, 0, 0, 0, 0], HOST, 255, Err(Other(134, 0))),
            (vec![133, 1, 1, 2, 0, 0, 0, 0], HOST, 255, Err(Other(133, 1))),
            (with(&[1, 1, 2, 0, 0, 0, 0, 1]), HOST, 255, Ok(())),
            (with(&[1, 1, 2, 0, 0, 0, 0, 1]), nobody, 255, Err(Nobody)),
            (with(&[9, 0, 0, 0, 0, 0, 0, 0]), HOST, 255, Err(Option)),
            (with(&[9, 2, 0, 0, 0, 0, 0, 0]), HOST, 255, Err(Option)),
            (with(&[9]), HOST, 255, Err(Option)),
        ] {
            assert_eq!(check_solicitation(&message, source, hops), expected, "{message:?}");
        }
    }
}
