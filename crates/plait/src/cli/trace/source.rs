//! Where samples come from: the kernel's tracepoint of TCP, or its list of sockets.

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use plait_net::sock_diag::{TcpSocket, TcpSockets};
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

/// Asks for all sockets again and again, by netlink, and gives those that changed.
#[derive(Debug)]
pub(super) struct Asking {
    sockets: TcpSockets,
    filter: Filter,
    begun: Instant,
    every: Duration,
    due: Instant,
    /// The last sample of each socket that is there.
    known: HashMap<u64, Sample>,
}

impl Asking {
    pub(super) fn open(filter: Filter, begun: Instant, every: Duration) -> io::Result<Self> {
        let sockets = TcpSockets::open()?;
        Ok(Self { sockets, filter, begun, every, due: begun, known: HashMap::new() })
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
        let (filter, known) = (&self.filter, &self.known);
        let mut next = HashMap::with_capacity(known.len());
        self.sockets.each(|socket| {
            let tokens = socket.mptcp.map(|(token, _)| token);
            let is_wanted = filter.takes_ends(socket.local, socket.remote)
                && filter.takes_tokens(tokens.as_slice());
            if !is_wanted {
                return;
            }
            let sample = sample(at_s, socket);
            if known.get(&sample.socket).is_none_or(|old| differs(old, &sample)) {
                take(sample.clone());
            }
            next.insert(sample.socket, sample);
        })?;
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

    #[test]
    fn a_socket_is_told_again_only_when_it_changed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let port = sender.local_addr().unwrap().port();
        let filter = Filter { ports: vec![port], ..Filter::default() };
        let every = Duration::from_millis(1);
        let mut source = Asking::open(filter, Instant::now(), every).unwrap();
        let mut ask = || {
            let mut samples = Vec::new();
            thread::sleep(2 * every);
            source.poll(every, &mut |sample| samples.push(sample)).unwrap();
            samples
        };
        assert_eq!(ask().len(), 2, "both ends are here");
        assert_eq!(ask().len(), 0, "nothing changed");
        sender.write_all(&[7; 1000]).unwrap();
        receiver.read_exact(&mut [0; 1000]).unwrap();
        let samples = ask();
        let sent: Vec<_> = samples.iter().filter(|one| one.local.port() == port).collect();
        assert_eq!(sent.len(), 1);
        // The kernel counts the SYN, too.
        assert_eq!(sent[0].acked_bytes, 1001);
    }
}
