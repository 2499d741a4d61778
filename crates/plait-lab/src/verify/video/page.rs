//! video.7: the measuring application's own tests in headless Chromium, in a namespace without a
//! route out.

use anyhow::Result;

use super::super::{Effort, Figure};
use crate::output;
use crate::qoe::{check_player, selftest};

const SOURCE: &str = "video.7";

pub(in super::super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    // Without a browser nothing is known of the page.
    check_player()?;
    let walked = selftest::walk_page();
    let failed = Figure::none("failed tests of the page", walked.is_err().into(), SOURCE);
    Ok(match walked {
        Ok(run) => vec![
            failed,
            Figure::number("its own clip: score", run.figures.mos, "MOS"),
            Figure::number("its own clip: initial load", run.figures.initial_load_s, "s"),
        ],
        Err(error) => {
            output::print_error(&error);
            vec![failed, Figure::text("what failed", format!("{error:#}"))]
        }
    })
}
