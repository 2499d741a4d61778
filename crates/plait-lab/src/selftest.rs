//! The lab's own tests, run as processes by `tests/`: what they need (namespaces, real programs)
//! must be set up before a test harness starts threads.

use anyhow::{Result, bail};

use crate::figure::{Figure, Summary};
use crate::machine::Watch;
use crate::output::{self, Output, Verdict};

mod base;
mod bond;
mod cleanup;
mod measure;
mod scenario;
mod steer;
mod survive;
mod trust;

/// One test. It fails by its error.
type Test = fn(&Output) -> Result<()>;

/// How often a test is tried on a machine that keeps its programs waiting.
const TRIES: usize = 3;

const TESTS: &[(&str, Test)] = &[
    ("isolation", base::isolation),
    ("hang", base::hang),
    ("emulator", base::emulator),
    ("topology", base::topology),
    ("measurements", base::measurements),
    ("fetch", base::fetch),
    ("reconfiguration", base::reconfiguration),
    ("mptcp", base::mptcp),
    ("stand", bond::stand),
    ("bond", bond::carries_ping_and_tcp),
    ("ipv6", bond::carries_ipv6_inside_and_outside),
    ("ordinary-mtu", bond::fills_links_of_ordinary_mtu),
    ("several-peers", bond::several_peers),
    ("spoofed-source", bond::spoofed_source_is_dropped),
    ("either-path-starts", bond::either_path_starts),
    ("dead-link", bond::survives_a_dead_link),
    ("restart-after-kill", bond::restarts_after_kill),
    ("scenario-udp", scenario::udp),
    ("scenario-tcp", |output| scenario::holds("tcp", output)),
    ("scenario-transfer", scenario::transfer),
    ("scenario-steer", scenario::steer),
    ("silent-cut", |output| scenario::holds("silent-cut", output)),
    ("restart", |output| scenario::holds("restart", output)),
    ("interface", |output| scenario::holds("interface", output)),
    ("address", |output| scenario::holds("address", output)),
    ("reload", |output| scenario::holds("reload", output)),
    ("hostile", survive::hostile),
    ("measure", measure::measures_each_path_and_the_bond),
    ("measure-refused", measure::says_why_it_cannot_measure),
    ("sigterm-leaves-nothing", cleanup::sigterm_leaves_nothing),
    ("bad-config-leaves-nothing", cleanup::bad_config_leaves_nothing),
    ("set-ups", trust::check_and_up_agree),
    ("router-advertisements", trust::forwarding_keeps_router_advertisements),
    ("steer-colocated", steer::colocated),
    ("steer-beside", steer::beside),
    ("steer-ipv6", steer::ipv6),
    ("steer-iptables", steer::iptables),
    ("steer-android", steer::android),
    ("steer-without-rule", steer::without_rule),
    ("steer-restart", steer::restart),
    ("steer-reload", steer::reload),
    ("steer-dead-attachment", steer::dead_attachment),
    ("steer-dida", steer::dida),
    ("steer-leaves-nothing", steer::leaves_nothing),
    ("steer-bad-config-leaves-nothing", steer::bad_config_leaves_nothing),
];

pub(crate) fn run(name: &str, output: &Output) -> Result<Verdict> {
    if name == "list" {
        for (name, _) in TESTS {
            output.line(name)?;
        }
        return Ok(Verdict::Good);
    }
    let Some((_, test)) = TESTS.iter().find(|(known, _)| *known == name) else {
        bail!("there is no selftest {name}; plait-lab selftest list prints all");
    };
    undisturbed(name, *test, output)?;
    output.line(format!("{name}: passed"))?;
    let passed = [Figure::count("passed", 1).exactly(1.0, "the test itself")];
    output.record("summary", &Summary::new(name, &passed, serde_json::json!({})))?;
    Ok(Verdict::Good)
}

/// Runs a test, again when it failed while the machine stood still.
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
