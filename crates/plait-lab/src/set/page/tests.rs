use super::*;
use crate::cli::On;
use crate::machine::Machine;
use crate::set::Missing;
use crate::set::score::tests::{rung, score};

fn page(on: On, policies: &[&str], scores: &[Vec<Score>]) -> String {
    let policies: Vec<Policy> = policies.iter().map(|name| name.parse().unwrap()).collect();
    let machine =
        Machine { cpu: "a & b".into(), cores: 2, kernel: "7.0".into(), build: "release".into() };
    let missing = vec![Missing { rung: "bbr/x".into(), why: "no <controller>".into() }];
    let rungs = scores.len();
    let more = More { on: on.name(), machine, rungs, missing, seeds: 3, elapsed_s: 7.0 };
    let figures = [Figure::number("lowest", 0.6, "ratio").at_least(0.95, "a source")];
    let summary = Summary::new("ladder", &figures, more);
    let command = "plait-lab run ladder --only a<b";
    Page { title: "t", policies: &policies, scores, command, summary: &summary }.html()
}

fn of_two() -> String {
    let (fast, slow) = (rung("rates/a", true), rung("rates/b", true));
    let scores = [
        vec![score(&slow, 24.0), score(&slow, 38.0)],
        vec![score(&fast, 36.0), score(&fast, 60.0)],
    ];
    page(On::Netns, &["default", "min-rtt"], &scores)
}

#[test]
fn the_page_needs_nothing_else_and_is_well_formed() {
    let page = of_two();
    for outside in ["http:", "https:", "src=", "href=", "@import", "url(", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for tag in ["section", "table", "tr", "td", "svg", "text", "div", "p", "span", "h3"] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        assert!(opened > 0, "{tag}");
    }
}

#[test]
fn simulated_and_measured_are_told_apart() {
    let scores = [vec![score(&rung("rates/b", true), 24.0)]];
    let simulated = page(On::Sim, &["default"], &scores);
    assert!(simulated.contains("Simulated: virtual") && simulated.contains("Computed on"));
    let measured = page(On::Netns, &["default"], &scores);
    assert!(measured.contains("Measured in network") && !measured.contains("Simulated"));
}

#[test]
fn words_from_elsewhere_are_escaped() {
    let page = of_two();
    for text in ["a &lt;case&gt; &amp; more", "no &lt;controller&gt;", "a &amp; b", "a&lt;b"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn rungs_keep_their_order_and_policies_stand_side_by_side() {
    let page = of_two();
    let (slow, fast) = (page.find(">b</text>").unwrap(), page.find(">a</text>").unwrap());
    assert!(slow < fast, "the worst first");
    assert_eq!(page.matches("class=\"level c0\" d=\"M0").count(), 2);
    assert_eq!(page.matches("class=\"level c1\" d=\"M0").count(), 2);
    assert!(page.contains("<td class=\"number bad\" data-name=\"A_r\">0.600</td>"));
    assert!(page.contains("\">1.50</text>"), "{page}");
}

#[test]
fn the_result_stands_in_words_before_the_bars_and_the_checks_after() {
    let page = of_two();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    let headline = place("rate on 1 of 2 rungs (50.0 %), and in the median 0.75 of the links");
    assert!(headline < place("class=\"level c0\" d=\"M0"));
    assert!(place("0 of 1 required checks hold. Failed: lowest.") < place("<h3>Checks"));
    assert!(place("class=\"axis\"") > headline, "the sum is a line");
    assert_eq!(page.matches("<circle class=\"ring\" cx=\"19\"").count(), 1, "and has its key");
}

#[test]
fn nothing_measured_is_a_page_too() {
    let page = page(On::Netns, &["default"], &[]);
    assert!(page.contains("bbr/x: not run") && !page.contains("NaN"), "{page}");
}
