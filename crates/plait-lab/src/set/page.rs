//! The result of a set, as the lead of an ordinary page.

use super::score::Score;
use super::{More, broken, words};
use crate::figure::{Figure, Summary, Value};
use crate::policy::Policy;
use crate::record::{CheckFigure, Origin, Results, SummaryRecord};
use crate::report::{Bar, Form, Key, Lead, Whole, bars, escape, figure_of, key, page_led_by};

/// The columns of [`words::figures`].
const HEADS: [&str; 10] = [
    "A_r", "A_b", "of best", "Mbit/s", "seeds", "alone", "ping ms", "base ms", "gap ms", "shares %",
];

/// The content of a page.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) policies: &'a [Policy],
    /// Worst rung first; for each, one score per policy.
    pub(super) scores: &'a [Vec<Score>],
    pub(super) command: &'a str,
    pub(super) summary: &'a Summary<'a, More>,
}

impl Page<'_> {
    pub(super) fn html(&self) -> String {
        let lead = Lead {
            headline: self.promises(),
            drawn: self.pictures(),
            more: [self.missing(), self.table()].concat(),
        };
        page_led_by(&lead, &self.results())
    }

    /// The set as an experiment without its own runs and cells.
    fn results(&self) -> Results {
        let More { on, machine, seeds, elapsed_s, .. } = &self.summary.more;
        let summary = SummaryRecord {
            name: self.summary.name.to_owned(),
            checks: self.summary.checks.iter().map(|figure| check(figure)).collect(),
            ok: self.summary.ok,
            title: self.title.to_owned(),
            source: "the case that each rung is named after; worst rung first".into(),
            on: (*on).to_owned(),
            duration_s: 0.0,
            axes: Vec::new(),
            seed: 1,
            seeds: *seeds,
            elapsed_s: *elapsed_s,
            command: self.command.to_owned(),
            origin: Origin::new(String::new()),
            machine: machine.clone(),
        };
        Results { runs: Vec::new(), cells: Vec::new(), scatters: Vec::new(), summary }
    }

    /// The result of each policy.
    fn promises(&self) -> String {
        let of = |(at, policy): (usize, &Policy)| {
            let own: Vec<&Score> = self.scores.iter().map(|scores| &scores[at]).collect();
            let mut lines = words::promise(&own).into_iter();
            let first = escape(&lines.next().unwrap_or_default());
            let policy = if self.policies.len() > 1 { self.key(at, policy) } else { String::new() };
            let more: String =
                lines.map(|line| format!("<p>{}</p>\n", escape(line.trim()))).collect();
            format!("<p class=\"headline\">{policy}{first}</p>\n{more}")
        };
        self.policies.iter().enumerate().map(of).collect()
    }

    fn key(&self, at: usize, policy: &Policy) -> String {
        key(&Key { name: policy.name().to_owned(), colour: at, form: Form::Bar })
    }

    /// A_r of every rung, grouped by kind.
    fn pictures(&self) -> String {
        let mut kinds: Vec<(&str, Vec<Bar>)> = Vec::new();
        for (colour, score) in self.scores.iter().flat_map(|scores| scores.iter().enumerate()) {
            let (kind, name) = score.rung.split_once('/').unwrap_or(("", &score.rung));
            let sum: f64 = score.alone_mbit.iter().sum();
            let share = |mbit: f64| if sum > 0.0 { mbit / sum } else { 0.0 };
            let bar = Bar {
                // The policies of a rung are listed below each other and need its name only once.
                name: if colour == 0 { name.to_owned() } else { String::new() },
                value: score.ratio(),
                low: share(score.mbit_range.0),
                high: share(score.mbit_range.1),
                mark: Some(share(score.alone_mbit.iter().copied().fold(0.0, f64::max))),
                colour,
            };
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, bars)) => bars.push(bar),
                None => kinds.push((kind, vec![bar])),
            }
        }
        let every = kinds.iter().flat_map(|(_, bars)| bars);
        let longest = every.map(|bar| bar.value.max(bar.high)).fold(1.0, f64::max);
        let whole = Some(Whole { at: 1.0, longest });
        let draw = |(kind, all): &(&str, Vec<Bar>)| figure_of(kind, "", &bars(kind, all, whole));
        let drawn: String = kinds.iter().map(draw).collect();
        if drawn.is_empty() {
            return drawn;
        }
        let best = Key { name: "the best link alone".into(), colour: 0, form: Form::Ring };
        format!(
            "<h3>Aggregation ratio A_r</h3>\n<p class=\"dim\">{}The line is the sum of the links, \
             each alone.</p>\n<div class=\"columns lead\">\n{drawn}</div>\n",
            key(&best)
        )
    }

    fn table(&self) -> String {
        let heads: String =
            HEADS.iter().map(|head| format!("<th class=\"number\">{head}</th>")).collect();
        let rows: String = self.scores.iter().map(|scores| self.rows(scores)).collect();
        let policy = if self.policies.len() > 1 { "<th>policy</th>" } else { "" };
        format!(
            "<h3>Figures</h3>\n<div class=\"scroll\"><table class=\"stacked flowing\">\n\
             <tr><th>rung</th>{policy}{heads}<th>stands for</th></tr>\n{rows}</table></div>\n"
        )
    }

    /// One row for each policy on a rung.
    fn rows(&self, scores: &[Score]) -> String {
        let row = |(at, (policy, score)): (usize, (&Policy, &Score))| {
            let text = |text: &str| if at == 0 { escape(text) } else { String::new() };
            let policy = match self.policies.len() {
                0 | 1 => String::new(),
                _ => format!("<td class=\"name\">{}</td>", self.key(at, policy)),
            };
            let first = if broken(&[score]).is_empty() { "number" } else { "number bad" };
            let figure = |(at, (head, cell)): (usize, (&&str, &String))| {
                let class = if at == 0 { first } else { "number" };
                format!("<td class=\"{class}\" data-name=\"{head}\">{cell}</td>")
            };
            let figures = words::figures(score);
            let figures: String = HEADS.iter().zip(&figures).enumerate().map(figure).collect();
            format!(
                "<tr><th>{}</th>{policy}{figures}<td class=\"dim\">{}</td></tr>\n",
                text(&score.rung),
                text(&score.stands_for)
            )
        };
        self.policies.iter().zip(scores).enumerate().map(row).collect()
    }

    fn missing(&self) -> String {
        let lines = words::missing(&self.summary.more.missing);
        lines.iter().map(|line| format!("<p class=\"verdict\">{}</p>\n", escape(line))).collect()
    }
}

/// A check of the set in the form of a scenario's.
fn check(figure: &Figure) -> CheckFigure {
    let value = match figure.value {
        Value::Number(number) => Some(number),
        Value::Text(_) => None,
    };
    CheckFigure {
        name: figure.name.clone(),
        value,
        low: figure.low,
        high: figure.high,
        ok: figure.ok,
        source: figure.source.clone().into_owned(),
        required: true,
        expected: true,
        ..CheckFigure::default()
    }
}

#[cfg(test)]
mod tests;
