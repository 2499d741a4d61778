//! Sends and counts a flow of limited time and bytes. Both sides do this, on plain blocking sockets
//! with short timeouts, so that no wait exceeds a flow's time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::wire::COUNTS_MAX;

/// Received bytes are counted in slots of this length.
pub(crate) const SLOT: Duration = Duration::from_millis(100);
/// No system call lasts longer: whether to go on is checked this often.
const CALL_TIME: Duration = Duration::from_millis(100);
const CHUNK_BYTES: usize = 128 * 1024;

/// How long a flow lasts and what it carries, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    pub(crate) time: Duration,
    pub(crate) bytes: u64,
}

/// The bytes of a flow that arrived, and when, since its beginning.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    slots: Vec<u64>,
}

impl Counts {
    /// From counts per slot made by the other side.
    pub(crate) fn from_slots(slots: impl IntoIterator<Item = u32>) -> Self {
        Self { slots: slots.into_iter().map(u64::from).collect() }
    }

    fn add(&mut self, since_start: Duration, bytes: usize) {
        let slot = (since_start.as_nanos() / SLOT.as_nanos()) as usize;
        let slot = slot.min(COUNTS_MAX - 1);
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += bytes as u64;
    }

    /// The counts per slot, for a message.
    pub(crate) fn slots(&self) -> Vec<u32> {
        self.slots.iter().map(|bytes| u32::try_from(*bytes).unwrap_or(u32::MAX)).collect()
    }

    /// All bytes.
    pub(crate) fn total(&self) -> u64 {
        self.slots.iter().sum()
    }

    /// The time during which bytes arrived.
    pub(crate) fn lasted(&self) -> Duration {
        SLOT * u32::try_from(self.slots.len()).expect("slots are bounded")
    }

    /// Mean rate in bits per second between two times since the beginning, whole slots only. `None`
    /// when there is no slot between them.
    pub(crate) fn rate_bps(&self, from: Duration, to: Duration) -> Option<u64> {
        let slot = |time: Duration| (time.as_nanos() / SLOT.as_nanos()) as usize;
        let (from, to) = (slot(from), slot(to));
        let count = to.checked_sub(from).filter(|count| *count > 0)?;
        let bytes: u64 = self.slots.iter().skip(from).take(count).sum();
        let bits = u128::from(bytes) * 8 * 1_000_000_000;
        u64::try_from(bits / (SLOT.as_nanos() * count as u128)).ok()
    }
}

/// Sends until time or bytes are used up, the receiver goes away, or `goes_on` says no. Returns the
/// bytes that the kernel took.
///
/// # Errors
/// The connection failed otherwise than by the receiver's end.
pub(crate) fn send(
    stream: &mut TcpStream,
    start: Instant,
    limit: Limit,
    goes_on: impl Fn(u64) -> bool,
) -> io::Result<u64> {
    stream.set_write_timeout(Some(CALL_TIME))?;
    let chunk = vec![0; CHUNK_BYTES];
    let mut sent = 0;
    while sent < limit.bytes && start.elapsed() < limit.time && goes_on(sent) {
        let room = usize::try_from(limit.bytes - sent).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        match stream.write(&chunk[..room]) {
            Ok(0) => break,
            Ok(bytes) => sent += bytes as u64,
            Err(error) if is_pause(&error) => {}
            Err(error) if is_end(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// Counts what arrives until the sender ends, time or bytes are used up, or `goes_on` says no.
///
/// # Errors
/// The connection failed otherwise than by the sender's end.
pub(crate) fn receive(
    stream: &mut TcpStream,
    start: Instant,
    limit: Limit,
    goes_on: impl Fn(u64) -> bool,
) -> io::Result<Counts> {
    stream.set_read_timeout(Some(CALL_TIME))?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut counts = Counts::default();
    let mut received = 0;
    while received < limit.bytes && start.elapsed() < limit.time && goes_on(received) {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(bytes) => {
                received += bytes as u64;
                counts.add(start.elapsed(), bytes);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) if is_end(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(counts)
}

/// Whether the call only timed out.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Whether the other side is gone.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    #[test]
    fn rates_are_of_whole_slots() {
        let ms = Duration::from_millis;
        let mut counts = Counts::default();
        counts.add(ms(99), 1000);
        counts.add(ms(100), 500);
        counts.add(ms(350), 2500);
        assert_eq!((counts.total(), counts.lasted()), (4000, ms(400)));
        assert_eq!(counts.rate_bps(ms(0), ms(100)), Some(80_000));
        assert_eq!(counts.rate_bps(ms(199), ms(450)), Some(80_000), "slots 1 to 3 of 100 ms");
        assert_eq!(counts.rate_bps(ms(100), ms(1100)), Some(24_000), "with silence at the end");
        assert_eq!(counts.rate_bps(ms(300), ms(300)), None);
        assert_eq!(Counts::from_slots(counts.slots()), counts);
        counts.add(Duration::from_secs(1_000_000), 1);
        assert_eq!(counts.slots().len(), COUNTS_MAX);
    }

    #[test]
    fn a_flow_ends_with_its_bytes() {
        let (mut one, mut other) = pair();
        let limit = Limit { time: Duration::from_secs(60), bytes: 300_001 };
        let start = Instant::now();
        let sender = thread::spawn(move || send(&mut one, start, limit, |_| true).unwrap());
        let ample = Limit { bytes: u64::MAX, ..limit };
        let counts = receive(&mut other, start, ample, |_| true).unwrap();
        assert_eq!((sender.join().unwrap(), counts.total()), (300_001, 300_001));
    }

    #[test]
    fn a_flow_ends_with_its_time_and_when_told_to() {
        let (mut one, other) = pair();
        let limit = Limit { time: Duration::from_millis(150), bytes: u64::MAX };
        // Nobody reads: the sender must not wait for room.
        let sent = send(&mut one, Instant::now(), limit, |_| true).unwrap();
        assert!(sent > 0);
        let ample = Limit { time: Duration::from_secs(60), bytes: u64::MAX };
        assert_eq!(send(&mut one, Instant::now(), ample, |_| false).unwrap(), 0);
        drop(other);
        let gone = receive(&mut one, Instant::now(), ample, |_| true).unwrap();
        assert_eq!(gone, Counts::default());
    }
}
