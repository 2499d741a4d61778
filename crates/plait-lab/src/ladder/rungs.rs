//! The rungs, a line or three each. A name is `kind/own-name`; the links' order is that of the
//! bond's configuration, and what a link is called says what it is.

mod calm;
mod links;
mod loads;
mod moving;
mod rough;

use super::rung::Rung;

/// Every rung, kind by kind.
pub(crate) fn all() -> Vec<Rung> {
    [calm::RUNGS, rough::RUNGS, moving::RUNGS, loads::RUNGS].concat()
}

#[cfg(test)]
mod tests;
