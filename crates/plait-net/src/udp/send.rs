//! Cuts a transmit into as few system calls as the socket allows, and falls back.

use std::io;

use super::{Transmit, UdpCounters};

/// Payload bytes of the longest datagram, and of all datagrams of one call together: the limit of
/// the IPv4 length field.
const CALL_BYTES_MAX: usize = 65_507;

/// How many datagrams a call may carry, learned from the kernel's refusals.
#[derive(Debug)]
pub(super) struct Sender {
    max_segments: usize,
}

/// Whether a datagram is longer than the interface's MTU: it is lost, and no other with it.
fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Whether the kernel refused the kind of call rather than these datagrams: a device without
/// checksum offload (EIO), a segment over the path's MTU on older kernels (EINVAL).
pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}

impl Sender {
    pub(super) fn new(max_segments: usize) -> Self {
        Self { max_segments: max_segments.max(1) }
    }

    pub(super) fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Sends `transmit` with `one_call(contents, segment_size)` for each system call.
    pub(super) fn send(
        &mut self,
        transmit: &Transmit<'_>,
        mut one_call: impl FnMut(&[u8], Option<usize>) -> io::Result<()>,
        counters: &mut UdpCounters,
    ) -> io::Result<()> {
        let contents = transmit.contents;
        let segment_size = match transmit.segment_size {
            Some(size) if size > 0 && size < contents.len() => size,
            _ => return send_singly(contents, usize::MAX, &mut one_call, counters),
        };
        let mut rest = contents;
        let mut result = Ok(());
        while !rest.is_empty() {
            let per_call = self.max_segments.min(CALL_BYTES_MAX / segment_size).max(1);
            let (call, after) = rest.split_at(rest.len().min(per_call * segment_size));
            let several = call.len() > segment_size;
            match one_call(call, several.then_some(segment_size)) {
                Ok(()) => {
                    counters.sends += 1;
                    counters.sent_datagrams += call.len().div_ceil(segment_size) as u64;
                    counters.sent_bytes += call.len() as u64;
                }
                Err(error) if several && is_refusal(&error) => {
                    counters.refused_segmentation += 1;
                    match send_singly(call, segment_size, &mut one_call, counters) {
                        // Only now is it known that the datagrams were not at fault.
                        Ok(()) => self.max_segments = 1,
                        Err(error) if is_too_long(&error) => result = Err(error),
                        Err(error) => return Err(error),
                    }
                }
                Err(error) if is_too_long(&error) => {
                    // The last datagram may be short enough to pass.
                    let full = call.len() / segment_size * segment_size;
                    counters.too_long_datagrams += (full / segment_size) as u64;
                    if several && full < call.len() {
                        send_singly(&call[full..], segment_size, &mut one_call, counters)?;
                    } else if full < call.len() {
                        counters.too_long_datagrams += 1;
                    }
                    result = Err(error);
                }
                Err(error) => return Err(error),
            }
            rest = after;
        }
        result
    }
}

fn send_singly(
    contents: &[u8],
    segment_size: usize,
    one_call: &mut impl FnMut(&[u8], Option<usize>) -> io::Result<()>,
    counters: &mut UdpCounters,
) -> io::Result<()> {
    let mut result = Ok(());
    let mut rest = contents;
    loop {
        let (datagram, after) = rest.split_at(rest.len().min(segment_size));
        match one_call(datagram, None) {
            Ok(()) => {
                counters.sends += 1;
                counters.sent_datagrams += 1;
                counters.sent_bytes += datagram.len() as u64;
            }
            Err(error) if is_too_long(&error) => {
                counters.too_long_datagrams += 1;
                result = Err(error);
            }
            Err(error) => return Err(error),
        }
        rest = after;
        if rest.is_empty() {
            return result;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transmit(contents: &[u8], segment_size: Option<usize>) -> Transmit<'_> {
        let destination = ([127, 0, 0, 1], 1).into();
        Transmit { destination, source: None, ecn: 0, contents, segment_size }
    }

    /// Lengths and segment sizes of the calls for `contents`, each answered by `answer`.
    fn calls(
        sender: &mut Sender,
        contents: &[u8],
        segment_size: Option<usize>,
        answer: impl Fn(usize, Option<usize>) -> Option<i32>,
    ) -> (Vec<(usize, Option<usize>)>, Option<i32>) {
        let mut seen = Vec::new();
        let one_call = |call: &[u8], size: Option<usize>| {
            seen.push((call.len(), size));
            answer(call.len(), size).map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
        };
        let mut counters = UdpCounters::default();
        let result = sender.send(&transmit(contents, segment_size), one_call, &mut counters);
        (seen, result.err().and_then(|error| error.raw_os_error()))
    }

    #[test]
    fn calls_stay_within_the_limits() {
        let contents = vec![0; 200_000];
        let good = |_, _| None;
        let (seen, _) = calls(&mut Sender::new(64), &contents[..150_000], Some(1400), good);
        let full = (46 * 1400, Some(1400));
        assert_eq!(seen, [full, full, (150_000 - 2 * 46 * 1400, Some(1400))]);
        let (seen, _) = calls(&mut Sender::new(64), &contents[..65 * 100], Some(100), good);
        assert_eq!(seen, [(6400, Some(100)), (100, None)]);
        let (seen, _) = calls(&mut Sender::new(64), &contents[..100], Some(100), good);
        assert_eq!(seen, [(100, None)]);
        let (seen, _) = calls(&mut Sender::new(64), &[], None, good);
        assert_eq!(seen, [(0, None)]);
        let (seen, _) = calls(&mut Sender::new(1), &contents[..250], Some(100), good);
        assert_eq!(seen, [(100, None), (100, None), (50, None)]);
    }

    #[test]
    fn a_refusal_falls_back_for_good_when_single_datagrams_pass() {
        for code in [libc::EIO, libc::EINVAL] {
            let mut sender = Sender::new(64);
            let refuses = |_, size: Option<usize>| size.map(|_| code);
            let (seen, error) = calls(&mut sender, &[0; 250], Some(100), refuses);
            assert_eq!((seen.len(), error), (4, None));
            assert_eq!(sender.max_segments(), 1);
        }
    }

    #[test]
    fn a_datagram_over_the_mtu_leaves_segmentation_on() {
        let mut sender = Sender::new(64);
        let answer = |_, size: Option<usize>| Some(size.map_or(libc::EMSGSIZE, |_| libc::EINVAL));
        let (seen, error) = calls(&mut sender, &[0; 250], Some(100), answer);
        assert_eq!((seen.len(), error), (4, Some(libc::EMSGSIZE)));
        assert_eq!(sender.max_segments(), 64);
    }

    #[test]
    fn datagrams_over_the_mtu_take_no_other_with_them() {
        let mut sender = Sender::new(2);
        let mut counters = UdpCounters::default();
        let one_call = |call: &[u8], size: Option<usize>| {
            let too_long = size.unwrap_or(call.len()) > 60;
            let error = io::Error::from_raw_os_error(libc::EMSGSIZE);
            if too_long { Err(error) } else { Ok(()) }
        };
        for contents in [&[0; 350][..], &[0; 250]] {
            let result = sender.send(&transmit(contents, Some(100)), one_call, &mut counters);
            let error = result.expect_err("most are too long");
            assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        }
        assert_eq!((counters.sent_datagrams, counters.too_long_datagrams), (2, 5));
        assert_eq!(sender.max_segments(), 2);
    }

    #[test]
    fn other_errors_end_the_send() {
        let full = |_, _| Some(libc::EAGAIN);
        let (seen, error) = calls(&mut Sender::new(2), &[0; 250], Some(100), full);
        assert_eq!((seen, error), (vec![(200, Some(100))], Some(libc::EAGAIN)));
    }
}
