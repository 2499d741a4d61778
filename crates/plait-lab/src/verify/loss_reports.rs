//! bond.2: 002's scheduler, loss reports and whole-bond order under steady UDP.

use anyhow::{Context, Result};
use plait_proto::config::{LossDetection, Order};
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_toml::tuning::Tuning;

use super::{Effort, Figure, leaves};
use crate::emulator::Lateness;
use crate::gateway::BondSetup;
use crate::measure::{self, Span};
use crate::output::Progress;
use crate::site::{Carrier, Site, on_site};
use crate::topology::LinkSpec;

const OFFERED_BPS: u64 = 100_000_000;
const LOSS_MAX_PERCENT: f64 = 1.0;

/// 002 §5: k 0.5, T_dwd 250 ms, T_report 50 ms, T_lto 50 ms, one order for the whole bond.
fn setup() -> BondSetup {
    let tuning = Tuning {
        order: Order::Bond,
        resequencer: ResequencerConfig::PAPER_002,
        loss_detection: LossDetection::Timer,
        ..SchedulerConfig::from(Algorithm::AdaptiveWrr).into()
    };
    BondSetup { tuning: Some(tuning), ..BondSetup::over(&["dsl", "lte"]) }
}

pub(super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let span = Span { seconds: effort.seconds, omit_seconds: 2 };
    let mut progress = Progress::new(1, span.total());
    let links = [LinkSpec::DSL, LinkSpec::LTE];
    let carrier = Carrier::Plait(Box::new(setup()));
    let (udp, details) = on_site(&links, &carrier, &mut Lateness::default(), |site| {
        let _step = progress.step("UDP at 100 Mbit/s", span.total());
        let udp = measure::udp(site.target(), span, OFFERED_BPS)?;
        Ok((udp, details(site)?))
    })?;
    let mut figures = vec![
        Figure::mbit("UDP of 100.0 offered", udp.throughput_bps),
        Figure::percent("loss after two seconds", udp.loss_ppm())
            .at_most(LOSS_MAX_PERCENT, "002 §4 with the settings of its §5.2"),
        Figure::count("packets out of order", udp.out_of_order_packets)
            .exactly(0.0, "002 §3: order of the whole bond"),
    ];
    figures.extend(details);
    Ok(figures)
}

/// Where packets were lost, and what the gateways made of it.
fn details(site: &mut Site<'_>) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for link in &site.topology.customer().links {
        let dropped = link.emulator.report().down.dropped_queue_packets;
        let what = format!("link {}: dropped by its full queue", link.spec.name);
        figures.push(Figure::count(what, dropped));
    }
    let bond = site.bond.as_mut().context("plait carries this")?;
    for peer in &bond.provider_status()?.peers {
        let paths = peer.path_lines().into_iter();
        figures.extend(paths.map(|(name, text)| Figure::text(format!("path {name}"), text)));
    }
    figures.extend(leaves("resequencer", &bond.customer_peer()?.resequencer));
    Ok(figures)
}
