//! bond.3: one CUBIC flow over links of very different delay.

use anyhow::{Context, Result};

use super::{Effort, Figure, leaves};
use crate::emulator::Lateness;
use crate::measure::{self, Span};
use crate::output::Progress;
use crate::site::{Carrier, on_site};
use crate::topology::LinkSpec;

const RETRANSMITS_MAX_PERCENT: f64 = 1.0;

/// The DSL line with three times its delay.
const SLOW_DSL: LinkSpec = LinkSpec { rtt_min_ms: 39, rtt_max_ms: 39, ..LinkSpec::DSL };

pub(super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let span = Span { seconds: effort.seconds, omit_seconds: 2 };
    let mut progress = Progress::new(1, span.total());
    let carrier = Carrier::plait(&["dsl", "lte"]);
    let links = [SLOW_DSL, LinkSpec::LTE];
    let (tcp, resequencer) = on_site(&links, &carrier, &mut Lateness::default(), |site| {
        let _step = progress.step("TCP over unequal delays", span.total());
        let tcp = measure::tcp(site.target(), span, "cubic")?;
        let bond = site.bond.as_mut().context("plait carries this")?;
        Ok((tcp, bond.customer_peer()?.resequencer))
    })?;
    let mut figures = vec![
        Figure::mbit("TCP", tcp.throughput_bps),
        Figure::percent("segments sent again", tcp.retransmits_ppm())
            .at_most(RETRANSMITS_MAX_PERCENT, "reordering must not look like loss to TCP"),
    ];
    figures.extend(leaves("resequencer", &resequencer));
    Ok(figures)
}
