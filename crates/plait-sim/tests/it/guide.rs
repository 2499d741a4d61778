//! The tables of options in the guide and on the algorithms' pages are what the options say of
//! themselves.

use std::path::Path;

use plait_sim::scenario::{bond, steer};
use plait_toml::beside::BESIDE;
use plait_toml::dida::DIDA;
use plait_toml::dns::DNS;
use plait_toml::forward::FORWARD;
use plait_toml::gateway::{GATEWAY, PATH, PEER};
use plait_toml::hook::HOOK;
use plait_toml::lan::LAN;
use plait_toml::node::{ATTACHMENT, CLIENT, NODE};
use plait_toml::option::{table, table_of, with_table};
use plait_toml::proxy::{ACCESS, ENDPOINTS, LISTEN, PROXY, RULES, UPSTREAM};
use plait_toml::tuning::{CONGESTION, RESEQUENCER, SCHEDULER};

/// With `write` as its value the tables are replaced by what the options say.
const VARIABLE: &str = "PLAIT_GUIDE";

fn check(page: &str, tables: &[(&str, String)]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let held = std::fs::read_to_string(&file).expect("the page can be read");
    let mut expected = held.clone();
    for (heading, table) in tables {
        expected = with_table(&expected, heading, table)
            .unwrap_or_else(|missing| panic!("docs/{page}: {missing}"));
    }
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "write") {
        std::fs::write(&file, expected).expect("the page can be written");
        return;
    }
    let differing = expected.lines().find(|line| !held.lines().any(|other| other == *line));
    assert!(
        held == expected,
        "docs/{page} is not what the options say, as in:\n{}\nto put it right: \
         {VARIABLE}=write cargo test -p plait-sim --test it guide",
        differing.unwrap_or("(a row too many)"),
    );
}

#[test]
fn the_page_on_gateways_has_every_option_as_it_is_declared() {
    let tables = [
        ("## `[gateway]`", table(GATEWAY)),
        ("## `[[path]]`", table(PATH)),
        ("## `[[peer]]`", table(PEER)),
        ("## `[[hook]]`", table(HOOK)),
        ("## `[[forward]]`", table(FORWARD)),
        ("## `[[lan]]`", table(LAN)),
        ("## `[dns]`", table(DNS)),
        ("## `[[beside]]`", table(BESIDE)),
        ("## `[scheduler]`", table(SCHEDULER)),
        ("## `[congestion]`", table(CONGESTION)),
        ("## `[resequencer]`", table(RESEQUENCER)),
    ];
    check("guide/configuration.md", &tables);
}

#[test]
fn the_page_on_steering_nodes_has_every_option_as_it_is_declared() {
    let tables = [
        ("### `[node]`", table(NODE)),
        ("### `[[client]]`, up to 1024", table(CLIENT)),
        ("### `[[client.attachment]]`, up to 16, the primary first", table(ATTACHMENT)),
        ("### `[dida]`", table(DIDA)),
    ];
    check("guide/steering.md", &tables);
}

#[test]
fn the_page_on_the_proxy_has_every_option_as_it_is_declared() {
    let tables = [
        ("## `[proxy]`", table(PROXY)),
        ("## `[[listen]]`", table(LISTEN)),
        ("## `[upstream]`", table(UPSTREAM)),
        ("## `[[access]]`", table(ACCESS)),
        ("## `[endpoints]`", table(ENDPOINTS)),
        ("## `[rules]`", table(RULES)),
    ];
    check("guide/proxy.md", &tables);
}

#[test]
fn the_page_on_scenarios_has_every_option_of_gateways_and_node_as_it_is_declared() {
    let tables = [
        ("## `[bond]`", table(bond::BOND)),
        ("## `[steer]`", table(steer::STEER)),
        ("### `[steer.client]`", table(steer::CLIENT)),
    ];
    check("guide/scenarios.md", &tables);
}

#[test]
fn the_page_of_an_algorithm_has_its_options_as_they_are_declared() {
    for name in ["adaptive-wrr", "blest", "ecf", "earliest-delivery"] {
        let table = table_of(SCHEDULER, &format!("algorithm = \"{name}\""));
        check(&format!("algorithms/{name}.md"), &[("## Parameters", table)]);
    }
}
