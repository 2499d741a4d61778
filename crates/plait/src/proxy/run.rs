//! Runs a proxy: the body of `plait proxy run`.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use plait_net::rights::{CAP_NET_ADMIN, keep_only, raise_open_files};
use plait_net::terminal::Terminal;
use plait_proxy::status::{Observer, Snapshot, metrics};
use plait_proxy::{Proxy, Reloader, Stop};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::config::ProxyConfig;
use crate::advice::Advised;
use crate::config::user_of;
use crate::control::{ControlSocket, end_with, read_request};
use crate::daemon::{CANNOT_BECOME_HELP, Files, enter_sandbox, hand_over, log_errors};

/// Marks the answer of a proxy.
const KIND: &str = "proxy";
/// Open connections that an answer lists; all are counted.
const LISTED_MAX: usize = 1000;
/// A connection has two sockets, and a pipe of two while bytes are on the way; and there are the
/// listeners, the log and the like.
const FILES_PER_CONNECTION: u64 = 4;
const OTHER_FILES: u64 = 200;

/// What of a proxy does not change while it runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Its name.
    pub(crate) name: String,
    /// The parts of its sandbox that are in force.
    #[serde(default)]
    pub(crate) sandbox: Vec<String>,
}

/// The proxy's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// [`KIND`].
    kind: String,
    #[serde(flatten)]
    pub(crate) identity: Identity,
    #[serde(flatten)]
    pub(crate) snapshot: Snapshot,
}

impl Report {
    /// Whether an answer is a proxy's.
    pub(crate) fn is_in(text: &str) -> bool {
        #[derive(Deserialize)]
        struct Kind {
            kind: String,
        }
        serde_json::from_str::<Kind>(text).is_ok_and(|answer| answer.kind == KIND)
    }
}

/// Runs it until a signal ends it.
///
/// # Errors
/// Whatever cannot be set up, with its remedy; nothing is left behind then.
pub(crate) fn run(config: ProxyConfig) -> anyhow::Result<()> {
    let ProxyConfig { name, control_socket, file, user, sandbox: sandbox_wanted, config } = config;
    let user_name = user.as_ref().map(|user| user.value.clone());
    let user = user_of(user.as_ref())?;
    let (congestion, connections_max) = (config.congestion.clone(), config.limits.connections_max);
    let proxy =
        Proxy::open(config).map_err(|error| Advised::new(error.to_string(), error.help()))?;
    let control = ControlSocket::open(&control_socket, "[proxy]", user)?;
    check_open_files(connections_max);
    if let Some(user) = user {
        hand_over(&control_socket, user);
    }
    keep_only(rights_for(congestion.as_deref()), user).map_err(|cause| {
        Advised::new("cannot give up the rights that are not needed", CANNOT_BECOME_HELP)
            .caused_by(cause)
    })?;
    // All threads are started from here on, and are in the sandbox, too.
    let (read, written) = (vec![file.as_path()], vec![control_socket.as_path()]);
    let files = Files { read, written, nft: false, programs: Vec::new() };
    let sandbox = enter_sandbox(sandbox_wanted, &files);
    let reloads = Reloads {
        file,
        name: name.clone(),
        control_socket: control_socket.clone(),
        user: user_name,
        sandbox: sandbox_wanted,
        reloader: proxy.reloader(),
    };
    let reloads = Arc::new(reloads);
    watch_signals(proxy.stop(), Arc::clone(&reloads))?;
    let observer = proxy.observer();
    let (told, sandbox) = (name.clone(), sandbox.into_iter().map(str::to_owned).collect());
    let identity = Identity { name: told, sandbox };
    let control =
        control.answer_with(move |client| answer(&client, &identity, &observer, &reloads))?;
    for (listener, address) in proxy.addresses() {
        log::info!("{name} listens on {address} ({})", listener.way.name());
    }
    let result = proxy.run().context("the proxy's runtime failed");
    drop(control);
    log::info!("{name} is down");
    result
}

/// Reads the file of a running proxy again.
#[derive(Debug)]
struct Reloads {
    file: PathBuf,
    // What of the file takes effect at a start alone, beside what the proxy itself says of that.
    name: String,
    control_socket: PathBuf,
    user: Option<String>,
    sandbox: bool,
    reloader: Reloader,
}

impl Reloads {
    /// Has the proxy follow its file as it is now.
    ///
    /// # Errors
    /// All that is wrong with it, which was logged. Then nothing changes.
    fn again(&self) -> Result<(), String> {
        let new =
            ProxyConfig::load(&self.file).map_err(|errors| log_errors(&self.file, &errors))?;
        let user = new.user.map(|user| user.value);
        let mut waiting: Vec<&str> = [
            ("[proxy] name", self.name != new.name),
            ("[proxy] control_socket", self.control_socket != new.control_socket),
            ("[proxy] user", self.user != user),
            ("[proxy] sandbox", self.sandbox != new.sandbox),
        ]
        .into_iter()
        .filter_map(|(option, differs)| differs.then_some(option))
        .collect();
        waiting.extend(self.reloader.apply(new.config).map_err(|error| {
            let text = format!("{}: {error} ({})", self.file.display(), error.help());
            log::error!("{text}: the old configuration stays");
            text
        })?);
        log::info!("{}: read again, and followed from now on", self.file.display());
        for option in waiting {
            log::warn!("{}: {option} differs, and needs a restart", self.file.display());
        }
        Ok(())
    }
}

/// The rights that are needed once all is open: the kernel lets only some congestion controls be
/// chosen without any (tcp(7), tcp_allowed_congestion_control).
fn rights_for(congestion: Option<&str>) -> &'static [u32] {
    const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let allowed = std::fs::read_to_string(ALLOWED).unwrap_or_default();
    let is_allowed = |name| allowed.split_whitespace().any(|known| known == name);
    if congestion.is_none_or(is_allowed) { &[] } else { &[CAP_NET_ADMIN] }
}

/// The open files that so many connections take.
pub(crate) fn files_for(connections_max: usize) -> u64 {
    connections_max as u64 * FILES_PER_CONNECTION + OTHER_FILES
}

/// Raises the limit of open files, and says so when it is below what the configuration promises.
fn check_open_files(connections_max: usize) {
    let wanted = files_for(connections_max);
    match raise_open_files(wanted) {
        Ok(limit) if limit < wanted => log::warn!(
            "{limit} files may be open, which is enough for {} connections and not for \
             {connections_max} (raise it with `ulimit -n {wanted}`, or LimitNOFILE= of a service)",
            limit.saturating_sub(OTHER_FILES) / FILES_PER_CONNECTION
        ),
        Ok(_) => {}
        Err(error) => log::warn!("the limit of open files stays as it is: {error}"),
    }
}

/// Lets the first signal drain the proxy, and the second one end it at once; SIGHUP has the file
/// read again where no terminal sends it.
fn watch_signals(stop: Stop, reloads: Arc<Reloads>) -> anyhow::Result<()> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).context("cannot watch for signals")?;
    let terminal = Terminal::of_this_program().context("cannot look at the terminal")?;
    let has_terminal = terminal.is_some();
    if let Some(terminal) = terminal {
        let stop = stop.clone();
        end_with(terminal, move || stop.drain())?;
    }
    let watch = move || {
        let mut is_told = false;
        for signal in signals.forever() {
            if signal == SIGHUP && !has_terminal {
                // What is wrong was logged.
                let _stays = reloads.again();
            } else if is_told {
                log::warn!("told to end twice: open connections are cut off");
                std::process::exit(0);
            } else {
                is_told = true;
                stop.drain();
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".into()).spawn(watch);
    thread.context("cannot start a thread")?;
    Ok(())
}

/// Answers a client of the control socket.
fn answer(
    mut client: &UnixStream,
    identity: &Identity,
    observer: &Observer,
    reloads: &Reloads,
) -> io::Result<()> {
    match read_request(client)?.as_str() {
        "status\n" => {
            let snapshot = observer.snapshot(LISTED_MAX);
            let identity = identity.clone();
            let report = Report { kind: KIND.into(), identity, snapshot };
            let text = serde_json::to_string(&report).map_err(io::Error::other)?;
            writeln!(client, "{text}")
        }
        "metrics\n" => client.write_all(metrics(&observer.snapshot(0)).as_bytes()),
        "reload\n" => {
            let done = match reloads.again() {
                Ok(()) => serde_json::json!({ "ok": true }),
                Err(error) => serde_json::json!({ "error": error }),
            };
            writeln!(client, "{done}")
        }
        other => {
            let error = format!(
                "unknown request {:?}: a proxy knows `status`, `metrics` and `reload`",
                other.trim_end()
            );
            writeln!(client, "{}", serde_json::json!({ "error": error }))
        }
    }
}
