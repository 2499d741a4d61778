//! What happens to gateways, interfaces and addresses during a run.

use plait_sim::run::run_cell;
use plait_sim::scenario::sweep::display;

use crate::scenarios::repository;

/// For each event of `survive/standstill` what stood still, in milliseconds: the download, and
/// small packets up.
fn standstills(events: &str) -> Vec<(String, f64, f64)> {
    let setting = format!("event={events}");
    let experiment = repository("survive/standstill.toml", &[setting.as_str(), "duration_s=9"]);
    let of_cell = |cell| {
        let found = run_cell(cell, 1).expect("the scenario runs");
        let of = |app: &str| found.metrics[&format!("standstill_ms.{app}")];
        (display(&cell.settings["event"]), of("flow"), of("beat-up"))
    };
    experiment.cells.iter().map(of_cell).collect()
}

#[test]
fn a_gateway_that_is_killed_is_missed_until_it_is_started_again() {
    let events = "[\"calling gateway killed and restarted\", \
                  \"listening gateway killed and restarted\"]";
    for (event, flow, beat) in standstills(events) {
        // It is away for 200 ms.
        assert!((200.0..2000.0).contains(&beat), "{event}: {beat} ms");
        assert!((200.0..2500.0).contains(&flow), "{event}: {flow} ms");
    }
}

#[test]
fn an_interface_or_an_address_that_goes_is_noticed_and_survived() {
    let events = "[\"no event\", \"interface dsl removed\", \"NAT of lte rebinds\", \
                  \"address of lte changed\", \"SIGHUP to the listening gateway\"]";
    let all = standstills(events);
    let calm = all[0].2;
    for (event, flow, beat) in &all {
        assert!(*flow < 300.0 && *beat < 300.0, "{event}: {flow} and {beat} ms");
    }
    assert!(all[1].1 > all[0].1 && calm < 60.0, "what the interface held is lost: {all:?}");
}
