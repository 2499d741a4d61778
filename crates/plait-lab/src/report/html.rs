//! Results as one self-contained HTML page: style and plots are inside.

use super::matrix::{self, Matrix};
use super::panel::{self, Drawn, Form, Key};
use super::svg::escape;
use super::{scatter, sweep, words};
use crate::record::{CellFigure, CellRecord, CheckFigure, Results, RunRecord, SummaryRecord};

const STYLE: &str = include_str!("page.css");
/// Most cells whose plots a page shows; more would make a browser slow.
const PLOTTED_CELLS_MAX: usize = 60;
/// Cells with at most this many plots are shown two in a row.
const FEW_PLOTS: usize = 2;

/// The beginning of an experiment's page, and the part after its figures. All of it is markup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lead {
    /// The result in words.
    pub(crate) headline: String,
    /// The result as a drawing.
    pub(crate) drawn: String,
    pub(crate) more: String,
}

/// The page for one experiment with a special lead.
pub(crate) fn page_led_by(lead: &Lead, results: &Results) -> String {
    let SummaryRecord { name, title, .. } = &results.summary;
    let body = experiment(results, false, lead);
    document(&escape(&format!("{name}: {title}")), &body)
}

/// The page for some experiments.
pub(crate) fn page(all: &[Results]) -> String {
    let of = |summary: &SummaryRecord| escape(&format!("{}: {}", summary.name, summary.title));
    let has_lead = all.len() == 1 || all.first().is_some_and(|first| first.summary.is_comparison());
    let title = match all {
        [first, ..] if has_lead => of(&first.summary),
        many => format!("plait: {} experiments", many.len()),
    };
    let is_first = |results| all.first().is_some_and(|first| std::ptr::eq(first, results));
    let section =
        |results| experiment(results, !(has_lead && is_first(results)), &lead_of(results));
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

fn experiment(results: &Results, is_titled: bool, lead: &Lead) -> String {
    let summary = &results.summary;
    let title = if is_titled {
        format!("<h2>{}: {}</h2>\n", escape(&summary.name), escape(&summary.title))
    } else {
        String::new()
    };
    let mut parts = [
        head(results, lead),
        checks(summary),
        figures(results) + &lead.more,
        plots(results),
        origin(results),
    ];
    if !words::has_expectations(summary) {
        // Without a verdict the figures come first, and the checks explain them.
        parts.swap(1, 2);
    }
    format!("<section>\n{title}{}</section>\n", parts.concat())
}

fn head(results: &Results, lead: &Lead) -> String {
    let summary = &results.summary;
    let (class, badge) = if summary.is_simulated() {
        ("badge simulated", "Simulated: virtual time, no real network")
    } else if summary.is_comparison() {
        ("badge", "Simulated, beside measured in network namespaces")
    } else {
        ("badge", "Measured in network namespaces, over emulated links")
    };
    let is_required = summary.checks.iter().any(|check| check.required && check.expected);
    let mood = match (summary.ok, is_required) {
        (true, false) => "dim",
        (true, true) => "verdict good",
        (false, _) => "verdict bad",
    };
    format!(
        "<p class=\"dim\">Source: {}</p>\n<p><span class=\"{class}\">{badge}</span></p>\n\
         {}<p class=\"{mood}\">{}</p>\n{}",
        escape(&summary.source),
        lead.headline,
        escape(&words::verdict_sentence(summary)),
        lead.drawn,
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
            escape(&words::check_name(summary, check)),
            escape(&words::check_figure(check)),
            escape(&words::band(check)),
            escape(&check.words),
            escape(&check.source),
        )
    };
    let rows: String = summary.checks.iter().map(row).collect();
    let has_words = summary.checks.iter().any(|check| !check.words.is_empty());
    let found = if has_words { "what was found" } else { "" };
    format!(
        "<h3>Checks</h3>\n<div class=\"scroll\"><table class=\"checks stacked\">\n\
         <tr><th>check</th><th>verdict</th>\
         <th class=\"number\">figure</th><th>band</th><th>{found}</th><th>source</th></tr>\n\
         {rows}</table></div>\n"
    )
}

/// The cells' figures: a matrix for two axes, otherwise a list.
fn figures(results: &Results) -> String {
    let axes = &results.summary.axes;
    let matrices = matrix::matrices(axes, &results.cells);
    let tables: String = match axes.as_slice() {
        [first, second] => {
            let [_, other, _] = words::heads(&results.summary);
            matrices.iter().map(|matrix| grid(matrix, first, second, other)).collect()
        }
        _ if words::is_by_metric(results) => by_metric(results),
        // The checks have the same figures.
        _ if results.summary.is_comparison() => String::new(),
        _ => list(results),
    };
    if tables.is_empty() {
        return String::new();
    }
    format!("<h3>Figures</h3>\n{tables}")
}

fn grid(matrix: &Matrix<'_>, first: &str, second: &str, other: &str) -> String {
    let has_paper = matrix.figures.iter().flatten().flatten().any(|figure| figure.paper.is_some());
    let heads: String =
        matrix.columns.iter().map(|value| format!("<th>{}</th>", escape(value))).collect();
    let (first, second) = (escape(first), escape(second));
    let cell = |(column, figure): (&String, &Option<&CellFigure>)| match figure {
        Some(figure) => {
            let name = format!("{second} {}", escape(column));
            format!("<td data-name=\"{name}\">{}</td>", in_grid(figure))
        }
        None => "<td></td>".to_owned(),
    };
    let row = |(name, figures): (&String, &Vec<Option<&CellFigure>>)| {
        let cells: String = matrix.columns.iter().zip(figures).map(cell).collect();
        format!("<tr><th data-name=\"{first}\">{}</th>{cells}</tr>\n", escape(name))
    };
    let rows: String = matrix.rows.iter().zip(&matrix.figures).map(row).collect();
    let unit = if matrix.unit.is_empty() { String::new() } else { format!(", {}", matrix.unit) };
    let paper = if has_paper { format!("; in parentheses: {other}") } else { String::new() };
    format!(
        "<p>{}{}{paper}</p>\n<div class=\"scroll\"><table class=\"matrix stacked flowing\">\n\
         <tr><th>{first} \\ {second}</th>{heads}</tr>\n{rows}</table></div>\n",
        escape(&words::capital(&words::metric(matrix.metric))),
        escape(&unit),
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
    let axes = &results.summary.axes;
    let first = match axes.as_slice() {
        [axis] => escape(axis),
        _ => "cell".to_owned(),
    };
    let named = |name: &&str| escape(&words::metric(name));
    let heads: String = metrics.iter().map(|name| format!("<th>{}</th>", named(name))).collect();
    let row = |cell: &CellRecord| {
        let figure = |metric: &&str| {
            let (name, text) = (named(metric), escape(&words::in_column(cell, metric)));
            format!("<td data-name=\"{name}\">{text}</td>")
        };
        let figures: String = metrics.iter().map(figure).collect();
        let name = words::cell(axes, &cell.settings, &cell.cell);
        format!("<tr><th>{}</th>{figures}</tr>\n", escape(&name))
    };
    let rows: String = results.cells.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"matrix stacked\">\n<tr><th>{first}</th>{heads}</tr>\n\
         {rows}</table></div>\n"
    )
}

fn list(results: &Results) -> String {
    let summary = &results.summary;
    let [run, other, ratio] = words::heads(summary);
    let (has_ranges, has_paper) = (words::has_ranges(results), words::has_paper(results));
    let columns = [
        ("cell", "name", true),
        ("figure", "name", true),
        (run, "number", true),
        ("over the seeds", "number", has_ranges),
        (other, "number", has_paper),
        (ratio, "number", has_paper),
        ("in the paper", "dim", has_paper),
    ];
    let row = |tag: &str, texts: [&str; 7]| {
        let shown = columns.iter().zip(texts).filter(|((_, _, is_shown), _)| *is_shown);
        let shown = shown.map(|((head, class, _), text)| {
            format!("<{tag} class=\"{class}\" data-name=\"{head}\">{}</{tag}>", escape(text))
        });
        format!("<tr>{}</tr>\n", shown.collect::<String>())
    };
    let mut rows = String::new();
    for cell in &results.cells {
        let mut name = words::cell(&summary.axes, &cell.settings, &cell.cell);
        for figure in &cell.figures {
            let unit = |value| words::with_unit(value, &figure.unit);
            let texts = [
                std::mem::take(&mut name),
                words::metric(&figure.metric),
                unit(figure.median),
                words::range(figure, cell.seeds.len()),
                figure.paper.map(unit).unwrap_or_default(),
                words::against_paper(figure),
                figure.paper_source.clone(),
            ];
            rows.push_str(&row("td", texts.each_ref().map(String::as_str)));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let heads = row("th", columns.map(|(head, ..)| head));
    format!("<div class=\"scroll\"><table class=\"stacked\">\n{heads}{rows}</table></div>\n")
}

/// The result in words, and the figures plotted against the varied setting.
fn lead_of(results: &Results) -> Lead {
    let headline = words::headline(results).map_or_else(String::new, |sentence| {
        format!("<p class=\"headline\">{}</p>\n", escape(&sentence))
    });
    let scattered: String = results.scatters.iter().map(scatter::draw).collect();
    let drawn: String = sweep::draw(results).iter().map(figure).collect();
    if drawn.is_empty() {
        return Lead { headline, drawn: scattered, ..Lead::default() };
    }
    let spread = match words::has_ranges(results) {
        true => "Medians over the seeds, with the range from the smallest to the largest.",
        false => "One run of each cell.",
    };
    let drawn = format!(
        "{scattered}<h3>At a glance</h3>\n<p class=\"dim\">{spread}</p>\n\
         <div class=\"plots lead\">\n{drawn}</div>\n"
    );
    Lead { headline, drawn, more: String::new() }
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
    // A single run without a seed cannot be repeated.
    let is_seeded = results.summary.seeds > 0;
    let axes = &results.summary.axes;
    let cell = |(run, drawn): (&&RunRecord, &Vec<Drawn>)| {
        cell(&words::cell(axes, &run.settings, &run.cell), run, drawn, is_seeded)
    };
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

fn cell(name: &str, run: &RunRecord, drawn: &[Drawn], is_seeded: bool) -> String {
    let plots: String = drawn.iter().map(figure).collect();
    let repeat = match is_seeded {
        true => {
            format!("<p class=\"dim\">Repeat this run: <code>{}</code></p>\n", escape(&run.command))
        }
        false => String::new(),
    };
    format!(
        "<div>\n<h4>{}</h4>\n<div class=\"plots\">\n{plots}</div>\n{repeat}</div>\n",
        escape(name)
    )
}

/// A plot with its title and legend.
pub(crate) fn figure(drawn: &Drawn) -> String {
    let keys: String = drawn.keys.iter().map(key).collect();
    figure_of(&drawn.title, &keys, &drawn.svg)
}

/// A drawing under its title. `keys` and `svg` are markup.
pub(crate) fn figure_of(title: &str, keys: &str, svg: &str) -> String {
    let title = escape(title);
    format!("<figure><figcaption><b>{title}</b><br>{keys}</figcaption>{svg}</figure>\n")
}

/// An entry of a legend.
pub(crate) fn key(key: &Key) -> String {
    let colour = key.colour;
    let sign = match key.form {
        Form::Line => format!("<path class=\"line c{colour}\" d=\"M1 5H25\"/>"),
        Form::Dashes => format!("<path class=\"line c{colour} dashed\" d=\"M1 5H25\"/>"),
        Form::Bar => format!("<path class=\"level c{colour}\" d=\"M1 5H25\"/>"),
        Form::Ring => "<circle class=\"ring\" cx=\"19\" cy=\"5\" r=\"4\"/>".to_owned(),
    };
    key_of(&sign, &key.name)
}

/// An entry of a legend with its own sign, which is markup in a box of 26 by 10.
pub(super) fn key_of(sign: &str, name: &str) -> String {
    let name = escape(name);
    format!(
        "<span class=\"key\"><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\">{sign}</svg> \
         {name}</span>"
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
         <p>{verb} on {} ({} cores), Linux {}, by plait-lab {}, {} in {}&nbsp;s.</p>\n\
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
        assert!(text.contains("<th>loss</th><th>jain index</th>"), "{text}");
        let cells = "<td data-name=\"loss\"></td><td data-name=\"jain index\">5 %</td>";
        assert!(text.contains(&format!("<tr><th>k 0.1</th>{cells}</tr>")), "{text}");
    }

    #[test]
    fn a_sweep_begins_with_its_result_in_words_and_plots() {
        let page = page(&sample());
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        let (headline, plot) = (place("<p class=\"headline\">Loss goes from"), place("glance"));
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
        assert!(
            order(&text).is_gt() && text.contains("<p class=\"dim\">Nothing is required"),
            "{text}"
        );
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
