//! Runs of one or many scenarios: on all cores in virtual time, one after the other in namespaces.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_sim::scenario::{Cell, CellResult};

use super::known::Known;
use super::netns::{self, is_too_slow};
use super::{PreparedRun, shared, sim};
use crate::cli::{On, Shard};
use crate::output::{self, Meter, Progress};
use crate::record::RunRecord;
use crate::worker::pool;

/// A run to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Job {
    plan: usize,
    cell: usize,
    seed: u64,
}

/// A batch of scenarios to run.
#[derive(Debug)]
pub(crate) struct Engine<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    pub(crate) on: On,
    pub(crate) plans: &'a [PreparedRun],
    /// Only this part of the scenarios, or of the cells of a single one.
    pub(crate) shard: Option<Shard>,
    /// Whether to go on with the rest when the machine did not keep up with a run.
    pub(crate) leaves_out: bool,
}

impl Engine<'_> {
    /// Makes the runs that are not known yet, and passes each to `take`; returns all, including
    /// known ones, by plan and in the order of cells and seeds.
    ///
    /// # Errors
    ///
    /// A run that the back-end refuses, or an error of `take`.
    pub(crate) fn carry_out(
        &self,
        known: &mut Known,
        mut take: impl FnMut(&RunRecord) -> Result<()>,
    ) -> Result<Vec<Vec<RunRecord>>> {
        let mut runs: Vec<Vec<RunRecord>> = self.plans.iter().map(|_| Vec::new()).collect();
        let mut jobs = Vec::new();
        for job in self.jobs() {
            match known.find(&self.plans[job.plan].command(job.cell, job.seed)) {
                Some(run) => runs[job.plan].push(run.clone()),
                None => jobs.push(job),
            }
        }
        if !known.is_empty() {
            let (name, count) = (self.name, runs.iter().map(Vec::len).sum::<usize>());
            output::note(format!("{name}: {count} runs are known, {} are to be made", jobs.len()));
        }
        let mut put = |job: Job, result: CellResult| -> Result<()> {
            let plan = &self.plans[job.plan];
            let mut run = plan.record(job.cell, job.seed, result);
            take(&run)?;
            known.add(&run)?;
            if self.plans.len() > 1 || job.seed != plan.first_seed() {
                // Only a cell's first run is plotted; the others' series would fill the memory.
                run.series.clear();
            }
            runs[job.plan].push(run);
            Ok(())
        };
        match self.on {
            On::Sim => self.simulate(&jobs, &mut put)?,
            On::Netns => self.measure(jobs, &mut put)?,
        }
        for (plan, runs) in self.plans.iter().zip(&mut runs) {
            runs.sort_by_key(|run| (plan.place_of(&run.cell), run.seed));
        }
        Ok(runs)
    }

    fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        let alone = self.plans.len() == 1;
        for (at, plan) in self.plans.iter().enumerate() {
            for cell in 0..plan.cells().len() {
                let number = if alone { cell } else { at };
                if self.shard.is_none_or(|shard| shard.holds(number)) {
                    jobs.extend(plan.seeds().map(|seed| Job { plan: at, cell, seed }));
                }
            }
        }
        jobs
    }

    fn cell(&self, job: Job) -> &Cell {
        &self.plans[job.plan].cells()[job.cell]
    }

    fn what(&self, job: Job) -> String {
        format!("{}, {}, seed {}", self.plans[job.plan].name(), self.cell(job).name, job.seed)
    }

    /// Runs on all cores. Runs that several scenarios share, such as one link alone under the same
    /// load, are made once.
    fn simulate(
        &self,
        jobs: &[Job],
        put: &mut impl FnMut(Job, CellResult) -> Result<()>,
    ) -> Result<()> {
        let mut firsts: Vec<Job> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        // For each job, the run that has its result.
        let place = |job: &Job| {
            let number = firsts.len();
            let number = match shared::key(&self.cell(*job).scenario, job.seed) {
                Some(key) => *places.entry(key).or_insert(number),
                None => number,
            };
            if number == firsts.len() {
                firsts.push(*job);
            }
            number
        };
        let of_jobs: Vec<usize> = jobs.iter().map(place).collect();
        let (runs, workers) = (firsts.len(), pool::workers(firsts.len()));
        output::note(format!("{}: {runs} to run, {workers} at a time", self.name));
        let mut meter = Meter::new(self.name, "runs", runs);
        let work = |at: usize| sim::run(self.cell(firsts[at]), firsts[at].seed);
        let (mut found, mut next) = (Vec::new(), 0);
        pool::in_order(firsts.len(), work, |result: Option<Result<CellResult>>| -> Result<()> {
            let Some(result) = result else {
                meter.finished_one();
                return Ok(());
            };
            found.push(result.with_context(|| self.what(firsts[found.len()]))?);
            while let Some(result) = of_jobs.get(next).and_then(|at| found.get(*at)) {
                let (own, first) = (jobs[next], firsts[of_jobs[next]]);
                let result = match own == first {
                    true => result.clone(),
                    false => shared::renamed(result, self.cell(first), self.cell(own)),
                };
                put(own, result)?;
                next += 1;
            }
            Ok(())
        })
    }

    /// Runs one after the other: in parallel they would disturb each other. Cells alternate, so
    /// that a machine that is busy for some minutes affects all of them equally.
    fn measure(
        &self,
        mut jobs: Vec<Job>,
        put: &mut impl FnMut(Job, CellResult) -> Result<()>,
    ) -> Result<()> {
        jobs.sort_by_key(|job| job.seed);
        let time = |job: &Job| netns::run_time(&self.cell(*job).scenario);
        let total: Duration = jobs.iter().map(time).sum();
        if jobs.len() > 1 {
            let minutes = total.as_secs().div_ceil(60);
            let (name, runs) = (self.name, jobs.len());
            output::note(format!(
                "{name} on netns: {runs} runs, one after the other, about {minutes} min in all"
            ));
        }
        let mut progress = Progress::new(jobs.len(), total);
        let is_patient = jobs.len() > 1 && !self.leaves_out;
        for job in jobs {
            let step = progress.step(&self.what(job), time(&job));
            let run = if is_patient { netns::run_patiently } else { netns::run };
            let result = run(self.cell(job), job.seed);
            drop(step);
            match result {
                Err(error) if self.leaves_out && is_too_slow(&error) => {
                    output::note(format!("{}: {error:#}; left out", self.what(job)));
                }
                result => put(job, result.with_context(|| self.what(job))?)?,
            }
        }
        Ok(())
    }
}
