//! `plait cc`: congestion controllers of the kernel's TCP: plait's own, loaded as eBPF, and which
//! sockets get which.

#[cfg(not(feature = "bpf"))]
mod absent;
mod namespace;
#[cfg(feature = "bpf")]
mod programs;
mod report;

use std::net::IpAddr;
use std::path::PathBuf;

#[cfg(not(feature = "bpf"))]
use self::absent as programs;
use super::Outcome;
use crate::advice::Advised;

/// The word that takes a rule back.
const BACK: &str = "default";

const AFTER_HELP: &str = "\
Examples:
  plait cc list                                      what there is, what is loaded or left over
  plait cc load lia olia                             load two controllers; they stay until unloaded
  plait cc use lia                                   the default of this network namespace
  plait cc use lia --cgroup /sys/fs/cgroup/proxy     sockets of a cgroup, from now on
  plait cc use edinburgh --on wlan0 --cgroup PATH    of these, subflows by wlan0
  plait cc use default --cgroup PATH                 take its rules back
  plait cc unload --all                              remove all that plait loaded

Exit codes:
  0  done
  1  list: something is left of a process that died, and does nothing; unload: nothing was loaded
  2  an error; it is explained on stderr

whitehaul and edinburgh reproduce published research. WO2021250377A1 / US20230239702 (University
Court of the University of Edinburgh) claims their way of controlling a connection of several
paths; whoever uses them beyond research looks into that first.";

/// Load plait's congestion controllers into the kernel's TCP, and choose who gets which
///
/// They are those of paper 003: whitehaul, edinburgh, lia, olia, balia, illinois, as eBPF programs
/// for a kernel without a patch. Subflows of an MPTCP connection may each have another one. It
/// takes root, Linux 6.4 or later, and a plait that was built with it; the kernel's own controllers
/// can be chosen without. docs/guide/controllers.md says more.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the controllers there are, what is loaded, and the rules of cgroups
    List {
        /// Print JSON Lines: `controller`, `kernel`, `cgroup`, then a `summary`
        #[arg(long)]
        json: bool,
    },
    /// Load controllers into the kernel, where they stay until they are unloaded
    Load {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        /// Print JSON Lines: a `loaded` for each
        #[arg(long)]
        json: bool,
    },
    /// Unload controllers, or remove what is left of them
    Unload {
        /// Their names
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// All of them, the rules of cgroups before
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Also while connections run them: they keep them to their end, and no new one gets them
        #[arg(long)]
        force: bool,
        /// Print JSON Lines: an `unloaded` for each, then a `summary`
        #[arg(long)]
        json: bool,
    },
    /// Choose the controller of a network namespace's new sockets, or of a cgroup's
    Use(UseArgs),
}

#[derive(Debug, clap::Args)]
struct UseArgs {
    /// A controller, plait's or the kernel's; `default` takes rules of a cgroup back
    name: String,
    /// Sockets of processes in this cgroup, and of those below it; without it, the default of the
    /// network namespace in which this runs
    #[arg(long)]
    cgroup: Option<PathBuf>,
    /// Of these, those bound to this interface, or with one of the addresses that it has now
    #[arg(long, requires = "cgroup", value_name = "INTERFACE")]
    on: Vec<String>,
    /// Of these, those with this address of their own
    #[arg(long, requires = "cgroup", value_name = "ADDRESS")]
    on_address: Vec<IpAddr>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> anyhow::Result<Outcome> {
    match args.action {
        Action::List { json } => programs::list(json),
        Action::Load { names, json } => programs::load(&names, json),
        Action::Unload { names, all, force, json } => {
            programs::unload((!all).then_some(&names[..]), force, json)
        }
        Action::Use(args) => choose(&args),
    }
}

fn choose(args: &UseArgs) -> anyhow::Result<Outcome> {
    let Some(cgroup) = &args.cgroup else {
        if args.name == BACK {
            let help = "name a controller, such as `bbr`; `plait cc list` shows them";
            return Err(Advised::new("a namespace's default is always a controller", help).into());
        }
        let name = programs::kernel_name(&args.name);
        let before = namespace::set_default(&name)?;
        return report::namespace(&name, &before, args.json);
    };
    let meant = programs::Meant { cgroup, interfaces: &args.on, addresses: &args.on_address };
    match args.name.as_str() {
        BACK => programs::take_back(&meant, args.json),
        name => programs::choose(&meant, name, args.json),
    }
}
