//! Lowers the maximum segment size that a TCP SYN announces, so that the host that gets it sends
//! segments that fit (RFC 9293 §3.7.1; `docs/algorithms/path-mtu.md`).
//!
//! Nothing but the option's value and the TCP checksum changes. What is not a well-formed SYN
//! stays as it is.

use super::ip::updated_checksum;

/// TCP's protocol number.
pub const TCP: u8 = 6;
const TCP_HEADER_BYTES: usize = 20;
const CHECKSUM: usize = 16;
const SYN: u8 = 2;
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_MSS: u8 = 2;
const OPTION_MSS_BYTES: usize = 4;
/// No host is told less, whatever the MTU: every IPv4 host takes it (RFC 9293 §3.7.1).
const MSS_MIN: u16 = 216;

/// Clamps the MSS of a TCP SYN in an IP packet to what packets of `mtu` bytes hold. Says whether
/// the packet changed.
pub fn clamp(packet: &mut [u8], mtu: u16) -> bool {
    let Some((transport_at, headers_bytes)) = find_tcp(packet) else { return false };
    let Some(segment) = packet.get_mut(transport_at..) else { return false };
    let limit = mtu.saturating_sub(headers_bytes).max(MSS_MIN);
    clamp_segment(segment, limit)
}

/// Where the TCP header begins, and the bytes of IP and TCP headers without options. `None` for
/// fragments and IPv6 extension headers: SYNs have neither.
fn find_tcp(packet: &[u8]) -> Option<(usize, u16)> {
    match packet.first()? >> 4 {
        4 => {
            let header: &[u8; 20] = packet.first_chunk()?;
            let header_bytes = usize::from(header[0] & 15) * 4;
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            (header[9] == TCP && !fragment && header_bytes >= 20).then_some((header_bytes, 40))
        }
        6 => {
            let header: &[u8; 40] = packet.first_chunk()?;
            (header[6] == TCP).then_some((40, 60))
        }
        _ => None,
    }
}

fn clamp_segment(segment: &mut [u8], limit: u16) -> bool {
    let Some(header) = segment.first_chunk::<TCP_HEADER_BYTES>() else { return false };
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if header[13] & SYN == 0 || header_bytes < TCP_HEADER_BYTES || header_bytes > segment.len() {
        return false;
    }
    let Some(value_at) = find_mss(&segment[..header_bytes]) else { return false };
    let old = [segment[value_at], segment[value_at + 1]];
    if u16::from_be_bytes(old) <= limit {
        return false;
    }
    let new = limit.to_be_bytes();
    segment[value_at..value_at + 2].copy_from_slice(&new);
    let sum = u16::from_be_bytes([segment[CHECKSUM], segment[CHECKSUM + 1]]);
    let sum = updated_checksum(sum, word_at(value_at, old), word_at(value_at, new));
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Where the value of the MSS option is; `None` without one, or with options that do not hold
/// together.
fn find_mss(header: &[u8]) -> Option<usize> {
    let mut at = TCP_HEADER_BYTES;
    let mut found = None;
    while at < header.len() {
        match header[at] {
            OPTION_END => break,
            OPTION_NOP => at += 1,
            kind => {
                let length = usize::from(*header.get(at + 1)?);
                if length < 2 || at + length > header.len() {
                    return None;
                }
                if kind == OPTION_MSS {
                    if length != OPTION_MSS_BYTES || found.is_some() {
                        return None;
                    }
                    found = Some(at + 2);
                }
                at += length;
            }
        }
    }
    found
}

/// What two bytes from `at` on add to the checksum: at an odd place they belong to two words, and
/// the sum is the same with their bytes exchanged (RFC 1071 §2 B).
const fn word_at(at: usize, bytes: [u8; 2]) -> u16 {
    let word = u16::from_be_bytes(bytes);
    if at.is_multiple_of(2) { word } else { word.swap_bytes() }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The one's complement sum over a segment and its pseudo-header; 0xffff when the checksum in
    /// it is right.
    fn sum(packet: &[u8], transport_at: usize) -> u16 {
        let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
        let length = (packet.len() - transport_at) as u32;
        let words = |bytes: &[u8]| {
            let pairs = bytes.chunks(2);
            pairs
                .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
                .sum::<u32>()
        };
        let mut sum = words(addresses) + words(&packet[transport_at..]) + length + u32::from(TCP);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// A SYN with these options and a right checksum.
    fn syn(v6: bool, options: &[u8], data: &[u8]) -> (Vec<u8>, usize) {
        let padded = options.len().div_ceil(4) * 4;
        let length = TCP_HEADER_BYTES + padded + data.len();
        let mut packet = Vec::new();
        if v6 {
            packet.extend_from_slice(&[0x60, 0, 0, 0, 0, length as u8, TCP, 64]);
            packet.extend_from_slice(&[0xfd; 32]);
        } else {
            packet.extend_from_slice(&[0x45, 0, 0, length as u8 + 20, 0, 0, 0x40, 0, 64, TCP]);
            packet.extend_from_slice(&[0, 0, 10, 99, 0, 1, 10, 99, 0, 2]);
        }
        let at = packet.len();
        packet.extend_from_slice(&[0x12, 0x34, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0]);
        packet.extend_from_slice(&[((TCP_HEADER_BYTES + padded) as u8 / 4) << 4, SYN]);
        packet.extend_from_slice(&[0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(options);
        packet.resize(at + TCP_HEADER_BYTES + padded, 0);
        packet.extend_from_slice(data);
        let checksum = !sum(&packet, at);
        packet[at + CHECKSUM..at + CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        (packet, at)
    }

    /// Spec M-5.
    #[test]
    fn a_syn_is_held_to_the_mtu() {
        for (v6, mss) in [(false, 1360), (true, 1340)] {
            let (mut packet, at) = syn(v6, &[2, 4, 5, 0xb4, 1, 3, 3, 7], b"");
            assert!(clamp(&mut packet, 1400));
            let value = u16::from_be_bytes([packet[at + 22], packet[at + 23]]);
            assert_eq!((value, sum(&packet, at)), (mss, 0xffff));
            assert!(!clamp(&mut packet, 1400), "it fits now");
        }
    }

    /// Spec M-5: nothing else changes.
    #[test]
    fn what_is_no_syn_stays_as_it_is() {
        let whole = syn(false, &[2, 4, 5, 0xb4], b"").0;
        let changed = |at: usize, byte: u8| {
            let mut packet = whole.clone();
            packet[at] = byte;
            packet
        };
        let no_option = syn(false, &[1, 1, 0, 2, 4, 5, 0xb4], b"").0;
        let twice = syn(false, &[2, 4, 5, 0xb4, 2, 4, 5, 0xb4], b"").0;
        let cases = [
            changed(33, 0x10),
            changed(6, 0x20),
            changed(9, 17),
            changed(32, 0xf0),
            changed(21 + 20, 3),
            no_option,
            twice,
            whole[..43].to_vec(),
        ];
        for packet in cases {
            let mut after = packet.clone();
            assert!(!clamp(&mut after, 1000), "{packet:?}");
            assert_eq!(after, packet);
        }
        assert!(clamp(&mut whole.clone(), 1000));
    }

    proptest! {
        /// Spec M-5.
        #[test]
        fn the_checksum_stays_right(
            v6: bool,
            nops in 0_usize..6,
            mss: u16,
            data in vec(any::<u8>(), 0..9),
            mtu in 256_u16..1500,
        ) {
            let mut options = vec![OPTION_NOP; nops];
            options.extend_from_slice(&[2, 4]);
            options.extend_from_slice(&mss.to_be_bytes());
            let (mut packet, at) = syn(v6, &options, &data);
            let limit = (mtu - if v6 { 60 } else { 40 }).max(MSS_MIN);
            prop_assert_eq!(clamp(&mut packet, mtu), mss > limit);
            prop_assert_eq!(sum(&packet, at), 0xffff);
            let value_at = at + TCP_HEADER_BYTES + nops + 2;
            let value = u16::from_be_bytes([packet[value_at], packet[value_at + 1]]);
            prop_assert_eq!(value, mss.min(limit));
        }

        #[test]
        fn anything_is_survived(mut packet in vec(any::<u8>(), 0..120), mtu: u16) {
            clamp(&mut packet, mtu);
        }

        #[test]
        fn any_options_are_survived(
            v6: bool,
            options in vec(any::<u8>(), 0..40),
            mtu in 256_u16..1500,
        ) {
            let (mut packet, at) = syn(v6, &options, b"");
            clamp(&mut packet, mtu);
            prop_assert_eq!(sum(&packet, at), 0xffff);
        }
    }
}
