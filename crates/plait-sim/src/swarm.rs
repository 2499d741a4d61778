//! A seed in, a run of two gateways under random links, loads and faults out, with checkers that
//! are always on.
//!
//! What must hold at every moment: what comes out was sent, bit for bit, at the right side, once,
//! and in its order; memory and waiting times are bounded; timers make progress; what a gateway
//! sends comes of something. At the end everything heals, and traffic must flow again.
//!
//! - [`run`]: one seed; [`run_beside_hostile`]: beside an authenticated hostile peer.
//! - [`soak`]: many hours.
//! - [`idle`]: what an idle bond sends.

use std::fmt;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

mod check;
mod course;
mod draw;
mod fault;
mod gateway;
pub mod idle;
mod intruder;
mod load;
mod plan;
mod wire;

pub use check::Violation;
use course::Course;
pub use course::Trace;
pub use fault::{Action, FaultKinds};
pub use load::FlowPlan;
pub use plait_pair::{CUSTOMER, PROVIDER};
pub use plan::{LinkPlan, PACKETS_MAX, Plan};

/// After the healing traffic flows both ways within this time.
pub const TRAFFIC_WITHIN: Duration = Duration::from_secs(10);
/// After the healing every link has a path that is up within this time.
pub const PATHS_WITHIN: Duration = Duration::from_secs(30);
/// What waited at the gateways for room while all was broken is gone within this time.
pub const EMPTY_WITHIN: Duration = Duration::from_secs(10);
/// Once all is up and empty, everything that is sent in this time arrives.
const PROOF_TIME: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(100);

/// What a run without a violation found.
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
    /// A mark of the course: two runs of one seed have the same.
    pub digest: u64,
}

/// Runs a seed.
///
/// # Errors
///
/// The first thing that must not be.
pub fn run(seed: u64, kinds: FaultKinds, trace: Option<Trace<'_>>) -> Result<Outcome, Violation> {
    run_plan(&Plan::new(seed, kinds), trace)
}

/// Runs a seed with a third peer at the provider that holds a key and seals what it likes.
///
/// # Errors
///
/// As [`run`].
pub fn run_beside_hostile(
    seed: u64,
    kinds: FaultKinds,
    trace: Option<Trace<'_>>,
) -> Result<Outcome, Violation> {
    run_plan(&Plan { hostile: true, ..Plan::new(seed, kinds) }, trace)
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
    run_plan(&Plan::soak(seed, length, rate, kinds), trace)
}

/// Runs a plan, heals everything, and sees the bond recover.
///
/// # Errors
///
/// As [`run`].
pub fn run_plan(plan: &Plan, mut trace: Option<Trace<'_>>) -> Result<Outcome, Violation> {
    if let Some(trace) = &mut trace {
        describe(plan, trace);
    }
    let mut course = Course::new(plan, trace);
    course.run_until(plan.heal_at)?;
    course.heal()?;
    let (traffic_after, paths_after) = recover(&mut course)?;
    empty(&mut course)?;
    prove(&mut course)?;
    let [up, down] = &course.ledgers;
    Ok(Outcome {
        sent_packets: course.sent_packets(),
        sent_bytes: up.sent_bytes + down.sent_bytes,
        delivered_packets: up.delivered_packets + down.delivered_packets,
        datagrams: course.datagrams,
        actions: plan.actions.len() as u64,
        time: course.now.since(Instant::ZERO),
        traffic_after,
        paths_after,
        digest: course.digest,
    })
}

fn describe(plan: &Plan, trace: &mut Trace<'_>) {
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
fn recover(course: &mut Course<'_, '_>) -> Result<(Duration, Duration), Violation> {
    let healed = course.now;
    let (mut traffic, mut paths) = (None, None);
    while traffic.is_none() || paths.is_none() {
        course.run_until(course.now + STEP)?;
        let passed = course.now.since(healed);
        if traffic.is_none() && course.flows_since(healed) {
            traffic = Some(passed);
        }
        let missing = [CUSTOMER, PROVIDER].map(|side| course.links_missing(side));
        if missing.iter().all(Vec::is_empty) {
            paths.get_or_insert(passed);
        } else {
            paths = None;
        }
        if traffic.is_none() && passed > TRAFFIC_WITHIN {
            return course.fail(format!("no traffic both ways {passed:?} after all healed"));
        }
        if paths.is_none() && passed > PATHS_WITHIN {
            let [customer, provider] = missing.map(|links| links.join(" "));
            return course.fail(format!(
                "{passed:?} after all healed no path is up over [{customer}] at the customer, \
                 [{provider}] at the provider"
            ));
        }
    }
    Ok((traffic.unwrap_or_default(), paths.unwrap_or_default()))
}

/// Waits for what waited before: it, and what acknowledges it, fills the links as any load does.
fn empty(course: &mut Course<'_, '_>) -> Result<(), Violation> {
    let since = course.now;
    while course.backlog_packets() > 0 {
        course.run_until(course.now + STEP)?;
        if course.now.since(since) > EMPTY_WITHIN {
            let packets = course.backlog_packets();
            return course.fail(format!("{packets} packets wait {EMPTY_WITHIN:?} after all is up"));
        }
    }
    course.run_until(course.now + course.wires.delay_max())
}

/// With all up, everything arrives; only what a short timer gave up may be missing.
fn prove(course: &mut Course<'_, '_>) -> Result<(), Violation> {
    let since = course.now;
    let late_before = [CUSTOMER, PROVIDER].map(|side| course.late_dropped(side));
    course.run_until(since + PROOF_TIME)?;
    course.hush();
    let until = course.now;
    let rest = course.wires.delay_max() + Duration::from_secs(2);
    course.run_until(until + rest)?;
    for side in [CUSTOMER, PROVIDER] {
        let late = course.late_dropped(side).saturating_sub(late_before[side]);
        let missing = course.ledgers[1 - side].missing(since, until) as u64;
        if missing > late {
            return course.fail(format!(
                "{missing} packets to side {side} were lost though all links were healed; the \
                 resequencer dropped {late}"
            ));
        }
    }
    Ok(())
}
