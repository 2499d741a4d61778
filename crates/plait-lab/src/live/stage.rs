//! The programs of a stream: a server and a reader of what it has, and an encoder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use plait_net::netns::NetNs;

use super::cases::{Case, Cases};
use super::frames::{Lines, Told};
use crate::process::{Service, wait_until};
use crate::scratch::Scratch;

const LIMIT: Duration = Duration::from_secs(10);
const RTMP_PORT: u16 = 1935;
const SRT_PORT: u16 = 9000;
/// Where srt-live-transmit hands on what came, at the server alone.
const INNER_PORT: u16 = 9001;
/// A reader has no sign that it waits for a stream.
const READER_START: Duration = Duration::from_millis(700);
/// Bytes of MPEG-TS in a packet of SRT: seven of its packets.
const SRT_PAYLOAD_BYTES: u32 = 1316;
/// Small, so that encoding takes little of the machine; the rest of the rate is padding.
const PICTURE: &str = "320x180";
/// Debian's packages put nginx's modules here.
const MODULE: &str = "/usr/lib/nginx/modules/ngx_rtmp_module.so";
/// Programs by name, beside the module.
const PROGRAMS: [&str; 3] = ["ffmpeg", "nginx", "srt-live-transmit"];
/// Lines of a program's log that an error shows.
const LOG_TAIL_LINES: usize = 12;

/// How a stream comes to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    /// Over TCP, to nginx.
    Rtmp,
    /// Over UDP, to srt-live-transmit.
    Srt,
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rtmp => "RTMP",
            Self::Srt => "SRT",
        }
    }

    /// What the server's program says for each stream that it takes.
    fn taken(self) -> &'static str {
        match self {
            Self::Rtmp => "publish: name=",
            Self::Srt => "Accepted SRT source connection",
        }
    }
}

/// Which of the programs this machine lacks.
pub(crate) fn missing() -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // /usr/sbin is not on every user's path.
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    let is_there = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
    let programs = PROGRAMS.into_iter().filter(|name| !is_there(name));
    programs.chain((!Path::new(MODULE).is_file()).then_some("libnginx-mod-rtmp")).collect()
}

/// A server in the server's namespace, with a reader.
#[derive(Debug)]
pub(super) struct Stage {
    protocol: Protocol,
    // Drop order: the reader ends before its server.
    reader: Listening,
    _server: Service,
    log: PathBuf,
    scratch: Scratch,
}

impl Stage {
    /// Starts both; the encoder will come to this address.
    pub(super) fn start(
        netns: &NetNs,
        address: IpAddr,
        protocol: Protocol,
        cases: &Cases,
    ) -> Result<Self> {
        let scratch = Scratch::in_memory("live")?;
        let log = scratch.path().join("server.log");
        let mut command = match protocol {
            Protocol::Rtmp => nginx(netns, scratch.path())?,
            Protocol::Srt => srt_live_transmit(netns, address, cases.srt_latency_ms),
        };
        let mut server = Service::start(&mut command, &log)?;
        wait_until("the server", LIMIT, || {
            ensure!(server.runs(), "the server ended: {}", tail_of(&log));
            listens(netns, protocol).map(|listens| listens.then_some(()))
        })?;
        let mut reader = netns.command("ffmpeg");
        reader.args(reader_words(protocol));
        let reader =
            Listening::start(reader, cases.frame_rate, &scratch.path().join("reader.log"))?;
        std::thread::sleep(READER_START);
        Ok(Self { protocol, reader, _server: server, log, scratch })
    }

    /// Starts the encoder of a case's stream to this server.
    pub(super) fn encode(
        &self,
        netns: &NetNs,
        server: IpAddr,
        case: &Case,
        cases: &Cases,
    ) -> Result<Listening> {
        let mut command = netns.command("ffmpeg");
        command.args(encoder_words(self.protocol, server, case, cases));
        let log = self.scratch.path().join("encoder.log");
        Listening::start(command, cases.frame_rate, &log)
    }

    /// How often the server took a stream.
    pub(super) fn taken(&self) -> u64 {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter(|line| line.contains(self.protocol.taken())).count() as u64
    }

    /// What the reader had so far.
    ///
    /// # Errors
    /// It ended by itself.
    pub(super) fn came(&mut self) -> Result<Told> {
        ensure!(self.reader.runs(), "the reader ended: {}", self.reader.tail());
        Ok(self.reader.told())
    }
}

/// ffmpeg that tells its frames, with the time of each. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    child: Child,
    told: Arc<Mutex<Told>>,
    thread: Option<JoinHandle<()>>,
    log: PathBuf,
}

impl Listening {
    fn start(mut command: Command, frame_rate: u64, log: &Path) -> Result<Self> {
        let file = fs::File::create(log)?;
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn();
        let mut child = spawned.context("cannot start ffmpeg")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let told = Arc::new(Mutex::new(Told::new()));
        let its = Arc::clone(&told);
        let thread = std::thread::Builder::new().name("frames".into()).spawn(move || {
            let mut lines = Lines::new(frame_rate);
            for line in BufReader::new(stdout).lines() {
                let now = Instant::now();
                let Ok(line) = line else { break };
                if let Some(frame) = lines.read(&line) {
                    lock(&its).push((now, frame));
                }
            }
        });
        Ok(Self { child, told, thread: Some(thread?), log: log.to_owned() })
    }

    fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) fn told(&self) -> Told {
        lock(&self.told).clone()
    }

    /// The end of what it complained of.
    pub(super) fn tail(&self) -> String {
        tail_of(&self.log)
    }

    /// Waits for its end; gives whether it came by itself within `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Result<bool> {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(true),
                Some(status) => bail!("the encoder ended with {status}: {}", self.tail()),
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        }
        Ok(false)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tail_of(log: &Path) -> String {
    let log = fs::read(log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}

/// Whether a socket of the namespace has the server's port: that of TCP, or of UDP.
fn listens(netns: &NetNs, protocol: Protocol) -> Result<bool> {
    let (tables, port) = match protocol {
        Protocol::Rtmp => (["tcp", "tcp6"], RTMP_PORT),
        Protocol::Srt => (["udp", "udp6"], SRT_PORT),
    };
    let port = format!(":{port:04X} ");
    let is_in = |table: &str| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        table.unwrap_or_default().lines().any(|line| line.contains(&port))
    };
    Ok(netns.run_in(|| tables.iter().any(|table| is_in(table)))?)
}

/// nginx with its RTMP module, in the foreground, with all files in `folder`.
fn nginx(netns: &NetNs, folder: &Path) -> Result<Command> {
    let text = format!(
        "load_module {MODULE};\ndaemon off;\nmaster_process off;\npid nginx.pid;\n\
         error_log stderr info;\nevents {{ worker_connections 64; }}\n\
         rtmp {{ access_log off; server {{ listen {RTMP_PORT}; chunk_size 4096;\n\
         application live {{ live on; record off; }} }} }}\n"
    );
    let config = folder.join("nginx.conf");
    fs::write(&config, text)?;
    let mut command = netns.command("/usr/sbin/nginx");
    command.arg("-p").arg(folder).arg("-c").arg(&config).args(["-e", "stderr"]);
    Ok(command)
}

/// srt-live-transmit that takes one stream after the other. On all addresses it would answer from
/// the one that routing chooses, which the encoder does not expect.
fn srt_live_transmit(netns: &NetNs, address: IpAddr, latency_ms: u64) -> Command {
    let from = format!("srt://{address}:{SRT_PORT}?mode=listener&latency={latency_ms}");
    let to = format!("udp://127.0.0.1:{INNER_PORT}");
    let mut command = netns.command("srt-live-transmit");
    command.args(["-a", "yes", "-to:0", &from, &to]);
    command
}

/// A reader at the server that tells each frame at once.
fn reader_words(protocol: Protocol) -> Vec<String> {
    let (format, from, probe_bytes) = match protocol {
        Protocol::Rtmp => ("flv", format!("rtmp://127.0.0.1:{RTMP_PORT}/live/one"), 32),
        Protocol::Srt => {
            let more = "fifo_size=100000&overrun_nonfatal=1&buffer_size=8000000";
            ("mpegts", format!("udp://127.0.0.1:{INNER_PORT}?{more}"), 5000)
        }
    };
    let probe = format!("-probesize {probe_bytes} -analyzeduration 0");
    let words = format!(
        "-hide_banner -loglevel warning -nostdin -fflags nobuffer {probe} -copyts -f {format} \
         -i {from} -map 0:v -c copy -copyts -f framecrc -flush_packets 1 pipe:1"
    );
    words.split(' ').map(str::to_owned).collect()
}

/// An encoder that goes on at its pace whatever the network does: what cannot be sent waits, and is
/// dropped beyond that; a connection that breaks is made again.
fn encoder_words(protocol: Protocol, server: IpAddr, case: &Case, cases: &Cases) -> Vec<String> {
    let (rate, frame_rate) = (case.kbit, cases.frame_rate);
    let seconds = cases.encoded(case).as_secs();
    let (format, to) = match protocol {
        Protocol::Rtmp => ("flv", format!("rtmp://{server}:{RTMP_PORT}/live/one")),
        Protocol::Srt => {
            let latency_us = cases.srt_latency_ms * 1000;
            let more = format!("mode=caller&latency={latency_us}&pkt_size={SRT_PAYLOAD_BYTES}");
            ("mpegts", format!("srt://{server}:{SRT_PORT}?{more}"))
        }
    };
    let queue = cases.queue_s * frame_rate;
    let sent = format!(
        "[f=fifo:fifo_format={format}:queue_size={queue}:drop_pkts_on_overflow=1:\
         restart_with_keyframe=1:attempt_recovery=1:recover_any_error=1:recovery_wait_time=1]{to}"
    );
    // The same packets also go to this program, which notes when each was ready.
    let both = format!("[f=framecrc:flush_packets=1]pipe:1|{sent}");
    let words = format!(
        "-hide_banner -loglevel warning -nostats -nostdin -re -f lavfi \
         -i testsrc2=size={PICTURE}:rate={frame_rate}:duration={seconds} \
         -c:v libx264 -preset ultrafast -tune zerolatency -g {frame_rate} \
         -b:v {rate}k -minrate {rate}k -maxrate {rate}k -bufsize {}k \
         -x264-params nal-hrd=cbr:force-cfr=1 -pix_fmt yuv420p -flags +global_header \
         -map 0:v -f tee {both}",
        rate / 5
    );
    words.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cases::OWN;
    use super::*;

    #[test]
    fn an_encoder_keeps_its_pace_and_sends_at_its_rate() {
        let cases = Cases::parse(OWN).unwrap();
        let words = |protocol| {
            let server = IpAddr::from([192, 0, 2, 7]);
            encoder_words(protocol, server, &cases.cases[3], &cases).join(" ")
        };
        let rtmp = words(Protocol::Rtmp);
        for part in [
            "-re ",
            "duration=63 ",
            "-b:v 8000k -minrate 8000k -maxrate 8000k -bufsize 1600k ",
            "nal-hrd=cbr",
            "fifo_format=flv:queue_size=500:drop_pkts_on_overflow=1",
            "attempt_recovery=1",
            "]rtmp://192.0.2.7:1935/live/one",
        ] {
            assert!(rtmp.contains(part), "{part}: {rtmp}");
        }
        let srt = words(Protocol::Srt);
        let to = "]srt://192.0.2.7:9000?mode=caller&latency=500000&pkt_size=1316";
        assert!(srt.contains("fifo_format=mpegts") && srt.ends_with(to), "{srt}");
    }
}
