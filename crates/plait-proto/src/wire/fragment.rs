//! IPv4 packets that may be fragmented and are too large for the bond (RFC 791 §2.3, RFC 1812
//! §5.2.6).

use super::ip::checksum;

const HEADER_BYTES: usize = 20;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Offsets count in units of so many bytes.
const UNIT_BYTES: usize = 8;

/// Cuts a packet into fragments of at most `mtu` bytes; `None` when it must not be cut, or has
/// options, which hardly any packet has.
pub fn fragments(packet: &[u8], mtu: usize) -> Option<Vec<Vec<u8>>> {
    let header: &[u8; HEADER_BYTES] = packet.first_chunk()?;
    let flags = u16::from_be_bytes([header[6], header[7]]);
    let room = mtu.checked_sub(HEADER_BYTES)? / UNIT_BYTES * UNIT_BYTES;
    if header[0] != 0x45 || flags & DONT_FRAGMENT != 0 || room == 0 {
        return None;
    }
    let payload = &packet[HEADER_BYTES..];
    let count = payload.len().div_ceil(room);
    let cut = |(at, part): (usize, &[u8])| {
        let offset = (flags & OFFSET) + (at * room / UNIT_BYTES) as u16;
        let more = if at + 1 < count { MORE_FRAGMENTS } else { flags & MORE_FRAGMENTS };
        let mut fragment = header.to_vec();
        fragment[2..4].copy_from_slice(&((HEADER_BYTES + part.len()) as u16).to_be_bytes());
        fragment[6..8].copy_from_slice(&(offset & OFFSET | more).to_be_bytes());
        fragment[10..12].fill(0);
        let sum = checksum(&[&fragment]);
        fragment[10..12].copy_from_slice(&sum.to_be_bytes());
        fragment.extend_from_slice(part);
        fragment
    };
    Some(payload.chunks(room).enumerate().map(cut).collect())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::ip::testing::udp_v4;
    use super::*;

    fn fragmentable(body: &[u8]) -> Vec<u8> {
        let mut packet = udp_v4([10, 0, 0, 1], [10, 0, 0, 2], 0x1234_5678, body);
        packet[6..8].fill(0);
        packet
    }

    /// Puts fragments together as a host does.
    fn whole(fragments: &[Vec<u8>]) -> Vec<u8> {
        let mut payload = Vec::new();
        for (at, fragment) in fragments.iter().enumerate() {
            assert_eq!(checksum(&[&fragment[..HEADER_BYTES]]), 0);
            let flags = u16::from_be_bytes([fragment[6], fragment[7]]);
            assert_eq!(usize::from(flags & OFFSET) * UNIT_BYTES, payload.len());
            assert_eq!(flags & MORE_FRAGMENTS != 0, at + 1 < fragments.len());
            payload.extend_from_slice(&fragment[HEADER_BYTES..]);
        }
        payload
    }

    #[test]
    fn what_must_not_be_cut_is_not() {
        let packet = udp_v4([10, 0, 0, 1], [10, 0, 0, 2], 7, &[0; 500]);
        assert_eq!(fragments(&packet, 300), None, "don't fragment is set");
        let mut options = fragmentable(&[0; 500]);
        options[0] = 0x46;
        assert_eq!(fragments(&options, 300), None);
        assert_eq!(fragments(&fragmentable(&[0; 500]), 27), None, "no room for any payload");
        assert_eq!(fragments(&[], 300), None);
    }

    proptest! {
        #[test]
        fn fragments_fit_and_make_the_packet_again(
            body in vec(any::<u8>(), 0..3000), mtu in 68_usize..1500, again in 28_usize..68,
        ) {
            let packet = fragmentable(&body);
            let parts = fragments(&packet, mtu).expect("it may be cut");
            prop_assert!(parts.iter().all(|part| part.len() <= mtu));
            prop_assert_eq!(&whole(&parts)[..], &packet[HEADER_BYTES..]);
            let smaller: Vec<Vec<u8>> =
                parts.iter().flat_map(|part| fragments(part, again).expect("still")).collect();
            prop_assert!(smaller.iter().all(|part| part.len() <= again));
            prop_assert_eq!(&whole(&smaller)[..], &packet[HEADER_BYTES..]);
        }
    }
}
