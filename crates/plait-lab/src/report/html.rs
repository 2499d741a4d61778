//! Results as one HTML page that needs nothing else: style and plots are inside.

use super::matrix::{self, Matrix};
use super::panel::{self, Drawn, Key};
use super::svg::escape;
use super::{sweep, words};
use crate::record::{CellFigure, CellRecord, CheckFigure, Results, RunRecord, SummaryRecord};

const STYLE: &str = include_str!("page.css");
/// Cells whose plots a page shows; a browser would be slow with more.
const PLOTTED_CELLS_MAX: usize = 60;
/// Cells with no more plots stand two in a row.
const FEW_PLOTS: usize = 2;

/// The page for one experiment that begins with `lead`, which is markup and says the result.
pub(crate) fn page_led_by(lead: &str, results: &Results) -> String {
    let SummaryRecord { name, title, .. } = &results.summary;
    document(&escape(&format!("{name}: {title}")), &experiment(results, false, Some(lead)))
}

/// The page for some experiments.
pub(crate) fn page(all: &[Results]) -> String {
    let of = |summary: &SummaryRecord| escape(&format!("{}: {}", summary.name, summary.title));
    let title = match all {
        [one] => of(&one.summary),
        many => format!("plait: {} experiments", many.len()),
    };
    let section = |results| experiment(results, all.len() > 1, None);
    let body: Vec<String> = all.iter().map(section).collect();
    document(&title, &body.join("\n"))
}

/// A whole page around its body. Both are markup.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {body}</body>\n</html>\n"
    )
}

fn experiment(results: &Results, is_one_of_many: bool, lead: Option<&str>) -> String {
    let summary = &results.summary;
    let title = if is_one_of_many {
        format!("<h2>{}: {}</h2>\n", escape(&summary.name), escape(&summary.title))
    } else {
        String::new()
    };
    let mut parts = [
        head(results, lead),
        if lead.is_none() { sweeps(results) } else { String::new() },
        checks(summary),
        figures(results),
        plots(results),
        origin(results),
    ];
    if !words::has_expectations(summary) {
        // Without a verdict the figures are the answer, and the checks explain them.
        parts.swap(2, 3);
    }
    format!("<section>\n{title}{}</section>\n", parts.concat())
}

fn head(results: &Results, lead: Option<&str>) -> String {
    let summary = &results.summary;
    let (class, badge) = if summary.is_simulated() {
        ("badge simulated", "Simulated: virtual time, no real network")
    } else if summary.is_comparison() {
        ("badge", "Simulated, beside measured in network namespaces")
    } else {
        ("badge", "Measured in network namespaces, over emulated links")
    };
    let headline = match (lead, words::headline(results)) {
        (Some(lead), _) => lead.to_owned(),
        (None, Some(sentence)) => format!("<p class=\"headline\">{}</p>\n", escape(&sentence)),
        (None, None) => String::new(),
    };
    let is_required = summary.checks.iter().any(|check| check.required && check.expected);
    let mood = match (summary.ok, is_required) {
        (true, false) => "",
        (true, true) => "good",
        (false, _) => "bad",
    };
    format!(
        "<p class=\"dim\">Source: {}</p>\n<p><span class=\"{class}\">{badge}</span></p>\n\
         {headline}<p class=\"verdict {mood}\">{}</p>\n",
        escape(&summary.source),
        escape(&words::verdict_sentence(summary)),
    )
}

fn checks(summary: &SummaryRecord) -> String {
    if summary.checks.is_empty() {
        return String::new();
    }
    let row = |check: &CheckFigure| {
        let verdict = words::verdict(check);
        let class = match verdict {
            "holds" => "good",
            "FAILS" => "bad",
            "not measured" if check.required && check.expected => "bad",
            _ => "name",
        };
        format!(
            "<tr><th>{}</th><td class=\"{class}\" data-name=\"verdict\">{verdict}</td>\
             <td class=\"number\" data-name=\"figure\">{}</td>\
             <td class=\"name\" data-name=\"band\">{}</td>\
             <td class=\"words\" data-name=\"found\">{}</td>\
             <td class=\"words\" data-name=\"source\">{}</td></tr>\n",
            escape(&check.name),
            escape(&words::check_figure(check)),
            escape(&words::band(check)),
            escape(&check.words),
            escape(&check.source),
        )
    };
    let rows: String = summary.checks.iter().map(row).collect();
    format!(
        "<h3>Checks</h3>\n<div class=\"scroll\"><table class=\"checks stacked\">\n\
         <tr><th>check</th><th>verdict</th>\
         <th class=\"number\">figure</th><th>band</th><th>what was found</th><th>source</th></tr>\n\
         {rows}</table></div>\n"
    )
}

/// The cells' figures: a matrix for two axes, otherwise a list.
fn figures(results: &Results) -> String {
    let axes = &results.summary.axes;
    let matrices = matrix::matrices(axes, &results.cells);
    let tables: String = match axes.as_slice() {
        [first, second] => matrices.iter().map(|matrix| grid(matrix, first, second)).collect(),
        _ if words::is_by_metric(results) => by_metric(results),
        _ => list(results),
    };
    if tables.is_empty() {
        return String::new();
    }
    format!("<h3>Figures</h3>\n{tables}")
}

fn grid(matrix: &Matrix<'_>, first: &str, second: &str) -> String {
    let has_paper = matrix.figures.iter().flatten().flatten().any(|figure| figure.paper.is_some());
    let heads: String =
        matrix.columns.iter().map(|value| format!("<th>{}</th>", escape(value))).collect();
    let cell = |figure: &Option<&CellFigure>| match figure {
        Some(figure) => format!("<td>{}</td>", in_grid(figure)),
        None => "<td></td>".to_owned(),
    };
    let row = |(name, figures): (&String, &Vec<Option<&CellFigure>>)| {
        let cells: String = figures.iter().map(cell).collect();
        format!("<tr><th>{}</th>{cells}</tr>\n", escape(name))
    };
    let rows: String = matrix.rows.iter().zip(&matrix.figures).map(row).collect();
    let unit = if matrix.unit.is_empty() { String::new() } else { format!(", {}", matrix.unit) };
    let paper = if has_paper { "; in parentheses the paper's" } else { "" };
    format!(
        "<p>{}{}{paper}</p>\n<div class=\"scroll\"><table class=\"matrix\">\n\
         <tr><th>{} \\ {}</th>{heads}</tr>\n{rows}</table></div>\n",
        escape(matrix.metric),
        escape(&unit),
        escape(first),
        escape(second),
    )
}

fn in_grid(figure: &CellFigure) -> String {
    let run = words::number(figure.median);
    match figure.paper {
        Some(paper) => format!("{run} <span class=\"dim\">({})</span>", words::number(paper)),
        None => run,
    }
}

fn by_metric(results: &Results) -> String {
    let metrics = words::metrics(results);
    let heads: String = metrics.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    let row = |cell: &CellRecord| {
        let figure = |metric: &&str| {
            let (name, text) = (escape(metric), escape(&words::in_column(cell, metric)));
            format!("<td data-name=\"{name}\">{text}</td>")
        };
        let figures: String = metrics.iter().map(figure).collect();
        format!("<tr><th>{}</th>{figures}</tr>\n", escape(&cell.cell))
    };
    let rows: String = results.cells.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"matrix stacked\">\n<tr><th>cell</th>{heads}</tr>\n\
         {rows}</table></div>\n"
    )
}

fn list(results: &Results) -> String {
    let (has_ranges, has_paper) = (words::has_ranges(results), words::has_paper(results));
    let shown = |is_shown: bool, tag: &str, class: &str, text: &str| {
        if is_shown { format!("<{tag} class=\"{class}\">{text}</{tag}>") } else { String::new() }
    };
    let mut rows = String::new();
    for cell in &results.cells {
        for (index, figure) in cell.figures.iter().enumerate() {
            let name = if index == 0 { escape(&cell.cell) } else { String::new() };
            let paper = figure.paper.map(|paper| words::with_unit(paper, &figure.unit));
            rows.push_str(&format!(
                "<tr>{}{}{}{}{}{}{}</tr>\n",
                shown(true, "td", "name", &name),
                shown(true, "td", "name", &escape(&figure.metric)),
                shown(
                    true,
                    "td",
                    "number",
                    &escape(&words::with_unit(figure.median, &figure.unit))
                ),
                shown(has_ranges, "td", "number", &words::range(figure, cell.seeds.len())),
                shown(has_paper, "td", "number", &escape(&paper.unwrap_or_default())),
                shown(has_paper, "td", "number", &words::against_paper(figure)),
                shown(has_paper, "td", "dim", &escape(&figure.paper_source)),
            ));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let heads = [
        shown(has_ranges, "th", "number", "over the seeds"),
        shown(has_paper, "th", "number", "paper"),
        shown(has_paper, "th", "number", "run / paper"),
        shown(has_paper, "th", "name", "in the paper"),
    ];
    format!(
        "<div class=\"scroll\"><table>\n<tr><th>cell</th><th>figure</th>\
         <th class=\"number\">run</th>{}</tr>\n{rows}</table></div>\n",
        heads.concat()
    )
}

/// The figures against what was varied.
fn sweeps(results: &Results) -> String {
    let drawn: String = sweep::draw(results).iter().map(figure).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let spread = match words::has_ranges(results) {
        true => "Medians over the seeds, with the range from the smallest to the largest.",
        false => "One run of each cell.",
    };
    format!(
        "<h3>At a glance</h3>\n<p class=\"dim\">{spread}</p>\n\
         <div class=\"plots\">\n{drawn}</div>\n"
    )
}

/// The series of each cell's first run.
fn plots(results: &Results) -> String {
    let first_of = |cell: &CellRecord| results.runs.iter().find(|run| run.cell == cell.cell);
    let runs: Vec<&RunRecord> =
        results.cells.iter().filter_map(first_of).take(PLOTTED_CELLS_MAX).collect();
    let drawn = panel::draw(&runs, results.summary.duration_s);
    if drawn.iter().all(Vec::is_empty) {
        return String::new();
    }
    let together = drawn.iter().flatten().map(|plot| plot.samples_per_point).max().unwrap_or(1);
    let mut note = match results.summary.seeds {
        0 => String::new(),
        _ => format!("One run of each cell, seed {}. ", results.summary.seed),
    };
    note.push_str("The same plot has the same axes in every cell.");
    if together > 1 {
        note.push_str(&format!(" Each point is the mean of up to {together} samples."));
    }
    if results.cells.len() > runs.len() {
        note.push_str(&format!(" Shown are {} of {} cells.", runs.len(), results.cells.len()));
    }
    // What is not seeded cannot be repeated by itself.
    let is_seeded = results.summary.seeds > 0;
    let cell = |(run, drawn): (&&RunRecord, &Vec<Drawn>)| cell(run, drawn, is_seeded);
    let cells: String = runs.iter().zip(&drawn).map(cell).collect();
    let class = match drawn.iter().all(|drawn| drawn.len() <= FEW_PLOTS) {
        true => "cells few",
        false => "cells",
    };
    format!(
        "<h3>Over time</h3>\n<p class=\"dim\">{note}</p>\n\
         <div class=\"{class}\">\n{cells}</div>\n"
    )
}

fn cell(run: &RunRecord, drawn: &[Drawn], is_seeded: bool) -> String {
    let plots: String = drawn.iter().map(figure).collect();
    let repeat = match is_seeded {
        true => {
            format!("<p class=\"dim\">Repeat this run: <code>{}</code></p>\n", escape(&run.command))
        }
        false => String::new(),
    };
    format!(
        "<div>\n<h4>{}</h4>\n<div class=\"plots\">\n{plots}</div>\n{repeat}</div>\n",
        escape(&run.cell)
    )
}

/// A plot with its title and legend.
pub(crate) fn figure(drawn: &Drawn) -> String {
    let keys: String = drawn.keys.iter().map(key).collect();
    format!(
        "<figure><figcaption><b>{}</b><br>{keys}</figcaption>{}</figure>\n",
        escape(&drawn.title),
        drawn.svg
    )
}

fn key(key: &Key) -> String {
    let dashed = if key.is_dashed { " dashed" } else { "" };
    format!(
        "<span class=\"key\"><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\">\
         <path class=\"line c{}{dashed}\" d=\"M1 5H25\"/></svg> {}</span>",
        key.colour,
        escape(&key.name)
    )
}

fn origin(results: &Results) -> String {
    let SummaryRecord { machine, elapsed_s, command, origin, .. } = &results.summary;
    let runs = match results.runs.len() {
        0 => "all runs".to_owned(),
        1 => "1 run".to_owned(),
        many => format!("{many} runs"),
    };
    let digest = match origin.scenario_digest.as_str() {
        "" => String::new(),
        digest => format!(
            "<p class=\"dim\">The scenario's text and the files it names have the BLAKE2b-256 \
             digest <code>{}</code>.</p>\n",
            escape(digest)
        ),
    };
    let verb = if results.summary.is_simulated() { "Computed" } else { "Measured" };
    format!(
        "<h3>Where this comes from</h3>\n<p>{}</p>\n\
         <p>{verb} on {} ({} cores), Linux {}, by plait-lab {}, {} in {} s.</p>\n\
         <p>Repeat everything: <code>{}</code></p>\n{digest}",
        escape(&words::origin(&results.summary)),
        escape(&machine.cpu),
        machine.cores,
        escape(&machine.kernel),
        escape(&origin.build()),
        runs,
        words::number(*elapsed_s),
        escape(command),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read;
    use super::*;

    fn sample() -> Vec<Results> {
        read::results(Path::new("r"), read::tests::SAMPLE).unwrap()
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = page(&sample());
        for outside in ["http:", "https:", "src=", "href=", "@import", "url(", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for tag in ["section", "table", "svg", "figure", "div", "p", "h4"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn simulated_is_marked_and_measured_is_not() {
        let mut results = sample();
        assert!(page(&results).contains("Simulated: virtual time"));
        results[0].summary.on = "netns".into();
        let measured = page(&results);
        assert!(!measured.contains("Simulated") && measured.contains("Measured in"));
    }

    #[test]
    fn what_files_say_is_escaped() {
        let mut results = sample();
        let evil = "<img onerror=x>&\"'";
        results[0].summary.title = evil.into();
        results[0].summary.checks[0].words = evil.into();
        results[0].runs[0].command = evil.into();
        results[0].cells[0].cell = evil.into();
        results[0].cells[0].figures[0].metric = evil.into();
        let samples = vec![Some(1.0)];
        results[0].runs[1].series.insert(format!("weight.{evil}"), samples);
        assert!(!page(&results).contains("<img"));
    }

    #[test]
    fn the_papers_numbers_stand_beside() {
        let page = page(&sample());
        assert!(page.contains("6.25 %"), "{page}");
        assert!(page.contains("Failed: sim.1b."));
    }

    #[test]
    fn two_axes_make_a_matrix() {
        let mut results = sample();
        results[0].summary.axes.push("t".into());
        for cell in &mut results[0].cells {
            cell.settings.insert("t".into(), toml::Value::Integer(50));
        }
        let page = page(&results);
        assert!(page.contains("k \\ t") && page.contains("<span class=\"dim\">(6.25)</span>"));
    }

    #[test]
    fn several_metrics_along_one_axis_are_columns() {
        let mut results = sample();
        for cell in &mut results[0].cells {
            cell.figures[0].paper = None;
            let mut other = cell.figures[0].clone();
            other.metric = "jain_index".into();
            cell.figures.push(other);
        }
        results[0].cells[0].figures.remove(0);
        let text = page(&results);
        assert!(text.contains("<th>loss_percent</th><th>jain_index</th>"), "{text}");
        let cells = "<td data-name=\"loss_percent\"></td><td data-name=\"jain_index\">5 %</td>";
        assert!(text.contains(&format!("<tr><th>k=0.1</th>{cells}</tr>")), "{text}");
    }

    #[test]
    fn a_sweep_begins_with_its_result_in_words_and_plots() {
        let page = page(&sample());
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        let (headline, plot) =
            (place("<p class=\"headline\">loss_percent goes from"), place("glance"));
        assert!(headline < plot && plot < place("<h3>Figures"));
        assert!(page.contains("class=\"ring"), "the paper's values stand in the plot");
    }

    #[test]
    fn what_may_be_wide_can_be_scrolled() {
        let page = page(&sample());
        let tables = page.matches("<table").count();
        assert!(tables > 1);
        assert_eq!(page.matches("<div class=\"scroll\"><table").count(), tables);
    }

    #[test]
    fn figures_of_which_nothing_is_expected_stand_before_the_checks() {
        let mut results = sample();
        let order = |page: &str| page.find("<h3>Checks").cmp(&page.find("<h3>Figures"));
        assert!(order(&page(&results)).is_lt());
        for check in &mut results[0].summary.checks {
            check.expected = false;
        }
        results[0].summary.ok = true;
        let text = page(&results);
        assert!(order(&text).is_gt() && text.contains("<p class=\"verdict \">"), "{text}");
    }

    #[test]
    fn results_without_series_have_no_plots() {
        let mut results = sample();
        for run in &mut results[0].runs {
            run.series.clear();
        }
        assert!(!page(&results).contains("Over time"));
    }
}
