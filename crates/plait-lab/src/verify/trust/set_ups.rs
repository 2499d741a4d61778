//! trust.5: `plait check` and `plait up` agree. Each set-up of a [table] is a host and a
//! configuration; `check` must report what the table says, and `up` must start or refuse
//! accordingly.

mod table;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use plait_net::netns::NetNs;

use self::table::{Held, SetUp, all};
use super::super::{Effort, Figure};
use crate::gateway::{
    Finding, GatewayFile, Level, answers, check, customer_file, endpoint_v4, make_key, path_over,
    plait_program, provider_file,
};
use crate::output::{Progress, note};
use crate::process::{self, Service};
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, Topology, new_netns};

const SOURCE: &str = "trust.5";
const TRIED_MIN: f64 = 30.0;
/// Number of set-ups whose fault `plait check` once missed.
const SILENT_CASES: f64 = 7.0;
const CHECK_LIMIT: Duration = Duration::from_secs(20);
/// Time within which `up` must refuse, or answer on its control socket.
const UP_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);
/// Expected time of a set-up.
const EXPECTED: Duration = Duration::from_millis(700);
/// Two links, each with an address and a default route. The far ends are in the same namespace.
const NETWORK: &str = "
for n in 0 1; do
    ip link add eth$n type veth peer name far$n
    ip link set eth$n up
    ip link set far$n up
    ip address add 10.$((n + 1)).0.1/24 dev eth$n
    ip route add default via 10.$((n + 1)).0.254 metric $((n + 10))
done
";

/// What `plait up` did.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Up {
    /// It answers on its control socket.
    Started,
    /// It ended with exit code 2 and this message.
    Refused(String),
}

/// The result of a set-up.
#[derive(Debug)]
struct Outcome {
    findings: Vec<Finding>,
    up: Up,
}

impl Outcome {
    fn agrees(&self) -> bool {
        let any_error = self.findings.iter().any(|finding| finding.level == Level::Error);
        any_error == matches!(self.up, Up::Refused(_))
    }

    /// Errors and warnings that do not say what to do.
    fn without_remedy(&self) -> u64 {
        let told = self.findings.iter().filter(|finding| finding.level != Level::Ok);
        let silent =
            told.filter(|finding| finding.help.as_ref().is_none_or(|help| help.is_empty()));
        let refused = matches!(&self.up, Up::Refused(words) if !words.contains("help: "));
        silent.count() as u64 + u64::from(refused)
    }

    /// Errors and warnings about this set-up.
    fn complaints(&self) -> impl Iterator<Item = &Finding> {
        let bad = self.findings.iter().filter(|finding| finding.level != Level::Ok);
        bad.filter(|finding| !finding.is_of_the_machine())
    }

    /// Whether `check` reported exactly what the table says.
    fn says_what_it_must(&self, set_up: &SetUp) -> bool {
        let fits = |finding: &Finding, (level, part): &(Level, String)| {
            finding.level == *level && finding.text.contains(part.as_str())
        };
        let found = |wanted| self.complaints().any(|finding| fits(finding, wanted));
        let wanted = |finding: &Finding| set_up.says.iter().any(|wanted| fits(finding, wanted));
        set_up.says.iter().all(found) && self.complaints().all(wanted)
    }
}

/// Keys and the common files of the network namespaces.
struct Lab {
    scratch: Scratch,
    plait: PathBuf,
    peer_key: String,
}

impl Lab {
    fn new() -> Result<Self> {
        let scratch = Scratch::in_memory("set-ups")?;
        make_key(&scratch.path().join("gateway.key"))?;
        let peer_key = make_key(&scratch.path().join("peer.key"))?;
        Ok(Self { scratch, plait: plait_program()?, peer_key })
    }

    /// `None` when this machine cannot be brought into the set-up's state.
    fn try_one(&self, set_up: &SetUp) -> Result<Option<Outcome>> {
        let netns = new_netns("plait-set-up")?;
        let folder = self.scratch.path().join("one");
        fs::create_dir_all(&folder)?;
        let result = self.try_in(&netns, &folder, set_up);
        fs::remove_dir_all(&folder)?;
        result.with_context(|| format!("set-up \"{}\"", set_up.name))
    }

    fn try_in(&self, netns: &NetNs, folder: &Path, set_up: &SetUp) -> Result<Option<Outcome>> {
        let place = folder.to_string_lossy();
        let script = format!("set -e\n{NETWORK}\n{}", set_up.prepare.replace("FOLDER", &place));
        let mut prepare = netns.command("sh");
        process::run(prepare.args(["-c", &script]), "", CHECK_LIMIT)?;
        let mut possible = through(netns, set_up, Path::new("/bin/true"));
        if !process::run_any(&mut possible, "", CHECK_LIMIT)?.status.success() {
            note(format!("set-up \"{}\": not possible on this machine", set_up.name));
            return Ok(None);
        }
        let file = folder.join("gateway.toml");
        fs::write(&file, set_up.toml(&place, &self.peer_key))?;
        let _held = hold(netns, folder, set_up.held)?;
        let findings = check(through(netns, set_up, &self.plait), &file)?;
        let up = self.up(netns, folder, set_up, &file)?;
        Ok(Some(Outcome { findings, up }))
    }

    fn up(&self, netns: &NetNs, folder: &Path, set_up: &SetUp, file: &Path) -> Result<Up> {
        let log = folder.join("up.log");
        let mut command = through(netns, set_up, &self.plait);
        let mut service = Service::start(command.arg("up").arg(file), &log)?;
        let start = Instant::now();
        while start.elapsed() < UP_LIMIT {
            if !service.runs() {
                let status = service.stop(UP_LIMIT)?.context("it has ended")?;
                let words = fs::read_to_string(&log)?;
                ensure!(status.code() == Some(2), "up ended with {status}: {words}");
                return Ok(Up::Refused(words));
            }
            if answers(netns, file)? {
                let ended = service.stop(UP_LIMIT)?.context("up does not end on SIGTERM")?;
                ensure!(ended.success(), "up ended with {ended}: {}", fs::read_to_string(&log)?);
                return Ok(Up::Started);
            }
            std::thread::sleep(POLL);
        }
        bail!("up neither refuses nor answers: {}", fs::read_to_string(&log)?)
    }
}

/// A command in the set-up's namespace, with the set-up's command prefix.
fn through(netns: &NetNs, set_up: &SetUp, program: &Path) -> Command {
    let words = set_up.words_before();
    let Some((first, rest)) = words.split_first() else { return netns.command(program) };
    let mut command = netns.command(first);
    command.args(rest).arg(program);
    command
}

/// A value that holds a port or a path while it is kept.
type Holder = Box<dyn std::any::Any>;

fn hold(netns: &NetNs, folder: &Path, held: Held) -> Result<Holder> {
    Ok(match held {
        Held::Nothing => Box::new(()),
        Held::UdpPort(port) => Box::new(netns.run_in(|| UdpSocket::bind(("0.0.0.0", port)))??),
        Held::TcpPort(port) => Box::new(netns.run_in(|| TcpListener::bind(("127.0.0.1", port)))??),
        Held::ControlSocket => Box::new(UnixListener::bind(folder.join("control.sock"))?),
        // A socket whose file stays although nobody listens.
        Held::StaleSocket => drop_at_once(UnixListener::bind(folder.join("control.sock"))?),
    })
}

fn drop_at_once(listener: UnixListener) -> Holder {
    drop(listener);
    Box::new(())
}

/// Counts over set-ups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    tried: u64,
    disagreements: u64,
    silent_cases_found: u64,
    without_remedy: u64,
    wrong_words: u64,
    complaints_about_sound: u64,
    refused: u64,
}

impl Counts {
    fn add(&mut self, set_up: &SetUp, outcome: &Outcome) {
        let as_told = outcome.says_what_it_must(set_up);
        self.tried += 1;
        self.disagreements += u64::from(!outcome.agrees());
        self.silent_cases_found += u64::from(set_up.was_silent && as_told);
        self.without_remedy += outcome.without_remedy();
        self.wrong_words += u64::from(!as_told);
        self.refused += u64::from(outcome.up != Up::Started);
        if set_up.says.is_empty() {
            self.complaints_about_sound += outcome.complaints().count() as u64;
        }
        if !as_told || !outcome.agrees() || outcome.without_remedy() > 0 {
            let said: Vec<_> = outcome.complaints().map(Finding::describe).collect();
            let up = match &outcome.up {
                Up::Started => "started",
                Up::Refused(words) => words.trim(),
            };
            note(format!("set-up \"{}\": check said {said:#?}; up: {up}", set_up.name));
        }
    }
}

fn count(set_ups: &[SetUp]) -> Result<Counts> {
    let lab = Lab::new()?;
    let mut counts = Counts::default();
    let total = EXPECTED.saturating_mul(u32::try_from(set_ups.len())?);
    let mut progress = Progress::new(set_ups.len(), total);
    for set_up in set_ups {
        let _step = progress.step(&set_up.name, EXPECTED);
        if let Some(outcome) = lab.try_one(set_up)? {
            counts.add(set_up, &outcome);
        }
    }
    Ok(counts)
}

/// Errors and warnings about the two gateways of the lab's ordinary bond.
fn complaints_about_the_demo() -> Result<u64> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let lab = Lab::new()?;
    let paths = ["dsl", "lte"].map(path_over);
    let customer = customer_file("gateway.key", 2, &lab.peer_key, &[endpoint_v4()], &paths);
    let provider = provider_file("gateway.key", &[(lab.peer_key.clone(), 2)]);
    let complaints = |netns: &NetNs, gateway: &GatewayFile| -> Result<u64> {
        let file = lab.scratch.path().join("demo.toml");
        fs::write(&file, gateway.to_text())?;
        let findings = check(netns.command(&lab.plait), &file)?;
        let outcome = Outcome { findings, up: Up::Started };
        outcome.complaints().for_each(|finding| note(finding.describe()));
        Ok(outcome.complaints().count() as u64)
    };
    Ok(complaints(&topology.customer().netns, &customer)?
        + complaints(&topology.provider, &provider)?)
}

/// trust.5.
pub(in crate::verify) fn check_all(_effort: Effort) -> Result<Vec<Figure>> {
    let counts = count(&all())?;
    let demo = complaints_about_the_demo()?;
    let exactly =
        |name: &str, value: u64, wanted: f64| Figure::count(name, value).exactly(wanted, SOURCE);
    Ok(vec![
        Figure::count("set-ups tried", counts.tried).at_least(TRIED_MIN, SOURCE),
        exactly("set-ups of which check and up say different things", counts.disagreements, 0.0),
        exactly(
            "cases that check was silent about, told now",
            counts.silent_cases_found,
            SILENT_CASES,
        ),
        exactly("errors and warnings without a remedy", counts.without_remedy, 0.0),
        exactly("set-ups of which check does not say what it must", counts.wrong_words, 0.0),
        exactly("complaints about sound set-ups", counts.complaints_about_sound, 0.0),
        exactly("complaints about the gateways of the demo", demo, 0.0),
        Figure::count("set-ups that up refuses", counts.refused),
    ])
}

/// The cases that `check` once missed, and a few others, for the lab's own tests.
pub(crate) fn test_some() -> Result<()> {
    let mut some = all();
    some.retain(|set_up| set_up.was_silent || set_up.is_in_short);
    let counts = count(&some)?;
    let good = Counts {
        tried: counts.tried,
        refused: counts.refused,
        silent_cases_found: SILENT_CASES as u64,
        ..Counts::default()
    };
    ensure!(counts == good, "check or up is wrong about set-ups: {counts:?}");
    ensure!(complaints_about_the_demo()? == 0, "check complains about the demo");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_as_large_as_promised_and_its_names_differ() {
        let all = all();
        assert!(all.len() as f64 >= TRIED_MIN);
        assert_eq!(all.iter().filter(|set_up| set_up.was_silent).count() as f64, SILENT_CASES);
        for (at, set_up) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other.name != set_up.name), "{}", set_up.name);
        }
    }

    #[test]
    fn an_outcome_is_judged_by_every_complaint() {
        let finding = |level, text: &str, help: Option<&str>| Finding {
            level,
            subject: "x".into(),
            text: text.into(),
            help: help.map(str::to_owned),
        };
        let mut set_up = SetUp::default();
        set_up.says.push((Level::Warning, "off".into()));
        let mut outcome = Outcome {
            findings: vec![finding(Level::Warning, "it is off", Some("switch it on"))],
            up: Up::Started,
        };
        assert!(outcome.says_what_it_must(&set_up) && outcome.agrees());
        assert!(!outcome.says_what_it_must(&SetUp::default()));
        outcome.findings.push(finding(Level::Error, "broken", None));
        assert!(!outcome.says_what_it_must(&set_up) && !outcome.agrees());
        assert_eq!(outcome.without_remedy(), 1);
        outcome.up = Up::Refused("plait: error: broken".into());
        assert!(outcome.agrees());
        assert_eq!(outcome.without_remedy(), 2);
    }
}
