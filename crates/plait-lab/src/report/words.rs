//! Results in words and fixed-width tables.

use plait_sim::scenario::Settings;
use plait_sim::scenario::metric::unit_of;
use plait_sim::scenario::sweep::display;
use toml::Value;

use crate::output::{Align, Table};
use crate::record::{CellFigure, CellRecord, CheckFigure, Results, SummaryRecord};

/// A figure is close to the paper's when it differs by at most this share of it.
const NEAR: f64 = 0.25;
/// Number of a single cell's figures in the headline.
const TOLD: usize = 2;
/// So many checks that are not required are named in the verdict; the table has them all.
const NAMED_MAX: usize = 3;

/// An experiment as lines of text.
pub(crate) fn experiment(results: &Results) -> Vec<String> {
    let summary = &results.summary;
    let mut lines = vec![
        format!("{}: {}", summary.name, summary.title),
        format!("Source: {}. {}", summary.source, origin(summary)),
        String::new(),
    ];
    if !results.cells.is_empty() {
        lines.extend(cells(results).lines());
        lines.push(String::new());
    }
    if !summary.checks.is_empty() {
        lines.extend(checks(summary).lines());
        lines.push(String::new());
        for check in &summary.checks {
            lines.push(format!("{}: {}.", check.name, check.words.trim_end_matches('.')));
        }
        lines.push(String::new());
    }
    lines.push(verdict_sentence(summary));
    lines.push(format!("Repeat it: {}", summary.command));
    if let [first, _, ..] = results.runs.as_slice() {
        lines.push(format!("Repeat one run, such as the first: {}", first.command));
    }
    lines
}

fn cells(results: &Results) -> Table {
    if is_by_metric(results) {
        return by_metric(results);
    }
    let (has_ranges, has_paper) = (has_ranges(results), has_paper(results));
    let [run, other, ratio] = heads(&results.summary);
    let columns = [
        ("cell", Align::Left, true),
        ("figure", Align::Left, true),
        (run, Align::Right, true),
        ("over the seeds", Align::Right, has_ranges),
        (other, Align::Right, has_paper),
        (ratio, Align::Right, has_paper),
    ];
    let shown = columns.iter().filter(|(_, _, is_shown)| *is_shown);
    let mut table = Table::new(&shown.map(|(name, align, _)| (*name, *align)).collect::<Vec<_>>());
    for cell in &results.cells {
        for (index, figure) in cell.figures.iter().enumerate() {
            let name = if index == 0 { cell.cell.clone() } else { String::new() };
            let row = [
                name,
                figure.metric.clone(),
                with_unit(figure.median, &figure.unit),
                range(figure, cell.seeds.len()),
                figure.paper.map_or_else(String::new, |paper| with_unit(paper, &figure.unit)),
                against_paper(figure),
            ];
            let row = row.into_iter().zip(&columns);
            table.row(row.filter(|(_, (_, _, is_shown))| *is_shown).map(|(text, _)| text));
        }
    }
    table
}

/// Whether cells are rows and metrics columns: several of both, without values to compare with.
pub(super) fn is_by_metric(results: &Results) -> bool {
    results.cells.len() > 1 && metrics(results).len() > 1 && !has_paper(results)
}

/// Headings: the figures, the values to compare with, and the quotient.
pub(super) fn heads(summary: &SummaryRecord) -> [&'static str; 3] {
    if summary.is_comparison() {
        ["measured", "simulated", "measured/simulated"]
    } else {
        ["run", "paper", "run/paper"]
    }
}

/// A metric's name in words, without its unit: `goodput_mbit.flow` is the goodput of flow.
pub(super) fn metric(name: &str) -> String {
    let (kind, owner) = name.split_once('.').unwrap_or((name, ""));
    let words = match kind {
        "of_best_alone" => "rate over the best link's alone".to_owned(),
        "of_sum_alone" => "rate over the sum of the links alone".to_owned(),
        "of_at_once" => "rate over that of all links at once, bare".to_owned(),
        "of_better" => "rate over the better of best link and all at once".to_owned(),
        "transfer_mbit" => "transfer rate".to_owned(),
        "transfer_s" => "transfer time".to_owned(),
        kind => without_unit(kind).replace('_', " ").replace("acks", "ACKs"),
    };
    if owner.is_empty() { words } else { format!("{words} of {owner}") }
}

/// The name of an axis or a metric without the unit at its end.
pub(super) fn without_unit(name: &str) -> &str {
    let short = name.strip_suffix("_per_minute").unwrap_or(name);
    match (unit_of(name), short.rsplit_once('_')) {
        ("", _) | (_, None) => name,
        (_, Some((words, _))) => words,
    }
}

/// Capitalises the beginning of a sentence or title.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A cell's place on the axes in words; its name if it has none.
pub(super) fn cell(axes: &[String], settings: &Settings, name: &str) -> String {
    if name.contains('=') { place(axes, settings) } else { name.to_owned() }
}

/// The values of these axes: `k 0.1, t_dwd 50 ms`.
pub(super) fn place<'a>(axes: impl IntoIterator<Item = &'a String>, settings: &Settings) -> String {
    let words = axes.into_iter().filter_map(|axis| Some(value(axis, settings.get(axis)?)));
    words.collect::<Vec<_>>().join(", ")
}

/// A value of an axis: `t_dwd 50 ms`.
pub(super) fn value(axis: &str, value: &Value) -> String {
    values([(axis, std::slice::from_ref(value))])
}

/// Some values of axes: `k 0.1 or 0.5, t_dwd 50 ms`.
pub(super) fn values<'a>(axes: impl IntoIterator<Item = (&'a str, &'a [Value])>) -> String {
    let words = axes.into_iter().map(|(axis, values)| {
        let is_number = |value: &Value| matches!(value, Value::Integer(_) | Value::Float(_));
        let unit = if values.iter().all(is_number) { unit_of(axis) } else { "" };
        let values: Vec<String> = values.iter().map(display).collect();
        let text = format!("{} {} {unit}", without_unit(axis), values.join(" or "));
        text.trim_end().to_owned()
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The metrics of the cells, each once, in the order of the fullest cell.
pub(crate) fn metrics(results: &Results) -> Vec<&str> {
    let mut metrics: Vec<&str> = Vec::new();
    let fullest = results.cells.iter().max_by_key(|cell| cell.figures.len());
    for figure in fullest.into_iter().chain(&results.cells).flat_map(|cell| &cell.figures) {
        if !metrics.contains(&figure.metric.as_str()) {
            metrics.push(&figure.metric);
        }
    }
    metrics
}

/// A cell's figure of a metric with its range over the seeds; empty without one.
pub(super) fn in_column(cell: &CellRecord, metric: &str) -> String {
    let Some(figure) = cell.figures.iter().find(|figure| figure.metric == metric) else {
        return String::new();
    };
    let median = with_unit(figure.median, &figure.unit);
    match range(figure, cell.seeds.len()) {
        range if range.is_empty() => median,
        range => format!("{median} ({range})"),
    }
}

fn by_metric(results: &Results) -> Table {
    let metrics = metrics(results);
    let mut table = Table::of_numbers(&[&["cell"], &metrics[..]].concat());
    for cell in &results.cells {
        let figures = metrics.iter().map(|metric| in_column(cell, metric));
        table.row([cell.cell.clone()].into_iter().chain(figures));
    }
    table
}

/// Whether any cell ran with several seeds.
pub(super) fn has_ranges(results: &Results) -> bool {
    results.cells.iter().any(|cell| cell.seeds.len() > 1)
}

/// Whether the paper gives any of the figures.
pub(super) fn has_paper(results: &Results) -> bool {
    results.cells.iter().flat_map(|cell| &cell.figures).any(|figure| figure.paper.is_some())
}

fn checks(summary: &SummaryRecord) -> Table {
    let mut table = Table::new(&[
        ("check", Align::Left),
        ("figure", Align::Right),
        ("band", Align::Left),
        ("verdict", Align::Left),
        ("source", Align::Left),
    ]);
    for check in &summary.checks {
        let texts = [check_figure(check), band(check), verdict(check).to_owned()];
        table.row([check.name.clone()].into_iter().chain(texts).chain([check.source.clone()]));
    }
    table
}

/// Smallest to largest over the seeds; empty for a single seed.
pub(super) fn range(figure: &CellFigure, seeds: usize) -> String {
    if seeds < 2 {
        return String::new();
    }
    format!("{} to {}", number(figure.low), number(figure.high))
}

/// The figure over the paper's; empty without one.
pub(super) fn against_paper(figure: &CellFigure) -> String {
    match figure.paper {
        Some(paper) if paper != 0.0 => number(figure.median / paper),
        _ => String::new(),
    }
}

/// Where the figures come from, in a sentence.
pub(super) fn origin(summary: &SummaryRecord) -> String {
    let runs = if summary.seeds == 0 {
        "one run of each".to_owned()
    } else if summary.seeds == 1 {
        format!("seed {}", summary.seed)
    } else {
        let last = summary.seed.saturating_add(summary.seeds - 1);
        format!("medians over seeds {} to {last}", summary.seed)
    };
    let virtually = if summary.is_simulated() { " of virtual time" } else { "" };
    // Each scenario of a set has its own duration.
    let duration = match summary.duration_s {
        0.0 => String::new(),
        seconds => format!("{} s{virtually} per run, ", number(seconds)),
    };
    if summary.is_simulated() {
        format!("Simulated: {duration}{runs}.")
    } else if summary.is_comparison() {
        format!("Simulated, and measured in namespaces: {duration}{runs}.")
    } else {
        format!("Measured on {}: {duration}{runs}.", summary.on)
    }
}

/// The result in a sentence: the range of the first metric, and its distance from the values to
/// compare with. `None` when there are no figures.
pub(super) fn headline(results: &Results) -> Option<String> {
    let axes = &results.summary.axes;
    let first = *metrics(results).first()?;
    let of = |cell: &CellRecord| cell.figures.iter().position(|figure| figure.metric == first);
    let mut all: Vec<(&CellRecord, &CellFigure)> =
        results.cells.iter().filter_map(|cell| Some((cell, &cell.figures[of(cell)?]))).collect();
    all.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let figure = |figure: &CellFigure| with_unit(figure.median, &figure.unit);
    let mut sentence = match all.as_slice() {
        [] => return None,
        [(cell, _)] => {
            let is = |known: &CellFigure| {
                let is = format!("{} is {}", metric(&known.metric), figure(known));
                match known.paper.filter(|_| results.summary.is_comparison()) {
                    Some(other) => {
                        format!("{is} measured, {} simulated", with_unit(other, &known.unit))
                    }
                    None => is,
                }
            };
            let told: Vec<String> = cell.figures.iter().take(TOLD).map(is).collect();
            format!("{}.", capital(&told.join(", ")))
        }
        [(_, low), .., (_, high)] if low.median == high.median => {
            format!("{} is {} in every cell.", capital(&metric(first)), figure(low))
        }
        [low, .., high] => {
            let at = |(known, cell): (&CellFigure, &CellRecord)| {
                format!("{} ({})", figure(known), self::cell(axes, &cell.settings, &cell.cell))
            };
            let (low, high) = (at((low.1, low.0)), at((high.1, high.0)));
            format!("{} goes from {low} to {high}.", capital(&metric(first)))
        }
    };
    let figures = results.cells.iter().flat_map(|cell| &cell.figures);
    let pairs: Vec<(f64, f64)> =
        figures.filter_map(|figure| Some((figure.median, figure.paper?))).collect();
    if !pairs.is_empty() {
        let is_near = |(run, paper): &&(f64, f64)| (run - paper).abs() <= paper.abs() * NEAR;
        let (near, all) = (pairs.iter().filter(is_near).count(), pairs.len());
        if results.summary.is_comparison() {
            return Some(format!(
                "Measured and simulated are within a quarter of each other in {near} of {all} \
                 figures. {sentence}"
            ));
        }
        sentence.push_str(&format!(
            " Of {all} figures that the paper prints, {near} are within a quarter of it."
        ));
    }
    Some(sentence)
}

/// Whether the figures have expectations; otherwise they only inform.
pub(super) fn has_expectations(summary: &SummaryRecord) -> bool {
    summary.checks.iter().any(|check| check.expected)
}

/// Whether the scenario shows what it must, and where it does not.
pub(super) fn verdict_sentence(summary: &SummaryRecord) -> String {
    let required: Vec<&CheckFigure> =
        summary.checks.iter().filter(|check| check.required && check.expected).collect();
    let names = |wanted: &dyn Fn(&CheckFigure) -> bool| -> Vec<&str> {
        let checks =
            summary.checks.iter().filter(|check| check.expected && !check.ok && wanted(check));
        checks.map(|check| check.name.as_str()).collect()
    };
    let failed = names(&|check| check.required && check.value.is_some());
    let not_measured = names(&|check| check.required && check.value.is_none());
    let others = names(&|check| !check.required && check.value.is_some());
    let mut sentences = Vec::new();
    match required.len() {
        0 => sentences.push("Nothing is required of these figures; they inform.".to_owned()),
        1 if required[0].ok => sentences.push("The one required check holds.".to_owned()),
        2 if summary.ok => sentences.push("Both required checks hold.".to_owned()),
        all if summary.ok => sentences.push(format!("All {all} required checks hold.")),
        all => {
            let holding = required.iter().filter(|check| check.ok).count();
            sentences.push(format!("{holding} of {all} required checks hold."));
        }
    }
    for (names, what) in [
        (failed, "Failed"),
        (not_measured, "Not measured or compared, because of cells that were not run"),
    ] {
        if !names.is_empty() {
            sentences.push(format!("{what}: {}.", names.join(", ")));
        }
    }
    match others.len() {
        0 => {}
        all if all > NAMED_MAX => {
            sentences
                .push(format!("{all} others are outside their bands, without being required."));
        }
        _ => sentences
            .push(format!("Outside its band, without being required: {}.", others.join(", "))),
    }
    sentences.join(" ")
}

/// A check's verdict in a word or two; empty for a figure that only informs.
pub(super) fn verdict(check: &CheckFigure) -> &'static str {
    match (check.ok, check.value) {
        (false, None) => "not measured",
        _ if !check.expected => "",
        (true, _) => "holds",
        (false, Some(_)) if check.required => "FAILS",
        (false, Some(_)) => "outside",
    }
}

/// A check's name; in a comparison it is the metric's.
pub(super) fn check_name(summary: &SummaryRecord, check: &CheckFigure) -> String {
    match check.name.split_once(" at ") {
        _ if !summary.is_comparison() => check.name.clone(),
        Some((name, cell)) => format!("{} at {cell}", metric(name)),
        None => metric(&check.name),
    }
}

/// A check's figure.
pub(super) fn check_figure(check: &CheckFigure) -> String {
    check.value.map_or_else(|| "none".to_owned(), |value| with_unit(value, &check.unit))
}

/// A check's band in words.
pub(super) fn band(check: &CheckFigure) -> String {
    let unit = |value| with_unit(value, &check.unit);
    match (check.low, check.high) {
        (None, None) => String::new(),
        (Some(low), None) => format!("at least {}", unit(low)),
        (None, Some(high)) => format!("at most {}", unit(high)),
        (Some(low), Some(high)) if low == high => format!("just {}", unit(low)),
        (Some(low), Some(high)) => format!("{} to {}", number(low), unit(high)),
    }
}

/// A figure with its unit.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() { number(value) } else { format!("{} {unit}", number(value)) }
}

/// A number with three significant digits; none after the point if it is whole.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value == value.trunc() && size < 1e9 {
        // Adding zero removes the sign of a negative zero.
        return format!("{:.0}", value + 0.0);
    }
    let decimals = match size {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.001 => 3,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read;
    use super::*;

    fn sample() -> Results {
        read::results(Path::new("r"), read::tests::SAMPLE).unwrap().remove(0)
    }

    #[test]
    fn the_table_has_the_papers_numbers_beside() {
        let lines = cells(&sample()).lines();
        let expected = [
            "cell   figure           run   paper  run/paper",
            "-----  ------------  ------  ------  ---------",
            "k=0.1  loss_percent     5 %  6.25 %      0.800",
            "k=1    loss_percent  1.50 %  1.60 %      0.938",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn columns_without_content_are_left_out() {
        let mut results = sample();
        for cell in &mut results.cells {
            cell.seeds.push(2);
            cell.figures[0].paper = None;
        }
        assert_eq!(cells(&results).lines()[0], "cell   figure           run  over the seeds");
    }

    #[test]
    fn several_metrics_along_one_axis_are_columns() {
        let mut results = sample();
        for cell in &mut results.cells {
            cell.seeds.push(2);
            cell.figures[0].paper = None;
            let mut other = cell.figures[0].clone();
            other.metric = "jain_index".into();
            cell.figures.push(other);
        }
        results.cells[0].figures.remove(0);
        let lines = cells(&results).lines();
        let texts = |line: &str| -> Vec<String> {
            let texts = line.split("  ").map(|text| text.trim().to_owned());
            texts.filter(|text| !text.is_empty()).collect()
        };
        assert_eq!(texts(&lines[0]), ["cell", "loss_percent", "jain_index"]);
        assert_eq!(texts(&lines[2]), ["k=0.1", "5 % (5 to 5)"]);
        assert_eq!(texts(&lines[3]), ["k=1", "1.50 % (1.50 to 1.50)", "1.50 % (1.50 to 1.50)"]);
    }

    #[test]
    fn a_range_needs_two_seeds() {
        let mut figure = sample().cells[0].figures[0].clone();
        (figure.low, figure.high) = (4.5, 5.25);
        assert_eq!(range(&figure, 1), "");
        assert_eq!(range(&figure, 2), "4.50 to 5.25");
        figure.paper = Some(0.0);
        assert_eq!(against_paper(&figure), "");
    }

    #[test]
    fn the_verdict_is_a_sentence() {
        let mut summary = sample().summary;
        let sentence = "1 of 2 required checks hold. Failed: sim.1b. Outside its band, without \
                        being required: share.";
        assert_eq!(verdict_sentence(&summary), sentence);
        let mut many = summary.clone();
        let other = many.checks.iter().find(|check| !check.required && check.expected).cloned();
        many.checks.extend(other.into_iter().cycle().take(NAMED_MAX));
        let told = "1 of 2 required checks hold. Failed: sim.1b. 4 others are outside their bands, \
                    without being required.";
        assert_eq!(verdict_sentence(&many), told);
        summary.checks[1].value = None;
        assert!(verdict_sentence(&summary).contains("not run: sim.1b. Outside"));
        (summary.checks[1].ok, summary.ok) = (true, true);
        assert!(verdict_sentence(&summary).starts_with("Both required checks hold."));
        summary.checks.truncate(1);
        assert_eq!(verdict_sentence(&summary), "The one required check holds.");
        summary.checks.clear();
        assert!(verdict_sentence(&summary).starts_with("Nothing is required"));
    }

    #[test]
    fn each_check_has_its_word() {
        let mut checks = sample().summary.checks;
        let words: Vec<&str> = checks.iter().map(verdict).collect();
        assert_eq!(words, ["holds", "FAILS", "outside", ""]);
        checks[1].value = None;
        assert_eq!(
            (verdict(&checks[1]), check_figure(&checks[1])),
            ("not measured", "none".into())
        );
        assert_eq!(band(&checks[0]), "0 to 0.350");
        checks[3].expected = true;
        assert_eq!(verdict(&checks[3]), "holds", "a reading is expected without any band");
    }

    #[test]
    fn numbers_keep_the_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (0.0623, "0.062"),
            (6.25, "6.25"),
            (14.304, "14.3"),
            (123.4, "123"),
            (-0.5, "-0.500"),
            (0.000_02, "2.0e-5"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn names_of_metrics_are_words() {
        for (name, words) in [
            ("goodput_mbit.flow", "goodput of flow"),
            ("loss_percent", "loss"),
            ("losses_packets_per_minute", "losses"),
            ("of_best_alone", "rate over the best link's alone"),
            ("transfer_mbit.flow", "transfer rate of flow"),
            ("held_acks", "held ACKs"),
        ] {
            assert_eq!(metric(name), words);
        }
        let settings = Settings::from([
            ("t_dwd_ms".into(), Value::Integer(50)),
            ("form".into(), Value::String("paper".into())),
        ]);
        let axes = ["form".to_owned(), "t_dwd_ms".to_owned()];
        let told = |name| cell(&axes, &settings, name);
        assert_eq!(told("t_dwd_ms=50,form=paper"), "form paper, t_dwd 50 ms");
        assert_eq!(told("base"), "base");
    }

    #[test]
    fn the_headline_says_how_far_the_figures_go_or_what_a_single_cell_came_to() {
        let mut results = sample();
        assert_eq!(
            headline(&results).unwrap(),
            "Loss goes from 1.50 % (k 1) to 5 % (k 0.1). Of 2 figures that the paper prints, 2 are \
             within a quarter of it."
        );
        results.cells[1].figures[0].median = 5.0;
        assert!(headline(&results).unwrap().starts_with("Loss is 5 % in every cell."));
        results.cells.truncate(1);
        results.summary.on = crate::record::BOTH.into();
        assert_eq!(
            headline(&results).unwrap(),
            "Measured and simulated are within a quarter of each other in 1 of 1 figures. Loss is \
             5 % measured, 6.25 % simulated."
        );
        let mut check = results.summary.checks[0].clone();
        check.name = "loss_percent at k=0.1".into();
        assert_eq!(check_name(&results.summary, &check), "loss at k=0.1");
        results.cells.clear();
        assert_eq!(headline(&results), None);
    }
}
