//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::policy::Policy;
use crate::record;

pub(crate) mod live;
pub(crate) mod qoe;
pub(crate) mod vm;

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
    /// Measure the cost of plait on links without a limit: what the machine can carry, and beside
    /// wireguard-go.
    Bench(BenchArgs),
    /// Print the scenarios that can be run.
    List(ListArgs),
    /// Run a scenario: every cell of its sweep, with every seed; or a set of scenarios, such as the
    /// ladder of link conditions.
    ///
    /// Examples:
    ///
    ///   plait-lab run 002/tcp-k --seeds 5 --html tcp-k.html
    ///
    ///   plait-lab run ladder --only falls
    ///
    ///   plait-lab run ladder --shard 1/2 --resume first-half.jsonl
    #[command(verbatim_doc_comment)]
    Run(RunArgs),
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
    /// Play video in a browser, and measure what its viewer sees: score, initial load, stalls,
    /// bitrate (paper 004).
    ///
    /// Examples:
    ///
    ///   plait-lab qoe clips && plait-lab qoe serve
    ///
    ///   plait-lab qoe play --clip paper-2s --quality 4K --runs 5
    ///
    ///   plait-lab qoe play --url http://192.0.2.7:8090/ --adaptive --proxy http://192.0.2.1:3128
    #[command(verbatim_doc_comment)]
    Qoe(qoe::QoeArgs),
    /// Stream live to a real server, by RTMP and by SRT, over one link, through two proxies and
    /// through a bond: how far behind is the server, and what does it never get?
    ///
    /// Needs ffmpeg, nginx with its RTMP module, and srt-live-transmit: scripts/setup --live.
    ///
    /// Examples:
    ///
    ///   plait-lab live
    ///
    ///   plait-lab live --only cut --runs 5
    ///
    ///   plait-lab live --only "RTMP, bond" --quick --json
    ///
    ///   plait-lab live --print-cases > mine.toml && plait-lab live --cases mine.toml
    #[command(verbatim_doc_comment)]
    Live(live::LiveArgs),
    /// Run programs under Linux 6.1, in a guest that is a process: user-mode Linux, or qemu without
    /// KVM. Their clocks are virtual, so that figures do not depend on how busy this machine is.
    ///
    /// Examples:
    ///
    ///   plait-lab vm check
    ///
    ///   plait-lab vm run -- plait-lab run tcp/links --on netns
    #[command(verbatim_doc_comment)]
    Vm(vm::VmArgs),
    /// Remove what a killed lab has left.
    Clean,
    /// Carry packets between a gateway with many peers and some of them: for callgrind.
    #[command(hide = true)]
    ManyPeers(ManyPeersArgs),
    /// Measure how late this machine's timers are: for a guest of the lab.
    #[command(hide = true)]
    Timer,
    /// Measure transfers over netem and over emulated links: for a guest of the lab.
    #[command(hide = true)]
    Netem(vm::NetemArgs),
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

/// What a gateway with many peers carries.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Load {
    /// Peers of the provider.
    pub(crate) peers: usize,
    /// Those of them that carry packets, in turn.
    pub(crate) active: usize,
    /// How many times as fast as usual each of them does.
    pub(crate) rate: usize,
    /// The provider receives the packets, instead of sending them.
    #[arg(long)]
    pub(crate) receives: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ManyPeersArgs {
    #[command(flatten)]
    pub(crate) load: Load,
    /// Packets to carry.
    pub(crate) packets: usize,
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
    /// Write what was measured into the checkout's table of promises, `docs/results/promises.md`,
    /// and into the rows of README.md that name a figure of it.
    #[arg(long)]
    pub(crate) table: bool,
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
    /// The scenario, such as 002/table-loss, a file that ends in .toml, or a set, such as ladder.
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

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Where to run it: in virtual time, or with real processes in namespaces.
    #[arg(long, default_value = "sim")]
    pub(crate) on: On,
    /// Run each cell this many times, with seeds that follow each other; medians count [default: a
    /// scenario's 1, a set's own].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Of a set, print the scenarios and run none.
    #[arg(long)]
    pub(crate) list: bool,
    /// Of a set, only scenarios whose name holds this.
    #[arg(long, value_name = "SUBSTRING")]
    pub(crate) only: Option<String>,
    /// Of a set, some scenarios, once and shorter: for trying things out, not for a claim.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Of a set, how the bond spreads its packets: `default`, SCHEDULER, SCHEDULER/CONTROLLER or
    /// open/SCHEDULER; several are compared side by side. The controllers whitehaul and edinburgh
    /// are for research: WO2021250377A1 / US20230239702 claim WhiteHaul's way of control.
    #[arg(long = "policy", value_name = "NAME")]
    pub(crate) policies: Vec<Policy>,
    /// Of a set, the number from which its drawn scenarios are counted on [default: of the day, as
    /// in 2026013100].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=DRAW_MAX))]
    pub(crate) draw_from: Option<u64>,
    /// Of a set, where drawn scenarios that break the promise are kept as files.
    #[arg(long, value_name = "FOLDER", default_value = "drawn")]
    pub(crate) keep: PathBuf,
    /// Only the K-th of N parts of a set's scenarios or a scenario's cells, without a verdict: the
    /// parts meet again in --resume.
    #[arg(long, value_name = "K/N")]
    pub(crate) shard: Option<Shard>,
    /// Keep each run in this file, and make only those that it does not have yet. May be given
    /// several times: the runs of the others are merged into the first. Runs of another commit or
    /// of another text of the scenario are refused.
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) resume: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) experiment: ExperimentArgs,
}

impl RunArgs {
    /// A scenario or a set of the project as it stands.
    pub(crate) fn of(name: &str, on: On) -> Self {
        Self {
            on,
            seeds: None,
            list: false,
            only: None,
            quick: false,
            policies: Vec::new(),
            draw_from: None,
            keep: PathBuf::from("drawn"),
            shard: None,
            resume: Vec::new(),
            experiment: ExperimentArgs::of(name),
        }
    }

    pub(crate) fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(1)
    }

    /// The policies to compare: the default one when none is named.
    pub(crate) fn policies(&self) -> Vec<Policy> {
        if self.policies.is_empty() {
            vec![Policy::default_policy()]
        } else {
            self.policies.clone()
        }
    }

    /// One scenario of a set, with settings beside those of the command line.
    pub(crate) fn for_member(&self, name: &str, seeds: u64, settings: Vec<String>) -> Self {
        let settings = settings.into_iter().chain(self.experiment.settings.iter().cloned());
        let experiment = ExperimentArgs {
            name: name.to_owned(),
            settings: settings.collect(),
            out: None,
            html: None,
            ..self.experiment.clone()
        };
        Self { seeds: Some(seeds), shard: None, resume: Vec::new(), experiment, ..self.clone() }
    }

    /// The command that runs a set again, without the files that it writes.
    pub(crate) fn command(&self) -> String {
        let mut words = vec![format!("plait-lab run {} --on", self.experiment.name)];
        words.push(self.on.name().to_owned());
        words.extend(self.policies.iter().map(|policy| format!("--policy {policy}")));
        words.extend(self.seeds.map(|seeds| format!("--seeds {seeds}")));
        words.extend(self.experiment.settings.iter().map(|setting| format!("--set '{setting}'")));
        words.extend(self.draw_from.map(|number| format!("--draw-from {number}")));
        words.extend(self.only.as_ref().map(|only| format!("--only {only}")));
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.join(" ")
    }

    /// Refuses options that only sets have, for a single scenario.
    pub(crate) fn refuse_what_only_sets_have(&self) -> anyhow::Result<()> {
        let given = [
            ("--list", self.list),
            ("--only", self.only.is_some()),
            ("--quick", self.quick),
            ("--policy", !self.policies.is_empty()),
            ("--draw-from", self.draw_from.is_some()),
        ];
        for (option, is_given) in given {
            anyhow::ensure!(
                !is_given,
                "{option} is for sets of scenarios, and {} is none; leave it out, or name a file \
                 of scenarios/sets",
                self.experiment.name
            );
        }
        Ok(())
    }
}

/// The largest number that leaves room for a member's draws.
const DRAW_MAX: u64 = 4_294_967_000;

/// One of several parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shard {
    /// From 0.
    part: usize,
    parts: usize,
}

/// A text that does not name a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not K/N with K from 1 to N, and N up to 1000, as in 2/5")]
pub(crate) struct NoShard;

impl std::str::FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (part, parts) = text.split_once('/').ok_or(NoShard)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| NoShard);
        let (part, parts) = (number(part)?, number(parts)?);
        if (1..=parts).contains(&part) && parts <= 1000 {
            Ok(Self { part: part - 1, parts })
        } else {
            Err(NoShard)
        }
    }
}

impl Shard {
    /// Whether the thing of this number belongs to the part.
    pub(crate) fn holds(self, number: usize) -> bool {
        number % self.parts == self.part
    }

    /// The result, in words.
    pub(crate) fn told(self, runs: usize) -> String {
        let (part, parts) = (self.part + 1, self.parts);
        format!("part {part} of {parts}: {runs} runs; give the files of all parts to --resume")
    }
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

/// The largest round-trip time in milliseconds, and the largest window.
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
    fn run_takes_a_scenario_or_a_set() {
        let run = |line: &str| {
            Cli::try_parse_from(line.split(' ')).map(|cli| match cli.command {
                Command::Run(args) => args,
                other => panic!("{other:?} is no run"),
            })
        };
        let scenario = run("plait-lab run 002/tcp-k").unwrap();
        assert_eq!((scenario.on, scenario.seeds()), (On::Sim, 1));
        let line = "plait-lab run ladder --on netns --policy min-rtt --policy default --seeds 2 \
                    --only rates --quick";
        let args = run(line).unwrap();
        assert_eq!((args.policies().len(), args.command().as_str()), (2, line));
        assert!(args.refuse_what_only_sets_have().unwrap_err().to_string().contains("--only"));
        assert!(run("plait-lab run ladder --policy fastest").is_err());
        assert!(run("plait-lab run").is_err());
    }

    #[test]
    fn every_scenario_belongs_to_one_part() {
        let parts = ["1/3", "2/3", "3/3"].map(|text| text.parse::<Shard>().unwrap());
        for number in 0..10 {
            assert_eq!(parts.iter().filter(|part| part.holds(number)).count(), 1, "{number}");
        }
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "1/1001"] {
            assert_eq!(wrong.parse::<Shard>(), Err(NoShard), "{wrong}");
        }
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
