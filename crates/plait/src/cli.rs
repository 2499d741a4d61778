//! The commands, one file each, and the program's entry: arguments in, exit code out.

mod cc;
mod check;
mod control;
mod format;
mod full_screen;
mod keygen;
mod measure;
mod pages;
mod path;
mod peer;
mod proxy;
mod pubkey;
mod reload;
mod save;
mod setup;
mod status;
mod steer;
mod trace;
mod unblock;
mod up;
mod watch;

use std::io::Write as _;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::daemon;
use crate::output::{self, Style};

/// What a command reports by its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Done, or yes: exit code 0.
    Good,
    /// The answer is no: exit code 1.
    No,
    /// An error that the command has reported itself: exit code 2.
    Failed,
}

const AFTER_HELP: &str = "\
Examples:
  plait setup                               set up an end of a bond, and the command for the other
  (umask 077; plait keygen > gateway.key)   make a private key
  plait pubkey < gateway.key                print the public key for the other gateway
  plait check gateway.toml                  is the configuration sound, is the machine ready?
  plait up gateway.toml                     run the gateway in the foreground
  plait reload                              have it read its configuration again
  plait status                              show its peers, paths and counters
  plait watch                               the same live, with rates and a minute of history
  plait peer add KEY --allowed-ips NET      one more peer, without a restart
  plait path down dsl                       take a link out; its packets go over the others
  plait measure                             what each link gives, and the bond of them
  plait steer node.toml                     run a steering node, for clients without plait
  plait steer --client-rules node.toml      what such clients need
  plait proxy run proxy.toml                run a proxy between MPTCP and TCP
  plait cc list                             congestion controllers for the kernel's TCP
  plait trace                               what the senders of TCP and MPTCP do, live
  plait unblock                             let traffic out again that a dead gateway keeps in

Exit codes:
  0  done, or the answer is yes
  1  the answer is no
  2  an error; it is explained on stderr";

/// One fast, steady, encrypted pipe out of several access links.
///
/// A plait gateway bonds with another one over all of its links. Each gateway has a private key and
/// one configuration file in TOML.
#[derive(Debug, Parser)]
#[command(name = "plait", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Keygen(keygen::Args),
    Pubkey(pubkey::Args),
    Check(check::Args),
    Up(up::Args),
    Reload(reload::Args),
    Status(status::Args),
    Watch(watch::Args),
    Measure(measure::Args),
    Peer(peer::Args),
    Path(path::Args),
    Steer(steer::Args),
    Proxy(proxy::Args),
    Cc(cc::Args),
    Trace(trace::Args),
    Setup(setup::Args),
    Completions(pages::CompletionsArgs),
    Man(pages::ManArgs),
    Unblock(unblock::Args),
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    if let Some(result) = tell_resolver() {
        return if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
    };
    let outcome = match cli.command {
        Command::Keygen(args) => keygen::run(&args),
        Command::Pubkey(args) => pubkey::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Reload(args) => reload::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Peer(args) => peer::run(args),
        Command::Path(args) => path::run(args),
        Command::Steer(args) => steer::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Cc(args) => cc::run(args),
        Command::Trace(args) => trace::run(&args),
        Command::Setup(args) => setup::run(args),
        Command::Completions(args) => pages::completions(&args, Cli::command()),
        Command::Man(args) => pages::man(&args, Cli::command()),
        Command::Unblock(args) => unblock::run(&args),
    };
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::from(1),
        Ok(Outcome::Failed) => ExitCode::from(2),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report(&output::render_error(&error, Style::for_stderr()));
            ExitCode::from(2)
        }
    }
}

/// Not for people: a gateway with `[dns]` starts this program so, beside itself.
fn tell_resolver() -> Option<anyhow::Result<()>> {
    let words: Vec<_> = std::env::args_os().take(5).collect();
    let [_, command, tun, way] = &words[..] else { return None };
    (command == daemon::RESOLVER_COMMAND).then(|| {
        up::start_log(0);
        daemon::tell_resolver(&tun.to_string_lossy(), &way.to_string_lossy())
    })
}

/// Prints help and version to stdout, and mistakes to stderr under the program's name.
fn report_usage(error: &clap::Error) -> ExitCode {
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let no_command = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !asked_for && !no_command {
        report("plait: ");
    }
    // With stdout or stderr closed the error cannot be reported.
    let _ = error.print();
    if asked_for { ExitCode::SUCCESS } else { ExitCode::from(2) }
}

fn report(text: &str) {
    // With stderr closed the error cannot be reported.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples_and_exit_codes() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(help.contains("Example") && help.contains("Exit codes:"), "{name}");
        }
    }
}
