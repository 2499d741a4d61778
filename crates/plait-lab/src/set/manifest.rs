//! A set's file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use plait_sim::scenario::metric::{METRICS, Of};
use plait_toml::{Bounds, Place, Problem, Problems, Section};

use super::check::{Reduce, SetCheck};
use crate::cli::{On, RunArgs};
use crate::list::{Catalogue, SETS};

/// A set of scenarios.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) title: String,
    /// Seeds of each run on the simulator, and on namespaces.
    seeds: u64,
    netns_seeds: u64,
    /// A quick run takes every n-th scenario, for this n.
    pub(super) quick_every: usize,
    members: Vec<Member>,
    pub(super) checks: Vec<SetCheck>,
    file: PathBuf,
}

/// Scenarios that are run in the same way.
#[derive(Debug)]
pub(super) struct Member {
    /// A scenario's name, or a folder's followed by `/*`; and its place in the file.
    names: Vec<(String, Place)>,
    /// The promise that they check, and on which back-end, for `plait-lab verify`.
    pub(super) promise: Option<String>,
    pub(super) on: On,
    /// How many times each scenario draws its links; 0: never.
    draws: u64,
    /// Seeds of a run, if not the set's, and of a quick one.
    seeds: Option<u64>,
    quick_seeds: u64,
    /// The first seed: what was chosen on some is judged on others.
    first_seed: u64,
    /// Settings of every run, and additional ones of a quick run.
    settings: Vec<String>,
    quick: Vec<String>,
    /// Whether a promise also tells the figures of each cell, as it does on namespaces.
    pub(super) cells: bool,
}

impl Member {
    /// A run of one of its scenarios as a set is asked for.
    pub(super) fn args(
        &self,
        asked: &RunArgs,
        name: &str,
        seeds: u64,
        settings: Vec<String>,
    ) -> RunArgs {
        let mut own = asked.for_member(name, seeds, settings);
        own.experiment.seed += self.first_seed - 1;
        own
    }

    pub(super) fn settings(&self, is_quick: bool) -> Vec<String> {
        let quick = if is_quick { self.quick.as_slice() } else { &[] };
        [&self.settings, quick].concat()
    }

    /// The settings with which each run of a scenario draws its links, counting up from a number.
    pub(super) fn drawn_from(&self, number: u64) -> Vec<Vec<String>> {
        match self.draws {
            0 => vec![Vec::new()],
            draws => (0..draws).map(|at| vec![format!("draw.number={}", number + at)]).collect(),
        }
    }
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

    /// Seeds of a member's scenarios; without a member, those of the set.
    pub(super) fn seeds(&self, member: Option<&Member>, is_quick: bool, on: On) -> u64 {
        if is_quick {
            return member.map_or(1, |member| member.quick_seeds);
        }
        let own = if on == On::Sim { self.seeds } else { self.netns_seeds };
        member.and_then(|member| member.seeds).unwrap_or(own)
    }

    /// Whether the runs depend on a number.
    pub(super) fn draws(&self) -> bool {
        self.members.iter().any(|member| member.draws > 0)
    }

    /// The scenarios by name.
    ///
    /// # Errors
    ///
    /// A name without a file, with its place.
    pub(super) fn scenarios(&self, catalogue: &Catalogue) -> Result<Vec<(String, &Member)>> {
        let known = catalogue.names()?;
        let mut all: Vec<(String, &Member)> = Vec::new();
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
                let is_known = |one: &str| {
                    all.iter().any(|(known, other)| known == one && other.on == member.on)
                };
                let twice = chosen.iter().find(|one| is_known(one));
                if let Some(twice) = twice {
                    bail!("{place}: scenarios: {twice} is in {} twice", self.file.display());
                }
                all.extend(chosen.into_iter().map(|one| (one.clone(), member)));
            }
        }
        Ok(all)
    }

    /// The scenarios for a promise.
    pub(super) fn scenarios_of(
        &self,
        promise: &str,
        catalogue: &Catalogue,
    ) -> Result<Vec<(String, &Member)>> {
        let mut own = self.scenarios(catalogue)?;
        own.retain(|(_, member)| member.promise.as_deref() == Some(promise));
        if own.is_empty() {
            let file = self.file.display();
            bail!("{file}: member: none is for {promise}; add promise = \"{promise}\" to one");
        }
        Ok(own)
    }
}

fn read_member(mut section: Section<'_>) -> Member {
    if !section.holds_any(&["scenarios"]) {
        section.missing("scenarios", "scenarios = [\"folder/*\"]");
    }
    let names = section.texts("scenarios");
    let promise = section.text("promise");
    let on = section.choice("on", &[("sim", On::Sim), ("netns", On::Netns)]).unwrap_or(On::Sim);
    let draws = section.integer("draws", (1, 99), "").unwrap_or(0);
    let seeds = section.integer("seeds", (1, 1000), "");
    let quick_seeds = section.integer("quick_seeds", (1, 1000), "").unwrap_or(1);
    let first_seed = section.integer("first_seed", (1, 1_000_000), "").unwrap_or(1);
    let [settings, quick] = ["settings", "quick"]
        .map(|key| section.texts(key).into_iter().map(|(setting, _)| setting).collect());
    let cells = section.boolean("cells").unwrap_or(on == On::Netns);
    section.finish();
    Member { names, promise, on, draws, seeds, quick_seeds, first_seed, settings, quick, cells }
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
    let [low, high] = ["each_low", "each_high"].map(|key| section.number(key, ratio));
    let reduce = match (low, high) {
        (Some(_), _) | (_, Some(_)) => {
            Reduce::Share { low: low.unwrap_or(f64::MIN), high: high.unwrap_or(f64::MAX) }
        }
        (None, None) => {
            if !section.holds_any(&["of"]) {
                section.missing("each_low", "each_low = 0.98");
            }
            section.choice("of", &Reduce::CHOICES)?
        }
    };
    section.know(&["of"]);
    let steady_only = section.boolean("steady").unwrap_or(false);
    let drawn = section.boolean("drawn");
    let adds = section.number("adds", Bounds::new(0.0, 100.0, ""));
    let (low, high) = (section.number("low", ratio), section.number("high", ratio));
    let source = section.text("source").unwrap_or_default();
    section.finish();
    let (name, metric) = (name?, metric?);
    Some(SetCheck { name, metric, reduce, steady_only, drawn, adds, low, high, source })
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
    fn a_member_has_seeds_and_settings_of_its_own() {
        let text = |seeds: &str| {
            format!(
                "name = \"s\"\ntitle = \"t\"\nseeds = 5\n[[member]]\nscenarios = [\"002/*\"]\n\
                 seeds = {seeds}\nfirst_seed = 31\n\
                 settings = [\"k=1\"]\nquick = [\"duration_s=1\"]\n\
                 [[member]]\nscenarios = [\"ladder/*\"]\nquick_seeds = 4\n"
            )
        };
        let manifest = Manifest::read(Path::new("s.toml"), &text("3")).unwrap();
        let [first, second] = &manifest.members[..] else { panic!("two members") };
        let seeds = |member, is_quick| manifest.seeds(member, is_quick, On::Netns);
        assert_eq!((seeds(Some(first), false), seeds(Some(first), true)), (3, 1));
        assert_eq!((seeds(Some(second), false), seeds(Some(second), true)), (5, 4));
        assert_eq!((seeds(None, false), seeds(None, true)), (5, 1));
        let asked = RunArgs::of("s", On::Sim);
        let first_seed = |member: &Member| member.args(&asked, "a", 1, Vec::new()).experiment.seed;
        assert_eq!((first_seed(first), first_seed(second)), (31, 1));
        assert_eq!(first.settings(false), ["k=1"]);
        assert_eq!(first.settings(true), ["k=1", "duration_s=1"]);
        let told = wrong(&text("0"));
        assert_eq!(told.matches("s.toml:").count(), 1, "{told}");
        assert!(told.starts_with("s.toml:6: [[member]] seeds: 0"), "{told}");
        assert!(told.contains("1 to 1000") || told.contains("between 1 and 1000"), "{told}");
    }

    #[test]
    fn a_set_that_names_a_missing_file_says_where() {
        let catalogue = Catalogue::find(None).unwrap();
        let scenarios = |names: &str| {
            let text = format!(
                "name = \"s\"\ntitle = \"t\"\n[[member]]\nscenarios = [{names}]\n\
                 quick = [\"duration_s=1\"]\n"
            );
            let manifest = Manifest::read(Path::new("s.toml"), &text).unwrap();
            manifest.scenarios(&catalogue).map(|all| all.len())
        };
        let told = scenarios("\"002/tcp-k\", \"002/tcp-x\"").unwrap_err().to_string();
        assert!(told.starts_with("s.toml:4: scenarios: no file in "), "{told}");
        assert!(scenarios("\"002/tcp-k\", \"002/*\"").unwrap_err().to_string().contains("twice"));
        assert!(scenarios("\"ladder/dies/*\"").unwrap() >= 7);
    }
}
