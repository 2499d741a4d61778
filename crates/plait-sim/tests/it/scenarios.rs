//! Where the tests' scenarios come from.

use std::io;
use std::path::Path;

use plait_sim::run::{RunResult, run};
use plait_sim::scenario::Experiment;

/// A scenario of the repository's.
pub(crate) fn repository(name: &str, settings: &[&str]) -> Experiment {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    Experiment::load(&file, settings, &|file| std::fs::read_to_string(file))
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// One of the small scenarios of the golden tables.
pub(crate) fn small(name: &str) -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    let file = folder.join(name).with_extension("toml");
    Experiment::load(&file, &[] as &[&str], &|file| std::fs::read_to_string(file))
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// A scenario written in a test, without its first lines.
pub(crate) fn written(text: &str) -> Experiment {
    let text = format!("name = \"test/world\"\ntitle = \"t\"\nsource = \"none\"\n{text}");
    let read = |_: &Path| Err::<String, _>(io::ErrorKind::NotFound.into());
    let file = Path::new("test.toml");
    let read = |path: &Path| if path == file { Ok(text.clone()) } else { read(path) };
    Experiment::load(file, &[] as &[&str], &read).unwrap_or_else(|errors| panic!("{errors}"))
}

/// One run of a scenario written in a test.
pub(crate) fn run_written(text: &str) -> RunResult {
    run(&written(text).cells[0].scenario, 1).unwrap_or_else(|error| panic!("{error}"))
}

/// Fails unless a metric lies within its band.
#[track_caller]
pub(crate) fn assert_in(result: &RunResult, metric: &str, band: core::ops::RangeInclusive<f64>) {
    let value = result.metrics[metric];
    assert!(band.contains(&value), "{metric} is {value}, expected {band:?}: {:#?}", result.metrics);
}
