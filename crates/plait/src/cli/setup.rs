//! `plait setup`: sets up one end of a bond, and prints the one command for the other.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plait_net::netlink::Netlink;
use plait_net::rights::{UserId, effective_user};
use plait_toml::common;
use plait_toml::gateway::MORE_PORTS_MAX;
use plait_toml::value::{Cidr, Endpoint, Identity, names};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use zeroize::Zeroizing;

use super::control::{self, NamedTarget, StatusAnswer};
use super::{Outcome, keygen, peer};
use crate::advice::Advised;
use crate::config::{Config, find_user, resolve};
use crate::control::message::{PeerAsked, Request, Told};
use crate::machine::{self, Facts, Level, Peers};
use crate::randomness::fill_for_command;
use crate::setup::{
    End, Invitation, Networks, Place, Plan, Questions, Role, invite, links_to, public_address,
    router_of, undo,
};

/// The port of an endpoint that is given without one.
const PORT: u16 = 7788;
/// How long the bond may take to come up before this says that it has not.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);

const AFTER_HELP: &str = "\
Examples:
  plait setup                                  ask a few questions
  plait setup provider --dry-run               what would be done on this server
  plait setup provider --at gw.example.net     do it; prints the command for the customer's end
  plait setup provider --more-ports 443,4500   for customers whose networks block UDP port 7788
  plait setup join plait1.eyJwcm92aWRlciI6…    that command, at the customer's end
  plait setup customer --at gw.example.net     the other way round: begin at the customer's end
  plait setup customer --at gw.example.net --lan-interface eth1
                                               and be the router of the hosts behind eth1
  plait setup invite --at gw.example.net       one more customer, at a provider's end that runs
  plait setup undo plait0                      take it all back

The invitation holds the private key of the other end: whoever reads it can be that end. Give it to
`join` on stdin (`plait setup join -`) where the command line is seen by others.

Exit codes:
  0  done; for `join` and where the service was started: the bond is up
  1  done, but the bond is not up yet
  2  an error; it is explained on stderr, and nothing is left half done";

/// Set up one end of a bond, and print the one command for the other end
///
/// Finds links and addresses, makes the keys of both ends, writes this end's file, starts its
/// service where systemd runs the machine, and prints an invitation for the other end, also as a QR
/// code.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make this machine, which has a public address, the provider's end
    Provider {
        /// Where the customer reaches this machine: an address or name, with :PORT if not 7788
        #[arg(long, value_name = "HOST[:PORT]")]
        at: Option<String>,
        #[command(flatten)]
        bond: BondArgs,
        #[command(flatten)]
        common: Common,
    },
    /// Make this machine, which has several links, the customer's end, before the provider's exists
    Customer {
        /// Where the provider's end will be reached: an address or name, with :PORT if not 7788
        #[arg(long, value_name = "HOST[:PORT]")]
        at: Option<String>,
        #[command(flatten)]
        links: LinkArgs,
        #[command(flatten)]
        bond: BondArgs,
        #[command(flatten)]
        common: Common,
    },
    /// Make this machine the end that an invitation is for
    Join {
        /// The invitation that `plait setup` printed at the other end; - reads it from stdin
        invitation: String,
        #[command(flatten)]
        links: LinkArgs,
        #[command(flatten)]
        common: Common,
    },
    /// Let one more customer in at this provider's end, which runs
    Invite {
        /// Where the customer reaches this machine: an address or name, with :PORT if not 7788
        #[arg(long, value_name = "HOST[:PORT]")]
        at: Option<String>,
        /// A network behind that customer's end whose hosts use the bond; may be repeated
        #[arg(long, value_name = "PREFIX")]
        lan: Vec<String>,
        /// Ask nothing
        #[arg(short, long)]
        yes: bool,
        /// Print {"file": …, "invitation": …} instead
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: NamedTarget,
    },
    /// Stop and remove what was set up under a name
    Undo {
        /// The end's name
        #[arg(default_value = "plait0")]
        name: String,
        /// The folder of its file
        #[arg(long, default_value = "/etc/plait")]
        folder: PathBuf,
    },
}

/// The links of a customer's end.
#[derive(Debug, Default, clap::Args)]
struct LinkArgs {
    /// An interface to use as a link; all that reach the provider's end if none is given
    #[arg(long, value_name = "INTERFACE")]
    link: Vec<String>,
    /// Name the links by their hardware addresses, for interfaces that may get other names
    #[arg(long)]
    by_mac: bool,
    /// The interface to the hosts behind this machine: be their router, with a [[lan]]
    #[arg(long, value_name = "INTERFACE")]
    lan_interface: Option<String>,
}

/// What concerns the bond, and so both ends.
#[derive(Debug, Default, clap::Args)]
struct BondArgs {
    /// A network behind the customer's end whose hosts use the bond; may be repeated
    #[arg(long, value_name = "PREFIX")]
    lan: Vec<String>,
    /// The customer's addresses are public and routed to the provider's end: do not hide them
    #[arg(long)]
    no_nat: bool,
    /// More UDP ports of the provider's end, for networks that block the first, as in 443,4500
    #[arg(long, value_name = "PORT,…", value_delimiter = ',')]
    more_ports: Vec<NonZeroU16>,
}

/// What every action has.
#[derive(Debug, clap::Args)]
struct Common {
    /// Name of the end: of its file, its service and its TUN device
    #[arg(long, default_value = "plait0")]
    name: String,
    /// Folder for its file and its key
    #[arg(long, default_value = "/etc/plait")]
    folder: PathBuf,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Ask nothing
    #[arg(short, long)]
    yes: bool,
    /// Do not start the service
    #[arg(long)]
    no_start: bool,
    /// Print {"file": …, "invitation": …} instead
    #[arg(long)]
    json: bool,
}

impl Default for Common {
    fn default() -> Self {
        let (name, folder) = ("plait0".to_owned(), "/etc/plait".into());
        let [dry_run, yes, no_start, json] = [false; 4];
        Self { name, folder, dry_run, yes, no_start, json }
    }
}

pub(super) fn run(args: Args) -> anyhow::Result<Outcome> {
    // A failure does not weaken the keys; only a crash at this moment would reveal them.
    let _ = plait_net::rights::keep_memory_private();
    let action = args.action.map_or_else(ask_for_role, Ok)?;
    match action {
        Action::Provider { at, bond, common } => {
            begin(Role::Provider, at, &LinkArgs::default(), &bond, &common)
        }
        Action::Customer { at, links, bond, common } => {
            begin(Role::Customer, at, &links, &bond, &common)
        }
        Action::Join { invitation, links, common } => join(&invitation, &links, &common),
        Action::Invite { at, lan, yes, json, target } => {
            invite_guest(&target, at, &lan, Questions::new(yes), json)
        }
        Action::Undo { name, folder } => {
            let mut told = Vec::new();
            undo(&Place { folder, name }, &mut |line| told.push(line.to_owned()))?;
            for line in told {
                writeln!(io::stdout(), "{line}")?;
            }
            Ok(Outcome::Good)
        }
    }
}

fn ask_for_role() -> anyhow::Result<Action> {
    let ask = Questions::new(false);
    let question = "Which end is this machine: the customer's, with several links (c), or the \
                    provider's, with a public address (p)";
    let answer = ask.text(question, None, "`plait setup provider` or `plait setup customer`")?;
    let (at, bond, common) = (None, BondArgs::default(), Common::default());
    match answer.to_lowercase().as_str() {
        "c" | "customer" => Ok(Action::Customer { at, links: LinkArgs::default(), bond, common }),
        "p" | "provider" => Ok(Action::Provider { at, bond, common }),
        _ => Err(Advised::new(format!("\"{answer}\" is neither"), "answer c or p").into()),
    }
}

/// Sets up the first end of a bond.
fn begin(
    role: Role,
    at: Option<String>,
    links: &LinkArgs,
    bond: &BondArgs,
    common: &Common,
) -> anyhow::Result<Outcome> {
    let place = common.place()?;
    let ask = Questions::new(common.yes);
    let endpoint = endpoint(role, at, ask)?;
    let keys = [keygen::random_key()?, keygen::random_key()?];
    let networks = Networks::choose(random_bytes()?, &networks_in_use()?);
    let lan = match &links.lan_interface {
        Some(interface) if bond.lan.is_empty() => lan_of(interface, networks)?,
        _ => lan(&bond.lan, ask)?,
    };
    let (mut end, mut invitation) = End::pair(role, keys, networks, endpoint, lan);
    (end.nat, invitation.end.nat) = (!bond.no_nat, !bond.no_nat);
    end.more_ports = more_ports(&bond.more_ports, end.port())?;
    invitation.end.more_ports.clone_from(&end.more_ports);
    set_up(&mut end, links, place, common, Some(&invitation))
}

/// Sets up the end that an invitation is for.
fn join(word: &str, links: &LinkArgs, common: &Common) -> anyhow::Result<Outcome> {
    let place = common.place()?;
    let mut read = Zeroizing::new(String::new());
    if word == "-" {
        io::stdin().take(8192).read_to_string(&mut read).context("cannot read stdin")?;
    } else {
        word.clone_into(&mut read);
    }
    let mut end = Invitation::parse(&read)?.end;
    set_up(&mut end, links, place, common, None)
}

fn set_up(
    end: &mut End,
    links: &LinkArgs,
    place: Place,
    common: &Common,
    invitation: Option<&Invitation>,
) -> anyhow::Result<Outcome> {
    let ask = Questions::new(common.yes);
    if end.role == Role::Customer {
        if let Some(interface) = &links.lan_interface {
            end.router = Some((lan_interface(interface)?, router_addresses(interface, &end.lan)?));
        }
        end.links = choose_links(&links.link, &end.endpoint, ask)?;
        end.links.retain(|link| links.lan_interface.as_ref() != Some(link));
        if links.by_mac {
            end.macs = macs_of(&end.links)?;
        }
    } else if links.lan_interface.is_some() {
        let help = "leave out --lan-interface; hosts behind this end need nothing of plait";
        return Err(Advised::new("the invitation is for the provider's end", help).into());
    }
    let user = service_user()?;
    end.user = user.map(|_| SERVICE_USER.to_owned());
    let plan = Plan::new(end, place.clone(), user, !common.no_start);
    if common.dry_run {
        write!(io::stdout(), "{}", plan.show())?;
        return Ok(Outcome::Good);
    }
    if effective_user() != 0 && common.folder.starts_with("/etc") {
        let help = "run it with sudo; --dry-run shows what it would do";
        return Err(Advised::new("setting up needs root", help).into());
    }
    eprint!("{}", plan.show());
    if !ask.agrees("Do this?")? {
        return Err(Advised::new("nothing was done", "--dry-run only shows the steps").into());
    }
    plan.carry_out(tell_findings)?;
    if let Err(error) = tell(&place.file(), invitation, common.json) {
        // Without the invitation there never is another end.
        undo(&place, &mut |_| {})?;
        let help = "nothing of this was kept: let stdout lead to where there is room";
        return Err(cannot_tell(error, help).into());
    }
    if plan.starts {
        return wait_for(end, &place, invitation.is_none());
    }
    eprintln!("plait: start it with: plait up {}", place.file().display());
    Ok(Outcome::Good)
}

/// Lets one more customer in at a provider's end that runs, and saves that in its file.
fn invite_guest(
    target: &NamedTarget,
    at: Option<String>,
    networks: &[String],
    ask: Questions,
    json: bool,
) -> anyhow::Result<Outcome> {
    let socket = target.socket()?;
    let Told::File { path, .. } = control::request(&socket, &Request::File {})? else {
        let help = "it may be another version of plait: restart it";
        return Err(Advised::new("the gateway answers oddly", help).into());
    };
    let file = PathBuf::from(path);
    let config = Config::load(&file)?;
    let endpoint = endpoint(Role::Provider, at, ask)?;
    let invitation = invite(&config, keygen::random_key()?, endpoint, lan(networks, ask)?)?;
    let end = &invitation.end;
    let peer = PeerAsked {
        public_key: end.private_key.public_key().to_string(),
        preshared_key: None,
        endpoint: Vec::new(),
        allowed_ips: end.customer.iter().chain(&end.lan).map(Cidr::to_string).collect(),
        keepalive_s: None,
        measure: None,
    };
    let key = peer.public_key.clone();
    for warning in peer::add(&socket, vec![(peer, None)], true)? {
        eprintln!("plait: warning: {warning}");
    }
    tell(&file, Some(&invitation), json).map_err(|error| {
        let help = format!("take it back and try again: plait peer remove {key} --save");
        cannot_tell(error, &help)
    })?;
    Ok(Outcome::Good)
}

/// A reader that went away is an error, too: what it did not read is lost.
fn cannot_tell(cause: anyhow::Error, help: &str) -> Advised {
    Advised::new(format!("cannot print the invitation: {cause:#}"), help)
}

/// Tells of the file that was written, and of the invitation for the other end, if there is one.
fn tell(file: &Path, invitation: Option<&Invitation>, json: bool) -> anyhow::Result<()> {
    let word = invitation.map(Invitation::to_word);
    if json {
        let word = word.as_ref().map(|word| word.as_str());
        let done = serde_json::json!({ "file": file, "invitation": word });
        writeln!(io::stdout(), "{done}")?;
    } else if let (Some(word), Some(invitation)) = (&word, invitation) {
        print_invitation(word, &invitation.end)?;
    }
    Ok(())
}

/// Tells what `plait check` finds. It does not end this: a service may see another machine than the
/// shell that sets it up, and tells its own errors.
fn tell_findings(file: &Path) {
    // The file is this program's own, and the service reads it again.
    let Ok(config) = Config::load(file) else { return };
    for finding in machine::examine(&config, &Peers::written_out(&config), &mut Facts::gather()) {
        let level = match finding.level {
            Level::Ok => continue,
            Level::Warning => "warning",
            Level::Error => "error",
        };
        eprintln!("plait: {level}: {}: {}", finding.subject, finding.text);
        eprintln!("  help: {}", finding.help.unwrap_or_default());
    }
}

impl Common {
    fn place(&self) -> Result<Place, Advised> {
        let place = Place { folder: self.folder.clone(), name: self.name.clone() };
        place.check()?;
        Ok(place)
    }
}

fn endpoint(role: Role, at: Option<String>, ask: Questions) -> anyhow::Result<Endpoint> {
    let at = match (at, role) {
        (Some(at), _) => at,
        (None, Role::Provider) => {
            let found = public_address().unwrap_or_default().map(|address| address.to_string());
            ask.text("Public address or name of this machine", found.as_deref(), "--at")?
        }
        (None, Role::Customer) => {
            ask.text("Public address or name of the provider's end", None, "--at")?
        }
    };
    let with_port = match at.parse() {
        Ok(address) => std::net::SocketAddr::new(address, PORT).to_string(),
        Err(_) if at.contains(':') => at,
        Err(_) => format!("{at}:{PORT}"),
    };
    Endpoint::parse(&with_port)
        .map_err(|problem| Advised::new(problem.to_string(), problem.help()).into())
}

/// The ports beside the first, each once.
fn more_ports(given: &[NonZeroU16], first: u16) -> Result<Vec<u16>, Advised> {
    let mut seen = BTreeSet::from([first]);
    let ports = given.iter().map(|port| port.get()).filter(|port| seen.insert(*port));
    let ports: Vec<u16> = ports.collect();
    if ports.len() > MORE_PORTS_MAX {
        let message = format!("{} ports are too many", ports.len());
        return Err(Advised::new(message, format!("name {MORE_PORTS_MAX} at most")));
    }
    Ok(ports)
}

fn lan(given: &[String], ask: Questions) -> anyhow::Result<Vec<Cidr>> {
    let mut texts = given.to_vec();
    if texts.is_empty() {
        let question = "Networks behind the customer's end that use the bond, such as \
                        192.168.7.0/24";
        let answer = ask.text(question, Some("none"), "--lan")?;
        let words = answer.split([' ', ',']).filter(|word| !word.is_empty() && *word != "none");
        texts.extend(words.map(str::to_owned));
    }
    let prefix = |text: &String| {
        let read = Cidr::prefix(text).map(Cidr::network);
        read.map_err(|problem| Advised::new(problem.to_string(), problem.help()).into())
    };
    texts.iter().map(prefix).collect()
}

/// The networks behind an interface: those that it has, or new ones.
fn lan_of(interface: &str, networks: Networks) -> anyhow::Result<Vec<Cidr>> {
    let held = held(interface)?;
    if !held.is_empty() {
        return Ok(held.into_iter().map(Cidr::network).collect());
    }
    let mut used = networks_in_use()?;
    used.extend(networks.host(1));
    Ok(Networks::choose(random_bytes()?, &used).host(1).map(Cidr::network).to_vec())
}

/// This machine's addresses in the networks behind it.
fn router_addresses(interface: &str, lan: &[Cidr]) -> anyhow::Result<Vec<Cidr>> {
    if lan.is_empty() {
        let help =
            "set the provider's end up with --lan 192.168.7.0/24, or begin at the customer's";
        return Err(Advised::new("the invitation names no network behind this end", help).into());
    }
    let held = held(interface)?;
    Ok(lan.iter().map(|network| router_of(*network, &held)).collect())
}

/// The addresses of an interface that are valid beyond one wire.
fn held(interface: &str) -> anyhow::Result<Vec<Cidr>> {
    let mut netlink = Netlink::open().context("cannot look at the addresses")?;
    let link = netlink.link(interface).context("cannot look at the interfaces")?;
    let Some(link) = link else { return Ok(Vec::new()) };
    let addresses = netlink.addresses().context("cannot look at the addresses")?;
    let own = addresses.into_iter().filter(|(index, address, _)| {
        let is_narrow = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        *index == link.index && !is_narrow
    });
    Ok(own.map(|(_, address, length)| Cidr { address, length }).collect())
}

/// A name for `[[lan]] interface`.
fn lan_interface(name: &str) -> anyhow::Result<String> {
    names::device(name).map_err(|problem| Advised::new(problem.to_string(), problem.help()).into())
}

/// The links given, or all that reach the other end.
fn choose_links(
    given: &[String],
    endpoint: &Endpoint,
    ask: Questions,
) -> anyhow::Result<Vec<String>> {
    let found = match resolve(endpoint) {
        Ok(addresses) => links_to(&addresses).context("cannot look at the interfaces")?,
        Err(error) => {
            eprintln!("plait: warning: {error}: the links cannot be checked");
            Vec::new()
        }
    };
    if !given.is_empty() {
        for link in given.iter().filter(|link| !found.contains(link)) {
            eprintln!(
                "plait: warning: {link} does not reach {endpoint} now; it is used when it does"
            );
        }
        return given.iter().map(|link| interface(link)).collect();
    }
    if found.is_empty() {
        let help = "connect a link, or name those that will be there: --link dsl --link lte";
        return Err(Advised::new(format!("no link here reaches {endpoint}"), help).into());
    }
    let answer = ask.text("Links", Some(&found.join(" ")), "--link")?;
    answer.split([' ', ',']).filter(|word| !word.is_empty()).map(interface).collect()
}

/// The hardware addresses of those links that have one of their own.
fn macs_of(links: &[String]) -> anyhow::Result<BTreeMap<String, Identity>> {
    let mut netlink = Netlink::open().context("cannot look at the interfaces")?;
    let all = netlink.interfaces().context("cannot look at the interfaces")?;
    let mut macs = BTreeMap::new();
    for name in links {
        let mac = all.iter().find(|known| known.name == *name).and_then(|known| known.mac);
        let mac = mac.filter(|mac| all.iter().filter(|known| known.mac == Some(*mac)).count() == 1);
        match mac {
            Some(mac) => drop(macs.insert(name.clone(), Identity::Mac(mac))),
            None => eprintln!(
                "plait: warning: {name} has no hardware address of its own: it is named by its name"
            ),
        }
    }
    Ok(macs)
}

/// A name for `[[path]] interface`, which may end in `*`.
fn interface(name: &str) -> anyhow::Result<String> {
    names::interfaces(name)
        .map_err(|problem| Advised::new(problem.to_string(), problem.help()).into())
}

/// The user that the package makes for the service.
const SERVICE_USER: &str = "plait";

fn service_user() -> anyhow::Result<Option<UserId>> {
    let passwd = std::fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    // Another user than root cannot give files away, nor become somebody else.
    Ok(find_user(&passwd, SERVICE_USER).filter(|_| effective_user() == 0))
}

fn random_bytes() -> anyhow::Result<impl FnMut() -> [u8; 8]> {
    let mut bytes = [0; 512];
    fill_for_command(&mut bytes)?;
    let mut chunks = bytes
        .chunks_exact(8)
        .map(|c| c.try_into().expect("eight bytes"))
        .collect::<Vec<_>>()
        .into_iter()
        .cycle();
    Ok(move || chunks.next().expect("it goes round"))
}

/// The networks that this machine has now.
fn networks_in_use() -> anyhow::Result<Vec<Cidr>> {
    let mut netlink = Netlink::open().context("cannot look at the addresses")?;
    let addresses = netlink.addresses().context("cannot look at the addresses")?;
    Ok(addresses.into_iter().map(|(_, address, length)| Cidr { address, length }).collect())
}

fn print_invitation(word: &str, invited: &End) -> anyhow::Result<()> {
    let other = match invited.role {
        Role::Customer => "customer's",
        Role::Provider => "provider's",
    };
    let mut out = io::stdout().lock();
    if let Ok(code) = QrCode::with_error_correction_level(word, qrcode::EcLevel::L) {
        // Light on dark, as most terminals are.
        let mut picture = code.render::<Dense1x2>();
        picture.dark_color(Dense1x2::Light).light_color(Dense1x2::Dark);
        writeln!(out, "{}", picture.build())?;
    }
    writeln!(
        out,
        "At the {other} end, as root; it holds that end's private key, so keep it to yourself:\n"
    )?;
    writeln!(out, "  plait setup join {word}\n")?;
    if invited.role == Role::Customer {
        let ports: Vec<_> =
            [invited.port()].iter().chain(&invited.more_ports).map(u16::to_string).collect();
        let (s, ports) = (if ports.len() > 1 { "s" } else { "" }, ports.join(", "));
        writeln!(out, "Let UDP port{s} {ports} through this machine's firewall, if it has one.")?;
    }
    out.flush()?;
    Ok(())
}

/// Waits for the service: for its bond where the other end exists, else for its socket.
fn wait_for(end: &End, place: &Place, for_bond: bool) -> anyhow::Result<Outcome> {
    let socket = PathBuf::from(format!("{}/{}.sock", common::SOCKETS, place.name));
    let until = Instant::now() + PATIENCE;
    loop {
        let status =
            control::ask(&socket).ok().and_then(|text| StatusAnswer::parse(&text, &socket).ok());
        match status {
            Some(status) if !for_bond || status.all_up() => {
                let ping = end.provider_address().map(|to| format!("; try: ping {to}"));
                let state = if for_bond { "the bond is up" } else { "the gateway is up" };
                eprintln!("plait: {state}{}", ping.filter(|_| for_bond).unwrap_or_default());
                return Ok(Outcome::Good);
            }
            status if Instant::now() > until => {
                let state = if status.is_some() { "is not up" } else { "does not answer" };
                let why = format!("`plait status` and `journalctl -u plait@{}`", place.name);
                eprintln!("plait: the bond {state} yet; {why} say why");
                return Ok(Outcome::No);
            }
            _ => thread::sleep(PAUSE),
        }
    }
}
