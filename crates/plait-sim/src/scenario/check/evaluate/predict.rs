//! What readings that fit some of the paper's values say about the others, and how far a setting
//! may be from the best fit.

use std::collections::BTreeMap;

use super::{Finding, PaperValue, Point, fit, name, readings};
use crate::scenario::sweep::{Settings, as_number, display};

/// A reading, and for each of the paper's values ln(run / paper).
struct Reading {
    settings: Settings,
    errors: Vec<f64>,
}

/// Root mean square of the errors at these places.
fn rms(errors: &[f64], places: impl Iterator<Item = usize>) -> f64 {
    let squares: Vec<f64> = places.map(|place| errors[place] * errors[place]).collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

/// Chooses the reading without `left_out` of the paper's values, for each choice of these, and
/// gives the rms ln-error of all that were left out. `None` unless every reading has all values,
/// and more of them than are left out.
pub(super) fn hold_out(
    points: &[Point<'_>],
    metric: &str,
    by: &[String],
    left_out: usize,
    paper: &[PaperValue],
) -> Option<Finding> {
    let printed: Vec<&PaperValue> = paper.iter().filter(|value| value.metric == metric).collect();
    let error_of = |members: &[Point<'_>], value: &PaperValue| {
        let found = members.iter().find(|point| value.at.chooses(point.settings))?;
        Some((found.value / value.value).ln())
    };
    let all = readings(points, by).into_iter().map(|(settings, members)| {
        let errors = printed.iter().map(|value| error_of(&members, value)).collect::<Option<_>>();
        errors.map(|errors| Reading { settings, errors })
    });
    let all: Vec<Reading> = all.collect::<Option<_>>()?;
    if all.is_empty() || printed.len() <= left_out {
        return None;
    }
    let mut chosen: BTreeMap<String, u32> = BTreeMap::new();
    let (mut squares, mut worst, mut splits) = (0.0, 0.0_f64, 0_u32);
    for is_out in choices(printed.len(), left_out) {
        let places =
            |out: bool| (0..printed.len()).filter(move |place| ((is_out >> place) & 1 == 1) == out);
        let of_fit = |reading: &&Reading| rms(&reading.errors, places(false));
        let best = all.iter().min_by(|a, b| of_fit(a).total_cmp(&of_fit(b)))?;
        let error = rms(&best.errors, places(true));
        *chosen.entry(name(&best.settings)).or_default() += 1;
        (squares, worst, splits) = (squares + error * error, worst.max(error), splits + 1);
    }
    let chosen: Vec<String> =
        chosen.iter().map(|(reading, times)| format!("{reading} {times} times")).collect();
    let words = format!(
        "{metric}: {left_out} of {} cells left out, {splits} splits; chosen by the others: {}; the \
         split that is predicted worst {worst:.2}",
        printed.len(),
        chosen.join(", "),
    );
    Finding::new((squares / f64::from(splits)).sqrt(), words)
}

/// All choices of `count` out of `all` places, as bits.
fn choices(all: usize, count: usize) -> impl Iterator<Item = u32> {
    (0..1_u32 << all.min(PLACES_MAX)).filter(move |bits| bits.count_ones() as usize == count)
}

/// A paper's table may have so many values for its choices to be tried.
const PLACES_MAX: usize = 24;

/// The smallest or largest value along an axis whose rms ln-error is at most `within` times the
/// best one's. `None` when the axis has other than numbers.
pub(super) fn fit_end(
    points: &[Point<'_>],
    metric: &str,
    along: &str,
    within: f64,
    largest: bool,
    paper: &[PaperValue],
) -> Option<Finding> {
    let by = [along.to_owned()];
    let mut fits: Vec<(f64, f64)> = Vec::new();
    for (settings, members) in readings(points, &by) {
        let at = as_number(settings.get(along)?)?;
        fits.push((at, fit(&members, metric, paper)?.error));
    }
    fits.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (best_at, best) = *fits.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut allowed = fits.iter().filter(|(_, error)| *error <= within * best);
    let end = if largest { allowed.next_back()? } else { allowed.next()? }.0;
    let told = |(at, error): &(f64, f64)| format!("{} {error:.2}", display(&(*at).into()));
    let words = format!(
        "{along} {best_at} fits best; allowed is {within} times its rms ln-error {best:.3}: {}",
        fits.iter().map(told).collect::<Vec<_>>().join(", "),
    );
    Finding::new(end, words)
}
