//! A sender and a receiver joined by two wires, and a transfer by the kernel's TCP or MPTCP.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plait_net::mptcp;
use plait_net::netns::NetNs;
use socket2::{Domain, Socket};

use crate::process;
use crate::topology::{PROVIDER_V4, VETH_LINKS, VethTopology, allow_mptcp, ip_batch, link_v4};
use crate::worker::Worker;

const PORT: u16 = 7_000;
const BUFFER_BYTES: usize = 64 << 10;
/// Within this time both ends see that they must stop.
const TURN: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(10);
/// Rate and queue of the two wires: slow enough that windows matter, and something is lost.
const RATES_MBIT: [u32; 2] = [20, 40];
const QUEUE_BYTES: u32 = 60_000;

/// Sender (the customer) and receiver (the provider).
#[derive(Debug)]
pub(super) struct Site {
    pub(super) topology: VethTopology,
}

impl Site {
    pub(super) fn build() -> Result<Self> {
        let topology = VethTopology::build()?;
        for (device, rate) in VETH_LINKS.iter().zip(RATES_MBIT) {
            // The queue counts bytes: whole super-packets would starve it.
            let small = format!("link set dev {device} gso_max_size 3000");
            ip_batch(&topology.customer, "", &[small])?;
            let mut tc = topology.customer.command("tc");
            tc.args(["qdisc", "add", "dev", device, "root", "tbf", "rate"]);
            tc.args([&format!("{rate}mbit"), "burst", "15k", "limit", &QUEUE_BYTES.to_string()]);
            process::run(&mut tc, "", LIMIT)?;
        }
        Ok(Self { topology })
    }

    pub(super) fn sender(&self) -> &NetNs {
        &self.topology.customer
    }

    /// Lets MPTCP connections use both wires, the second by its source address.
    pub(super) fn allow_multipath(&self) -> Result<()> {
        let (here, there) = (link_v4(2, 1), link_v4(2, 2));
        ip_batch(
            self.sender(),
            "",
            &[
                format!("route add default via {there} dev {} table 102", VETH_LINKS[1]),
                format!("rule add from {here} lookup 102"),
            ],
        )?;
        for netns in [self.sender(), &self.topology.provider] {
            allow_mptcp(netns)?;
        }
        let second = format!("mptcp endpoint add {here} dev {} subflow", VETH_LINKS[1]);
        ip_batch(self.sender(), "", &[second])
    }

    /// Begins a transfer that goes on until it is dropped.
    pub(super) fn transfer(&self, multipath: bool) -> Result<Transfer> {
        let to = SocketAddr::from((PROVIDER_V4, PORT));
        let listener = self.topology.provider.run_in(|| -> Result<TcpListener> {
            let socket = mptcp::stream_socket(Domain::IPV4, multipath)?;
            socket.set_reuse_address(true)?;
            socket.bind(&to.into())?;
            socket.listen(1)?;
            // For accepting, so that a receiver to which nobody comes ends.
            socket.set_read_timeout(Some(LIMIT))?;
            Ok(socket.into())
        })??;
        let receiver = Worker::start("receiver", move |goes_on| receive(&listener, goes_on))?;
        let sender = self.sender().run_in(|| -> Result<Socket> {
            let socket = mptcp::stream_socket(Domain::IPV4, multipath)?;
            socket.connect(&to.into())?;
            Ok(socket)
        })??;
        let stream = TcpStream::from(sender);
        stream.set_write_timeout(Some(TURN))?;
        let begun = Instant::now();
        let sender = Worker::start("sender", move |goes_on| send(stream, goes_on))?;
        Ok(Transfer { sender, receiver, begun })
    }
}

/// A transfer under way.
#[derive(Debug)]
pub(super) struct Transfer {
    sender: Worker<()>,
    receiver: Worker<u64>,
    begun: Instant,
}

impl Transfer {
    /// Ends it; bits per second that arrived.
    pub(super) fn stop(self) -> u64 {
        self.sender.stop();
        let bytes = self.receiver.stop();
        (bytes as f64 * 8.0 / self.begun.elapsed().as_secs_f64()) as u64
    }
}

fn send(mut stream: TcpStream, goes_on: &dyn Fn() -> bool) {
    let bytes = vec![7; BUFFER_BYTES];
    while goes_on() {
        match stream.write(&bytes) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The receiver's count tells that something broke.
            Err(_) => return,
        }
    }
}

/// Takes one connection to its end; says how many bytes came.
fn receive(listener: &TcpListener, goes_on: &dyn Fn() -> bool) -> u64 {
    let Ok((mut stream, _)) = listener.accept() else { return 0 };
    let mut bytes = vec![0; BUFFER_BYTES];
    let mut count = 0;
    if stream.set_read_timeout(Some(TURN)).is_err() {
        return 0;
    }
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return count,
            Ok(read) => count += read as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock && goes_on() => {}
            Err(_) => return count,
        }
    }
}

/// A sender's socket, as `ss` sees it: its own address and its controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) address: String,
    pub(super) controller: String,
}

/// The established connections of a namespace to the receiver's port.
pub(super) fn seen(netns: &NetNs) -> Result<Vec<Seen>> {
    let mut ss = netns.command("ss");
    ss.args(["-tinHO", "state", "established", &format!("dport = :{PORT}")]);
    let text = process::run(&mut ss, "", LIMIT)?;
    text.lines().map(|line| parse(line).with_context(|| format!("ss says: {line}"))).collect()
}

/// Receive queue, send queue, own address, the other's; then the controller is the first word.
fn parse(line: &str) -> Result<Seen> {
    let words: Vec<_> = line.split_whitespace().collect();
    ensure!(words.len() > 5, "too few words");
    let address = words[2].rsplit_once(':').context("no port")?.0;
    // Of an address of a socket that is bound to a device, ss shows that, too.
    let address = address.split('%').next().unwrap_or(address).to_owned();
    let is_flag = |word: &&&str| matches!(**word, "ts" | "sack" | "ecn" | "ecnseen" | "fastopen");
    let controller = words[4..].iter().find(|word| !is_flag(word)).context("no controller")?;
    Ok(Seen { address, controller: (*controller).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_found_in_what_ss_prints() {
        let line =
            "0 2896 10.2.0.1%fast2:41884 10.99.0.1:7000 ts sack bpf_lia wscale:10,10 rto:204";
        let expected = Seen { address: "10.2.0.1".into(), controller: "bpf_lia".into() };
        assert_eq!(parse(line).expect("a connection"), expected);
        assert!(parse("0 0 10.2.0.1:1").is_err());
    }
}
