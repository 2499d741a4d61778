//! Where samples come from: the kernel's tracepoint of TCP, or its list of sockets.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use plait_net::sock_diag::{SocketId, TcpSocket, TcpSockets};
use plait_trace::filter::Filter;
use plait_trace::sample::{Sample, ssthresh};

/// A source of samples.
pub(super) trait Source {
    /// Waits for samples, for a while at most, and gives those that the filter takes.
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Sample)) -> io::Result<()>;

    /// Processor time that the kernel spent for it outside this program.
    fn kernel_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Samples that were lost because nobody took them in time.
    fn lost(&self) -> u64 {
        0
    }
}

/// The list of all sockets is asked for so seldom that it costs at most this part of a core: the
/// kernel walks its whole table for it, which takes milliseconds where the table is large.
const LIST_PART: u32 = 100;
/// But so often at least: no connection stays unseen for longer.
const LIST_EVERY_MAX: Duration = Duration::from_secs(1);
/// Of more sockets than this, the list is cheaper than asking for one after the other.
const MOST_ONE_BY_ONE: usize = 1000;

/// Asks for the sockets again and again, by netlink, and gives those that changed: for all of them
/// as often as that is cheap, and in between for those that it knows, one by one.
#[derive(Debug)]
pub(super) struct Asking {
    sockets: TcpSockets,
    filter: Filter,
    begun: Instant,
    every: Duration,
    due: Instant,
    list_due: Instant,
    /// The wanted sockets that are there, by cookie, and the last sample of each.
    known: BTreeMap<u64, (SocketId, Sample)>,
}

impl Asking {
    pub(super) fn open(filter: Filter, begun: Instant, every: Duration) -> io::Result<Self> {
        let sockets = TcpSockets::open()?;
        let known = BTreeMap::new();
        Ok(Self { sockets, filter, begun, every, due: begun, list_due: begun, known })
    }

    /// The wanted sockets of now; those that are new since the last list only if one is due.
    fn look(&mut self) -> io::Result<Vec<TcpSocket>> {
        let begun = Instant::now();
        let mut wanted = Vec::with_capacity(self.known.len());
        if begun < self.list_due && self.known.len() <= MOST_ONE_BY_ONE {
            for (id, _) in self.known.values() {
                wanted.extend(self.sockets.find(id)?);
            }
            return Ok(wanted);
        }
        let filter = &self.filter;
        self.sockets.each(|socket| {
            let tokens = socket.mptcp.map(|(token, _)| token);
            if filter.takes_ends(socket.local, socket.remote)
                && filter.takes_tokens(tokens.as_slice())
            {
                wanted.push(*socket);
            }
        })?;
        self.list_due = begun + (begun.elapsed() * LIST_PART).min(LIST_EVERY_MAX);
        Ok(wanted)
    }
}

impl Source for Asking {
    fn poll(&mut self, wait: Duration, take: &mut dyn FnMut(Sample)) -> io::Result<()> {
        let until_due = self.due.saturating_duration_since(Instant::now());
        thread::sleep(until_due.min(wait));
        if until_due > wait {
            return Ok(());
        }
        let at_s = self.begun.elapsed().as_secs_f64();
        let mut next = BTreeMap::new();
        for socket in self.look()? {
            let sample = sample(at_s, &socket);
            let old = self.known.get(&sample.socket);
            if old.is_none_or(|(_, old)| differs(old, &sample)) {
                take(sample.clone());
            }
            next.insert(sample.socket, (socket.id, sample));
        }
        self.known = next;
        // A list that takes longer than the interval is asked for as often as can be.
        while self.due <= Instant::now() {
            self.due += self.every;
        }
        Ok(())
    }
}

/// Whether more than the time changed.
fn differs(old: &Sample, new: &Sample) -> bool {
    *old != Sample { at_s: old.at_s, ..new.clone() }
}

fn sample(at_s: f64, socket: &TcpSocket) -> Sample {
    let info = &socket.info;
    Sample {
        at_s,
        socket: socket.cookie,
        local: socket.local,
        remote: socket.remote,
        token: socket.mptcp.map(|(token, _)| token),
        subflow: socket.mptcp.map(|(_, id)| id),
        cwnd: info.snd_cwnd,
        ssthresh: ssthresh(info.snd_ssthresh),
        send_window_bytes: info.snd_wnd,
        srtt_us: info.srtt_us,
        rate_bps: info.delivery_rate.saturating_mul(8),
        retransmits: info.total_retrans,
        mss_bytes: info.snd_mss,
        acked_bytes: info.bytes_acked,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const EVERY: Duration = Duration::from_millis(1);

    fn listen() -> (TcpListener, Asking) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let filter = Filter { ports: vec![port], ..Filter::default() };
        (listener, Asking::open(filter, Instant::now(), EVERY).unwrap())
    }

    fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (sender, listener.accept().unwrap().0)
    }

    fn send((sender, receiver): &mut (TcpStream, TcpStream)) {
        sender.write_all(&[7; 1000]).unwrap();
        receiver.read_exact(&mut [0; 1000]).unwrap();
    }

    fn ask(source: &mut Asking) -> Vec<Sample> {
        let mut samples = Vec::new();
        thread::sleep(2 * EVERY);
        source.poll(EVERY, &mut |sample| samples.push(sample)).unwrap();
        samples
    }

    /// The acknowledged bytes that a connection's sender has a sample of; the SYN counts, too.
    fn acked(samples: &[Sample], connection: &(TcpStream, TcpStream)) -> Option<u64> {
        let local = connection.0.local_addr().unwrap();
        samples.iter().find(|one| one.local == local).map(|one| one.acked_bytes)
    }

    #[test]
    fn a_socket_is_told_again_only_when_it_changed() {
        let (listener, mut source) = listen();
        let mut connection = connect(&listener);
        assert_eq!(ask(&mut source).len(), 2, "both ends are here");
        assert_eq!(ask(&mut source).len(), 0, "nothing changed");
        send(&mut connection);
        assert_eq!(acked(&ask(&mut source), &connection), Some(1001));
    }

    #[test]
    fn between_two_lists_known_sockets_are_told_and_new_ones_wait_for_the_next() {
        let (listener, mut source) = listen();
        let mut first = connect(&listener);
        assert_eq!(ask(&mut source).len(), 2);
        source.list_due = Instant::now() + Duration::from_secs(3600);
        let second = connect(&listener);
        send(&mut first);
        let samples = ask(&mut source);
        assert_eq!((acked(&samples, &first), acked(&samples, &second)), (Some(1001), None));
        source.list_due = Instant::now();
        assert_eq!(acked(&ask(&mut source), &second), Some(1));
        let wait = source.list_due.saturating_duration_since(Instant::now());
        assert!(!wait.is_zero() && wait <= LIST_EVERY_MAX, "the next list waits for {wait:?}");
        // A closed one is forgotten.
        source.list_due = Instant::now() + Duration::from_secs(3600);
        socket2::SockRef::from(&first.0).set_linger(Some(Duration::ZERO)).unwrap();
        drop(first);
        ask(&mut source);
        assert_eq!(source.known.len(), 2);
    }
}
