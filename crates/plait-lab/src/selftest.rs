//! The lab's own tests, run as processes by `tests/`: their namespaces and real programs must be
//! set up before a test harness starts threads.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::figure::{Figure, Summary};
use crate::live;
use crate::machine::Watch;
use crate::output::{self, Output, Progress, Verdict};
use crate::qoe;
use crate::verify::video;

mod base;
mod bond;
mod cleanup;
mod measure;
mod metrics;
mod scenario;
mod steer;
mod survive;
mod trust;

/// One test. It fails by returning an error.
type Test = fn(&Output) -> Result<()>;

/// How often a test is tried on a machine that keeps its programs waiting.
const TRIES: usize = 3;

/// Each with its duration in seconds, for display; 0 if it is short or shown otherwise.
const TESTS: &[(&str, u64, Test)] = &[
    ("isolation", 0, base::isolation),
    ("hang", 0, base::hang),
    ("emulator", 6, base::emulator),
    ("topology", 0, base::topology),
    ("measurements", 7, base::measurements),
    ("fetch", 0, base::fetch),
    ("reconfiguration", 0, base::reconfiguration),
    ("mptcp", 0, base::mptcp),
    ("stand", 0, bond::stand),
    ("bond", 8, bond::carries_ping_and_tcp),
    ("ipv6", 0, bond::carries_ipv6_inside_and_outside),
    ("ordinary-mtu", 0, bond::fills_links_of_ordinary_mtu),
    ("several-peers", 0, bond::several_peers),
    ("spoofed-source", 0, bond::spoofed_source_is_dropped),
    ("either-path-starts", 0, bond::either_path_starts),
    ("dead-link", 8, bond::survives_a_dead_link),
    ("restart-after-kill", 5, bond::restarts_after_kill),
    ("scenario-udp", 0, scenario::udp),
    ("scenario-tcp", 0, |output| scenario::holds("tcp", output)),
    ("scenario-quic", 0, |output| scenario::holds("quic", output)),
    ("scenario-transfer", 0, scenario::transfer),
    ("scenario-steer", 0, scenario::steer),
    ("scenario-air", 0, |output| scenario::holds("air", output)),
    ("silent-cut", 0, |output| scenario::holds("silent-cut", output)),
    ("restart", 0, |output| scenario::holds("restart", output)),
    ("interface", 0, |output| scenario::holds("interface", output)),
    ("address", 0, |output| scenario::holds("address", output)),
    ("reload", 0, |output| scenario::holds("reload", output)),
    ("hostile", 10, survive::hostile),
    ("measure", 50, measure::measures_each_path_and_the_bond),
    ("metrics-board", 15, metrics::board),
    ("measure-refused", 0, measure::says_why_it_cannot_measure),
    ("sigterm-leaves-nothing", 0, cleanup::sigterm_leaves_nothing),
    ("bad-config-leaves-nothing", 0, cleanup::bad_config_leaves_nothing),
    ("set-ups", 0, trust::check_and_up_agree),
    ("router-advertisements", 0, trust::forwarding_keeps_router_advertisements),
    ("steer-colocated", 8, steer::colocated),
    ("steer-beside", 9, steer::beside),
    ("steer-ipv6", 17, steer::ipv6),
    ("steer-iptables", 18, steer::iptables),
    ("steer-android", 9, steer::android),
    ("steer-without-rule", 0, steer::without_rule),
    ("steer-restart", 11, steer::restart),
    ("steer-reload", 8, steer::reload),
    ("steer-dead-attachment", 15, steer::dead_attachment),
    ("steer-dida", 9, steer::dida),
    ("steer-leaves-nothing", 0, steer::leaves_nothing),
    ("steer-bad-config-leaves-nothing", 0, steer::bad_config_leaves_nothing),
    ("scenario-video", 40, |output| scenario::holds("video", output)),
    ("proxy-shares", 26, video::shares::selftest),
    ("live", 40, live::selftest),
    ("qoe-page", 30, qoe::selftest::page),
    ("qoe-link", 20, qoe::selftest::link),
];

pub(crate) fn run(name: &str, output: &Output) -> Result<Verdict> {
    if name == "list" {
        for (name, ..) in TESTS {
            output.line(name)?;
        }
        return Ok(Verdict::Good);
    }
    let Some((_, seconds, test)) = TESTS.iter().find(|(known, ..)| *known == name) else {
        bail!("there is no selftest {name}; plait-lab selftest list prints all");
    };
    let time = Duration::from_secs(*seconds);
    let step = (*seconds > 0).then(|| Progress::new(1, time).step(name, time));
    undisturbed(name, *test, output)?;
    drop(step);
    output.line(format!("{name}: passed"))?;
    let passed = [Figure::count("passed", 1).exactly(1.0, "the test itself")];
    output.record("summary", &Summary::new(name, &passed, serde_json::json!({})))?;
    Ok(Verdict::Good)
}

/// Runs a test, and repeats it if it failed while the machine stalled.
fn undisturbed(name: &str, test: Test, output: &Output) -> Result<()> {
    for _ in 1..TRIES {
        let watch = Watch::start();
        let result = test(output);
        let seen = watch.end();
        let Err(error) = result else { return Ok(()) };
        if !seen.excuses() {
            return Err(error);
        }
        output::note(format!("{name}: {error:#}\n{name}: {seen}; once more"));
    }
    test(output)
}
