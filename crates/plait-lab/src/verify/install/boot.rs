//! install.2: what the service may do, and how it comes up where something is missing.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::machine;
use crate::figure::Figure;
use crate::process;
use crate::verify::Effort;

const SOURCE: &str = "install.2";
const UNIT: &str = "packaging/systemd/plait@.service";
const LIMIT: Duration = Duration::from_secs(60);
/// systemd's own measure of what a service could do, from 0 to 10.
const EXPOSURE_MAX: f64 = 3.0;

pub(in crate::verify) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let mut git = Command::new("git");
    let root = process::run(git.args(["rev-parse", "--show-toplevel"]), "", LIMIT)
        .context("install.2 is checked from within a clone")?;
    let exposure = exposure(&Path::new(root.trim()).join(UNIT))?;
    let mut figures = vec![
        Figure::number("systemd-analyze security: exposure", exposure, "of 10")
            .at_most(EXPOSURE_MAX, SOURCE),
    ];
    figures.extend(machine::check(effort)?);
    Ok(figures)
}

fn exposure(unit: &Path) -> Result<f64> {
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=yes", "--no-pager"]).arg(unit);
    let said = process::run(&mut command, "", LIMIT)?;
    let level = said.rsplit("Overall exposure level for").next();
    let level = level.and_then(|rest| rest.split(": ").nth(1)?.split(' ').next());
    level.and_then(|text| text.parse().ok()).context("systemd-analyze prints no exposure level")
}
