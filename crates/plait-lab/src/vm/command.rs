//! `plait-lab vm`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::timer::TimerErrors;
use super::{Ended, Job};
use crate::cli::vm::{CheckArgs, Guest, RunInGuestArgs};
use crate::figure::Summary;
use crate::output::Align::{Left, Right};
use crate::output::{self, Output, Progress, Table, Verdict};

/// Of this machine's time, usually and at most.
const CHECK_TIME: Duration = Duration::from_secs(20);
const CHECK_LIMIT: Duration = Duration::from_secs(180);

/// What a kernel may have: its name, and a command that succeeds if it does.
const PARTS: [(&str, &str); 6] = [
    ("netem", "tc qdisc add dev lo root netem delay 1ms && tc qdisc del dev lo root"),
    ("tcp_illinois", "echo illinois >/proc/sys/net/ipv4/tcp_congestion_control"),
    ("mptcp", "[ \"$(cat /proc/sys/net/mptcp/enabled)\" = 1 ]"),
    ("tun", "[ -c /dev/net/tun ]"),
    ("nftables", "nft list ruleset"),
    ("btf", "[ -r /sys/kernel/btf/vmlinux ]"),
];

/// A guest that booted, or why it did not.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Checked {
    guest: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    timer: Option<TimerErrors>,
    /// This machine's time for boot, checks and halt.
    seconds: f64,
    has: Vec<&'static str>,
    lacks: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Ran<'a> {
    guest: &'static str,
    code: i32,
    out: &'a str,
    said: &'a str,
    seconds: f64,
}

/// Boots each guest and says what it is.
pub(crate) fn check(args: &CheckArgs, output: &Output) -> Result<Verdict> {
    let heads = [
        ("guest", Left),
        ("kernel", Left),
        ("whole", Right),
        ("sleeps late, p99", Right),
        ("steps late, p99", Right),
        ("most", Right),
        ("has", Left),
        ("lacks", Left),
    ];
    let mut table = Table::new(&heads);
    let is_asked = |guest: &Guest| args.guest.is_none_or(|only| only == *guest);
    let guests: Vec<Guest> = Guest::ALL.into_iter().filter(is_asked).collect();
    let count = u32::try_from(guests.len()).unwrap_or(u32::MAX);
    let mut progress = Progress::new(guests.len(), CHECK_TIME * count);
    let mut all_boot = true;
    for guest in guests {
        let step = progress.step(guest.name(), CHECK_TIME);
        let checked = check_one(guest);
        drop(step);
        if let Some(error) = &checked.error {
            output::note(format!("{}: {error}", guest.name()));
            all_boot = false;
        }
        table.row(checked.row());
        output.record("guest", &checked)?;
    }
    output.lines(table.lines())?;
    let more = serde_json::json!({ "all_boot": all_boot });
    output.record("summary", &Summary::new("vm check", &[], more))?;
    Ok(Verdict::of(all_boot))
}

fn check_one(guest: Guest) -> Checked {
    let start = Instant::now();
    let found = super::check(guest).and_then(|()| {
        let ended =
            super::boot(guest, Job { name: "check", command: &probe(), limit: CHECK_LIMIT })?;
        read_probe(&ended)
    });
    let seconds = start.elapsed().as_secs_f64();
    let guest = guest.name();
    match found {
        Ok((timer, has)) => {
            let names = PARTS.iter().map(|(name, _)| *name);
            let lacks = names.filter(|name| !has.contains(name)).collect();
            Checked { guest, timer: Some(timer), seconds, has, lacks, error: None }
        }
        Err(error) => {
            let (has, lacks, error) = (Vec::new(), Vec::new(), Some(format!("{error:#}")));
            Checked { guest, timer: None, seconds, has, lacks, error }
        }
    }
}

/// A command that prints the timers' errors, then the names of the parts that are there. The timers
/// are read twice: the first time the program itself is read.
fn probe() -> Vec<String> {
    let mut script = "plait-lab timer --json >/dev/null; plait-lab timer --json\n".to_owned();
    for (name, command) in PARTS {
        writeln!(script, "{{ {command}; }} >/dev/null 2>&1 && echo {name}")
            .expect("a string takes everything");
    }
    script.push_str("true\n");
    ["sh", "-c", &script].map(ToOwned::to_owned).to_vec()
}

fn read_probe(ended: &Ended) -> Result<(TimerErrors, Vec<&'static str>)> {
    let mut lines = ended.out.lines();
    let first = lines.next().unwrap_or_default();
    let timer = serde_json::from_str(first)
        .with_context(|| format!("the guest's timer said: {first} {}", super::tail(&ended.said)))?;
    let has: Vec<&str> = lines.collect();
    let known = PARTS.iter().map(|(name, _)| *name).filter(|name| has.contains(name)).collect();
    Ok((timer, known))
}

impl Checked {
    fn row(&self) -> Vec<String> {
        let us = |value: fn(&TimerErrors) -> u64| {
            let found = self.timer.as_ref().map(|timer| format!("{} us", value(timer)));
            found.unwrap_or_else(|| "-".to_owned())
        };
        let kernel = self.timer.as_ref().map_or("does not boot", |timer| timer.kernel.as_str());
        vec![
            self.guest.to_owned(),
            kernel.to_owned(),
            format!("{:.1} s", self.seconds),
            us(|timer| timer.sleep_p99_us),
            us(|timer| timer.pace_p99_us),
            us(|timer| timer.most_us),
            self.has.join(", "),
            self.lacks.join(", "),
        ]
    }
}

/// Runs a command in a guest.
pub(crate) fn run(args: &RunInGuestArgs, output: &Output) -> Result<Verdict> {
    let start = Instant::now();
    let limit = Duration::from_secs(args.limit);
    let job = Job { name: "run", command: &args.command, limit };
    let Ended { code, out, said } = super::boot(args.guest, job)?;
    let seconds = start.elapsed().as_secs_f64();
    let guest = args.guest.name();
    output.record("run", &Ran { guest, code, out: &out, said: &said, seconds })?;
    let more = serde_json::json!({ "code": code });
    output.record("summary", &Summary::new("vm run", &[], more))?;
    output.lines(out.lines())?;
    // With standard error closed there is nobody to tell.
    let _closed = std::io::stderr().lock().write_all(said.as_bytes());
    Ok(Verdict::of(code == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_read() {
        let out = "{\"type\":\"timer\",\"kernel\":\"6.1.0\",\"sleep_p99_us\":55,\
                   \"pace_p99_us\":56,\"most_us\":60}\nnetem\nbtf\nother\n";
        let ended = Ended { code: 0, out: out.into(), said: String::new() };
        let (timer, has) = read_probe(&ended).unwrap();
        assert_eq!((timer.kernel.as_str(), timer.most_us), ("6.1.0", 60));
        assert_eq!(has, ["netem", "btf"]);
        let silent = Ended { code: 1, out: String::new(), said: "no such program".into() };
        assert!(read_probe(&silent).unwrap_err().to_string().contains("no such program"));
    }

    #[test]
    fn every_part_is_probed_for_itself() {
        let script = probe().pop().unwrap();
        assert!(PARTS.iter().all(|(name, _)| script.contains(&format!("&& echo {name}\n"))));
        assert!(script.ends_with("true\n"), "a kernel without the last part is no failure");
    }
}
