//! Verdicts on results written by hand.

use super::*;

fn settings(k: f64, t_dwd_ms: i64) -> Settings {
    Settings::from([("k".to_owned(), k.into()), ("t_dwd_ms".to_owned(), t_dwd_ms.into())])
}

fn result(k: f64, t_dwd_ms: i64, seed: u64, loss_percent: f64) -> CellResult {
    CellResult {
        cell: format!("k={k},t_dwd_ms={t_dwd_ms}"),
        settings: settings(k, t_dwd_ms),
        seed,
        metrics: BTreeMap::from([("loss_percent".to_owned(), loss_percent)]),
        series: BTreeMap::new(),
    }
}

/// Two values of k and three of T_dwd, out of order.
fn table() -> Vec<CellResult> {
    vec![
        result(0.1, 500, 1, 4.0),
        result(0.1, 50, 1, 6.0),
        result(0.1, 250, 1, 5.0),
        result(1.0, 50, 1, 1.0),
        result(1.0, 250, 1, 0.25),
        result(1.0, 500, 1, 0.5),
    ]
}

fn cells(axis: &str, value: impl Into<toml::Value>) -> Selector {
    Selector::choosing([(axis.to_owned(), vec![value.into()])])
}

fn check(kind: CheckKind, cells: Selector, low: Option<f64>, high: Option<f64>) -> Check {
    Check {
        name: "c".into(),
        kind,
        metric: "loss_percent".into(),
        cells,
        low,
        high,
        absent: None,
        required: true,
        source: "s".into(),
        note: String::new(),
    }
}

fn paper(values: &[(f64, i64, f64)]) -> Vec<PaperValue> {
    let value = |(k, t_dwd_ms, value): &(f64, i64, f64)| PaperValue {
        metric: "loss_percent".into(),
        at: Selector::choosing([
            ("k".to_owned(), vec![(*k).into()]),
            ("t_dwd_ms".to_owned(), vec![(*t_dwd_ms).into()]),
        ]),
        value: *value,
        source: String::new(),
    };
    values.iter().map(value).collect()
}

fn verdict(check: &Check, results: &[CellResult], paper: &[PaperValue]) -> (f64, bool, String) {
    let outcome = check.evaluate(results, paper);
    (outcome.value.unwrap(), outcome.ok, outcome.words)
}

fn all() -> Selector {
    Selector::default()
}

#[test]
fn a_band_shows_the_cell_furthest_out() {
    let band = check(CheckKind::Band, cells("k", 1), Some(0.3), Some(1.0));
    let (value, ok, words) = verdict(&band, &table(), &[]);
    assert_eq!((value, ok), (0.25, false));
    assert_eq!(words, "loss_percent of 3 cells; furthest out at k=1,t_dwd_ms=250: 0.250 %");
    let wide = check(CheckKind::Band, cells("k", 1), Some(0.2), Some(1.0));
    assert!(verdict(&wide, &table(), &[]).1);
    let open = check(CheckKind::Band, cells("t_dwd_ms", 50), None, None);
    let (value, ok, words) = verdict(&open, &table(), &[]);
    assert_eq!((value, ok), (3.5, true));
    let ends = "from 1.000 % at k=1,t_dwd_ms=50 to 6.000 % at k=0.1,t_dwd_ms=50";
    assert_eq!(words, format!("loss_percent of 2 cells: median, {ends}"));
}

#[test]
fn seeds_are_judged_by_their_median() {
    let results = [1.0, 9.0, 2.0].iter().zip(1..).map(|(loss, seed)| result(1.0, 50, seed, *loss));
    let mut results: Vec<CellResult> = results.collect();
    let band = check(CheckKind::Band, all(), None, Some(2.0));
    assert_eq!(verdict(&band, &results, &[]).0, 2.0);
    let worst = check(CheckKind::Worst, all(), None, Some(2.0));
    assert_eq!((verdict(&worst, &results, &[]).0, verdict(&worst, &results, &[]).1), (9.0, false));
    results.push(result(1.0, 50, 4, 4.0));
    assert_eq!(verdict(&band, &results, &[]), (3.0, false, "loss_percent is 3.000 %".into()));
}

#[test]
fn the_error_against_the_paper_is_logarithmic() {
    // One cell twice the paper's, one half of it: the root mean square is ln 2.
    let paper = paper(&[(1.0, 50, 0.5), (1.0, 500, 1.0)]);
    let fit = check(CheckKind::RmsLnError, all(), None, Some(0.7));
    let (value, ok, words) = verdict(&fit, &table(), &paper);
    assert!((value - core::f64::consts::LN_2).abs() < 1e-9 && ok, "{value}");
    assert!(
        words.starts_with("loss_percent of 2 cells against the paper; furthest off at"),
        "{words}"
    );
    let strict = check(CheckKind::RmsLnError, all(), None, Some(0.69));
    assert!(!verdict(&strict, &table(), &paper).1);
    let mut nothing = table();
    nothing[3].metrics.insert("loss_percent".into(), 0.0);
    assert!(!verdict(&fit, &nothing, &paper).1, "a cell without loss is infinitely far off");
}

#[test]
fn an_ordering_compares_neighbours_within_a_row() {
    let ordering =
        |falling, slack| CheckKind::Ordering { falling, along: "t_dwd_ms".into(), slack };
    let falls = check(ordering(true, 0.0), all(), None, Some(0.0));
    let (value, ok, words) = verdict(&falls, &table(), &[]);
    assert_eq!((value, ok), (1.0, false));
    assert_eq!(words, "falls along t_dwd_ms except from 0.250 to 0.500 at k=1,t_dwd_ms=500");
    let row = check(ordering(true, 0.0), cells("k", 0.1), None, Some(0.0));
    let verdict_of_row = verdict(&row, &table(), &[]);
    assert_eq!(verdict_of_row, (0.0, true, "falls along t_dwd_ms in all 2 steps".into()));
    let rises = check(ordering(false, 0.0), cells("k", 0.1), None, Some(0.0));
    assert_eq!(verdict(&rises, &table(), &[]).0, 2.0);
    let loose = check(ordering(true, 1.1), all(), None, Some(0.0));
    assert!(verdict(&loose, &table(), &[]).1);
}

#[test]
fn rows_and_cells_are_compared_as_a_whole() {
    let larger = check(CheckKind::Larger { than: cells("k", 1) }, cells("k", 0.1), Some(1.0), None);
    let (value, ok, words) = verdict(&larger, &table(), &[]);
    assert_eq!((value, ok), (4.0, true));
    assert_eq!(
        words,
        "loss_percent: smallest 4.000 % at k=0.1,t_dwd_ms=500, against largest 1.000 % at \
         k=1,t_dwd_ms=50"
    );
    let spread = check(CheckKind::Spread, cells("k", 1), None, Some(3.0));
    assert_eq!(verdict(&spread, &table(), &[]).0, 4.0);
    let share = check(CheckKind::Share { at_least: 0.5 }, cells("k", 1), Some(0.6), None);
    let (value, ok, words) = verdict(&share, &table(), &[]);
    assert_eq!((value, ok), (2.0 / 3.0, true));
    assert_eq!(
        words,
        "loss_percent is at least 0.500 % in 2 of 3 cells; lowest 0.250 % at k=1,t_dwd_ms=250"
    );
    let to = CheckKind::Ratio { to_metric: "loss_percent".into(), to: cells("k", 1) };
    let ratio = check(to, cells("k", 0.1), Some(9.0), Some(11.0));
    let (value, ok, _) = verdict(&ratio, &table(), &[]);
    assert_eq!((value, ok), (10.0, true));
}

#[test]
fn the_reading_that_fits_best_is_named() {
    let paper = paper(&[(0.1, 50, 5.0), (1.0, 50, 1.01)]);
    let best = |expected| {
        let kind = CheckKind::BestFit { by: vec!["k".into()], expected };
        verdict(&check(kind, all(), None, None), &table(), &paper)
    };
    let (value, ok, words) = best(cells("k", 1.0));
    assert!(value < 0.011 && ok);
    assert_eq!(words, "k=1 fits best; rms ln-errors: k=1 0.01; k=0.1 0.18");
    assert!(!best(cells("k", 0.1)).1 && best(all()).1);
}

#[test]
fn what_was_not_measured_is_not_ok() {
    for kind in [
        CheckKind::Band,
        CheckKind::RmsLnError,
        CheckKind::Spread,
        CheckKind::Ordering { falling: true, along: "k".into(), slack: 0.0 },
        CheckKind::Larger { than: all() },
        CheckKind::Ratio { to_metric: "loss_percent".into(), to: all() },
        CheckKind::BestFit { by: vec!["k".into()], expected: all() },
    ] {
        let outcome = check(kind, cells("k", 7), None, None).evaluate(&table(), &[]);
        assert!(!outcome.ok && outcome.value.is_none(), "{outcome:?}");
        assert_eq!(outcome.words, "not measured: no cell has loss_percent at k=7");
    }
}

#[test]
fn a_comparison_needs_something_to_compare_with() {
    let ordering = CheckKind::Ordering { falling: true, along: "t_dwd_ms".into(), slack: 0.0 };
    for (kind, words) in [
        (ordering, "loss_percent is known at one value of t_dwd_ms only; run more of its values"),
        (CheckKind::Spread, "loss_percent is known in k=1,t_dwd_ms=50 only; run more cells"),
        (CheckKind::Larger { than: cells("k", 0.1) }, "no cell has loss_percent at k=0.1"),
        (
            CheckKind::Ratio { to_metric: "loss_percent".into(), to: cells("k", 0.1) },
            "no cell has loss_percent at k=0.1",
        ),
        (CheckKind::RmsLnError, "the paper has no loss_percent for the cells that were run"),
    ] {
        let one = [result(1.0, 50, 1, 1.0), result(1.0, 50, 2, 1.5)];
        let outcome = check(kind, all(), None, Some(0.0)).evaluate(&one, &[]);
        assert_eq!((outcome.ok, outcome.value), (false, None));
        assert_eq!(outcome.words, format!("nothing to compare: {words}"));
    }
}

#[test]
fn the_best_of_some_cells_stands_over_the_best_of_others() {
    let best = |to| check(CheckKind::Best { to }, cells("k", 0.1), Some(2.0), None);
    let (value, ok, words) = verdict(&best(cells("k", 1)), &table(), &[]);
    assert_eq!((value, ok), (6.0, true));
    assert_eq!(words, "loss_percent: largest 6.000 %, against 1.000 %");
    assert!(!verdict(&best(all()), &table(), &[]).1);
    assert_eq!(best(cells("k", 7)).evaluate(&table(), &[]).value, None);
}

#[test]
fn a_lead_is_the_least_over_cells_alike_but_for_the_axes_that_choose() {
    let mut lead = check(CheckKind::Lead { to: cells("k", 1) }, cells("k", 0.1), Some(6.0), None);
    let (value, ok, words) = verdict(&lead, &table(), &[]);
    assert_eq!((value, ok), (6.0, true));
    assert!(words.starts_with("loss_percent least ahead at k=0.1,t_dwd_ms=50: 6"), "{words}");
    // A run without the metric counts as `absent` says, or not at all.
    let mut without = table();
    without[1].metrics.clear();
    assert_eq!(verdict(&lead, &without, &[]).0, 8.0);
    lead.absent = Some(0.0);
    assert_eq!(verdict(&lead, &without, &[]).0, 0.0);
    without[3].metrics.clear();
    assert_eq!(verdict(&lead, &without, &[]).0, 0.0);
}

#[test]
fn a_run_without_the_metric_counts_as_what_is_said() {
    let mut worst = check(CheckKind::Worst, all(), Some(0.1), None);
    let mut without = table();
    without[0].metrics.clear();
    assert!(verdict(&worst, &without, &[]).1);
    worst.absent = Some(0.0);
    assert_eq!((verdict(&worst, &without, &[]).0, verdict(&worst, &without, &[]).1), (0.0, false));
}

/// Three of the paper's values under readings of k that are off by these factors.
fn readings_off_by(factors: &[(f64, [f64; 3])]) -> (Vec<CellResult>, Vec<PaperValue>) {
    let printed = [(50, 4.0), (250, 2.0), (500, 1.0)];
    let of = |(k, factors): &(f64, [f64; 3])| {
        let k = *k;
        let cell =
            move |((t, value), factor): (&(i64, f64), &f64)| result(k, *t, 1, value * factor);
        printed.iter().zip(factors).map(cell).collect::<Vec<_>>()
    };
    let value = |(t, value): &(i64, f64)| PaperValue {
        metric: "loss_percent".into(),
        at: cells("t_dwd_ms", *t),
        value: *value,
        source: String::new(),
    };
    (factors.iter().flat_map(of).collect(), printed.iter().map(value).collect())
}

#[test]
fn what_was_left_out_judges_the_reading_that_the_rest_chose() {
    let e = std::f64::consts::E;
    // Whichever two choose, they choose 0.1, except that without the last one 0.5 fits best.
    let (results, printed) =
        readings_off_by(&[(0.1, [e.sqrt(), 1.0, 1.0]), (0.5, [1.0, 1.0, e * e])]);
    let kind = CheckKind::HoldOut { by: vec!["k".into()], left_out: 1 };
    let (value, ok, words) = verdict(&check(kind, all(), None, Some(1.2)), &results, &printed);
    // Left out in turn: 0.5, then 0, then 2, because the first two choose 0.5.
    assert!((value - (4.25_f64 / 3.0).sqrt()).abs() < 1e-9, "{value}: {words}");
    assert!(ok && words.contains("3 splits") && words.contains("k=0.1 2 times, k=0.5 1 times"));
    assert!(words.ends_with("worst 2.00"), "{words}");
    let kind = CheckKind::HoldOut { by: vec!["k".into()], left_out: 3 };
    let none = check(kind, all(), None, None).evaluate(&results, &printed);
    assert_eq!((none.value, none.ok), (None, false), "no value is left to choose by");
}

#[test]
fn an_interval_holds_what_fits_nearly_as_well_as_the_best() {
    let alike = |k, factor: f64| (k, [factor; 3]);
    let (results, printed) = readings_off_by(&[alike(3.0, 1.5), alike(1.0, 1.3), alike(2.0, 1.25)]);
    let end = |largest, within| {
        let kind = CheckKind::FitEnd { along: "k".into(), within, largest };
        verdict(&check(kind, all(), None, None), &results, &printed).0
    };
    // ln 1.25 = 0.223, ln 1.3 = 0.262, ln 1.5 = 0.405.
    assert_eq!((end(false, 1.24), end(true, 1.24)), (1.0, 2.0));
    assert_eq!((end(false, 1.1), end(true, 1.9)), (2.0, 3.0));
}
