use super::*;
use crate::machine::Machine;
use crate::set::Missing;
use crate::set::score::tests::{rung, score};

fn page(on: On, policies: &[&str], scores: &[Vec<Score>]) -> String {
    let policies: Vec<Policy> = policies.iter().map(|name| name.parse().unwrap()).collect();
    let machine = Machine { cpu: "a & b".into(), cores: 2, kernel: "7.0".into() };
    let missing = vec![Missing { rung: "bbr/x".into(), why: "no <controller>".into() }];
    let (on_name, rungs) = (on.name(), scores.len());
    let more = More { on: on_name, machine, rungs, missing, seeds: 3, elapsed_s: 7.0 };
    let command = "plait-lab run ladder --only a<b";
    Page { on, title: "t", policies: &policies, scores, command, more: &more }.html()
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
    for tag in ["section", "table", "tr", "td", "svg", "g", "text", "div", "p", "span", "h3"] {
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
    let (slow, fast) = (page.find("rates/b, default"), page.find("rates/a, default"));
    assert!(slow.unwrap() < fast.unwrap());
    assert_eq!(page.matches("<tr><td").count(), 4);
    assert!(page.contains("rates/b, min-rtt: A_r 0.950, the best link alone 0.750"));
    assert!(page.contains("<td class=\"number bad\" data-name=\"A_r\">0.600</td>"));
    assert!(page.contains("\">1.500</td>"));
}

#[test]
fn bars_are_as_long_as_the_ratio_and_the_mark_stands_at_the_best_link() {
    let svg = picture(&["default".parse().unwrap()], &[vec![score(&rung("rates/b", true), 40.0)]]);
    // One is at 715 and zero at 175.
    assert!(svg.contains("<path class=\"bar c0\" d=\"M175 31.0H715.0\"/>"), "{svg}");
    assert!(svg.contains("<path class=\"mark\" d=\"M580.0 25.0V37.0\"/>"), "{svg}");
    let beyond =
        picture(&["default".parse().unwrap()], &[vec![score(&rung("rates/b", true), 60.0)]]);
    assert!(beyond.contains(">1.6</text>") && !beyond.contains(">1.8</text>"), "{beyond}");
}

#[test]
fn nothing_measured_is_a_page_too() {
    let page = page(On::Netns, &["default"], &[]);
    assert!(page.contains("bbr/x: not run") && !page.contains("NaN"), "{page}");
}
