//! `plait peer`: peers of a running gateway, added and removed without a restart.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Outcome;
use super::control::{self, NamedTarget};
use super::save::{self, Prepared};
use crate::advice::Advised;
use crate::config::{self, Peer, check_secrecy, read_key_file};
use crate::control::message::{Answer, PeerAsked, PeerTold, REQUEST_ROOM_BYTES, Request, Told};

const AFTER_HELP: &str = "\
Examples:
  plait peer add KEY --allowed-ips 10.99.0.7/32,fd99::7/128
  plait peer add KEY --allowed-ips 10.99.0.1/32 --endpoint 192.0.2.1:7788 --save
  plait peer add --from branches.toml
  plait peer remove KEY
  plait peer list --json

A change lasts until the next reload or restart, unless `--save` also writes it to the file.

Exit codes:
  0  done
  2  refused, and nothing has changed; or the gateway does not answer";

const ADD_HELP: &str = "\
Examples:
  plait peer add KEY --allowed-ips 10.99.0.7/32
  plait peer add --from branches.toml --save
  generate | plait peer add --from -

A file for `--from` holds sections [[peer]] as a gateway's file does. Of many peers, some hundred go
in one request; a request adds all of its peers or none.

Exit codes:
  0  the peers are there
  2  an error; it says how many were added before, if any";

const REMOVE_HELP: &str = "\
Examples:
  plait peer remove KEY
  plait peer remove KEY --save

Exit codes:
  0  the peer is gone
  2  an error, such as that there is none with this key";

const LIST_HELP: &str = "\
Examples:
  plait peer list
  plait peer list --json | jq '.ok.peers[] | select(.up | not) | .public_key'

Exit codes:
  0  the list is complete
  2  the gateway does not answer";

/// Add, remove or list the peers of a running gateway
///
/// Without a restart, and without a look at its other peers: bonds go on, routes, NAT and
/// measuring follow. The checks are those of the configuration file.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Add(Add),
    Remove(Remove),
    List(List),
}

/// Add a peer, or many
#[derive(Debug, clap::Args)]
#[command(after_help = ADD_HELP)]
struct Add {
    /// The peer's public key, as its `plait pubkey` prints it
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    public_key: Option<String>,
    /// Inner networks behind the peer
    #[arg(long, value_name = "NET", value_delimiter = ',', conflicts_with = "from")]
    allowed_ips: Vec<String>,
    /// Where the peer listens; without one the peer calls
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', conflicts_with = "from")]
    endpoint: Vec<String>,
    /// A secret that both gateways mix into the handshake
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    preshared_key_file: Option<PathBuf>,
    /// An idle path sends a datagram this often
    #[arg(long, value_name = "SECONDS", conflicts_with = "from")]
    keepalive: Option<u16>,
    /// Whether the peer may run `plait measure` against this gateway
    #[arg(long, value_name = "true|false", conflicts_with = "from")]
    measure: Option<bool>,
    /// Add the `[[peer]]` sections of a file; `-` reads them from stdin
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    how: How,
}

/// Remove a peer
#[derive(Debug, clap::Args)]
#[command(after_help = REMOVE_HELP)]
struct Remove {
    /// The peer's public key
    public_key: String,
    #[command(flatten)]
    how: How,
}

/// List the peers
#[derive(Debug, clap::Args)]
#[command(after_help = LIST_HELP)]
struct List {
    /// Print the answer as it is: one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: NamedTarget,
}

/// How a change is made.
#[derive(Debug, clap::Args)]
pub(super) struct How {
    /// Write it to the gateway's file, too
    #[arg(long)]
    pub(super) save: bool,
    /// Print what was done as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) target: NamedTarget,
}

impl How {
    /// Says what was done, and how long it lasts.
    pub(super) fn tell(&self, done: &str, warnings: &[String]) -> io::Result<()> {
        for warning in warnings {
            writeln!(io::stderr(), "plait: warning: {warning}")?;
        }
        if self.json {
            let told = serde_json::json!({
                "done": done, "saved": self.save, "warnings": warnings,
            });
            return writeln!(io::stdout(), "{told}");
        }
        let lasts = if self.save {
            "and saved in the file"
        } else {
            "until the next reload or restart (--save writes it to the file, too)"
        };
        writeln!(io::stdout(), "{done}, {lasts}")
    }
}

pub(super) fn run(args: Args) -> anyhow::Result<Outcome> {
    match args.action {
        Action::Add(add) => add.run(),
        Action::Remove(remove) => remove.run(),
        Action::List(list) => list.run(),
    }
}

/// Peers with the files of their preshared keys.
pub(super) type Wanted = Vec<(PeerAsked, Option<PathBuf>)>;

impl Add {
    fn run(self) -> anyhow::Result<Outcome> {
        let socket = self.how.target.socket()?;
        let wanted = self.wanted()?;
        let count = wanted.len();
        let warnings = add(&socket, wanted, self.how.save)?;
        let peers = if count == 1 { "1 peer".to_owned() } else { format!("{count} peers") };
        self.how.tell(&format!("added {peers}"), &warnings)?;
        Ok(Outcome::Good)
    }

    fn wanted(&self) -> anyhow::Result<Wanted> {
        if let Some(file) = &self.from {
            return read_peers(file);
        }
        let file = self.preshared_key_file.as_deref().map(std::path::absolute).transpose()?;
        let secret = file.as_deref().map(secret_of).transpose()?;
        let peer = PeerAsked {
            public_key: self.public_key.clone().unwrap_or_default(),
            preshared_key: secret,
            endpoint: self.endpoint.clone(),
            allowed_ips: self.allowed_ips.clone(),
            keepalive_s: self.keepalive,
            measure: self.measure,
        };
        Ok(vec![(peer, file)])
    }
}

/// Adds peers to a running gateway, and to its file if they are to be saved. Returns the warnings.
pub(super) fn add(socket: &Path, wanted: Wanted, saves: bool) -> anyhow::Result<Vec<String>> {
    let prepare = || save::prepare(socket, |file| save::add_peers(file, &wanted));
    let prepared = saves.then(prepare).transpose()?;
    let warnings = send(socket, wanted.into_iter().map(|(peer, _)| peer))?;
    prepared.map(Prepared::commit).transpose()?;
    Ok(warnings)
}

/// The secret in a file, which nobody else may read.
fn secret_of(file: &Path) -> Result<String, Advised> {
    let problem = |problem: plait_toml::Problem| Advised::new(problem.to_string(), problem.help());
    check_secrecy(file, None).map_err(|error| problem(error.into()))?;
    let key = read_key_file(file).map_err(|error| problem(error.into()))?;
    Ok(STANDARD.encode(*key))
}

fn read_peers(file: &Path) -> anyhow::Result<Wanted> {
    let (text, folder) = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        (text, std::env::current_dir()?)
    } else {
        let text = fs::read_to_string(file).map_err(|cause| {
            let message = format!("cannot read {}", file.display());
            Advised::new(message, "give a file with sections [[peer]]").caused_by(cause)
        })?;
        let folder = std::path::absolute(file)?.parent().map(Path::to_owned);
        (text, folder.unwrap_or_default())
    };
    let peers = config::parse_peers(file, &text, &folder)?;
    if peers.is_empty() {
        let help = "write a section [[peer]] for each";
        return Err(Advised::new(format!("no peers in {}", file.display()), help).into());
    }
    check_once(&peers)?;
    peers.iter().map(asked).collect()
}

/// What several requests would find only after some of them were carried out.
fn check_once(peers: &[Peer]) -> Result<(), Advised> {
    let (mut keys, mut nets) = (BTreeMap::new(), BTreeMap::new());
    for peer in peers {
        let (key, line) = (peer.public_key.value, peer.line);
        if let Some(other) = keys.insert(key, line) {
            let message = format!("lines {other} and {line} name the same peer {key}");
            return Err(Advised::new(message, "keep one of the two"));
        }
        for net in peer.allowed_ips.iter().map(|net| net.value.to_string()) {
            if let Some(other) = nets.insert(net.clone(), line) {
                let message = format!("{net} belongs to the peers of lines {other} and {line}");
                return Err(Advised::new(message, "give the prefix to one peer"));
            }
        }
    }
    Ok(())
}

fn asked(peer: &Peer) -> anyhow::Result<(PeerAsked, Option<PathBuf>)> {
    let file = peer.preshared_key_file.as_ref().map(|file| file.value.clone());
    let secret = file.as_deref().map(secret_of).transpose()?;
    let keepalive_s = u16::try_from(peer.keepalive.as_secs()).ok();
    let default = plait_toml::gateway::Peer::default().keepalive;
    let asked = PeerAsked {
        public_key: peer.public_key.value.to_string(),
        preshared_key: secret,
        endpoint: peer.endpoints.iter().map(|end| end.value.to_string()).collect(),
        allowed_ips: peer.allowed_ips.iter().map(|net| net.value.to_string()).collect(),
        keepalive_s: keepalive_s.filter(|_| peer.keepalive != default),
        measure: peer.measure,
    };
    Ok((asked, file))
}

/// Sends peers in requests that are short enough. Returns the warnings.
fn send(socket: &Path, peers: impl Iterator<Item = PeerAsked>) -> Result<Vec<String>, Advised> {
    let (mut warnings, mut added) = (Vec::new(), 0);
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let mut flush = |batch: &mut Vec<PeerAsked>| -> Result<(), Advised> {
        let peers = std::mem::take(batch);
        let count = peers.len();
        match control::request(socket, &Request::PeerAdd { peers }) {
            Ok(Told::Changed { warnings: more }) => warnings.extend(more),
            Ok(_) => {}
            Err(error) if added > 0 => {
                let message = format!("{error}; {added} peers before it were added");
                return Err(Advised::new(message, error.help()));
            }
            Err(error) => return Err(error),
        }
        added += count;
        Ok(())
    };
    for peer in peers {
        let room = serde_json::to_string(&peer).map_or(0, |text| text.len() + 1);
        if !batch.is_empty() && bytes + room > REQUEST_ROOM_BYTES {
            flush(&mut batch)?;
            bytes = 0;
        }
        bytes += room;
        batch.push(peer);
    }
    flush(&mut batch)?;
    Ok(warnings)
}

impl Remove {
    fn run(self) -> anyhow::Result<Outcome> {
        let socket = self.how.target.socket()?;
        let public_key = self.public_key.trim().to_owned();
        let change = |file: &mut _| save::remove_peer(file, &public_key);
        let prepared = self.how.save.then(|| save::prepare(&socket, change)).transpose()?;
        control::request(&socket, &Request::PeerRemove { public_key: public_key.clone() })?;
        prepared.map(Prepared::commit).transpose()?;
        self.how.tell(&format!("removed the peer {public_key}"), &[])?;
        Ok(Outcome::Good)
    }
}

impl List {
    fn run(self) -> anyhow::Result<Outcome> {
        let told = control::request(&self.target.socket()?, &Request::PeerList {})?;
        let mut stdout = io::stdout().lock();
        if self.json {
            writeln!(stdout, "{}", serde_json::to_string(&Answer::from(Ok(told)))?)?;
        } else if let Told::Peers(peers) = &told {
            stdout.write_all(table(peers).as_bytes())?;
        }
        Ok(Outcome::Good)
    }
}

fn table(peers: &[PeerTold]) -> String {
    let mut text = String::new();
    for peer in peers {
        let state = if peer.up { "up  " } else { "down" };
        let nets = peer.allowed_ips.join(", ");
        let calls = || "calls".to_owned();
        let at = (!peer.endpoint.is_empty()).then(|| peer.endpoint.join(", "));
        let at = at.unwrap_or_else(calls);
        text.push_str(&format!("{}  {state}  {at}  {nets}\n", peer.public_key));
    }
    text
}

#[cfg(test)]
mod tests {
    use plait_proto::session::PublicKey;

    use super::*;

    fn section(number: u8, net: &str) -> String {
        let key = PublicKey::from_bytes([number; 32]);
        format!("[[peer]]\npublic_key = \"{key}\"\nallowed_ips = \"{net}\"\n")
    }

    fn read(text: &str) -> Result<Wanted, String> {
        let folder = Path::new("/nowhere");
        let peers = config::parse_peers(Path::new("f.toml"), text, folder);
        let peers = peers.map_err(|errors| errors.to_string())?;
        check_once(&peers).map_err(|error| error.to_string())?;
        peers.iter().map(|peer| asked(peer).map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn a_file_of_peers_is_read_as_a_gateways() {
        let text = section(1, "10.0.0.1/32") + "keepalive_s = 7\n" + &section(2, "10.0.0.2/32");
        let wanted = read(&text).unwrap();
        assert_eq!(wanted[0].0.keepalive_s, Some(7));
        assert_eq!(wanted[1].0.keepalive_s, None);
        assert_eq!(wanted[1].0.allowed_ips, ["10.0.0.2/32"]);
        let twice = section(1, "10.0.0.1/32") + &section(1, "10.0.0.2/32");
        assert!(read(&twice).unwrap_err().starts_with("lines 1 and 4 name the same peer"));
        let net = section(1, "10.0.0.0/24") + &section(2, "10.0.0.0/24");
        assert!(read(&net).unwrap_err().starts_with("10.0.0.0/24 belongs to the peers of lines"));
        let odd = section(1, "10.0.0.0/24") + "colour = 1\n[gateway]\n";
        let error = read(&odd).unwrap_err();
        assert!(error.contains("f.toml:4: [[peer]] colour: unknown option"), "{error}");
        assert!(error.contains("f.toml:5: gateway: unknown section"), "{error}");
    }

    #[test]
    fn the_table_has_a_line_for_each_peer() {
        let peer = |endpoint: &[&str], up| PeerTold {
            public_key: "AAA=".into(),
            endpoint: endpoint.iter().map(|text| (*text).to_owned()).collect(),
            allowed_ips: vec!["10.0.0.0/8".into(), "fd00::/8".into()],
            keepalive_s: 25,
            has_preshared_key: false,
            measure: None,
            up,
        };
        assert_eq!(
            table(&[peer(&[], true), peer(&["192.0.2.1:1"], false)]),
            "AAA=  up    calls  10.0.0.0/8, fd00::/8\n\
             AAA=  down  192.0.2.1:1  10.0.0.0/8, fd00::/8\n"
        );
    }
}
