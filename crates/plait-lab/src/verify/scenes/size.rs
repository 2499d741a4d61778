//! scenes.3: how long the code is, by crate, and that no modules import each other in a circle.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::super::table::root;
use super::super::{Effort, Figure};
use super::circles;

/// The lab's modules that are experiments, and how many lines of code they may have together.
const EXPERIMENTS: [&str; 8] =
    ["verify", "ladder", "set", "demo", "compare", "bench", "selftest", "run"];
const EXPERIMENTS_MAX: f64 = 11_000.0;
/// The same count at commit 1b655a3, before the experiments were scenario files: the lab's
/// experiments, then each crate.
const BEFORE: [(&str, Lines); 7] = [
    ("experiments", Lines { code: 12_877, comments: 1_294, tests: 1_635 }),
    ("plait", Lines { code: 11_122, comments: 1_661, tests: 5_298 }),
    ("plait-lab", Lines { code: 19_676, comments: 2_265, tests: 4_464 }),
    ("plait-net", Lines { code: 3_913, comments: 995, tests: 2_021 }),
    ("plait-proto", Lines { code: 20_115, comments: 4_226, tests: 16_183 }),
    ("plait-sim", Lines { code: 13_137, comments: 2_214, tests: 5_889 }),
    ("plait-toml", Lines { code: 2_711, comments: 442, tests: 567 }),
];

/// Lines of Rust. Blank ones count as none of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Lines {
    code: u64,
    comments: u64,
    tests: u64,
}

impl Lines {
    fn add(&mut self, other: Self) {
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
    }

    fn told(self) -> String {
        let Self { code, comments, tests } = self;
        format!("{code} code, {comments} comments, {tests} tests")
    }
}

/// What follows `#[cfg(test)]` at the beginning of a line is tests to the file's end, where they
/// stand.
fn count(file: &str, text: &str) -> Lines {
    let mut lines = Lines::default();
    let mut is_test = circles::is_for_tests(file);
    for (line, next) in text.lines().zip(text.lines().skip(1).chain([""])) {
        is_test |= line == "#[cfg(test)]" && next.starts_with("mod tests {");
        match line.trim_start() {
            "" => {}
            _ if is_test => lines.tests += 1,
            line if line.starts_with("//") => lines.comments += 1,
            _ => lines.code += 1,
        }
    }
    lines
}

/// The lines of all files below `src` and `tests` whose name a filter lets pass.
fn of_crate(folder: &Path, counts: impl Fn(&str) -> bool) -> Result<Lines> {
    let mut all = Lines::default();
    for below in ["src", "tests"].map(|below| folder.join(below)).iter().filter(|it| it.is_dir()) {
        let is_tests = below.ends_with("tests");
        for (file, text) in circles::read(below)? {
            let name = if is_tests { format!("tests/{file}") } else { file };
            if counts(&name) {
                all.add(count(&name, &text));
            }
        }
    }
    Ok(all)
}

pub(in super::super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let crates = root()?.join("crates");
    let names = fs::read_dir(&crates)
        .with_context(|| format!("cannot read {}", crates.display()))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<String>>>()?;
    names.sort();
    let is_experiment = |file: &str| EXPERIMENTS.contains(&circles::module_of(file));
    let experiments = of_crate(&crates.join("plait-lab"), is_experiment)?;
    let mut figures = vec![
        Figure::count("lines of code of the lab's experiments", experiments.code)
            .at_most(EXPERIMENTS_MAX, "scenes.3"),
        told("experiments", experiments),
    ];
    let mut in_circles = 0;
    for name in &names {
        figures.push(told(name, of_crate(&crates.join(name), |_| true)?));
        if let Some(circle) = circles::of_crate(&crates.join(name))? {
            crate::output::note(format!("a circle of {name}: {}", circle.join(" -> ")));
            in_circles += 1;
        }
    }
    figures.push(
        Figure::count("crates with modules that import each other in a circle", in_circles)
            .exactly(0.0, "circles 0"),
    );
    Ok(figures)
}

/// Lines before and now.
fn told(name: &str, now: Lines) -> Figure {
    let before = BEFORE.iter().find(|(known, _)| *known == name);
    let before = before.map_or("none".to_owned(), |(_, lines)| lines.told());
    Figure::text(format!("{name}: lines"), format!("{} (before: {before})", now.told()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let text =
            "//! What it is.\n\nfn a() {\n    // Why.\n    b();\n}\n\n#[cfg(test)]\nmod tests;\n";
        assert_eq!(count("a.rs", text), Lines { code: 5, comments: 2, tests: 0 });
        let own = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    // Why.\n}\n";
        assert_eq!(count("a.rs", own), Lines { code: 1, comments: 0, tests: 4 });
        assert_eq!(count("a/tests.rs", text).tests, 7);
    }
}
