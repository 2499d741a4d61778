//! Input to a running daemon from outside its loop: signals and the control socket. Each has its
//! own threads, so that a slow client never delays a packet.

pub(crate) mod message;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mio::Waker;
use plait_net::entry::Entry;
use plait_net::rights::{UserId, effective_user, may_write, process_behind, user_behind};
use plait_net::terminal::Terminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::advice::{Advised, help_to_write};
use crate::holder::Holder;

/// How long a client may take to send its request and to read the answer, and how long a loop may
/// take to produce it.
pub(crate) const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest request in bytes, its line's end included.
pub(crate) const REQUEST_BYTES_MAX: usize = 65_536;
/// So many clients are served at once; who is slow keeps one place for a few seconds.
const CLIENTS_MAX: usize = 4;
/// Root may ask whatever the gateway's user may.
const ROOT: u32 = 0;

/// Sends requests `R` to a loop.
pub(crate) struct Requests<R> {
    sender: Sender<R>,
    waker: Arc<Waker>,
}

impl<R> Clone for Requests<R> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }
}

impl<R> Requests<R> {
    /// The loop waits for `waker` and then reads what was sent.
    pub(crate) fn new(sender: Sender<R>, waker: Waker) -> Self {
        Self { sender, waker: Arc::new(waker) }
    }

    /// Sends a request; says whether the loop still listens.
    pub(crate) fn send(&self, request: R) -> bool {
        self.sender.send(request).is_ok() && self.waker.wake().is_ok()
    }

    /// Sends a request with a channel for its answer; `None` when the loop does not answer.
    pub(crate) fn ask<T>(&self, request: impl FnOnce(SyncSender<T>) -> R) -> Option<T> {
        let (sender, receiver) = sync_channel(1);
        let was_sent = self.send(request(sender));
        was_sent.then(|| receiver.recv_timeout(CLIENT_TIMEOUT).ok()).flatten()
    }
}

/// What a program's loop is told when it is to end.
pub(crate) struct Ends<R> {
    /// At SIGTERM and SIGINT.
    pub(crate) stop: fn() -> R,
    /// At SIGUSR2: a successor follows at once.
    pub(crate) leave: fn() -> R,
}

/// Sends what `ends` gives when a signal ends the program, and what `reload` gives at SIGHUP. They
/// run on the signal thread, so reading a configuration may take its time.
///
/// A program started from a terminal ends with it: there SIGHUP means that the terminal is gone. A
/// service has none.
pub(crate) fn watch_signals<R: Send + 'static>(
    requests: Requests<R>,
    ends: Ends<R>,
    reload: impl Fn() -> Result<R, String> + Send + 'static,
) -> anyhow::Result<()> {
    let terminal = Terminal::of_this_program().context("cannot look at the terminal")?;
    let has_terminal = terminal.is_some();
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR2]).context("cannot watch for signals")?;
    if let Some(terminal) = terminal {
        let requests = requests.clone();
        end_with(terminal, move || {
            requests.send((ends.stop)());
        })?;
    }
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                let reloads = signal == SIGHUP && !has_terminal;
                // Errors of a configuration are in the log.
                let request = match signal {
                    SIGUSR2 => Ok((ends.leave)()),
                    _ if reloads => reload(),
                    _ => Ok((ends.stop)()),
                };
                if let Ok(request) = request {
                    requests.send(request);
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}

/// Calls `end` when the terminal is gone, from a thread of its own.
pub(crate) fn end_with(
    terminal: Terminal,
    end: impl FnOnce() + Send + 'static,
) -> anyhow::Result<()> {
    thread::Builder::new()
        .name("terminal".into())
        .spawn(move || match terminal.wait_for_end() {
            Ok(()) => {
                log::info!("the terminal is gone: the program ends with it");
                end();
            }
            Err(error) => log::warn!("the terminal is not watched: {error}"),
        })
        .context("cannot start a thread")?;
    Ok(())
}

/// Carries out the request `reload` of a client of the control socket; returns the answer.
pub(crate) fn reload_for_client<R>(
    requests: &Requests<R>,
    reload: impl Fn() -> Result<R, String>,
) -> serde_json::Value {
    let done = reload().and_then(|request| {
        let was_sent = requests.send(request);
        was_sent.then_some(()).ok_or_else(|| "it is ending".to_owned())
    });
    match done {
        Ok(()) => serde_json::json!({ "ok": true }),
        Err(error) => serde_json::json!({ "error": error }),
    }
}

/// The control socket; dropping it removes its file.
pub(crate) struct ControlSocket {
    path: PathBuf,
    /// The socket's file itself.
    entry: Entry,
    listener: UnixListener,
}

impl Drop for ControlSocket {
    /// Removes the socket's file, but not another file in its place.
    fn drop(&mut self) {
        if self.entry.is_at(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The longest path of a socket in bytes (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Whether [`ControlSocket::open`] would get its socket at `path`; nothing is changed.
///
/// # Errors
/// The reason against it, with the remedy.
pub(crate) fn probe(path: &Path, section: &str, user: Option<UserId>) -> Result<(), Advised> {
    let shown = path.display();
    let elsewhere = format!("set another `control_socket` under {section}");
    let bytes = path.as_os_str().len();
    if bytes > SOCKET_PATH_BYTES_MAX {
        let message =
            format!("{shown} has {bytes} bytes, a socket's path {SOCKET_PATH_BYTES_MAX} at most");
        return Err(Advised::new(message, elsewhere));
    }
    if check_place(path, section, user)?
        && let Ok(other) = UnixStream::connect(path)
    {
        return Err(in_use(path, section, &other));
    }
    match folder_problem(path) {
        None => Ok(()),
        Some(problem) => {
            let help = format!("run plait as root, or {elsewhere}, in a folder it may write");
            Err(Advised::new(format!("{shown} cannot be made: {problem}"), help))
        }
    }
}

/// The process that listens on the control socket at `path`; `None` when there is none, or none
/// that this user may ask.
pub(crate) fn process_at(path: &Path) -> Option<u32> {
    let socket = UnixStream::connect(path).ok()?;
    process_behind(&socket).ok().filter(|pid| *pid != 0)
}

fn in_use(path: &Path, section: &str, other: &UnixStream) -> Advised {
    let holder = process_behind(other).ok().and_then(Holder::of_process);
    let by = holder.map(|holder| format!(": {holder}")).unwrap_or_default();
    let message = format!("{} belongs to another running plait{by}", path.display());
    let help = format!("stop that one, or set another `control_socket` under {section}");
    Advised::new(message, help)
}

/// Why a file, and the folders above it, cannot be made at `path`; nothing is changed.
pub(crate) fn folder_problem(path: &Path) -> Option<String> {
    let here = Path::new(".");
    let folders = path.ancestors().skip(1);
    let nearest = folders
        .map(|folder| if folder.as_os_str().is_empty() { here } else { folder })
        .find(|folder| fs::symlink_metadata(folder).is_ok())?;
    let shown = nearest.display();
    if !nearest.is_dir() {
        return Some(format!("{shown} is not a folder"));
    }
    (!may_write(nearest)).then(|| format!("plait may not write in {shown}"))
}

impl ControlSocket {
    /// Opens the socket, for its owner only. A socket file that nobody listens on is replaced;
    /// anything else stays. `section` is where its path can be set, such as `[gateway]`; `user` is
    /// the user that this process becomes; an earlier run may have left that user's socket.
    pub(crate) fn open(path: &Path, section: &str, user: Option<UserId>) -> anyhow::Result<Self> {
        let is_there = check_place(path, section, user)?;
        if is_there && let Ok(other) = UnixStream::connect(path) {
            return Err(in_use(path, section, &other).into());
        }
        let unusable = |cause: io::Error| {
            let message = format!("cannot open the control socket {}", path.display());
            let elsewhere = format!("set `control_socket` under {section} to a path in a folder");
            let help = match help_to_write(&cause) {
                Some(help) => format!("{help}, or {elsewhere} elsewhere"),
                None => format!("run as root, or {elsewhere} this user may write"),
            };
            Advised::new(message, help).caused_by(cause)
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(unusable)?;
        }
        if is_there {
            fs::remove_file(path).map_err(unusable)?;
        }
        let listener = UnixListener::bind(path).map_err(unusable)?;
        let entry = Entry::open(path).map_err(unusable)?;
        let socket = Self { path: path.to_owned(), entry, listener };
        socket.entry.set_mode(0o600).map_err(unusable)?;
        Ok(socket)
    }

    /// Answers clients, a few at once, on threads of their own: root and this process's own user;
    /// others are refused, whatever the file's mode says. Dropping the returned value removes the
    /// file.
    pub(crate) fn answer_with(
        self,
        answer: impl Fn(UnixStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let answer = Arc::new(answer);
        for _ in 0..CLIENTS_MAX {
            let listener = self.listener.try_clone().context("cannot share the control socket")?;
            let answer = Arc::clone(&answer);
            thread::Builder::new()
                .name("control".into())
                .spawn(move || {
                    for client in listener.incoming().flatten() {
                        if let Err(error) = admit(&client).and_then(|()| answer(client)) {
                            log::debug!("a client of the control socket: {error}");
                        }
                    }
                })
                .context("cannot start a thread")?;
        }
        Ok(self)
    }
}

/// Refuses a client that may not ask, with a reason.
fn admit(client: &UnixStream) -> io::Result<()> {
    let user = user_behind(client)?;
    if [ROOT, effective_user()].contains(&user) {
        return Ok(());
    }
    let error = format!("user {user} may not ask here");
    let help = "run this as root, or as the user that plait runs as";
    let refusal = serde_json::json!({ "version": 1, "error": error, "help": help });
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut client = client;
    writeln!(client, "{refusal}")?;
    Err(io::Error::new(io::ErrorKind::PermissionDenied, error))
}

/// Says whether there is a socket file at `path` that may be replaced; false when there is nothing.
///
/// # Errors
/// Something else is there, or another user's socket.
fn check_place(path: &Path, section: &str, user: Option<UserId>) -> Result<bool, Advised> {
    let Ok(entry) = Entry::open(path) else { return Ok(false) };
    let help = format!("remove it, or set another `control_socket` under {section}");
    if !entry.is_socket() {
        let message = format!("{} exists and is no socket", path.display());
        return Err(Advised::new(message, help));
    }
    let owners = [Some(effective_user()), user.map(|user| user.uid)];
    if !owners.contains(&Some(entry.uid())) {
        let message = format!("{} belongs to user {}", path.display(), entry.uid());
        return Err(Advised::new(message, help));
    }
    Ok(true)
}

/// Reads a client's request: a line, or what comes before the client ends, of
/// [`REQUEST_BYTES_MAX`] at most; what is longer comes without its line's end.
pub(crate) fn read_request(client: &UnixStream) -> io::Result<String> {
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let until = Instant::now() + CLIENT_TIMEOUT;
    let mut line = Vec::new();
    let mut part = [0; 4096];
    while line.len() < REQUEST_BYTES_MAX && line.last() != Some(&b'\n') {
        // A client that sends byte by byte has no more time than any other.
        let rest = until.saturating_duration_since(Instant::now());
        client.set_read_timeout(Some(rest.max(Duration::from_millis(1))))?;
        let most = part.len().min(REQUEST_BYTES_MAX - line.len());
        let mut source = client;
        match source.read(&mut part[..most])? {
            0 => break,
            read => line.extend_from_slice(&part[..read]),
        }
        if rest.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("plait-control-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn error(path: &Path) -> String {
        let Err(error) = ControlSocket::open(path, "[gateway]", None) else {
            panic!("{} was taken", path.display());
        };
        let help = error.downcast_ref::<Advised>().map(Advised::help).unwrap_or_default();
        format!("{error} ({help})")
    }

    /// Whatever stood at the path was deleted.
    #[test]
    fn regression_only_a_socket_is_replaced() {
        let folder = folder("place");
        let (file, link) = (folder.join("gateway.toml"), folder.join("link"));
        fs::write(&file, "kept").unwrap();
        let socket = folder.join("left.sock");
        drop(UnixListener::bind(&socket).unwrap());
        symlink(&socket, &link).unwrap();
        for path in [&file, &link, &folder] {
            let error = error(path);
            assert!(error.contains("exists and is no socket (remove it, or set"), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        let taken = ControlSocket::open(&socket, "[gateway]", None).unwrap();
        assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
        let error = error(&socket);
        assert!(error.contains("belongs to another running plait"), "{error}");
        drop(taken);
        assert!(!socket.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn regression_what_took_the_sockets_place_stays() {
        let folder = folder("drop");
        let path = folder.join("a.sock");
        let socket = ControlSocket::open(&path, "[gateway]", None).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "kept").unwrap();
        drop(socket);
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_request_is_bounded_in_bytes_and_time() {
        let asked = |bytes: Vec<u8>| {
            let (mut client, server) = UnixStream::pair().unwrap();
            let sending = thread::spawn(move || {
                let _ = client.write_all(&bytes);
                client
            });
            let read = read_request(&server);
            drop(server);
            drop(sending.join());
            read.map(|text| text.len())
        };
        assert_eq!(asked(b"status\n".to_vec()).unwrap(), 7);
        assert_eq!(asked(vec![b'a'; 3 * REQUEST_BYTES_MAX]).unwrap(), REQUEST_BYTES_MAX);
        assert_eq!(asked(vec![0xff, b'\n']).unwrap_err().kind(), io::ErrorKind::InvalidData);

        // One byte after the other: the time is that of the whole request.
        let (mut client, server) = UnixStream::pair().unwrap();
        let drip = thread::spawn(move || {
            while client.write_all(b"a").is_ok() {
                thread::sleep(Duration::from_millis(100));
            }
        });
        let begun = Instant::now();
        assert!(read_request(&server).is_err());
        assert!(begun.elapsed() < 2 * CLIENT_TIMEOUT, "{:?}", begun.elapsed());
        drop(server);
        drip.join().unwrap();
    }

    #[test]
    fn what_stands_against_the_socket_is_told_and_left_alone() {
        let folder = std::env::temp_dir().join(format!("plait-probe-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let problem =
            |path: &Path| probe(path, "[gateway]", None).err().map(|error| error.to_string());
        let free = folder.join("deep/er/free.sock");
        assert_eq!(problem(&free), None);
        assert!(!folder.join("deep").exists());

        let file = folder.join("file");
        fs::write(&file, "kept").unwrap();
        assert!(problem(&file).unwrap().ends_with("exists and is no socket"));
        assert!(problem(&file.join("x.sock")).unwrap().ends_with("file is not a folder"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");

        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let pid = std::process::id();
        let problem_now = problem(&socket).unwrap();
        assert!(problem_now.contains("belongs to another running plait: `"), "{problem_now}");
        assert!(problem_now.ends_with(&format!("(process {pid})")), "{problem_now}");
        drop(listener);
        assert_eq!(problem(&socket), None, "nobody listens any more");

        let long = folder.join("x".repeat(SOCKET_PATH_BYTES_MAX));
        assert!(problem(&long).unwrap().contains("107 at most"));
        fs::remove_dir_all(folder).unwrap();
    }
}
