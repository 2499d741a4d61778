//! 002's scenarios as they stand in the repository.

use plait_sim::run::run_cell;
use plait_sim::scenario::CellResult;

use crate::scenarios::repository;

fn run_all(name: &str, settings: &[&str], seed: u64) -> Vec<CellResult> {
    let experiment = repository(name, settings);
    let run = |cell| run_cell(cell, seed).expect("the simulator has all that 002 asks for");
    let results: Vec<CellResult> = experiment.cells.iter().map(run).collect();
    for check in &experiment.scenario.checks {
        let outcome = check.evaluate(&results, &experiment.scenario.paper.values);
        println!("{:16} {:?} {}", outcome.name, outcome.value, outcome.words);
    }
    results
}

/// ALGORITHMS' own packet simulation of the nine losses: weights rounded to integers, lowered by
/// one per T_dwd.
const OTHER_SIMULATION: [f64; 9] = [3.52, 3.72, 3.46, 1.38, 0.49, 0.38, 1.11, 0.23, 0.11];

#[test]
fn table_loss_runs_and_shows_what_it_must() {
    let experiment = repository("002/table-loss.toml", &[]);
    let results = run_all("002/table-loss.toml", &[], 1);
    println!("{:28} {:>6} {:>6} {:>9}", "cell", "run", "paper", "other sim");
    for (at, result) in results.iter().enumerate() {
        let paper = experiment.scenario.paper.values[at].value;
        let loss = result.metrics["loss_percent"];
        println!("{:28} {loss:6.2} {paper:6.2} {:9.2}", result.cell, OTHER_SIMULATION[at]);
    }
    for check in experiment.scenario.checks.iter().filter(|check| check.required) {
        let outcome = check.evaluate(&results, &experiment.scenario.paper.values);
        assert!(outcome.ok, "{}: {}", outcome.name, outcome.words);
    }
}
