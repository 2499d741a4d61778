//! scenes.5: the lab's pages in a browser, on a wide and on a narrow screen, light and dark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::ProcessIdentity;
use serde::Deserialize;

use super::super::{Effort, Figure};
use crate::output::Progress;
use crate::process;
use crate::record::Results;
use crate::report::{escape, read_file, words};
use crate::scratch::Scratch;

/// A page, and the command that makes it.
struct Made {
    name: &'static str,
    command: &'static str,
    /// Parts in which the names of scenario files have no place, as CSS has them.
    reads: &'static str,
    seconds: u64,
}

const TITLES: &str = "h1,.headline,figure";
const PAGES: [Made; 6] = [
    Made { name: "demo", command: "demo --short", reads: "body", seconds: 35 },
    Made { name: "sweep", command: "run 000/fig-9 --seeds 3", reads: TITLES, seconds: 15 },
    Made { name: "paper", command: "run 002/table-loss --seeds 3", reads: TITLES, seconds: 15 },
    Made {
        name: "scatter",
        command: "run 003/feasible-region --seeds 2 --set one=[11.45,229] --set two=[13.05,261]",
        reads: TITLES,
        seconds: 5,
    },
    Made { name: "set", command: "run ladder --quick --only s/", reads: TITLES, seconds: 15 },
    Made {
        name: "comparison",
        command: "compare tcp/links --seeds 2 --set duration_s=8",
        reads: TITLES,
        seconds: 25,
    },
];
const SCREENS: [(u32, &str); 4] = [(1280, "light"), (1280, "dark"), (420, "light"), (420, "dark")];
const BROWSER: &str = "chromium";
const SCRIPT: &str = include_str!("pictures.js");
const LIMIT: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_secs(2);
/// A browser cannot draw without end.
const HEIGHT_MAX: u32 = 12_000;
/// Smaller letters are hard to read.
const LETTERS_MIN_PX: f64 = 10.0;
const SOURCE: &str = "scenes.5";

/// There is nothing to look with.
#[derive(Debug, thiserror::Error)]
#[error(
    "pages are looked at with chromium, which does not run here; install it (Debian: apt-get \
         install chromium)"
)]
struct NoBrowser;

/// What the script saw.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
struct Seen {
    /// Pixels by which the page is wider than the window.
    beyond: f64,
    height: u32,
    plots: u64,
    rings: u64,
    /// Height of the smallest letters in a plot, in pixels.
    least: f64,
    headline: String,
    faults: Vec<String>,
}

pub(in super::super) fn check(_: Effort) -> Result<Vec<Figure>> {
    let browser = Command::new(BROWSER).arg("--version").output();
    ensure!(browser.is_ok_and(|ran| ran.status.success()), NoBrowser);
    let lab = ProcessIdentity::outside().context("the lab runs in its own namespaces")?;
    let folder = std::env::temp_dir().join(format!("plait-pictures-{}", lab.pid));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let making: u64 = PAGES.iter().map(|page| page.seconds).sum();
    let looks = PAGES.len() * SCREENS.len();
    let total = Duration::from_secs(making) + LOOK * u32::try_from(looks)?;
    let mut progress = Progress::new(PAGES.len() + looks, total);
    let scratch = Scratch::on_disk("browser")?;
    let mut figures = Vec::new();
    for made in &PAGES {
        let step = progress.step(made.command, Duration::from_secs(made.seconds));
        let page = make(made, &folder).with_context(|| made.command)?;
        drop(step);
        let mut seen = Vec::new();
        for (width, light) in SCREENS {
            let what = format!("{}, {width} pixels, {light}", made.name);
            let _step = progress.step(&what, LOOK);
            let looked = look(made, &page.html, (width, light), &folder, scratch.path());
            seen.push((what.clone(), looked.context(what)?));
        }
        figures.extend(page.figures(made.name, &seen));
    }
    figures.push(Figure::text("pictures", folder.display().to_string()));
    Ok(figures)
}

/// A page and what its records say that it must show.
#[derive(Debug)]
struct Page {
    html: String,
    plots: u64,
    /// The paper's values, or the simulator's in a comparison; not known of a set.
    rings: Option<u64>,
}

fn make(made: &Made, folder: &Path) -> Result<Page> {
    let file = |ending: &str| folder.join(format!("{}.{ending}", made.name));
    let (html, records) = (file("html"), file("jsonl"));
    let mut command = Command::new(std::env::current_exe()?);
    command.args(made.command.split(' ')).arg("--html").arg(&html);
    let is_run = made.name != "demo";
    if is_run {
        command.arg("--out").arg(&records);
    }
    // What the figures are is another promise's matter.
    let finished = process::run_any(&mut command, "", LIMIT)?;
    ensure!(finished.status.code().is_some_and(|code| code < 2), "{}", finished.stderr.trim());
    let html = fs::read_to_string(html)?;
    if !is_run || made.name == "set" {
        return Ok(Page { html, plots: 1, rings: None });
    }
    let (plots, rings) = expected(&read_file(&records)?);
    Ok(Page { html, plots, rings: Some(rings) })
}

/// Least plots, and rings, of these experiments.
fn expected(all: &[Results]) -> (u64, u64) {
    let paper = |results: &Results| {
        let figures = results.cells.iter().flat_map(|cell| &cell.figures);
        figures.filter(|figure| figure.paper.is_some()).count() as u64
    };
    let plots = |results: &Results| match results.cells.len() {
        0 | 1 => paper(results).min(1),
        _ => words::metrics(results).len() as u64,
    };
    (all.iter().map(plots).sum(), all.iter().map(paper).sum())
}

/// Draws the page on a screen, and gives what the script saw there.
fn look(
    made: &Made,
    html: &str,
    (width, light): (u32, &str),
    folder: &Path,
    profile: &Path,
) -> Result<Seen> {
    let Made { name, reads, .. } = made;
    // A window has a least width that a narrow screen is below; a frame has none.
    let frame = format!(
        "<!doctype html><style>:root {{ color-scheme: light dark }} body {{ margin: 0 }}\n\
         iframe {{ border: 0; display: block; width: {width}px }}</style>\n\
         <script>{SCRIPT}</script><iframe data-reads=\"{reads}\" onload=\"look(this)\" \
         srcdoc=\"{}\"></iframe>\n<pre id=\"seen\"></pre>",
        escape(html)
    );
    let file = folder.join(format!("{name}.frame.html"));
    fs::write(&file, frame)?;
    let browse = |height: u32, what: &str| -> Result<String> {
        let mut command = Command::new(BROWSER);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        command.arg(format!("--window-size={width},{height}"));
        let scheme = u8::from(light == "light");
        command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
        command.arg(what).arg(format!("file://{}", file.display()));
        process::run(&mut command, "", LIMIT)
    };
    let seen = read(&browse(1600, "--dump-dom")?)?;
    let picture: PathBuf = folder.join(format!("{name}-{width}-{light}.png"));
    browse(seen.height.min(HEIGHT_MAX), &format!("--screenshot={}", picture.display()))?;
    fs::remove_file(&file)?;
    ensure!(picture.is_file(), "{BROWSER} wrote no {}", picture.display());
    Ok(seen)
}

/// What the script wrote into the frame's page.
fn read(dom: &str) -> Result<Seen> {
    let text = dom.rsplit_once("<pre id=\"seen\">").and_then(|(_, text)| text.split_once("</pre>"));
    let (text, _) = text.context("the browser did not show the page")?;
    serde_json::from_str(text).context("the script in the page did not run")
}

impl Page {
    fn figures(&self, name: &str, seen: &[(String, Seen)]) -> Vec<Figure> {
        let number = |what: &str, value: f64, unit: &'static str| {
            Figure::number(format!("{name}: {what}"), value, unit)
        };
        let all = |of: fn(&Seen) -> f64| seen.iter().map(move |(_, seen)| of(seen));
        let least = |of: fn(&Seen) -> f64| all(of).fold(f64::INFINITY, f64::min);
        let beyond = all(|seen| seen.beyond).fold(0.0, f64::max);
        let words = least(|seen| seen.headline.split_whitespace().count() as f64);
        let faults = all(|seen| seen.faults.len() as f64).sum();
        let mut figures = vec![
            number("wider than the window by", beyond, "pixels").at_most(0.0, SOURCE),
            number("plots", least(|seen| seen.plots as f64), "")
                .at_least(self.plots as f64, "one for each metric of the sweep"),
            number("words of the headline", words, "").at_least(5.0, SOURCE),
            number("smallest letters in a plot", least(|seen| seen.least), "pixels")
                .at_least(LETTERS_MIN_PX, SOURCE),
            number("cut off, over each other, scrolling or raw names", faults, "")
                .at_most(0.0, SOURCE),
        ];
        if let Some(rings) = self.rings {
            let drawn = number("rings", least(|seen| seen.rings as f64), "");
            figures.push(drawn.exactly(rings as f64, "one for each value that stands beside"));
        }
        let told = seen.iter().flat_map(|(what, seen)| {
            seen.faults.iter().map(move |fault| Figure::text(what.clone(), fault.clone()))
        });
        figures.extend(told);
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(page: &Page, seen: Seen) -> Vec<String> {
        let figures = page.figures("a", &[("a, 420".into(), seen)]);
        figures.into_iter().filter(|figure| !figure.ok).map(|figure| figure.name).collect()
    }

    #[test]
    fn what_the_script_saw_is_read_and_held_against_what_must_be_seen() {
        let dom = "<pre id=\"seen\">{\"beyond\":0,\"height\":900,\"plots\":2,\"rings\":3,\
                   \"least\":11.5,\"headline\":\"it goes from one to two\",\"faults\":[]}</pre>";
        let seen = read(&format!("<html>{dom}</html>")).unwrap();
        let page = Page { html: String::new(), plots: 2, rings: Some(3) };
        assert_eq!(failing(&page, seen.clone()), Vec::<String>::new());
        let faulty = Seen {
            beyond: 1.0,
            plots: 1,
            rings: 2,
            least: 8.0,
            headline: String::new(),
            faults: vec!["cut off: x".into()],
            ..seen
        };
        assert_eq!(failing(&page, faulty).len(), 6);
        assert!(read("<pre id=\"seen\"></pre>").is_err() && read("").is_err());
    }

    #[test]
    fn without_a_browser_the_error_says_what_to_install() {
        assert!(NoBrowser.to_string().contains("apt-get install chromium"));
    }
}
