//! The aggregation ratio of every rung as bars, as inline SVG. Colours come from the page's style
//! sheet, so that it is readable on light and on dark.

use std::fmt::Write as _;

use crate::policy::Policy;
use crate::report::{COLOURS, escape};
use crate::set::score::Score;

const WIDTH: f64 = 760.0;
/// Room for the names of rungs, and for the figures behind the bars.
const LEFT: f64 = 175.0;
const RIGHT: f64 = 45.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 8.0;
/// From one bar to the next of the same rung, and from rung to rung beside that.
const BAR_STEP: f64 = 11.0;
const RUNG_GAP: f64 = 7.0;
/// How far a mark reaches from the middle of its bar.
const MARK_REACH: f64 = 6.0;
const TICK: f64 = 0.2;

/// The bars of all rungs, in their order; for each, one score per policy.
pub(super) fn picture(policies: &[Policy], rungs: &[Vec<Score>]) -> String {
    let step = BAR_STEP * policies.len() as f64 + RUNG_GAP;
    let bottom = TOP + step * rungs.len() as f64;
    let scale = Scale::new(rungs);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" \
         aria-label=\"Aggregation ratio of each rung, and of its best link alone\">",
        bottom + BOTTOM
    );
    for tick in 0..=scale.ticks {
        let ratio = f64::from(tick) * TICK;
        let (x, class) = (scale.at(ratio), if tick % 5 == 0 { "axis" } else { "grid" });
        push(&mut svg, format_args!("<path class=\"{class}\" d=\"M{x:.1} {TOP}V{bottom}\"/>"));
        let y = TOP - 8.0;
        push(&mut svg, format_args!("<text x=\"{x:.1}\" y=\"{y}\" class=\"middle\">{ratio:.1}"));
        svg.push_str("</text>");
    }
    for (at, scores) in rungs.iter().enumerate() {
        rung(&mut svg, &scale, policies, scores, TOP + step * at as f64);
    }
    svg.push_str("</svg>");
    svg
}

/// The class of a policy's colour.
pub(super) fn colour(policy: usize) -> String {
    format!("c{}", policy % COLOURS)
}

/// A rung's name and its bars, from `top` on.
fn rung(svg: &mut String, scale: &Scale, policies: &[Policy], scores: &[Score], top: f64) {
    let middle = top + (RUNG_GAP + BAR_STEP * scores.len() as f64) / 2.0;
    let name = scores.first().map_or("", |score| score.rung.as_str());
    let (x, y) = (LEFT - 6.0, middle + 4.0);
    push(
        svg,
        format_args!("<text x=\"{x}\" y=\"{y:.1}\" class=\"end name\">{}</text>", escape(name)),
    );
    for (at, (policy, score)) in policies.iter().zip(scores).enumerate() {
        let y = top + RUNG_GAP / 2.0 + BAR_STEP * (at as f64 + 0.5);
        let (ratio, best) = (score.ratio(), best_alone(score));
        let title = format!("{name}, {policy}: A_r {ratio:.3}, the best link alone {best:.3}");
        let (end, mark) = (scale.at(ratio), scale.at(best));
        let class = colour(at);
        push(svg, format_args!("<g><title>{}</title>", escape(&title)));
        push(svg, format_args!("<path class=\"bar {class}\" d=\"M{LEFT} {y:.1}H{end:.1}\"/>"));
        let (from, to) = (y - MARK_REACH, y + MARK_REACH);
        push(svg, format_args!("<path class=\"mark\" d=\"M{mark:.1} {from:.1}V{to:.1}\"/></g>"));
        let (x, y) = (WIDTH - 4.0, y + 4.0);
        push(svg, format_args!("<text x=\"{x}\" y=\"{y:.1}\" class=\"end\">{ratio:.3}</text>"));
    }
}

/// A_r of a bond that would be just as fast as its best link alone.
fn best_alone(score: &Score) -> f64 {
    let sum: f64 = score.alone_mbit.iter().sum();
    let best = score.alone_mbit.iter().copied().fold(0.0, f64::max);
    if sum > 0.0 { best / sum } else { 0.0 }
}

/// From ratios to places.
#[derive(Clone, Copy, Debug)]
struct Scale {
    ticks: u32,
}

impl Scale {
    /// From zero to one, or to the next tick above the largest ratio.
    fn new(rungs: &[Vec<Score>]) -> Self {
        let largest = rungs.iter().flatten().map(Score::ratio).fold(1.0, f64::max);
        Self { ticks: (largest / TICK - 1e-9).ceil() as u32 }
    }

    fn at(self, ratio: f64) -> f64 {
        let end = f64::from(self.ticks) * TICK;
        LEFT + ratio.max(0.0) / end * (WIDTH - RIGHT - LEFT)
    }
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("writing to a text does not fail");
}
