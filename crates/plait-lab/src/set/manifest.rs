//! A set's file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use plait_sim::scenario::metric::{METRICS, Of};
use plait_toml::{Bounds, Place, Problem, Problems, Section};

use super::check::{Reduce, SetCheck};
use crate::list::{Catalogue, SETS};

/// A set of scenarios.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) title: String,
    /// Seeds of each run on the simulator, and on namespaces.
    pub(super) seeds: u64,
    pub(super) netns_seeds: u64,
    /// A quick run takes every so manyth scenario.
    pub(super) quick_every: usize,
    members: Vec<Member>,
    pub(super) checks: Vec<SetCheck>,
    file: PathBuf,
}

#[derive(Debug)]
struct Member {
    /// A scenario's name, or a folder's followed by `/*`; and where it stands.
    names: Vec<(String, Place)>,
    /// Settings of a quick run.
    quick: Vec<String>,
}

impl Manifest {
    /// Reads the set of this name; `None` when there is none.
    pub(super) fn find(catalogue: &Catalogue, name: &str) -> Result<Option<Self>> {
        let file = catalogue.folder().join(SETS).join(format!("{name}.toml"));
        if !file.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&file)?;
        let manifest = Self::read(&file, &text)?;
        if manifest.name != name {
            bail!(
                "{}: name: \"{}\" is not the file's own; write name = \"{name}\"",
                file.display(),
                manifest.name
            );
        }
        Ok(Some(manifest))
    }

    fn read(file: &Path, text: &str) -> Result<Self, plait_toml::Errors> {
        let root = plait_toml::tree::parse(file, text)?;
        let problems = Problems::default();
        let mut top = Section::top(&problems, Place::Line(file.into(), 1), &root);
        let name = top.required_text("name", "name = \"ladder\"");
        let title = top.required_text("title", "title = \"What it shows\"");
        let seeds = top.integer("seeds", (1, 1000), "").unwrap_or(1);
        let netns_seeds = top.integer("netns_seeds", (1, 1000), "").unwrap_or(seeds);
        let quick_every = top.integer("quick_every", (1, 1000), "").unwrap_or(1);
        if !top.holds_any(&["member"]) {
            top.missing("member", "[[member]] with scenarios = [\"folder/*\"]");
        }
        let members = top.many("member").into_iter().map(read_member).collect();
        let checks = top.many("check").into_iter().filter_map(read_check).collect();
        top.finish();
        let read = name.zip(title).map(|(name, title)| Self {
            name,
            title,
            seeds,
            netns_seeds,
            quick_every,
            members,
            checks,
            file: file.to_owned(),
        });
        problems.finish(read)
    }

    /// The scenarios by name, each with the settings of a quick run.
    ///
    /// # Errors
    ///
    /// A name that no file has, with its place.
    pub(super) fn scenarios(&self, catalogue: &Catalogue) -> Result<Vec<(String, Vec<String>)>> {
        let known = catalogue.names()?;
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for member in &self.members {
            for (name, place) in &member.names {
                let chosen: Vec<&String> = match name.strip_suffix('*') {
                    Some(folder) => known.iter().filter(|one| one.starts_with(folder)).collect(),
                    None => known.iter().filter(|one| *one == name).collect(),
                };
                if chosen.is_empty() {
                    bail!(
                        "{place}: scenarios: no file in {} is called {name}\n  name an existing \
                         one, as in \"002/tcp-k\", or a folder's, as in \"002/*\"",
                        catalogue.folder().display()
                    );
                }
                let twice = chosen.iter().find(|one| all.iter().any(|(known, _)| known == **one));
                if let Some(twice) = twice {
                    bail!("{place}: scenarios: {twice} is in {} twice", self.file.display());
                }
                all.extend(chosen.into_iter().map(|one| (one.clone(), member.quick.clone())));
            }
        }
        Ok(all)
    }
}

fn read_member(mut section: Section<'_>) -> Member {
    if !section.holds_any(&["scenarios"]) {
        section.missing("scenarios", "scenarios = [\"folder/*\"]");
    }
    let names = section.texts("scenarios");
    let quick = section.texts("quick").into_iter().map(|(setting, _)| setting).collect();
    section.finish();
    Member { names, quick }
}

fn read_check(mut section: Section<'_>) -> Option<SetCheck> {
    let name = section.required_text("name", "name = \"never slower\"");
    let metric = section.required_text("metric", "metric = \"of_best_alone\"");
    let of_run = || METRICS.iter().filter(|(_, of)| *of == Of::Run).map(|(name, _)| *name);
    if let Some(metric) = &metric
        && !of_run().any(|known| known == metric)
    {
        section.problem("metric", Problem::choice(metric, of_run()));
    }
    let ratio = Bounds::new(-1e9, 1e9, "");
    let each_low = section.number("each_low", ratio);
    let reduce = match each_low {
        Some(low) => Reduce::Share { low },
        None => {
            if !section.holds_any(&["of"]) {
                section.missing("each_low", "each_low = 0.98");
            }
            section.choice("of", &Reduce::CHOICES)?
        }
    };
    section.know(&["of"]);
    let steady_only = section.boolean("steady").unwrap_or(false);
    let (low, high) = (section.number("low", ratio), section.number("high", ratio));
    let source = section.text("source").unwrap_or_default();
    section.finish();
    Some(SetCheck { name: name?, metric: metric?, reduce, steady_only, low, high, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Manifest::read(Path::new("s.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let told = wrong("name = \"s\"\n[[check]]\nname = \"c\"\nmetric = \"spead\"\nlow = 1\n");
        for words in [
            "s.toml:1: title: missing",
            "s.toml:1: member: missing",
            "s.toml:4: [[check]] metric: \"spead\"",
            "s.toml:2: [[check]] each_low: missing",
        ] {
            assert!(told.contains(words), "{words} in {told}");
        }
    }

    #[test]
    fn a_set_that_names_a_missing_file_says_where() {
        let catalogue = Catalogue::find(None).unwrap();
        let scenarios = |names: &str| {
            let text = format!(
                "name = \"s\"\ntitle = \"t\"\n[[member]]\nscenarios = [{names}]\n\
                 quick = [\"duration_s=1\"]\n"
            );
            Manifest::read(Path::new("s.toml"), &text).unwrap().scenarios(&catalogue)
        };
        let told = scenarios("\"002/tcp-k\", \"002/tcp-x\"").unwrap_err().to_string();
        assert!(told.starts_with("s.toml:4: scenarios: no file in "), "{told}");
        assert!(scenarios("\"002/tcp-k\", \"002/*\"").unwrap_err().to_string().contains("twice"));
        let all = scenarios("\"ladder/dies/*\"").unwrap();
        assert!(all.len() >= 7 && all[0].1 == ["duration_s=1"], "{all:?}");
    }
}
