//! `plait up`: runs a gateway.

use std::path::PathBuf;

use env_filter::FilteredLog;
use systemd_journal_logger::JournalLog;

use super::Outcome;
use crate::advice::Advised;
use crate::config::Config;
use crate::daemon;
use crate::machine::{self, Facts, Level, Peers};

const AFTER_HELP: &str = "\
Examples:
  plait up gateway.toml
  plait up gateway.toml -v
  RUST_LOG=plait=debug plait up gateway.toml

The log goes to stderr; under systemd to the journal, with the fields PLAIT_LINK and PLAIT_PEER.
RUST_LOG chooses what is logged, in the form of the `log` crate; without it
warnings and the bond's comings and goings are shown. Ctrl-C and SIGTERM end the gateway and remove
the TUN device with its addresses and routes. `plait reload` makes it read its configuration again:
bonds whose peers did not change go on.

With a terminal as its stdin, stdout or stderr, the gateway ends when the terminal does, and at
SIGHUP. Without one, as under a service manager or nohup, SIGHUP reloads the configuration.

Exit codes:
  0  ended by a signal
  2  an error; it is explained on stderr, and nothing is left half set up";

/// Run a gateway in the foreground
///
/// Creates the TUN device, opens a path over each link and bonds with the peers. The configuration
/// and the machine are checked first, as `plait check` does: an error ends it, warnings are logged.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The gateway's configuration file
    config: PathBuf,
    /// Log more: -v adds what single sends and reads failed for
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    start_log(args.verbose);
    keep_memory_private();
    let config = Config::load(&args.config)?;
    for warning in &config.warnings {
        let (file, line) = (config.file.display(), warning.line);
        log::warn!("{file}:{line}: {}: {} ({})", warning.option, warning.text, warning.help);
    }
    // Names are left out: the daemon asks DNS itself.
    let peers = Peers::written_out(&config);
    for finding in machine::examine(&config, &peers, &mut Facts::gather()) {
        let message = format!("{}: {}", finding.subject, finding.text);
        let help = finding.help.unwrap_or_default();
        match finding.level {
            Level::Ok => {}
            Level::Warning => log::warn!("{message} ({help})"),
            Level::Error => return Err(Advised::new(message, help).into()),
        }
    }
    daemon::run(config)?;
    Ok(Outcome::Good)
}

/// Keeps the secrets about to be read and made from core dumps and other processes.
pub(super) fn keep_memory_private() {
    if let Err(error) = plait_net::rights::keep_memory_private() {
        log::warn!("secrets may land in core dumps: {error}");
    }
}

/// Sends the log to stderr; where that is the journal, entry by entry, with the names of links and
/// peers in fields of their own (systemd.journal-fields(7)).
pub(super) fn start_log(verbose: u8) {
    let level = match verbose {
        0 => "info",
        1 => "debug",
        _ => "trace",
    };
    if systemd_journal_logger::connected_to_journal()
        && let Ok(journal) = JournalLog::new()
    {
        let chosen = std::env::var("RUST_LOG").unwrap_or_else(|_| level.to_owned());
        let filter = env_filter::Builder::new().parse(&chosen).build();
        log::set_max_level(filter.filter());
        // A logger that is there already stays.
        let _ = log::set_boxed_logger(Box::new(FilteredLog::new(journal, filter)));
        return;
    }
    let env = env_logger::Env::default().default_filter_or(level);
    env_logger::Builder::from_env(env).format_target(false).init();
}
