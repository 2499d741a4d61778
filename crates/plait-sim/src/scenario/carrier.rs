//! `carriers`: the same load over the bond, over each of its links alone, bare, over all of them
//! bare at once, over the kernel's MPTCP, or steered; and the bond compared with the others.
//!
//! `carriers` becomes an axis of the sweep called `carrier`, the slowest to change. A cell is the
//! scenario with that carrier, without the bond, steering node and links that it does not use.

use std::collections::{BTreeMap, BTreeSet};

use plait_toml::{Entry, Node, Problem, Problems, Table, Value};

use super::app::Via;
use super::check::{CellResult, median};
use super::multipath;
use super::settings;
use super::{AppSpec, LinkSpec, Scenario};

/// The axis, and the option that each of its cells sets.
pub const AXIS: &str = "carrier";
/// The option that lists carriers.
pub(super) const LIST: &str = "carriers";

/// Words that name one carrier.
const SINGLE: [&str; 4] = ["bond", "mptcp", "steer", AT_ONCE];
/// The load bare on each link, on all of them at the same time.
const AT_ONCE: &str = "at-once";
/// Words that name one carrier per link: alone through plait, and bare.
const EACH: [&str; 2] = ["alone", "bare"];

/// Metrics of a run with the bond that compare its goodput with the other carriers'. Each link's
/// goodput is its median over the seeds.
pub const COMPARISONS: [&str; 9] = [
    "of_best_alone",
    "of_sum_alone",
    "benefit_alone",
    "of_best_bare",
    "of_sum_bare",
    "of_at_once",
    "of_better",
    "of_mptcp",
    "excess_of_mptcp",
];

/// A smaller excess of MPTCP's ping counts as this one: nobody notices half of it.
const EXCESS_MS_MIN: f64 = 10.0;

/// Turns the list of carriers into an axis of the sweep.
pub(super) fn spread(root: &mut Table, problems: &Problems) {
    let Some(entry) = root.get(LIST) else { return };
    let place = entry.key_place.clone();
    let Value::List(words) = &entry.node.value else {
        let problem = Problem::new("no list of carriers", "write carriers = [\"bond\", \"alone\"]");
        return problems.add(&place, LIST, problem);
    };
    let links = links_of(root);
    let mut values = Vec::new();
    for word in words {
        let text = match &word.value {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        let known = SINGLE.iter().chain(&EACH).copied();
        if SINGLE.contains(&text) {
            values.push(word.clone());
        } else if EACH.contains(&text) {
            let of = |link: &String| Value::Text(format!("{text}:{link}"));
            values.extend(
                links.iter().map(|link| Node { place: word.place.clone(), value: of(link) }),
            );
        } else if is_one(text, &links) {
            values.push(word.clone());
        } else {
            problems.add(&word.place, LIST, Problem::choice(text, known));
        }
    }
    if values.is_empty() {
        return;
    }
    let at = |value: Value| Entry {
        key_place: place.clone(),
        node: Node { place: place.clone(), value },
    };
    let axis = Table::from([
        ("key".to_owned(), at(Value::Text(AXIS.into()))),
        ("values".to_owned(), at(Value::List(values))),
    ]);
    let axis = Node { place: place.clone(), value: Value::Table(axis) };
    let sweep = root.entry("sweep".into()).or_insert_with(|| at(Value::List(Vec::new())));
    if let Value::List(axes) = &mut sweep.node.value {
        axes.insert(0, axis);
    }
}

/// The links of the bond: those that it names, or else all.
fn links_of(root: &Table) -> Vec<String> {
    let named = |table: &Table| match &table.get("links")?.node.value {
        Value::List(names) => Some(names.iter().filter_map(text).collect()),
        _ => None,
    };
    let section = |key: &str| match root.get(key).map(|entry| &entry.node.value) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    };
    let of_section = ["bond", "steer"].into_iter().find_map(|key| section(key).and_then(named));
    of_section.unwrap_or_else(|| {
        section("links").map_or_else(Vec::new, |links| links.keys().cloned().collect())
    })
}

fn text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn is_one(word: &str, links: &[String]) -> bool {
    word.split_once(':')
        .is_some_and(|(kind, link)| EACH.contains(&kind) && links.iter().any(|known| known == link))
}

/// Adapts a cell's table to its carrier. `None` when it names no carrier.
pub(super) fn apply(root: &mut Table, problems: &Problems) -> Option<()> {
    let entry = root.get(AXIS)?;
    let place = entry.node.place.clone();
    let carrier = text(&entry.node).unwrap_or_default();
    let links = links_of(root);
    if carrier == AT_ONCE {
        root.remove("bond");
        root.remove("steer");
        copy_apps(root, &links);
        return Some(());
    }
    let via = |root: &mut Table, name: &str| {
        if let Some(Value::List(apps)) = root.get_mut("app").map(|apps| &mut apps.node.value) {
            let apps = apps.iter_mut().filter_map(|app| match &mut app.value {
                Value::Table(table) => Some(table),
                _ => None,
            });
            for app in apps {
                if app.contains_key("via") {
                    continue;
                }
                if name != "mptcp" {
                    multipath::OPTIONS.iter().for_each(|option| drop(app.remove(*option)));
                }
                let node = Node { place: place.clone(), value: Value::Text(name.to_owned()) };
                app.insert("via".into(), Entry { key_place: place.clone(), node });
            }
        }
    };
    match carrier.split_once(':') {
        Some(("alone", link)) if links.iter().any(|known| known == link) => {
            root.remove("steer");
            let link = Node { place: place.clone(), value: Value::Text(link.to_owned()) };
            let list = Node { place: place.clone(), value: Value::List(vec![link]) };
            if let Err(problem) = settings::set(root, "bond.links", list) {
                problems.add(&place, AXIS, problem);
            }
        }
        Some(("bare", link)) if links.iter().any(|known| known == link) => {
            root.remove("bond");
            root.remove("steer");
            via(root, link);
        }
        None if carrier == "bond" => drop(root.remove("steer")),
        None if carrier == "mptcp" => {
            root.remove("bond");
            root.remove("steer");
            via(root, "mptcp");
        }
        None if carrier == "steer" => {
            root.remove("bond");
        }
        _ => {
            let each =
                EACH.iter().flat_map(|kind| links.iter().map(move |l| format!("{kind}:{l}")));
            let known: Vec<String> = SINGLE.iter().map(|w| (*w).to_owned()).chain(each).collect();
            let problem = Problem::choice(&carrier, known.iter().map(String::as_str));
            problems.add(&place, AXIS, problem);
        }
    }
    Some(())
}

/// Puts in place of each application that has no way of its own one on each link, which is called
/// `APP-LINK`.
fn copy_apps(root: &mut Table, links: &[String]) {
    let Some(Value::List(apps)) = root.get_mut("app").map(|apps| &mut apps.node.value) else {
        return;
    };
    let copies = |app: &Node| -> Vec<Node> {
        let Value::Table(table) = &app.value else { return vec![app.clone()] };
        let name = table.get("name").and_then(|name| text(&name.node));
        let Some(name) = name.filter(|_| !table.contains_key("via")) else {
            return vec![app.clone()];
        };
        let copy = |link: &String| {
            let mut table = table.clone();
            multipath::OPTIONS.iter().for_each(|option| drop(table.remove(*option)));
            for (key, text) in [("name", format!("{name}-{link}")), ("via", link.clone())] {
                let node = Node { place: app.place.clone(), value: Value::Text(text) };
                table.insert(key.into(), Entry { key_place: app.place.clone(), node });
            }
            Node { place: app.place.clone(), value: Value::Table(table) }
        };
        links.iter().map(copy).collect()
    };
    *apps = apps.iter().flat_map(copies).collect();
}

/// Leaves out the links that a cell does not use.
pub(super) fn keep_used(scenario: &mut Scenario) {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for AppSpec { via, .. } in &scenario.apps {
        match via {
            Via::Link(name) => drop(used.insert(name)),
            // The kernel's MPTCP uses all links.
            Via::Mptcp => return,
            Via::Bond | Via::Steer => {}
        }
    }
    used.extend(scenario.bond.iter().flat_map(|bond| &bond.links).map(String::as_str));
    used.extend(scenario.steer.iter().flat_map(|steer| &steer.links).map(String::as_str));
    let through = |link: &&str| scenario.links.get(*link)?.through.as_deref();
    used.extend(used.clone().iter().filter_map(through).collect::<Vec<_>>());
    let used: BTreeSet<String> = used.into_iter().map(str::to_owned).collect();
    scenario.links.retain(|name, _: &mut LinkSpec| used.contains(name));
}

/// Adds [`COMPARISONS`] to the metrics of the runs with a bond.
pub(super) fn compare(results: &mut [CellResult]) {
    let goodput = |result: &CellResult| result.metrics.get("load_mbit").copied();
    let excess_ms = |result: &CellResult| result.metrics.get("probe_excess_ms").copied();
    let carrier = |result: &CellResult| match result.settings.get(AXIS) {
        Some(toml::Value::String(carrier)) => Some(carrier.clone()),
        _ => None,
    };
    // By all settings but the carrier: the results of the seeds, by carrier.
    let mut found: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    let mut excesses: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for result in results.iter() {
        let Some(carrier) = carrier(result) else { continue };
        if carrier == "mptcp"
            && let Some(excess_ms) = excess_ms(result)
        {
            excesses.entry(others(result)).or_default().push(excess_ms);
        }
        if let Some(mbit) = goodput(result) {
            found.entry(others(result)).or_default().entry(carrier).or_default().push(mbit);
        }
    }
    for result in results {
        let (Some("bond"), Some(mbit)) = (carrier(result).as_deref(), goodput(result)) else {
            continue;
        };
        let beside = &found[&others(result)];
        let excess_ms = excess_ms(result);
        let of_mptcp = excesses.get(&others(result)).and_then(|all| median(all.clone()));
        let each = |kind: &str| -> Vec<f64> {
            let of_kind = beside.iter().filter(|(carrier, _)| carrier.starts_with(kind));
            of_kind.filter_map(|(_, found)| median(found.clone())).collect()
        };
        let mut put = |name: &str, value: Option<f64>| {
            let value = value.filter(|value| value.is_finite());
            result.metrics.extend(value.map(|value| (name.to_owned(), value)));
        };
        let [alone, bare, mptcp, at_once] = ["alone:", "bare:", "mptcp", AT_ONCE].map(each);
        let best = |all: &[f64]| all.iter().copied().reduce(f64::max);
        let sum = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>());
        put("of_best_alone", best(&alone).map(|best| mbit / best));
        put("of_sum_alone", sum(&alone).map(|sum| mbit / sum));
        put("benefit_alone", benefit(mbit, &alone));
        put("of_best_bare", best(&bare).map(|best| mbit / best));
        put("of_sum_bare", sum(&bare).map(|sum| mbit / sum));
        let of_at_once = best(&at_once).map(|at_once| mbit / at_once);
        put("of_at_once", of_at_once);
        // What the framing costs the best link, it costs all of them.
        let framing = best(&bare).zip(best(&alone)).map(|(bare, alone)| bare / alone);
        let of_at_once = of_at_once.zip(framing).map(|(share, framing)| share * framing);
        let of_alone = best(&alone).map(|best| mbit / best);
        put("of_better", of_at_once.zip(of_alone).map(|(one, other)| one.min(other)));
        put("of_mptcp", best(&mptcp).map(|mptcp| mbit / mptcp));
        let excess = excess_ms.zip(of_mptcp);
        put("excess_of_mptcp", excess.map(|(own, its)| own / its.max(EXCESS_MS_MIN)));
    }
}

/// The aggregation benefit of 003 §4.1: 0 for the best link alone, 1 for the sum; below 0 where the
/// bond is slower than the best.
fn benefit(mbit: f64, alone: &[f64]) -> Option<f64> {
    let best = alone.iter().copied().reduce(f64::max)?;
    let sum: f64 = alone.iter().sum();
    Some(if mbit >= best { (mbit - best) / (sum - best) } else { (mbit - best) / best })
}

/// The settings of a cell besides its carrier.
fn others(result: &CellResult) -> String {
    let others = result.settings.iter().filter(|(axis, _)| *axis != AXIS);
    others.map(|(axis, value)| format!("{axis}={value},")).collect()
}
