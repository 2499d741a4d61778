//! What a set came to as one HTML page that needs nothing else.

use super::More;
use super::score::Score;
use super::{broken, words};
use crate::cli::On;
use crate::policy::Policy;
use crate::record::Origin;
use crate::report::{document, escape};

mod picture;

use picture::{colour, picture};

/// The columns of [`words::figures`].
const HEADS: [&str; 10] = [
    "A_r", "A_b", "of best", "Mbit/s", "seeds", "alone", "ping ms", "base ms", "gap ms", "shares %",
];

/// What stands on a page.
#[derive(Clone, Copy)]
pub(super) struct Page<'a> {
    pub(super) on: On,
    pub(super) title: &'a str,
    pub(super) policies: &'a [Policy],
    /// Worst rung first; for each, one score per policy.
    pub(super) scores: &'a [Vec<Score>],
    pub(super) command: &'a str,
    pub(super) more: &'a More,
}

impl Page<'_> {
    pub(super) fn html(&self) -> String {
        let (class, badge) = match self.on {
            On::Sim => ("badge simulated", "Simulated: virtual time, no real network"),
            On::Netns => ("badge", "Measured in network namespaces, over emulated links"),
        };
        let title = format!("plait: {}", self.title);
        let body = format!(
            "<section>\n<p><span class=\"{class}\">{badge}</span></p>\n\
             <p class=\"dim\">Worst rung first. Runs of each: {}; medians count.</p>\n\
             {}{}{}{}{}</section>\n",
            self.more.seeds,
            self.promises(),
            self.picture(),
            self.table(),
            self.missing(),
            self.origin(),
        );
        document(&title, &body)
    }

    /// The scores of a policy.
    fn of_policy(&self, at: usize) -> Vec<&Score> {
        self.scores.iter().map(|scores| &scores[at]).collect()
    }

    fn promises(&self) -> String {
        let of = |(at, policy): (usize, &Policy)| {
            let own = self.of_policy(at);
            let lines: String = words::promise(&own)
                .iter()
                .map(|line| format!("<p>{}</p>\n", escape(line.trim())))
                .collect();
            format!("<h3>{} {}</h3>\n{lines}", key(at), escape(policy.name()))
        };
        self.policies.iter().enumerate().map(of).collect()
    }

    fn picture(&self) -> String {
        if self.scores.is_empty() {
            return String::new();
        }
        let keys: String = (self.policies.iter().enumerate())
            .map(|(at, policy)| {
                format!("<span class=\"key\">{} {}</span>", key(at), escape(policy.name()))
            })
            .collect();
        format!(
            "<h3>Aggregation ratio</h3>\n<p class=\"dim\">{keys}<span class=\"key\">\
             <svg viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"mark\" d=\"M13 0V10\"/>\
             </svg> the best link alone</span> 1 is the sum of the links alone.</p>\n\
             <div class=\"scroll\"><div class=\"picture\">{}</div></div>\n",
            picture(self.policies, self.scores)
        )
    }

    fn table(&self) -> String {
        let heads: String =
            HEADS.iter().map(|head| format!("<th class=\"number\">{head}</th>")).collect();
        let rows: String = self.scores.iter().map(|scores| self.rows(scores)).collect();
        let policy = if self.policies.len() > 1 { "<th>policy</th>" } else { "" };
        format!(
            "<h3>Figures</h3>\n<div class=\"scroll\"><table class=\"stacked\">\n\
             <tr><th>rung</th>{policy}{heads}<th>stands for</th></tr>\n{rows}</table></div>\n"
        )
    }

    /// One row for each policy on a rung.
    fn rows(&self, scores: &[Score]) -> String {
        let row = |(at, (policy, score)): (usize, (&Policy, &Score))| {
            let is_first = at == 0;
            let name = if is_first { escape(&score.rung) } else { String::new() };
            let case = if is_first { escape(&score.stands_for) } else { String::new() };
            let policy = match self.policies.len() {
                0 | 1 => String::new(),
                _ => format!("<td class=\"name\">{} {}</td>", key(at), escape(policy.name())),
            };
            let class = if broken(&[score]).is_empty() { "number" } else { "number bad" };
            let figure = |(at, (head, cell)): (usize, (&&str, &String))| {
                let class = if at == 0 { class } else { "number" };
                format!("<td class=\"{class}\" data-name=\"{head}\">{cell}</td>")
            };
            let figures = words::figures(score);
            let figures: String = HEADS.iter().zip(&figures).enumerate().map(figure).collect();
            format!(
                "<tr><td class=\"name\">{name}</td>{policy}{figures}\
                 <td class=\"dim\">{case}</td></tr>\n"
            )
        };
        self.policies.iter().zip(scores).enumerate().map(row).collect()
    }

    fn missing(&self) -> String {
        let lines = words::missing(&self.more.missing);
        lines.iter().map(|line| format!("<p class=\"verdict\">{}</p>\n", escape(line))).collect()
    }

    fn origin(&self) -> String {
        format!(
            "<h3>Where this comes from</h3>\n<p>{} By plait-lab {}, in {:.0} s.</p>\n\
             <p>Repeat everything: <code>{}</code></p>\n",
            escape(&words::machine(self.on, &self.more.machine)),
            escape(&Origin::new(String::new()).build()),
            self.more.elapsed_s,
            escape(self.command),
        )
    }
}

/// A policy's colour, for a legend.
fn key(at: usize) -> String {
    let colour = colour(at);
    format!(
        "<span class=\"key\"><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\">\
         <path class=\"bar {colour}\" d=\"M1 5H25\"/></svg></span>"
    )
}

#[cfg(test)]
mod tests;
