//! `plait-lab compare`: one scenario on both back-ends, each figure beside its counterpart.

use anyhow::Result;
use plait_sim::scenario::metric::unit_of;

use crate::cli::{CompareArgs, On, RunArgs};
use crate::output::{Output, Verdict};
use crate::record::{
    BOTH, CellFigure, CellRecord, CheckFigure, Middle, Results, Samples, Sink, SummaryRecord,
};
use crate::report::{PageFile, words};
use crate::run;

mod rule;

pub(crate) use rule::Rule;

pub(crate) fn run(args: &CompareArgs, output: &Output) -> Result<Verdict> {
    let mut sink = Sink::open(args.experiment.out.as_deref(), output)?;
    let page = args.experiment.html.as_deref().map(PageFile::create).transpose()?;
    let pair = measure(args)?;
    let compared = results(&pair, Middle::Median, Rule::of_pair);
    for results in &pair {
        sink.put_all(results)?;
    }
    sink.put_all(&compared)?;
    output.lines(words::experiment(&compared))?;
    sink.close()?;
    let verdict = Verdict::of(compared.summary.ok);
    if let Some(page) = page {
        let [sim, netns] = pair;
        page.write(&[compared, sim, netns])?;
    }
    Ok(verdict)
}

/// Whether the comparison can be started; the errors are those of [`run()`].
pub(crate) fn check(args: &CompareArgs) -> Result<()> {
    [On::Sim, On::Netns].iter().try_for_each(|on| run::check(&run_args(args, *on)))
}

/// Runs the scenario on the simulator and on namespaces.
pub(crate) fn measure(args: &CompareArgs) -> Result<[Results; 2]> {
    Ok([run::results(&run_args(args, On::Sim))?, run::results(&run_args(args, On::Netns))?])
}

fn run_args(args: &CompareArgs, on: On) -> RunArgs {
    RunArgs { seeds: Some(args.seeds), experiment: args.experiment.clone(), ..RunArgs::of("", on) }
}

/// The comparison as an experiment's results: a check for each pair of figures for which `rule` has
/// a bound.
pub(crate) fn results(
    pair: &[Results; 2],
    middle: Middle,
    rule: impl Fn(&str, &Results) -> Option<Rule>,
) -> Results {
    let [sim, netns] = pair;
    let (mut checks, mut cells) = (Vec::new(), Vec::new());
    for cell in &sim.cells {
        let metrics = Samples::metrics(sim, &cell.cell);
        let mut figures = Vec::new();
        for metric in metrics {
            let Some(rule) = rule(metric, sim) else { continue };
            let of = |results| Samples::of(results, &cell.cell, metric);
            let (Some(sim), Some(netns)) = (of(sim), of(netns)) else { continue };
            checks.push(rule.check(&cell.cell, metric, middle, [&sim, &netns]));
            figures.push(CellFigure {
                metric: metric.to_owned(),
                unit: unit_of(metric).to_owned(),
                median: netns.middle(middle),
                low: netns.low(),
                high: netns.high(),
                paper: Some(sim.middle(middle)),
                ..CellFigure::default()
            });
        }
        cells.push(CellRecord { figures, ..cell.clone() });
    }
    let summary = summary(pair, middle, checks);
    Results { runs: Vec::new(), cells, scatters: Vec::new(), summary }
}

fn summary(pair: &[Results; 2], middle: Middle, checks: Vec<CheckFigure>) -> SummaryRecord {
    let [sim, netns] = pair.each_ref().map(|results| &results.summary);
    SummaryRecord {
        title: format!("{}: simulated beside measured", sim.title),
        source: format!("{} of {} seeds on each back-end", middle.name(), sim.seeds),
        ok: !checks.is_empty() && checks.iter().all(|check| check.ok),
        checks,
        on: BOTH.to_owned(),
        elapsed_s: sim.elapsed_s + netns.elapsed_s,
        command: sim.command.replacen(" run ", " compare ", 1).replacen(" --on sim", "", 1),
        ..netns.clone()
    }
}
