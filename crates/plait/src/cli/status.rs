//! `plait status`: what a running gateway says about itself.

mod render;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plait_proto::stats::EndpointStatus;
use serde::Deserialize;

use super::Outcome;
use crate::advice::Advised;
use crate::config::Config;
use crate::output::Style;

const AFTER_HELP: &str = "\
Examples:
  plait status
  plait status gateway.toml
  plait status --json | jq '.peers[].paths[] | {name, state, srtt_us}'

Exit codes:
  0  every bond is up
  1  the gateway runs, but a bond is not up
  2  an error; it is explained on stderr";

/// Where `plait up` puts control sockets unless the configuration says otherwise.
const SOCKET_FOLDER: &str = "/run/plait";

/// Show a running gateway: peers, paths, resequencer, drops
///
/// Asks the gateway over its control socket. Without an argument the only gateway of this machine
/// is meant.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The configuration file of the gateway
    #[arg(conflicts_with = "socket")]
    config: Option<PathBuf>,
    /// The gateway's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the gateway's answer as it is: one JSON document
    #[arg(long)]
    json: bool,
}

/// The gateway's answer.
#[derive(Debug, Deserialize)]
struct Answer {
    /// Name of the TUN device.
    tun: String,
    /// Seconds since the gateway started.
    uptime_s: u64,
    #[serde(flatten)]
    endpoint: EndpointStatus,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let socket = find_socket(args)?;
    let text = ask(&socket)?;
    let answer: Answer = serde_json::from_str(&text).map_err(|cause| {
        let message = format!("the gateway behind {} answers oddly", socket.display());
        let help = "it may be another version of plait: compare `plait --version`, restart it";
        Advised::new(message, help).caused_by(cause)
    })?;
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", text.trim_end())?;
    } else {
        stdout.write_all(render::text(&answer, Style::for_stdout()).as_bytes())?;
    }
    stdout.flush()?;
    let all_up = answer.endpoint.peers.iter().all(|peer| peer.state == "up");
    Ok(if all_up { Outcome::Good } else { Outcome::No })
}

fn find_socket(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(socket) = &args.socket {
        return Ok(socket.clone());
    }
    if let Some(config) = &args.config {
        return Ok(Config::control_socket_of(config)?);
    }
    only_socket(Path::new(SOCKET_FOLDER)).map_err(Into::into)
}

/// The only control socket of a folder.
fn only_socket(folder: &Path) -> Result<PathBuf, Advised> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sock");
    let mut sockets: Vec<_> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    sockets.sort();
    match sockets.len() {
        1 => Ok(sockets.remove(0)),
        0 => Err(Advised::new(
            format!("no gateway runs here: {} holds no control socket", folder.display()),
            "start one with `plait up CONFIG`, or name its configuration: `plait status CONFIG`",
        )),
        _ => {
            let names: Vec<_> = sockets.iter().map(|path| path.display().to_string()).collect();
            Err(Advised::new(
                format!("several gateways run here: {}", names.join(", ")),
                "name one: `plait status CONFIG` or `plait status --socket PATH`",
            ))
        }
    }
}

/// Sends the request and reads the answer to its end.
fn ask(socket: &Path) -> Result<String, Advised> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let talk = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"status\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    talk().map_err(|cause: io::Error| {
        let help = match cause.kind() {
            io::ErrorKind::PermissionDenied => {
                "run `plait status` as root, or as the gateway's user"
            }
            io::ErrorKind::WouldBlock => "the gateway does not answer; look at its log",
            _ => "is the gateway running? start it with `plait up CONFIG`",
        };
        Advised::new(format!("cannot ask the gateway behind {}", socket.display()), help)
            .caused_by(cause)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_socket_is_taken_and_several_are_named() {
        let folder = std::env::temp_dir().join(format!("plait-sockets-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let error = only_socket(&folder).unwrap_err();
        assert!(error.to_string().starts_with("no gateway runs here: "));
        fs::write(folder.join("a.sock"), "").unwrap();
        fs::write(folder.join("a.pid"), "").unwrap();
        assert_eq!(only_socket(&folder).unwrap(), folder.join("a.sock"));
        fs::write(folder.join("b.sock"), "").unwrap();
        let error = only_socket(&folder).unwrap_err();
        assert!(error.to_string().ends_with("/b.sock"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
