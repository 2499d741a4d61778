//! Where samples come from: the kernel's tracepoint of TCP, or its list of sockets.

use std::collections::BTreeMap;
use std::fs;
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
/// kernel walks its whole table for it, which takes milliseconds where the table is large. The
/// first holds when connections have come or gone since the last list, the other else.
const LIST_PART_NEWS: u32 = 20;
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
    /// When the last list was asked for, and how long it took.
    list: Option<(Instant, Duration)>,
    /// What the kernel counted of connections then.
    counted: Counted,
    /// The wanted sockets that are there, by cookie, and the last sample of each.
    known: BTreeMap<u64, (SocketId, Sample)>,
}

impl Asking {
    pub(super) fn open(filter: Filter, begun: Instant, every: Duration) -> io::Result<Self> {
        let sockets = TcpSockets::open()?;
        let known = BTreeMap::new();
        let counted = Counted::default();
        Ok(Self { sockets, filter, begun, every, due: begun, list: None, counted, known })
    }

    /// The wanted sockets of now; those that are new since the last list only if one is due.
    fn look(&mut self) -> io::Result<Vec<TcpSocket>> {
        let begun = Instant::now();
        let counted = Counted::now();
        let mut wanted = Vec::with_capacity(self.known.len());
        if !self.is_list_due(begun, &counted) {
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
        self.list = Some((begun, begun.elapsed()));
        self.counted = counted;
        Ok(wanted)
    }

    fn is_list_due(&self, now: Instant, counted: &Counted) -> bool {
        let Some((at, took)) = self.list else { return true };
        let part = if *counted == self.counted { LIST_PART } else { LIST_PART_NEWS };
        let pause = (took * part).min(LIST_EVERY_MAX);
        self.known.len() > MOST_ONE_BY_ONE || now.saturating_duration_since(at) >= pause
    }
}

/// What the kernel counts of the connections of this network namespace: opened from here, opened to
/// here, and there now. Nothing where it does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Counted(Vec<String>);

impl Counted {
    fn now() -> Self {
        Self::parse(&fs::read_to_string(COUNTERS).unwrap_or_default())
    }

    /// Reads the two lines `Tcp:` of /proc/net/snmp: names, and values.
    fn parse(text: &str) -> Self {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let both = names.split(' ').zip(values.split(' '));
        let wanted =
            both.filter(|(name, _)| ["ActiveOpens", "PassiveOpens", "CurrEstab"].contains(name));
        Self(wanted.map(|(_, value)| value.to_owned()).collect())
    }
}

/// Of the calling thread's network namespace.
const COUNTERS: &str = "/proc/thread-self/net/snmp";

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

    /// As if the last list had been asked for now, and been so dear.
    fn listed(source: &mut Asking, took: Duration) {
        source.list = Some((Instant::now(), took));
        source.counted = Counted::now();
    }

    #[test]
    fn between_two_lists_known_sockets_are_told_and_new_ones_wait_for_the_next() {
        let (listener, mut source) = listen();
        let mut first = connect(&listener);
        assert_eq!(ask(&mut source).len(), 2);
        listed(&mut source, Duration::from_secs(1));
        let second = connect(&listener);
        send(&mut first);
        let samples = ask(&mut source);
        assert_eq!((acked(&samples, &first), acked(&samples, &second)), (Some(1001), None));
        source.list = None;
        assert_eq!(acked(&ask(&mut source), &second), Some(1));
        // A closed one is forgotten without a list.
        listed(&mut source, Duration::from_secs(1));
        socket2::SockRef::from(&first.0).set_linger(Some(Duration::ZERO)).unwrap();
        drop(first);
        ask(&mut source);
        assert_eq!(source.known.len(), 2);
    }

    #[test]
    fn a_list_waits_for_less_when_connections_came() {
        let (_listener, mut source) = listen();
        listed(&mut source, Duration::from_millis(5));
        let (at, same) = (source.list.unwrap().0, source.counted.clone());
        let is_due = |ms, counted| source.is_list_due(at + Duration::from_millis(ms), counted);
        assert!(!is_due(499, &same) && is_due(500, &same));
        let other = Counted(vec!["1".into()]);
        assert!(!is_due(99, &other) && is_due(100, &other));
        listed(&mut source, Duration::from_secs(60));
        assert!(source.is_list_due(source.list.unwrap().0 + LIST_EVERY_MAX, &Counted::now()));
    }

    #[test]
    fn connections_are_counted_by_the_kernel() {
        let text = "Ip: a\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens CurrEstab InSegs\n\
                    Tcp: 200 7 8 9 10\nUdp: a\n";
        assert_eq!(Counted::parse(text), Counted(["7", "8", "9"].map(Into::into).into()));
        assert_eq!(Counted::parse("Tcp: "), Counted::default());
        assert_eq!(Counted::now().0.len(), 3);
    }
}
