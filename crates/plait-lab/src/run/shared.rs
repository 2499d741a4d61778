//! Runs that cells of several scenarios share: a run over one link is the same in every scenario
//! with that link, whatever its name there.

use std::collections::BTreeMap;

use plait_sim::scenario::app::Via;
use plait_sim::scenario::{Capture, Cell, CellResult, Paper, Scenario};

/// What a run over a single link depends on; `None` with more links or none.
pub(super) fn key(scenario: &Scenario, seed: u64) -> Option<String> {
    if scenario.links.len() != 1 {
        return None;
    }
    let mut own = Scenario {
        name: String::new(),
        title: String::new(),
        source: String::new(),
        backends: Vec::new(),
        sweep: Vec::new(),
        figures: Vec::new(),
        scatters: Vec::new(),
        paper: Paper::default(),
        checks: Vec::new(),
        capture: Capture { series: Vec::new(), ..scenario.capture },
        ..scenario.clone()
    };
    own.links = own.links.into_values().map(|link| (String::new(), link)).collect();
    for link in own.links.values_mut() {
        (link.title, link.source) = (String::new(), String::new());
    }
    own.bond.iter_mut().for_each(|bond| bond.links = Vec::new());
    for app in &mut own.apps {
        if let Via::Link(name) = &mut app.via {
            name.clear();
        }
    }
    // Events contain the link's name.
    own.events.is_empty().then(|| format!("{seed} {own:?}"))
}

/// The result of a cell over one link, converted to another cell with that cell's name of the link.
pub(super) fn renamed(result: &CellResult, of: &Cell, to: &Cell) -> CellResult {
    let name_in = |cell: &Cell| cell.scenario.links.keys().next().cloned().unwrap_or_default();
    let (old, new) = (format!(".{}", name_in(of)), format!(".{}", name_in(to)));
    let rename = |name: &String| match name.strip_suffix(&old) {
        Some(head) => format!("{head}{new}"),
        None => name.clone(),
    };
    let metrics: BTreeMap<String, f64> =
        result.metrics.iter().map(|(name, value)| (rename(name), *value)).collect();
    CellResult {
        cell: to.name.clone(),
        settings: to.settings.clone(),
        seed: result.seed,
        metrics,
        series: result.series.iter().map(|(name, s)| (rename(name), s.clone())).collect(),
    }
}
