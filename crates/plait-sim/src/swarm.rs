//! Turns a seed into a run of two gateways with random links, loads and faults, with checkers that
//! are always on.
//!
//! At every moment: packets come out as sent, bit for bit, at the right side, once, and in order;
//! memory and waiting times are bounded; timers make progress; a gateway sends only with a cause.
//! At the end everything heals, and traffic must flow again.
//!
//! - [`run`]: one seed; [`run_beside_hostile`]: one seed with an authenticated hostile peer.
//! - [`soak`]: many hours.
//! - [`idle`]: what an idle bond sends.

use std::fmt;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

mod check;
mod draw;
mod fault;
mod gateway;
pub mod idle;
mod intruder;
mod load;
mod plan;
mod swarm_run;
mod wire;

pub use check::Violation;
pub use fault::{Action, FaultKinds};
pub use load::FlowPlan;
pub use plait_pair::{CUSTOMER, PROVIDER};
pub use plan::{LinkPlan, PACKETS_MAX, SwarmPlan};
use swarm_run::SwarmRun;
pub use swarm_run::Trace;

/// After the healing traffic flows both ways within this time.
pub const TRAFFIC_WITHIN: Duration = Duration::from_secs(10);
/// After the healing every link has a path that is up within this time.
pub const PATHS_WITHIN: Duration = Duration::from_secs(30);
/// Packets that queued at the gateways during faults have left within this time.
pub const EMPTY_WITHIN: Duration = Duration::from_secs(10);
/// Once all paths are up and queues are empty, everything sent in this time arrives.
const PROOF_TIME: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(100);

/// The result of a run without a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Inner packets that hosts sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Inner packets that came out.
    pub delivered_packets: u64,
    /// Datagrams that left both gateways.
    pub datagrams: u64,
    /// Faults and their ends.
    pub actions: u64,
    /// Virtual time.
    pub time: Duration,
    /// From the healing until traffic flowed both ways.
    pub traffic_after: Duration,
    /// From the healing until every link had a path that was up.
    pub paths_after: Duration,
    /// A digest of the run: two runs of one seed have the same.
    pub digest: u64,
}

/// Runs a seed.
///
/// # Errors
///
/// The first violation.
pub fn run(seed: u64, kinds: FaultKinds, trace: Option<Trace<'_>>) -> Result<Outcome, Violation> {
    run_plan(&SwarmPlan::new(seed, kinds), trace)
}

/// Runs a seed with a third peer at the provider that has a key and seals arbitrary datagrams.
///
/// # Errors
///
/// As [`run`].
pub fn run_beside_hostile(
    seed: u64,
    kinds: FaultKinds,
    trace: Option<Trace<'_>>,
) -> Result<Outcome, Violation> {
    run_plan(&SwarmPlan { hostile: true, ..SwarmPlan::new(seed, kinds) }, trace)
}

/// Many hours of faults, with loads of `rate` in all.
///
/// # Errors
///
/// As [`run`].
pub fn soak(
    seed: u64,
    length: Duration,
    rate: Rate,
    kinds: FaultKinds,
    trace: Option<Trace<'_>>,
) -> Result<Outcome, Violation> {
    run_plan(&SwarmPlan::soak(seed, length, rate, kinds), trace)
}

/// Runs a plan, heals everything, and checks that the bond recovers.
///
/// # Errors
///
/// As [`run`].
pub fn run_plan(plan: &SwarmPlan, mut trace: Option<Trace<'_>>) -> Result<Outcome, Violation> {
    if let Some(trace) = &mut trace {
        describe(plan, trace);
    }
    let mut run = SwarmRun::new(plan, trace);
    run.run_until(plan.heal_at)?;
    run.heal()?;
    let (traffic_after, paths_after) = recover(&mut run)?;
    empty(&mut run)?;
    prove(&mut run)?;
    let [up, down] = &run.ledgers;
    Ok(Outcome {
        sent_packets: run.sent_packets(),
        sent_bytes: up.sent_bytes + down.sent_bytes,
        delivered_packets: up.delivered_packets + down.delivered_packets,
        datagrams: run.datagrams,
        actions: plan.actions.len() as u64,
        time: run.now.since(Instant::ZERO),
        traffic_after,
        paths_after,
        digest: run.digest,
    })
}

fn describe(plan: &SwarmPlan, trace: &mut Trace<'_>) {
    let mut tell = |what: fmt::Arguments<'_>| trace(Instant::ZERO, what);
    for (at, link) in plan.links.iter().enumerate() {
        tell(format_args!("link{at}: {link:?}"));
    }
    for (side, bond) in plan.bonds.iter().enumerate() {
        tell(format_args!("side {side}: {bond:?}"));
    }
    for flow in &plan.flows {
        tell(format_args!("{flow:?}"));
    }
    let (packets, heal_at) = (plan.packets_max, plan.heal_at.as_nanos() / 1_000_000);
    let (cipher, both_seek) = (plan.cipher, plan.both_seek);
    tell(format_args!(
        "{packets} packets, cipher {cipher:?}, both seek: {both_seek}, heals at {heal_at} ms"
    ));
}

/// Waits for traffic and paths; says how long each took.
fn recover(run: &mut SwarmRun<'_, '_>) -> Result<(Duration, Duration), Violation> {
    let healed = run.now;
    let (mut traffic, mut paths) = (None, None);
    while traffic.is_none() || paths.is_none() {
        run.run_until(run.now + STEP)?;
        let passed = run.now.since(healed);
        if traffic.is_none() && run.flows_since(healed) {
            traffic = Some(passed);
        }
        let missing = [CUSTOMER, PROVIDER].map(|side| run.links_missing(side));
        if missing.iter().all(Vec::is_empty) {
            paths.get_or_insert(passed);
        } else {
            paths = None;
        }
        if traffic.is_none() && passed > TRAFFIC_WITHIN {
            return run.fail(format!("no traffic both ways {passed:?} after all healed"));
        }
        if paths.is_none() && passed > PATHS_WITHIN {
            let [customer, provider] = missing.map(|links| links.join(" "));
            return run.fail(format!(
                "{passed:?} after all healed no path is up over [{customer}] at the customer, \
                 [{provider}] at the provider"
            ));
        }
    }
    Ok((traffic.unwrap_or_default(), paths.unwrap_or_default()))
}

/// Waits until earlier backlog has left: it and its acknowledgements fill the links like any load.
fn empty(run: &mut SwarmRun<'_, '_>) -> Result<(), Violation> {
    let since = run.now;
    while run.backlog_packets() > 0 {
        run.run_until(run.now + STEP)?;
        if run.now.since(since) > EMPTY_WITHIN {
            let packets = run.backlog_packets();
            return run.fail(format!("{packets} packets wait {EMPTY_WITHIN:?} after all is up"));
        }
    }
    run.run_until(run.now + run.wires.delay_max())
}

/// With all paths up, everything arrives; only packets that a short timer gave up may be missing.
fn prove(run: &mut SwarmRun<'_, '_>) -> Result<(), Violation> {
    let since = run.now;
    let late_before = [CUSTOMER, PROVIDER].map(|side| run.late_dropped(side));
    run.run_until(since + PROOF_TIME)?;
    run.hush();
    let until = run.now;
    let rest = run.wires.delay_max() + Duration::from_secs(2);
    run.run_until(until + rest)?;
    for side in [CUSTOMER, PROVIDER] {
        let late = run.late_dropped(side).saturating_sub(late_before[side]);
        let missing = run.ledgers[1 - side].missing(since, until) as u64;
        if missing > late {
            return run.fail(format!(
                "{missing} packets to side {side} were lost though all links were healed; the \
                 resequencer dropped {late}"
            ));
        }
    }
    Ok(())
}
