//! trust.3: the cost of an authenticated peer's datagrams to a gateway, by kind.
//!
//! In one process, with real keys: a gateway with two peers. One sends ordinary data; the other
//! seals hostile datagrams of one kind, at 10,000 a second of virtual time. Blocks of both
//! alternate; a block of ordinary ones has the same lengths as the hostile block before it. Only
//! the gateway's work is timed, by the thread's own processor time.
//!
//! Handshakes are different: they are not sealed, each costs as much as a thousand datagrams, and
//! their number is limited instead (spec H-7, H-10, H-11). Rows with handshakes are checked against
//! the share of a core that those limits allow.

mod scene;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use anyhow::Result;
use plait_sim::hostile::content::Kind;
use scene::{Cost, Loop, Scene};

use super::super::{Effort, Figure};
use crate::output::{self, Meter};
use crate::process;

const SOURCE: &str = "docs/threat-model.md, what a customer can do";
/// Share of a core that handshakes may take: 250 of half a millisecond in a second.
const HANDSHAKES_CORE_PERCENT_MAX: f64 = 12.5;
/// Packet slots walked for each datagram that the gateway received or sent. A packet that arrives
/// fills at most two slots, its own and its predecessor's, and each is visited twice: when the gap
/// below is known lost, and when it is given up or delivered.
const SLOTS_MAX: f64 = 4.0;
/// Processor time of hostile datagrams over that of as many ordinary ones of the same lengths.
const COST_RATIO_MAX: f64 = 3.0;
/// Bytes that the gateway sends for each byte that it receives: a challenge for a datagram from
/// another address, an echo for a probe.
const ANSWERED_RATIO_MAX: f64 = 2.0;
/// Memory that one peer may make the gateway hold: packets in its resequencer (16 MiB), plus its
/// paths, their windows and the allocator's overhead.
const GROWTH_MIB_MAX: f64 = 32.0;

const DATAGRAMS: u64 = 10_000_000;
const DATAGRAMS_QUICK_PER_ROW: u64 = 100_000;
/// Datagrams of a block.
const BLOCK: usize = 1000;
/// Blocks whose costs are summed before comparison: each such span includes occasional expensive
/// work.
const SPAN_BLOCKS: usize = 10;
/// A kind that takes longer is stopped, and fails.
const ROW_TIME_MAX: Duration = Duration::from_secs(60);
/// The gateway's own packets in flight to the peer that acknowledges them: as many as an open loop
/// allows, or a closed one.
const OUTSTANDING: [(Loop, usize); 2] = [(Loop::Open, 20_000), (Loop::Closed, 500)];

/// One kind of content against one kind of gateway; `None`: all kinds mixed.
#[derive(Clone, Copy, Debug)]
struct Row {
    kind: Option<Kind>,
    control: Loop,
    outstanding: usize,
}

impl Row {
    fn name(&self) -> String {
        let kind = self.kind.map_or("all kinds mixed", Kind::name);
        match self.outstanding {
            0 => kind.to_owned(),
            packets => format!("{kind} ({}, {packets} on their way)", self.control.name()),
        }
    }
}

fn rows() -> Vec<Row> {
    let acknowledges = |kind: Kind| matches!(kind, Kind::Acks | Kind::AckRanges | Kind::FalseAcks);
    let mut rows = Vec::new();
    for kind in Kind::ALL.iter().copied().filter(|kind| *kind != Kind::Ordinary) {
        if acknowledges(kind) {
            let row = |(control, outstanding)| Row { kind: Some(kind), control, outstanding };
            rows.extend(OUTSTANDING.map(row));
        } else {
            rows.push(Row { kind: Some(kind), control: Loop::Closed, outstanding: 0 });
        }
    }
    rows.push(Row { kind: None, control: Loop::Closed, outstanding: 500 });
    rows
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let rows = rows();
    let quick = DATAGRAMS_QUICK_PER_ROW * rows.len() as u64;
    let total = if effort.is_quick() { quick } else { DATAGRAMS };
    let blocks = total.div_ceil(rows.len() as u64).div_ceil(BLOCK as u64) as usize;
    let (mut figures, mut outcomes, mut panics) = (Vec::new(), Vec::new(), 0);
    let mut meter = Meter::new("trust.3", "kinds", rows.len());
    for row in &rows {
        match catch_unwind(AssertUnwindSafe(|| measure(row, blocks))) {
            Ok(outcome) => {
                output::note(format!("trust.3: {}: {}", row.name(), outcome.sentence()));
                figures.extend(outcome.figures(&row.name()));
                outcomes.push(outcome);
            }
            Err(_) => {
                figures.push(Figure::text(row.name(), "the gateway panicked"));
                panics += 1;
            }
        }
        meter.finished_one();
    }
    let mut all = summary(&outcomes, total, panics);
    all.extend(figures);
    Ok(all)
}

fn summary(outcomes: &[Outcome], total: u64, panics: u64) -> Vec<Figure> {
    let largest = |value: fn(&Outcome) -> f64| outcomes.iter().map(value).fold(0.0, f64::max);
    let sealed = outcomes.iter().filter(|outcome| !outcome.shakes_hands);
    let ratio = sealed.clone().map(|outcome| outcome.ratio).fold(0.0, f64::max);
    let sent = outcomes.iter().map(|outcome| outcome.hostile.datagrams).sum();
    let undelivered =
        outcomes.iter().map(|outcome| outcome.ordinary.datagrams - outcome.delivered).sum();
    let cost = "processor time of as many ordinary datagrams, worst kind";
    vec![
        Figure::none("panics", panics, SOURCE),
        Figure::count("hostile datagrams", sent).at_least(total as f64, SOURCE),
        Figure::number(cost, ratio, "ratio").at_most(COST_RATIO_MAX, SOURCE),
        Figure::number("slots walked per datagram, worst kind", largest(|o| o.slots), "")
            .at_most(SLOTS_MAX, SOURCE),
        Figure::number("bytes answered per byte, worst kind", largest(Outcome::answered), "ratio")
            .at_most(ANSWERED_RATIO_MAX, "an answer is no amplification"),
        Figure::number("growth of memory, worst kind", largest(|o| o.growth_mib), "MiB")
            .at_most(GROWTH_MIB_MAX, "16 MiB of the resequencer, and as much for the rest"),
        Figure::count("ordinary packets that did not come out", undelivered)
            .exactly(0.0, "no customer can harm another"),
    ]
}

/// The result of a row.
#[derive(Debug)]
struct Outcome {
    /// Median over the spans of hostile cost by ordinary cost.
    ratio: f64,
    hostile: Cost,
    ordinary: Cost,
    /// Ordinary packets that the gateway gave to its host.
    delivered: u64,
    growth_mib: f64,
    /// Slots walked per datagram.
    slots: f64,
    /// Whether the peer made handshakes, whose number is limited.
    shakes_hands: bool,
}

impl Outcome {
    fn answered(&self) -> f64 {
        self.hostile.answered_bytes as f64 / self.hostile.bytes.max(1) as f64
    }

    fn sentence(&self) -> String {
        format!(
            "{:.2} times: {:.2} us against {:.2}, {:.0} bytes each, {:.2} bytes answered per byte, \
             {:.1} MiB more",
            self.ratio,
            self.hostile.us_each(),
            self.ordinary.us_each(),
            self.hostile.bytes as f64 / self.hostile.datagrams.max(1) as f64,
            self.answered(),
            self.growth_mib,
        )
    }

    fn figures(&self, name: &str) -> [Figure; 2] {
        let check = if self.shakes_hands {
            let percent = self.hostile.us_each() * scene::DATAGRAMS_PER_SECOND / 1e4;
            Figure::number(format!("{name}: of a core"), percent, "%")
                .at_most(HANDSHAKES_CORE_PERCENT_MAX, "spec H-7, H-10, H-11")
        } else {
            Figure::number(format!("{name}: cost of ordinary ones"), self.ratio, "ratio")
                .at_most(COST_RATIO_MAX, SOURCE)
        };
        [check, Figure::text(format!("{name}: in all"), self.sentence())]
    }
}

fn measure(row: &Row, blocks: usize) -> Outcome {
    let mut scene = Scene::new(row.control);
    let memory_before = resident_mib();
    let (mut ratios, mut spans) = (Vec::new(), [Cost::default(); 2]);
    let (mut hostile, mut ordinary) = (Cost::default(), Cost::default());
    let mut growth_mib = 0.0_f64;
    let mut slots = 0;
    for block in 0..blocks {
        scene.prepare(row.outstanding);
        let made = scene.make_hostile(row.kind, BLOCK);
        let lengths: Vec<usize> = made.iter().map(|datagram| datagram.made.bytes.len()).collect();
        let before = scene.slots_walked();
        spans[0].add(&scene.receive(made));
        // A new bond counts from 0.
        slots += scene.slots_walked().saturating_sub(before);
        scene.settle();
        let made = scene.make_ordinary(&lengths);
        spans[1].add(&scene.receive(made));
        scene.settle();
        let is_last = block + 1 == blocks || hostile.time + spans[0].time > ROW_TIME_MAX;
        if (block + 1).is_multiple_of(SPAN_BLOCKS) || is_last {
            ratios.push(spans[0].us_each() / spans[1].us_each());
            hostile.add(&spans[0]);
            ordinary.add(&spans[1]);
            spans = [Cost::default(); 2];
            growth_mib = growth_mib.max(resident_mib() - memory_before);
        }
        if is_last {
            break;
        }
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let ratio = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    let handled = hostile.datagrams + scene.sent_to_hostile;
    Outcome {
        ratio,
        hostile,
        ordinary,
        delivered: scene.delivered,
        growth_mib,
        slots: slots as f64 / handled as f64,
        shakes_hands: row.kind.is_some_and(Kind::shakes_hands),
    }
}

/// Memory of this process.
fn resident_mib() -> f64 {
    process::memory_mib("self", process::RESIDENT).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_row_and_the_gateway_stands_it() {
        let rows = rows();
        assert!(Kind::ALL.iter().skip(1).all(|kind| rows.iter().any(|r| r.kind == Some(*kind))));
        for kind in [Some(Kind::Ordinary), Some(Kind::Probes), Some(Kind::Farewells), None] {
            let outcome = measure(&Row { kind, control: Loop::Closed, outstanding: 0 }, 2);
            assert_eq!(outcome.hostile.datagrams, 2 * BLOCK as u64, "{kind:?}");
            assert_eq!(outcome.delivered, outcome.ordinary.datagrams, "{kind:?}");
        }
    }

    #[test]
    fn acknowledgements_are_of_what_is_on_its_way() {
        for (control, outstanding) in OUTSTANDING {
            let mut scene = Scene::new(control);
            scene.prepare(outstanding);
            assert_eq!(scene.on_their_way(), outstanding as u64, "{control:?}");
        }
    }
}
