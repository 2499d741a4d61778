//! Tests of the steering node: real processes, and a client that only runs the lines of the printed
//! recipe.

mod course;
mod leftovers;
mod recipes;

pub(super) use course::*;
pub(super) use leftovers::*;
pub(super) use recipes::*;

use anyhow::{Result, ensure};

use crate::output::Output;
use crate::steering::{SteerSite, SteerStatus};
use crate::topology::LinkSpec;

/// Links slow enough that even a busy machine fills them.
const LINKS: [LinkSpec; 2] = [LinkSpec::new("lte", 10, 40, 40), LinkSpec::new("wifi", 14, 16, 16)];
/// Bytes that take a few seconds over both.
const FILE_BYTES: u64 = 6_000_000;
/// The smallest part of a download that counts as a share.
const SHARE_MIN: f64 = 0.2;

/// Checks that both links have carried their share since `before`, by the emulators' and the node's
/// counters.
fn both_carried(
    site: &SteerSite,
    before: &[u64],
    status: &SteerStatus,
    output: &Output,
) -> Result<()> {
    let carried: Vec<u64> =
        site.carried().iter().zip(before).map(|(now, before)| now - before).collect();
    let total: u64 = carried.iter().sum();
    for (name, bytes) in site.names().iter().zip(&carried) {
        let share = *bytes as f64 / total as f64;
        let told = status.attachment(name)?.share;
        output.line(format!("{name} carried {share:.2} of the bytes; of the packets {told:.2}"))?;
        ensure!(share > SHARE_MIN && told > SHARE_MIN, "{name} carried {share:.2}, told {told:.2}");
    }
    Ok(())
}
