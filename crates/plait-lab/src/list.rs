//! `plait-lab list`, and where scenarios are found.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use plait_sim::scenario::{Backend, Experiment, Scenario};
use serde::Serialize;

use crate::cli::ListArgs;
use crate::figure::Summary;
use crate::output::{self, Align, Output, Table, Verdict};

const FOLDER: &str = "scenarios";
/// The folder of sets of scenarios.
pub(crate) const SETS: &str = "sets";
/// Folders of files that are not scenarios: link conditions, and parts that several share.
const BESIDE: [&str; 3] = ["links", "templates", SETS];

/// A folder of scenarios. A scenario's name is its file's path in it, without the ending.
#[derive(Debug)]
pub(crate) struct Catalogue {
    folder: PathBuf,
}

impl Catalogue {
    /// The folder given, or else `scenarios/` of the current folder or of one above it.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self> {
        if let Some(folder) = given {
            ensure!(
                folder.is_dir(),
                "{}: no such folder; give --folder one that holds scenarios",
                folder.display()
            );
            return Ok(Self { folder: folder.to_owned() });
        }
        let current = std::env::current_dir().context("while looking for scenarios/")?;
        let mut folder = PathBuf::from(FOLDER);
        for _ in current.ancestors() {
            if folder.is_dir() {
                return Ok(Self { folder });
            }
            folder = Path::new("..").join(folder);
        }
        bail!("no folder scenarios/ here or above; go to a checkout of plait, or give --folder")
    }

    /// Its path.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of all scenarios, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.collect(&self.folder, "", &mut names)
            .with_context(|| format!("{}: cannot be read", self.folder.display()))?;
        names.sort();
        Ok(names)
    }

    fn collect(&self, folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
        const DEPTH_MAX: usize = 4;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let name = format!("{prefix}{stem}");
            let is_beside = prefix.is_empty() && BESIDE.contains(&stem);
            if path.is_dir() && !is_beside && name.split('/').count() < DEPTH_MAX {
                self.collect(&path, &format!("{name}/"), names)?;
            } else if path.is_file() && path.extension().is_some_and(|ending| ending == "toml") {
                names.push(name);
            }
        }
        Ok(())
    }

    /// Reads the scenario of this name, with settings of the command line.
    pub(crate) fn load(&self, name: &str, settings: &[String]) -> Result<Loaded> {
        let file = self.folder.join(format!("{name}.toml"));
        if !file.is_file() {
            bail!("{}", self.unknown(name)?);
        }
        let loaded = load_file(&file, settings)?;
        // A drawn scenario's name includes its number.
        let inside = &loaded.experiment.scenario.name;
        let inside = inside.split_once('@').map_or(inside.as_str(), |(inside, _)| inside);
        ensure!(
            inside == name,
            "{}: name: \"{inside}\" is not the file's own; write name = \"{name}\", or rename the \
             file",
            file.display()
        );
        Ok(loaded)
    }

    /// The scenario of this name with settings, as a self-contained text.
    pub(crate) fn text(&self, name: &str, settings: &[String]) -> Result<String> {
        let file = self.folder.join(format!("{name}.toml"));
        Ok(Experiment::text(&file, settings, &|file| fs::read_to_string(file))?)
    }

    fn unknown(&self, name: &str) -> Result<String> {
        let names = self.names()?;
        let (folder, wanted) = name.rsplit_once('/').unwrap_or(("", name));
        let beside = |known: &str| known.rsplit_once('/').is_some_and(|(its, _)| its == folder);
        let near: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|known| beside(known) || (!wanted.is_empty() && known.contains(wanted)))
            .collect();
        let help = match near.as_slice() {
            [] => "`plait-lab list` shows all".to_owned(),
            near => format!("did you mean one of: {}?", near.join(", ")),
        };
        Ok(format!("no scenario is called \"{name}\" in {}; {help}", self.folder.display()))
    }
}

/// A scenario as it was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) experiment: Experiment,
    /// BLAKE2b-256, in hexadecimal, of its text followed by the texts of the files that it names,
    /// in reading order; without such files the output of `b2sum -l 256`.
    pub(crate) digest: String,
}

/// Reads a scenario's file, wherever it is.
pub(crate) fn load_file(file: &Path, settings: &[String]) -> Result<Loaded> {
    let hasher = RefCell::new(Blake2b::<U32>::new());
    let read = |file: &Path| {
        let text = fs::read_to_string(file)?;
        hasher.borrow_mut().update(&text);
        Ok(text)
    };
    let experiment = Experiment::load(file, settings, &read)?;
    let digest = hasher.into_inner().finalize();
    let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Loaded { experiment, digest })
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    title: &'a str,
    source: &'a str,
    backends: Vec<&'static str>,
    cells: usize,
}

impl<'a> Row<'a> {
    fn of(experiment: &'a Experiment) -> Self {
        let Scenario { name, title, source, backends, .. } = &experiment.scenario;
        let cells = experiment.cells.len();
        Self { name, title, source, backends: backend_names(backends), cells }
    }
}

/// The back-ends by name.
pub(crate) fn backend_names(backends: &[Backend]) -> Vec<&'static str> {
    let known = Backend::ALL.iter();
    known.filter(|(_, backend)| backends.contains(backend)).map(|(name, _)| *name).collect()
}

/// Prints every scenario; wrong ones are reported after the others.
pub(crate) fn run(args: &ListArgs, output: &Output) -> Result<Verdict> {
    let catalogue = Catalogue::find(args.folder.as_deref())?;
    let names = catalogue.names()?;
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("title", Align::Left),
        ("source", Align::Left),
        ("on", Align::Left),
        ("cells", Align::Right),
    ]);
    let mut wrong = Vec::new();
    for name in &names {
        let experiment = match catalogue.load(name, &[]) {
            Ok(loaded) => loaded.experiment,
            Err(error) => {
                wrong.push(error);
                continue;
            }
        };
        let row = Row::of(&experiment);
        output.record("scenario", &row)?;
        let backends = row.backends.join(", ");
        let texts = [row.name, row.title, row.source, &backends].map(str::to_owned);
        table.row(texts.into_iter().chain([row.cells.to_string()]));
    }
    output.lines(table.lines())?;
    for error in &wrong {
        output::print_error(error);
    }
    if !wrong.is_empty() {
        bail!("{} of {} scenarios cannot be read: correct them", wrong.len(), names.len());
    }
    let count = serde_json::json!({ "scenarios": names.len() });
    output.record("summary", &Summary::new("list", &[], count))?;
    Ok(Verdict::Good)
}
