//! link.1, link.4: promises on links for which nothing was tuned.

use anyhow::Result;

use super::{Effort, Figure};
use crate::cli::On;
use crate::set::Set;

/// Further numbers, besides the day's, from which links are drawn.
const DRAWN_AGAIN: u64 = 2;
/// Distance of these numbers: more than a rung draws.
const APART: u64 = 50;

/// link.1: the ladder of the world's links, and drawn links, three times.
pub(super) fn check_world(effort: Effort) -> Result<Vec<Figure>> {
    let is_quick = effort.is_quick();
    let mut figures = Set::figures("world", is_quick, On::Sim)?;
    for turn in 1..=DRAWN_AGAIN {
        figures.extend(Set::figures_of_drawn("world", is_quick, turn * APART)?);
    }
    Ok(figures)
}

/// link.4: drawn links in real time, beside the kernel's MPTCP.
pub(super) fn check_beside(effort: Effort) -> Result<Vec<Figure>> {
    Set::figures("beside", effort.is_quick(), On::Netns)
}
