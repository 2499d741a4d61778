//! The command line.

use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::policy::Policy;
use crate::record;

/// Measure plait on emulated links: real gateways, real TCP, in network namespaces of their own
/// that vanish with the program. Needs root or unprivileged user namespaces.
///
/// Exit status: 0 good, 1 a check failed, 2 error.
#[derive(Debug, Parser)]
#[command(name = "plait-lab", version)]
pub(crate) struct Cli {
    /// Print JSON Lines on standard output, ending in a `summary` record.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a bond of a DSL and an LTE link gives, beside each link alone.
    Demo(DemoArgs),
    /// Check plait's promises, each with its figure and its band.
    Verify(VerifyArgs),
    /// Measure the cost of plait on links without a limit: what the machine can carry.
    Bench(BenchArgs),
    /// Print the scenarios that can be run.
    List(ListArgs),
    /// Run a scenario: every cell of its sweep, with every seed; or the ladder of link conditions.
    Run(RunCommand),
    /// Run a scenario on both back-ends, and hold each figure against its twin.
    Compare(CompareArgs),
    /// Run gateways in virtual time under random links, loads and faults, and check all the while.
    Swarm(SwarmArgs),
    /// Try every sequence of actions on two or three gateways, up to a depth, with loss, copies,
    /// delay, restarts and a second gateway with the same key: does every bond carry packets again?
    ///
    /// Examples:
    ///
    ///   plait-lab search --depth 8
    ///
    ///   plait-lab search --setup clone --put-back one-name-for-two-bonds
    ///
    ///   plait-lab search --setup clone --replay "clone step step clone-gone"
    #[command(verbatim_doc_comment)]
    Search(SearchArgs),
    /// Read results again: tables, and one page with plots.
    Report(ReportArgs),
    /// Print how long DIDA holds duplicate ACKs: gain over the hold, optimum, bounds
    ///
    /// From the formulas of paper 000 (equations 1 to 5), put right where they are wrong.
    ///
    /// Examples:
    ///
    ///   plait-lab holding-time --rtt 100 --w 38
    ///
    ///   plait-lab holding-time --rtt 20 --w 100 --t-e 10 --html holding.html
    ///
    ///   plait-lab holding-time --rtt 100 --w 38 --rto 1000 --rttvar 10 --json
    #[command(verbatim_doc_comment)]
    HoldingTime(HoldingTimeArgs),
    /// Remove what a killed lab has left.
    Clean,
    /// Run one of the lab's own tests.
    #[command(hide = true)]
    Selftest {
        /// Name of the test; `list` prints all.
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Measure each for 4 seconds instead of 10.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure each for 2 seconds, without a bar on the result: under a minute in all.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) short: bool,
    /// Write a page with tables and plots here.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The promises to check, such as `bond.1`; all when none is named.
    pub(crate) names: Vec<String>,
    /// Print the promises and check none.
    #[arg(long)]
    pub(crate) list: bool,
    /// Measure once and for a third of the time: for trying things out, not for a claim.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write what was measured into the table of promises in this file, with commit, effort and
    /// day.
    #[arg(long, value_name = "FILE")]
    pub(crate) readme: Option<PathBuf>,
    /// Keep what was checked in this file, and check only what it does not have yet. May be given
    /// several times: the records of the others are merged into the first. Records of another
    /// state of the code are refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Fewer and shorter runs: for trying things out, not for a claim.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure how much faster than real time the simulator is, in place of real gateways.
    #[arg(long)]
    pub(crate) sim: bool,
    /// Measure the steering node's core alone, in process.
    #[arg(long, conflicts_with = "sim")]
    pub(crate) steer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The folder of scenarios [default: scenarios/ of this folder or of one above it].
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

/// Which experiment, and where its results go.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExperimentArgs {
    /// The scenario, such as 002/table-loss, or a file that ends in .toml.
    pub(crate) name: String,
    /// Replace a value of the scenario, or a sweep's values; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the results here, as JSON Lines.
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) out: Option<PathBuf>,
    /// Write a page with tables and plots here.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
    /// The folder of scenarios [default: scenarios/ of this folder or of one above it].
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

impl ExperimentArgs {
    /// A scenario of the project as it stands.
    pub(crate) fn of(name: &str) -> Self {
        let (settings, name) = (Vec::new(), name.to_owned());
        Self { name, settings, seed: 1, out: None, html: None, folder: None }
    }
}

/// What to run: a scenario, or a set of link conditions that is no file. Written by hand, because a
/// derived form cannot leave a scenario's required options out.
#[derive(Debug)]
pub(crate) enum RunCommand {
    Scenario(RunArgs),
    Ladder(LadderArgs),
}

const LADDER: &str = "ladder";

impl Args for RunCommand {
    fn augment_args(command: clap::Command) -> clap::Command {
        let ladder = LadderArgs::augment_args(clap::Command::new(LADDER)).about(
            "Run a bond on more than a hundred sets of link conditions, each named after the real \
             case it stands for: in virtual time, or some of them with real gateways",
        );
        RunArgs::augment_args(command)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .subcommand(ladder)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RunCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand() {
            Some((LADDER, ladder)) => LadderArgs::from_arg_matches(ladder).map(Self::Ladder),
            _ => RunArgs::from_arg_matches(matches).map(Self::Scenario),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct LadderArgs {
    /// Print the rungs and run none.
    #[arg(long)]
    pub(crate) list: bool,
    /// How the bond spreads its packets: `default`, SCHEDULER, SCHEDULER/CONTROLLER or
    /// open/SCHEDULER; several are compared side by side.
    #[arg(long = "policy", value_name = "NAME")]
    policies: Vec<Policy>,
    /// Where to run it: every rung in virtual time, or those that --list marks with real processes
    /// in namespaces, one run after the other in real time.
    #[arg(long, default_value = "sim")]
    pub(crate) on: On,
    /// Run each rung this many times; medians count [default: 5, on netns 3, quick 1].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) seeds: Option<u64>,
    /// Only rungs whose name holds this.
    #[arg(long, value_name = "SUBSTRING")]
    pub(crate) only: Option<String>,
    /// Run only the bond, once, and print what happens second by second.
    #[arg(long, requires = "only")]
    pub(crate) over_time: bool,
    /// Every fourth rung, once and shorter: for trying things out, not for a claim.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write a page with a picture and tables here.
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["list", "over_time"])]
    pub(crate) html: Option<PathBuf>,
}

impl LadderArgs {
    /// The command that runs the same again, without the files that it writes.
    pub(crate) fn command(&self) -> String {
        let mut words = vec!["plait-lab run ladder --on".to_owned(), self.on.name().to_owned()];
        words.extend(self.policies.iter().map(|policy| format!("--policy {policy}")));
        words.extend(self.seeds.map(|seeds| format!("--seeds {seeds}")));
        words.extend(self.only.as_ref().map(|only| format!("--only {only}")));
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.join(" ")
    }

    /// The policies to compare: the default one when none is named.
    pub(crate) fn policies(&self) -> Vec<Policy> {
        if self.policies.is_empty() {
            vec![Policy::default_policy()]
        } else {
            self.policies.clone()
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Where to run it: in virtual time, or with real processes in namespaces.
    #[arg(long)]
    pub(crate) on: On,
    /// Run each cell this many times, with seeds that follow each other.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Run each cell this many times on each back-end; the medians are compared.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
}

/// A back-end of the scenarios.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum On {
    Sim,
    Netns,
}

impl On {
    /// As the command line and the records name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sim => record::SIM,
            Self::Netns => record::NETNS,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SwarmArgs {
    /// How many seeds to run.
    #[arg(long, default_value_t = 300)]
    pub(crate) seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    pub(crate) first: u64,
    /// Run this seed alone.
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    pub(crate) seed: Option<u64>,
    /// Print what happens in it.
    #[arg(long, requires = "seed")]
    pub(crate) trace: bool,
    /// Give the provider a third peer, which holds a key and seals whatever it likes.
    #[arg(long)]
    pub(crate) hostile: bool,
    /// Seeds to run at a time.
    #[arg(long, default_value_t = 2, value_parser = jobs())]
    pub(crate) jobs: usize,
    /// Run so many hours of virtual time in one go, with a fault every minute.
    #[arg(long, value_name = "HOURS", conflicts_with_all = ["seeds", "first", "trace", "hostile"],
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) soak: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Where to begin: bond, beginning, clone, mutual, links or metered; may be given several
    /// times [default: all, one after the other].
    #[arg(long = "setup", value_name = "NAME")]
    pub(crate) setups: Vec<String>,
    /// Actions of the longest sequence.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) depth: u32,
    /// Faults of any sequence.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) faults: u32,
    /// Threads to search with.
    #[arg(long, default_value_t = 2, value_parser = jobs())]
    pub(crate) threads: usize,
    /// Give up after so many minutes [default: never].
    #[arg(long, value_parser = positive)]
    pub(crate) minutes: Option<f64>,
    /// End the search of a setup after so many violations.
    #[arg(long, default_value_t = 1, value_parser = jobs())]
    pub(crate) violations: usize,
    /// Put a fault back that was mended: does the search find it?
    #[arg(long, value_name = "FAULT")]
    pub(crate) put_back: Option<String>,
    /// Run this sequence alone, and print what the gateways say after each action.
    #[arg(long, value_name = "ACTIONS", requires = "setups")]
    pub(crate) replay: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Results of `plait-lab run --out` or `plait-lab run --json`.
    #[arg(required = true, value_name = "FILE.jsonl")]
    pub(crate) files: Vec<PathBuf>,
    /// Write a page with tables and plots here.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
}

/// Times are in milliseconds unless their name says otherwise.
#[derive(Clone, Debug, Args)]
pub(crate) struct HoldingTimeArgs {
    /// Smoothed round-trip time.
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub(crate) rtt: f64,
    /// The sender's window.
    #[arg(long, value_name = "SEGMENTS", value_parser = positive)]
    pub(crate) w: f64,
    /// Seconds since the last congestion event, T_E.
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = positive)]
    pub(crate) t_e: f64,
    /// The latest sample of the round-trip time, R′ [default: the smoothed one].
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub(crate) sample: Option<f64>,
    /// Mean deviation of the round-trip time [default: a tenth of it].
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub(crate) rttvar: Option<f64>,
    /// The retransmission timeout [default: RTT + max(4 RTTVAR, 200), as in Linux].
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub(crate) rto: Option<f64>,
    /// Measured delay difference of the attachments, with its jitter.
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub(crate) difference: Option<f64>,
    /// Width of the operating range, R [default: a fifth of the round-trip time].
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub(crate) width: Option<f64>,
    /// Write a page with plots here.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
}

impl HoldingTimeArgs {
    /// The command that prints the same again, without the file that it writes.
    pub(crate) fn command(&self) -> String {
        let Self { rtt, w, t_e, .. } = self;
        let more = [
            ("--sample", self.sample),
            ("--rttvar", self.rttvar),
            ("--rto", self.rto),
            ("--difference", self.difference),
            ("--width", self.width),
        ];
        let more = more.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", value?)));
        let more: String = more.collect();
        format!("plait-lab holding-time --rtt {rtt} --w {w} --t-e {t_e}{more}")
    }
}

/// No number that a length of time or a window can be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a number above 0 and up to {POSITIVE_MAX}")]
pub(crate) struct NotPositive;

/// Beyond this nothing is a round-trip time in milliseconds or a window.
const POSITIVE_MAX: u32 = 1_000_000;

fn positive(text: &str) -> Result<f64, NotPositive> {
    let number: f64 = text.parse().map_err(|_| NotPositive)?;
    let is_good = number >= 1e-6 && number <= POSITIVE_MAX.into();
    if is_good { Ok(number) } else { Err(NotPositive) }
}

/// Seeds that may run at a time.
fn jobs() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..=64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_takes_a_scenario_or_the_ladder() {
        let run = |line: &[&str]| {
            Cli::try_parse_from(line).map(|cli| match cli.command {
                Command::Run(command) => command,
                other => panic!("{other:?} is no run"),
            })
        };
        let scenario = run(&["plait-lab", "run", "002/tcp-k", "--on", "sim"]).unwrap();
        assert!(matches!(scenario, RunCommand::Scenario(RunArgs { on: On::Sim, .. })));
        let line = ["plait-lab", "run", "ladder", "--policy", "min-rtt", "--policy", "default"];
        let RunCommand::Ladder(args) = run(&line).unwrap() else { panic!("no ladder") };
        assert_eq!(args.policies().len(), 2);
        assert_eq!(args.on, On::Sim);
        let repeated = args.command();
        assert_eq!(repeated, "plait-lab run ladder --on sim --policy min-rtt --policy default");
        let line = "plait-lab run ladder --on netns --seeds 2 --only rates --quick";
        let words: Vec<&str> = line.split(' ').collect();
        let RunCommand::Ladder(args) = run(&words).unwrap() else { panic!("no ladder") };
        assert_eq!((args.on, args.command().as_str()), (On::Netns, line));
        assert!(run(&["plait-lab", "run", "ladder", "--list", "--html", "x.html"]).is_err());
        assert!(run(&["plait-lab", "run", "ladder", "--policy", "fastest"]).is_err());
        assert!(run(&["plait-lab", "run", "002/tcp-k"]).is_err());
        assert!(run(&["plait-lab", "run"]).is_err());
    }

    #[test]
    fn a_holding_time_is_asked_for_again_by_its_command() {
        let line = "plait-lab holding-time --rtt 20 --w 100 --t-e 2.5 --rttvar 3 --width 4";
        let words: Vec<&str> = line.split(' ').collect();
        let Command::HoldingTime(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command")
        };
        assert_eq!(args.command(), line);
        for wrong in ["0", "-1", "inf", "NaN", "x", "1e9", ""] {
            assert_eq!(positive(wrong), Err(NotPositive), "{wrong}");
        }
        assert_eq!(positive("0.5"), Ok(0.5));
    }

    #[test]
    fn json_is_understood_on_either_side_of_the_command() {
        for line in [["plait-lab", "--json", "clean"], ["plait-lab", "clean", "--json"]] {
            assert!(Cli::try_parse_from(line).unwrap().json);
        }
    }
}
