//! The commands that repeat a run, or all of them. A run is named by scenario, settings and seed.

use plait_sim::scenario::sweep::display;
use plait_sim::scenario::{Axis, Cell, Scenario};

use crate::cli::RunArgs;

/// The common part of all commands of an experiment.
#[derive(Debug)]
pub(super) struct Naming {
    /// Program, scenario, back-end and folder.
    start: Vec<String>,
    settings: Vec<String>,
    axes: Vec<Axis>,
    seed: u64,
    seeds: u64,
}

impl Naming {
    pub(super) fn new(args: &RunArgs, scenario: &Scenario) -> Self {
        let mut start = vec!["plait-lab".into(), "run".into(), args.experiment.name.clone()];
        start.extend(["--on".into(), args.on.name().into()]);
        if let Some(folder) = &args.experiment.folder {
            start.extend(["--folder".into(), folder.display().to_string()]);
        }
        let settings = args.experiment.settings.clone();
        Self {
            start,
            settings,
            axes: scenario.sweep.clone(),
            seed: args.experiment.seed,
            seeds: args.seeds(),
        }
    }

    /// Repeats one run.
    pub(super) fn command(&self, cell: &Cell, seed: u64) -> String {
        line(self.words(cell, seed))
    }

    /// The words of the command that repeats one run.
    pub(super) fn words(&self, cell: &Cell, seed: u64) -> Vec<String> {
        let of_axis = |setting: &&String| {
            let key = setting.split('=').next().unwrap_or_default().trim();
            self.axes.iter().any(|axis| axis.name == key || (!key.is_empty() && axis.key == key))
        };
        let fixed = self.settings.iter().filter(|setting| !of_axis(setting)).cloned();
        let swept = self.axes.iter().filter_map(|axis| {
            let value = cell.settings.get(&axis.name)?;
            Some(format!("{}={}", axis.name, display(value)))
        });
        let seed = ["--seed".to_owned(), seed.to_string()];
        self.with(fixed.chain(swept), seed)
    }

    /// Repeats all runs.
    pub(super) fn whole(&self) -> String {
        let first = ["--seed".to_owned(), self.seed.to_string()];
        let count = (self.seeds > 1).then(|| ["--seeds".to_owned(), self.seeds.to_string()]);
        let end = first.into_iter().chain(count.into_iter().flatten());
        line(self.with(self.settings.iter().cloned(), end))
    }

    fn with(
        &self,
        settings: impl IntoIterator<Item = String>,
        end: impl IntoIterator<Item = String>,
    ) -> Vec<String> {
        let settings = settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]);
        self.start.iter().cloned().chain(settings).chain(end).collect()
    }
}

/// Words as a line for a shell.
fn line(words: Vec<String>) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plait_sim::scenario::Experiment;

    use super::*;
    use crate::cli::{ExperimentArgs, On};

    const TEXT: &str = r#"
name = "x/y"
title = "t"
source = "s"
duration_s = 1
links.dsl = { rate_mbit = 10, rtt_ms = 10 }
bond = { links = ["dsl"] }
app = [{ name = "flow", kind = "udp", rate = { mbit = 1, layer = "wire" } }]
sweep = [
    { key = "app.flow.rate.mbit", values = [1, 2.5] },
    { key = "links.dsl.rtt_ms", name = "rtt", values = [[1, 2], 5], labels = ["a b", "five"] },
]
"#;

    fn naming(settings: &[&str]) -> (Naming, Experiment) {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        let read = |_: &Path| Ok(TEXT.to_owned());
        let experiment = Experiment::load(Path::new("y.toml"), &settings, &read).unwrap();
        let args = RunArgs {
            seeds: Some(2),
            experiment: ExperimentArgs { settings, ..ExperimentArgs::of("x/y") },
            ..RunArgs::of("", On::Sim)
        };
        (Naming::new(&args, &experiment.scenario), experiment)
    }

    #[test]
    fn a_run_is_repeated_by_its_cells_settings_and_its_seed() {
        let (naming, experiment) = naming(&["duration_s=2"]);
        let commands: Vec<String> =
            experiment.cells.iter().map(|cell| naming.command(cell, 7)).collect();
        assert_eq!(commands.len(), 4);
        assert_eq!(
            commands[2],
            "plait-lab run x/y --on sim --set duration_s=2 --set mbit=2.5 --set 'rtt=a b' --seed 7"
        );
        assert_eq!(
            naming.whole(),
            "plait-lab run x/y --on sim --set duration_s=2 --seed 1 --seeds 2"
        );
    }

    #[test]
    fn a_cells_value_takes_the_place_of_the_values_given_for_its_axis() {
        let (naming, experiment) = naming(&["mbit=[2, 3]", "rtt=five"]);
        let command = naming.command(&experiment.cells[1], 1);
        assert_eq!(command, "plait-lab run x/y --on sim --set mbit=3 --set rtt=five --seed 1");
        assert!(naming.whole().contains("--set 'mbit=[2, 3]' --set rtt=five"));
    }

    #[test]
    fn the_repeated_run_is_the_same_cell() {
        let (_, all) = naming(&[]);
        let (_, one) = naming(&["mbit=2.5", "rtt=a b"]);
        assert_eq!(one.cells.len(), 1);
        assert_eq!(one.cells[0].name, all.cells[2].name);
        assert_eq!(one.cells[0].scenario.links, all.cells[2].scenario.links);
    }

    #[test]
    fn the_back_end_is_named() {
        let (_, experiment) = naming(&[]);
        let args = RunArgs {
            experiment: ExperimentArgs { seed: 3, ..ExperimentArgs::of("x/y") },
            ..RunArgs::of("", On::Netns)
        };
        let naming = Naming::new(&args, &experiment.scenario);
        assert_eq!(naming.whole(), "plait-lab run x/y --on netns --seed 3");
    }

    #[test]
    fn words_with_spaces_and_quotes_are_quoted() {
        assert_eq!(quoted("k=0.5"), "k=0.5");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
