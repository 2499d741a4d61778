//! The lab: real gateways, the kernel's TCP and emulated links in network namespaces that vanish
//! with the program.

#![forbid(unsafe_code)]

mod addresses;
mod bench;
mod clean;
mod cli;
mod compare;
mod demo;
mod emulator;
mod figure;
mod gateway;
mod holding_time;
mod list;
mod live;
mod machine;
mod many_peers;
mod measure;
mod netem;
mod output;
mod policy;
mod process;
mod proxy;
mod qoe;
mod quic;
mod record;
mod report;
mod run;
mod scratch;
mod search;
mod selftest;
mod set;
mod site;
mod steering;
mod swarm;
mod topology;
mod verify;
mod vm;
mod wireguard_go;
mod worker;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use plait_net::netns::{self, Isolation};

use crate::cli::vm::VmCommand;
use crate::cli::{Cli, Command, On};
use crate::output::{Output, Verdict};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match execute(&cli) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::from(2)
        }
    }
}

fn execute(cli: &Cli) -> Result<ExitCode> {
    let output = Output::new(cli.json);
    let outside = match &cli.command {
        Command::Clean => Some(clean::run(&output)),
        Command::List(args) => Some(list::run(args, &output)),
        Command::Run(args) if args.list || args.on == On::Sim => Some(set::run(args, &output)),
        Command::Report(args) => Some(report::run(args, &output)),
        Command::HoldingTime(args) => Some(holding_time::run(args, &output)),
        Command::Bench(args) if args.sim => Some(bench::sim::run(args, &output)),
        Command::Bench(args) if args.steer => Some(bench::steering::run(args, &output)),
        Command::Search(args) => Some(search::run(args, &output)),
        Command::Swarm(args) => Some(swarm::run(args, &output)),
        Command::ManyPeers(args) => Some(many_peers::run(args)),
        Command::Qoe(args) => Some(qoe::run(args, &output)),
        Command::Live(args) if args.print_cases => Some(live::print_cases(&output)),
        Command::Timer => Some(vm::timer::run(&output)),
        _ => None,
    };
    if let Some(verdict) = outside {
        return verdict.map(Verdict::exit_code);
    }
    if let Command::Run(args) = &cli.command {
        set::check(args)?;
    }
    if let Command::Compare(args) = &cli.command {
        compare::check(args)?;
    }
    if let Command::Vm(args) = &cli.command
        && let Some(guest) = args.command.guest()
    {
        vm::check(guest)?;
    }
    if let Command::Verify(args) = &cli.command
        && args.list
    {
        return verify::list(&output).map(Verdict::exit_code);
    }
    // From here on everything lives in separate namespaces. The process still has one thread.
    if let Isolation::Finished { code } = netns::isolate()? {
        return Ok(ExitCode::from(code));
    }
    let verdict = match &cli.command {
        Command::Demo(args) => demo::run(args, &output),
        Command::Verify(args) => verify::run(args, &output),
        Command::Bench(args) => bench::run(args, &output),
        Command::Run(args) => set::run(args, &output),
        Command::Compare(args) => compare::run(args, &output),
        Command::Live(args) => live::run(args, &output),
        Command::Selftest { name } => selftest::run(name, &output),
        Command::Vm(args) => match &args.command {
            VmCommand::Check(args) => vm::command::check(args, &output),
            VmCommand::Run(args) => vm::command::run(args, &output),
            VmCommand::Transfers(args) => netem::beside::run(args, &output),
        },
        Command::Netem(args) => netem::run(args, &output),
        Command::Clean
        | Command::HoldingTime(_)
        | Command::List(_)
        | Command::ManyPeers(_)
        | Command::Qoe(_)
        | Command::Report(_)
        | Command::Search(_)
        | Command::Swarm(_)
        | Command::Timer => unreachable!("these work outside and have returned"),
    };
    verdict.map(Verdict::exit_code)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
