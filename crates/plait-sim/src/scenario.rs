//! Scenarios: one TOML file per experiment, read by both back-ends. `docs/guide/scenarios.md` has
//! every option.
//!
//! [`Experiment::load`] applies the settings of the command line, checks everything, finds all
//! errors in one pass, and expands the sweep into cells. A cell's [`Scenario`] is plain data, which
//! a back-end runs. [`Check::evaluate`] compares the cells' results with what is expected.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use plait_proto::time::Duration;
use plait_toml::{Bounds, Node, Place, Problem, Problems, Section, Table, Value};
use toml::Value as Toml;

use crate::prng::Prng;

pub mod app;
pub mod bond;
pub mod carrier;
pub mod check;
mod draw;
mod error;
pub mod event;
pub mod figure;
mod files;
mod like;
pub mod link;
pub mod measure;
pub mod medium;
pub mod metric;
pub mod multipath;
pub mod rate;
pub mod scatter;
mod settings;
mod span;
pub mod steer;
pub mod sweep;
pub mod trace;
pub mod video;

#[cfg(test)]
mod tests;

pub use app::AppSpec;
pub use bond::BondSpec;
pub use check::{CellResult, Check, CheckOutcome, Paper, PaperLine, PaperValue};
pub use event::{Action, Event};
pub use figure::Figure;
pub use files::ReadFile;
pub use link::{LinkSpec, LossSpec};
pub use measure::{Capture, Measure};
pub use medium::MediumSpec;
pub use plait_toml::{Error as ScenarioError, Errors as ScenarioErrors};
pub use scatter::Scatter;
pub use span::Span;
pub use steer::SteerSpec;
pub use sweep::{Axis, Cell, Settings};

use files::{Cache, Reader};
use metric::Owners;
use sweep::Dimension;

/// A back-end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Backend {
    /// The simulator: virtual time.
    Sim,
    /// Network namespaces: real processes, real time.
    Netns,
}

impl Backend {
    /// All back-ends by name.
    pub const ALL: [(&'static str, Self); 2] = [("sim", Self::Sim), ("netns", Self::Netns)];
}

/// A checked experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Folder and name, such as `002/table-loss`.
    pub name: String,
    /// What it is about, in a line.
    pub title: String,
    /// The experiment it repeats: paper, section, figure.
    pub source: String,
    /// The back-ends that it is meant for.
    pub backends: Vec<Backend>,
    /// How long the run lasts.
    pub duration: Duration,
    /// The part of it, from the start, that metrics leave out.
    pub warmup: Duration,
    /// Round-trip time between the provider's gateway and the server.
    pub server_rtt: Duration,
    /// The links, by name.
    pub links: BTreeMap<String, LinkSpec>,
    /// The media that some of them share, by name.
    pub media: BTreeMap<String, MediumSpec>,
    /// The bond, if there is one.
    pub bond: Option<BondSpec>,
    /// The steering node, if there is one.
    pub steer: Option<SteerSpec>,
    /// The applications.
    pub apps: Vec<AppSpec>,
    /// What happens during the run.
    pub events: Vec<Event>,
    /// What is varied.
    pub sweep: Vec<Axis>,
    /// What is recorded over time.
    pub capture: Capture,
    /// Metrics that the scenario defines.
    pub measures: Vec<Measure>,
    /// Metrics that the scenario defines and that compare cells.
    pub figures: Vec<Figure>,
    /// Plots of one metric against another.
    pub scatters: Vec<Scatter>,
    /// What the paper has.
    pub paper: Paper,
    /// What the run must show.
    pub checks: Vec<Check>,
}

impl Scenario {
    /// This scenario with its random times drawn from a seed. They are the same in all cells of a
    /// sweep, so that all cells meet the same events.
    pub fn drawn(&self, seed: u64) -> Cow<'_, Self> {
        if self.events.is_empty() && self.apps.iter().all(|app| app.start == app.start_latest) {
            return Cow::Borrowed(self);
        }
        // A separate sequence from the one for everything else in a run.
        let mut prng = Prng::new(!seed);
        let mut drawn = self.clone();
        for app in &mut drawn.apps {
            if !app.start_step.is_zero() {
                let steps = app.start_latest.saturating_sub(app.start).as_nanos();
                let steps = steps / app.start_step.as_nanos() + 1;
                let step = u32::try_from(u128::from(seed) % steps);
                app.start += app.start_step * step.expect("no more than a thousand steps are read");
                app.start_latest = app.start;
                continue;
            }
            let spread = app.start_latest.saturating_sub(app.start).as_nanos();
            let spread = u64::try_from(spread).expect("a day is less than 2^64 ns");
            app.start += Duration::from_nanos(prng.up_to(spread));
            app.start_latest = app.start;
        }
        event::settle(&mut drawn, &mut prng);
        Cow::Owned(drawn)
    }

    /// Adds the metrics that compare cells to all results: the bond against other carriers, and the
    /// scenario's figures. Without the cells to compare with they are left out.
    pub fn compare(&self, results: &mut [CellResult]) {
        carrier::compare(results);
        figure::add(&self.figures, results);
    }

    /// Adds the scenario's measures to a result's metrics; those without their series are left out.
    pub fn measure(&self, result: &mut CellResult) {
        for measure in &self.measures {
            if let Some(value) = measure.value(&result.series, self.capture.interval) {
                result.metrics.insert(measure.name.clone(), value);
            }
        }
    }
}

/// A scenario and the cells of its sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// The scenario of the file, with the settings of the command line.
    pub scenario: Scenario,
    /// One cell for each combination of the sweep's values; a single one without a sweep.
    pub cells: Vec<Cell>,
}

impl Experiment {
    /// Reads a scenario. `settings` are `KEY=VALUE`, as in `bond.scheduler.k=0.5`,
    /// `app.flow.rate.mbit=20` or `links.dsl.rtt_ms=[20, 30]`; a setting of a swept key replaces
    /// the sweep's values. `read` gives a file's text.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, each with file and line, or the setting, and what was expected.
    pub fn load(
        file: &Path,
        settings: &[impl AsRef<str>],
        read: &ReadFile<'_>,
    ) -> Result<Self, ScenarioErrors> {
        let problems = Problems::default();
        let cache = Cache::default();
        let folder = file.parent().unwrap_or(Path::new(""));
        let files = Reader { read, cache: &cache, problems: &problems, folder };
        let mut root = resolve(file, settings, &files)?;
        // The list of carriers becomes an axis, which other settings may narrow.
        carrier::spread(&mut root, &problems);
        let declared = declared_values(&root);
        for setting in settings.iter().map(AsRef::as_ref).filter(|setting| !comes_first(setting)) {
            apply(&mut root, setting, &problems);
        }
        let whole = Place::Line(file.into(), 1);
        let loaded = read_scenario(&root, &whole, &declared, &files);
        let cells = match &loaded {
            Some((_, dimensions)) if problems.none_found() => {
                read_cells(&root, &whole, dimensions, &declared, &files)
            }
            _ => Vec::new(),
        };
        problems.finish(loaded.map(|(scenario, _)| Self { scenario, cells }))
    }

    /// The scenario as a self-contained text, with `like`, settings and draws resolved. Files that
    /// it names keep their names.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, and settings that lead nowhere.
    pub fn text(
        file: &Path,
        settings: &[impl AsRef<str>],
        read: &ReadFile<'_>,
    ) -> Result<String, ScenarioErrors> {
        let problems = Problems::default();
        let cache = Cache::default();
        let folder = file.parent().unwrap_or(Path::new(""));
        let files = Reader { read, cache: &cache, problems: &problems, folder };
        let mut root = resolve(file, settings, &files)?;
        for setting in settings.iter().map(AsRef::as_ref).filter(|setting| !comes_first(setting)) {
            apply(&mut root, setting, &problems);
        }
        let whole = Node { place: Place::Line(file.into(), 1), value: Value::Table(root) };
        let text = toml::to_string(&whole.to_toml()).expect("what was read can be written");
        problems.finish(Some(text))
    }
}

/// Whether a setting must be applied before the others.
fn comes_first(setting: &str) -> bool {
    [carrier::LIST, draw::NUMBER].contains(&setting.split('=').next().unwrap_or("").trim())
}

/// The file's tree with `like`, the settings that come first, and draws resolved.
fn resolve(
    file: &Path,
    settings: &[impl AsRef<str>],
    files: &Reader<'_>,
) -> Result<Table, ScenarioErrors> {
    let text = (files.read)(file).map_err(|cause| {
        let problem = error::unreadable(file, &cause.to_string());
        ScenarioError::new(Place::File(file.into()), "", problem)
    })?;
    let mut root = like::resolve(plait_toml::tree::parse(file, &text)?, files);
    for setting in settings.iter().map(AsRef::as_ref).filter(|setting| comes_first(setting)) {
        apply(&mut root, setting, files.problems());
    }
    draw::apply(&mut root, files.problems());
    Ok(root)
}

/// The values of each axis as the file has them, by the axis' name.
fn declared_values(root: &Table) -> BTreeMap<String, Vec<Toml>> {
    let quiet = Problems::default();
    let mut top = Section::top(&quiet, Place::Setting("".into()), root);
    let dimensions = sweep::read_all(top.many("sweep"), &BTreeMap::new());
    dimensions.into_iter().map(|d| (d.axis.name.clone(), d.axis.declared)).collect()
}

/// Applies a setting of the command line.
fn apply(root: &mut Table, setting: &str, problems: &Problems) {
    let place = Place::Setting(setting.into());
    let Some((key, value)) = setting.split_once('=') else {
        let problem = Problem::new("no value", "write KEY=VALUE, as in bond.scheduler.k=0.5");
        return problems.add(&place, "", problem);
    };
    let (key, value) = (key.trim(), settings::parse_value(value.trim(), &place));
    if let Some(axis) = sweep::axis_of(root, key) {
        sweep::narrow(axis, value);
    } else if let Err(problem) = settings::set(root, key, value) {
        problems.add(&place, "", problem);
    }
}

/// Reads a whole scenario. `None` when a noted problem leaves nothing to build.
fn read_scenario(
    root: &Table,
    place: &Place,
    declared: &BTreeMap<String, Vec<Toml>>,
    files: &Reader<'_>,
) -> Option<(Scenario, Vec<Dimension>)> {
    let mut top = Section::top(files.problems(), place.clone(), root);
    let name = top.required_text("name", "name = \"folder/name\"");
    let title = top.required_text("title", "title = \"What it shows\"");
    let source = top.required_text("source", "source = \"002 section 5.2\"");
    let backends = read_backends(&mut top);
    let duration = read_duration(&mut top);
    let warmup = top.seconds("warmup_s").unwrap_or_default();
    if duration.is_some_and(|duration| warmup >= duration) {
        let problem = Problem::new("it leaves nothing to measure", "let it end before duration_s");
        top.problem("warmup_s", problem);
    }
    let server_rtt = top.millis("server_rtt_ms", 10_000.0).unwrap_or_default();
    let whole = duration.unwrap_or(Duration::from_secs(86_400));
    let Topology { links, media, bond, steer, apps, link_names, app_names } =
        read_topology(&mut top, whole, files);
    let around = event::Around {
        duration: whole,
        link_names: &link_names,
        links: &links,
        media: &media,
        app_names: &app_names,
        has_bond: top.holds_any(&["bond"]) || top.holds_any(&[carrier::AXIS]),
    };
    let events = event::read_all(top.many("event"), around);
    let dimensions = sweep::read_all(top.many("sweep"), declared);
    let sweep: Vec<Axis> = dimensions.iter().map(|dimension| dimension.axis.clone()).collect();
    let owners = Owners { apps: &app_names, links: &link_names, measures: &[] };
    let Expectations { capture, measures, figures, scatters, paper, checks } =
        read_expectations(&mut top, &sweep, owners, whole);
    top.know(&[carrier::AXIS, carrier::LIST]);
    top.finish();
    let (name, title, source, duration) = (name?, title?, source?, duration?);
    let scenario = Scenario {
        name,
        title,
        source,
        backends,
        duration,
        warmup,
        server_rtt,
        links,
        media,
        bond,
        steer,
        apps,
        events,
        sweep,
        capture,
        measures,
        figures,
        scatters,
        paper,
        checks,
    };
    Some((scenario, dimensions))
}

fn read_backends(top: &mut Section<'_>) -> Vec<Backend> {
    let mut backends = Vec::new();
    for (name, place) in top.texts("backends") {
        match Backend::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, backend)) => backends.push(*backend),
            None => {
                let known = Backend::ALL.iter().map(|(known, _)| *known);
                top.problem_at(&place, "backends", Problem::choice(&name, known));
            }
        }
    }
    if backends.is_empty() { vec![Backend::Sim] } else { backends }
}

fn read_duration(top: &mut Section<'_>) -> Option<Duration> {
    if !top.holds_any(&["duration_s"]) {
        top.know(&["duration_s"]);
        top.missing("duration_s", "duration_s = 40");
        return None;
    }
    let bounds = Bounds::new(0.1, 86_400.0, "seconds");
    top.number("duration_s", bounds).map(Duration::from_secs_f64)
}

/// What a run records and must show.
struct Expectations {
    capture: Capture,
    measures: Vec<Measure>,
    figures: Vec<Figure>,
    scatters: Vec<Scatter>,
    paper: Paper,
    checks: Vec<Check>,
}

fn read_expectations(
    top: &mut Section<'_>,
    axes: &[Axis],
    owners: Owners<'_>,
    duration: Duration,
) -> Expectations {
    let capture = measure::read_capture(top.single("capture"));
    let (measures, mut names) = measure::read_all(top.many("measure"), &capture, owners, duration);
    let figures = figure::read_all(top.many("figure"), axes, owners, &mut names);
    let owners = Owners { measures: &names, ..owners };
    let scatters = scatter::read_all(top.many("scatter"), axes, owners);
    let around = check::Around { axes, owners };
    let paper = check::read_paper(top.single("paper"), around, &capture);
    let checks = check::read_all(top.many("check"), around, &paper.values);
    Expectations { capture, measures, figures, scatters, paper, checks }
}

/// Links, media, bond, steering node and applications, without wrong ones; and the names of all.
struct Topology<'a> {
    links: BTreeMap<String, LinkSpec>,
    media: BTreeMap<String, MediumSpec>,
    bond: Option<BondSpec>,
    steer: Option<SteerSpec>,
    apps: Vec<AppSpec>,
    link_names: Vec<&'a str>,
    app_names: Vec<String>,
}

fn read_topology<'a>(
    top: &mut Section<'a>,
    duration: Duration,
    files: &Reader<'_>,
) -> Topology<'a> {
    let given = top.holds_any(&["links"]);
    let sections = top.named("links");
    if !given || (sections.is_empty() && files.problems().none_found()) {
        top.missing("links", "[links.dsl] with rate_mbit and rtt_ms");
    }
    let places: BTreeMap<&str, Place> =
        sections.iter().map(|(name, section)| (*name, section.place().clone())).collect();
    let link_names: Vec<&str> = places.keys().copied().collect();
    let mut of_media = top.named("medium");
    let kinds = medium::read_kinds(&mut of_media);
    let links = link::read_all(sections, link::Around { files, duration, media: &kinds });
    link::check_through(&places, &links, files.problems());
    let media = medium::read_all(of_media, &kinds, &places, &links);
    medium::check_through(&places, &links, files.problems());
    let bond = bond::read(top.single("bond"), &links, &link_names);
    let steer = steer::read(top.single("steer"), &links, &link_names);
    let mtus: Vec<(&str, Option<u16>)> =
        link_names.iter().map(|name| (*name, link::path_mtu(&links, name))).collect();
    let inner_mtu = bond.as_ref().map(|bond| bond.inner_mtu);
    let steer_view = steer.as_ref().map(|steer| (steer.mtu, steer.clients));
    let around = app::Around { duration, inner_mtu, steer: steer_view, links: &mtus };
    let sections = top.many("app");
    if !top.holds_any(&["app"]) {
        top.missing("app", "[[app]] with name and kind");
    }
    let (apps, app_names) = app::read_all(sections, around);
    Topology { links, media, bond, steer, apps, link_names, app_names }
}

/// Reads every cell; problems are noted.
fn read_cells(
    root: &Table,
    place: &Place,
    dimensions: &[Dimension],
    declared: &BTreeMap<String, Vec<Toml>>,
    files: &Reader<'_>,
) -> Vec<Cell> {
    let refuse =
        |place: &Place, problem: Problem| files.problems().add(place, "[[sweep]] key", problem);
    let cells = sweep::expand(root, dimensions, refuse);
    let cell = |(name, settings, mut table): (String, Settings, Table)| {
        let carried = carrier::apply(&mut table, files.problems());
        let (mut scenario, _) = read_scenario(&table, place, declared, files)?;
        if carried.is_some() {
            carrier::keep_used(&mut scenario);
        }
        Some(Cell { name, settings, scenario })
    };
    cells.into_iter().filter_map(cell).collect()
}
