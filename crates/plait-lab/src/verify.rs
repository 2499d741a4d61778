//! `plait-lab verify`: plait's promises, each checked by a measurement with a band.

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;

use crate::cli::{On, VerifyArgs};
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::output::{self, Align, Meter, Output, Table, Verdict};
use crate::set::Set;
use records::{Checked, Records, Thoroughness};
use scenario::OnNetns;

mod back_ends;
mod clear_text;
mod cost;
mod dida;
mod fresh_clone;
mod loss_reports;
mod packet;
mod promise;
mod readme;
mod records;
mod scenario;
mod scenes;
mod simulated;
mod speed;
pub(crate) mod survive;
pub(crate) mod trust;

/// How a promise is to be checked.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Runs of which the median counts.
    runs: usize,
    /// Seconds of a TCP flow.
    seconds: u32,
}

impl Effort {
    const QUICK: Self = Self { runs: 1, seconds: 10 };
    const WHOLE: Self = Self { runs: 3, seconds: 30 };

    fn thoroughness(self) -> Thoroughness {
        if self.runs == 1 { Thoroughness::Quick } else { Thoroughness::Whole }
    }

    /// Seeds of a scenario: of five the median counts.
    fn seeds(self) -> u64 {
        if self.runs == 1 { 1 } else { 5 }
    }
}

/// Something plait promises.
struct Promise {
    name: &'static str,
    claim: &'static str,
    check: fn(Effort) -> Result<Vec<Figure>>,
}

const PROMISES: &[Promise] = &[
    Promise {
        name: "bond.1",
        claim: "one TCP flow through a bond gets nine tenths of both links together",
        check: |effort| {
            OnNetns { name: "bond/sum", seeds: 3, quick: &["duration_s=12"] }.check(effort)
        },
    },
    Promise {
        name: "bond.2",
        claim: "adaptive weighted round robin fills unequal links without loss or reordering",
        check: loss_reports::check,
    },
    Promise {
        name: "bond.3",
        claim: "links of very different delay do not make TCP re-send",
        check: |effort| {
            OnNetns { name: "bond/unequal-delays", seeds: 1, quick: &["duration_s=12"] }
                .check(effort)
        },
    },
    Promise {
        name: "bond.4",
        claim: "the cost of the encryption and the bond is known",
        check: cost::check,
    },
    Promise {
        name: "bond.5",
        claim: "nothing travels in clear text, and no changed datagram gets through",
        check: clear_text::check,
    },
    Promise {
        name: "bond.6",
        claim: "a fresh clone builds and passes its tests",
        check: fresh_clone::check,
    },
    Promise {
        name: "sim.1",
        claim: "the simulator reproduces 002's table of losses",
        check: simulated::check_table,
    },
    Promise {
        name: "sim.2",
        claim: "the simulator reproduces 002's flows that come and go, and its TCP",
        check: simulated::check_flows,
    },
    Promise {
        name: "sim.3",
        claim: "what is simulated is what real gateways do",
        check: back_ends::check_alike,
    },
    Promise {
        name: "sim.4",
        claim: "the TCP model is as fast as the kernel's TCP",
        check: back_ends::check_tcp_model,
    },
    Promise {
        name: "sim.5",
        claim: "the simulator is a hundred times faster than real time",
        check: speed::check,
    },
    Promise {
        name: "dida.1",
        claim: "the simulator reproduces 000's throughput against the holding time",
        check: dida::simulated::check_figures,
    },
    Promise {
        name: "dida.2",
        claim: "a sender with three duplicate ACKs gains from holding them, and gets fewer",
        check: dida::simulated::check_gain,
    },
    Promise {
        name: "dida.3",
        claim: "the default holding time is nearly the best one at every round trip",
        check: dida::simulated::check_holding_time,
    },
    Promise {
        name: "dida.4",
        claim: "a download over both radios is no slower than over the better one",
        check: dida::simulated::check_sizes,
    },
    Promise {
        name: "dida.5",
        claim: "the paper's downloads with the kernel's TCP, beside the kernel's MPTCP",
        check: dida::download::check,
    },
    Promise {
        name: "dida.6",
        claim: "what steering costs a core, and what it adds to the latency, is known",
        check: dida::cost::check,
    },
    Promise {
        name: "survive.1",
        claim: "a link that dies in silence stops nothing, and is used again when it has healed",
        check: |effort| {
            let cut = OnNetns { name: "survive/silent-cut", seeds: 5, quick: &[] };
            let idle = OnNetns { name: "survive/silent-cut-idle", seeds: 5, quick: &[] };
            Ok([cut.check(effort)?, idle.check(effort)?].concat())
        },
    },
    Promise {
        name: "survive.2",
        claim: "a link that begins to lose packets does not spoil the good one",
        check: |effort| {
            OnNetns { name: "survive/lossy", seeds: 3, quick: &["duration_s=20"] }.check(effort)
        },
    },
    Promise {
        name: "survive.3",
        claim: "a day of random faults and ten thousand random bonds break nothing",
        check: survive::swarm::check,
    },
    Promise {
        name: "survive.4",
        claim: "an idle bond is nearly silent",
        check: survive::check_idle,
    },
    Promise {
        name: "survive.5",
        claim: "hostile datagrams neither end a gateway nor stop its bond",
        check: survive::hostile::check,
    },
    Promise {
        name: "survive.6",
        claim: "interfaces, addresses and gateways come and go under a running download",
        check: |effort| OnNetns { name: "survive/standstill", seeds: 3, quick: &[] }.check(effort),
    },
    Promise {
        name: "promise.1",
        claim: "the bond is never slower than its best link, and has nearly the sum of steady ones",
        check: |effort| Set::figures("ladder", On::Sim, effort.runs == 1),
    },
    Promise {
        name: "promise.2",
        claim: "without typed rates one TCP flow gets nearly the sum, as with the kernel's MPTCP",
        check: |effort| {
            OnNetns { name: "promise/sum", seeds: 5, quick: &["duration_s=14", "warmup_s=6"] }
                .check(effort)
        },
    },
    Promise {
        name: "promise.3",
        claim: "a download leaves the ping beside it short, also with a second of modem buffer",
        check: |effort| {
            OnNetns { name: "promise/latency", seeds: 5, quick: &["duration_s=14", "warmup_s=6"] }
                .check(effort)
        },
    },
    Promise {
        name: "promise.4",
        claim: "random loss neither spoils the good link nor starves one TCP flow",
        check: |effort| {
            OnNetns { name: "promise/lossy", seeds: 5, quick: &["duration_s=14", "warmup_s=6"] }
                .check(effort)
        },
    },
    Promise {
        name: "promise.5",
        claim: "a link that falls to a fifteenth does not take the steady one with it",
        check: |effort| OnNetns { name: "promise/falling", seeds: 5, quick: &[] }.check(effort),
    },
    Promise {
        name: "promise.6",
        claim: "plait measure on emulated links agrees with the lab's own figures",
        check: promise::measure::check,
    },
    Promise {
        name: "scenes.1",
        claim: "no check was lost or weakened when the experiments became scenario files",
        check: scenes::checks::check,
    },
    Promise {
        name: "scenes.2",
        claim: "all promises are checked on one state of the code",
        check: scenes::rows::check,
    },
    Promise {
        name: "scenes.3",
        claim: "the lab's experiments are short, and no modules import each other in a circle",
        check: scenes::size::check,
    },
    Promise {
        name: "scenes.4",
        claim: "links have what limits real ones, alike on the simulator, the emulator, the kernel",
        check: scenes::check_links,
    },
    Promise {
        name: "scenes.5",
        claim: "every page shows its result on a wide and a narrow screen, light and dark",
        check: scenes::pictures::check,
    },
    Promise {
        name: "trust.1",
        claim: "whatever happened to a bond, what is sent arrives 10 s after the last fault",
        check: trust::search::check,
    },
    Promise {
        name: "trust.2",
        claim: "a customer beside one that does what it can loses neither speed, MTU nor IPv6",
        check: trust::neighbour::check,
    },
    Promise {
        name: "trust.3",
        claim: "no authentic datagram costs a gateway much more than an ordinary one",
        check: trust::hostile_work::check,
    },
    Promise {
        name: "trust.4",
        claim: "every fault that use and review have found has a test, and all of them pass",
        check: trust::faults::check,
    },
    Promise {
        name: "trust.5",
        claim: "plait check and plait up agree on every set-up, and say what makes a bond useless",
        check: trust::set_ups::check_all,
    },
];

#[derive(Serialize)]
struct Listed<'a> {
    promise: &'a str,
    claim: &'a str,
}

#[derive(Serialize)]
struct More {
    machine: Machine,
    /// Promises that could not be checked.
    errors: Vec<&'static str>,
}

pub(crate) fn list(output: &Output) -> Result<Verdict> {
    for Promise { name, claim, .. } in PROMISES {
        output.line(format!("{name}  {claim}"))?;
        output.record("promise", &Listed { promise: name, claim })?;
    }
    output.record("summary", &Summary::new("verify", &[], serde_json::json!({})))?;
    Ok(Verdict::Good)
}

pub(crate) fn run(args: &VerifyArgs, output: &Output) -> Result<Verdict> {
    let effort = if args.quick { Effort::QUICK } else { Effort::WHOLE };
    let promises = select(&args.names)?;
    let mut records = Records::open(&args.resume)?;
    let mut table = Table::new(&[
        ("promise", Align::Left),
        ("figure", Align::Left),
        ("value", Align::Right),
        ("band", Align::Left),
        ("", Align::Left),
    ]);
    let mut all = Vec::new();
    let mut errors = Vec::new();
    let is_new = |promise: &&&Promise| records.find(promise.name, effort.thoroughness()).is_none();
    let mut meter = Meter::new("verify", "promises", promises.iter().filter(is_new).count());
    for promise in promises {
        let checked = checked(promise, effort, &mut records, &mut meter)?;
        tell(&checked, &mut table);
        output.record("promise", &checked)?;
        if checked.error.is_some() {
            errors.push(promise.name);
            continue;
        }
        if let Some(file) = &args.readme {
            readme::update(file, &checked)?;
        }
        all.extend(checked.figures);
    }
    drop(meter);
    for line in table.lines() {
        output.line(line)?;
    }
    let machine = Machine::detect();
    output.line("")?;
    output.line(machine.sentence())?;
    let unchecked = errors.join(", ");
    let mut summary = Summary::new("verify", &all, More { machine, errors });
    summary.ok &= unchecked.is_empty();
    output.record("summary", &summary)?;
    if !unchecked.is_empty() {
        bail!("could not be checked: {unchecked}");
    }
    Ok(Verdict::of(summary.ok))
}

/// Every number of a JSON value with the way to it, in its order.
fn leaves(name: &str, value: &Value) -> Vec<Figure> {
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| leaves(&format!("{name} {key}"), value)).collect()
        }
        Value::Null => Vec::new(),
        other => {
            let name = name.replace('_', " ");
            vec![match other.as_f64() {
                Some(number) => Figure::number(name, number, ""),
                None => Figure::text(name, other.to_string()),
            }]
        }
    }
}

fn select(names: &[String]) -> Result<Vec<&'static Promise>> {
    if names.is_empty() {
        return Ok(PROMISES.iter().collect());
    }
    let mut selected = Vec::new();
    for name in names {
        let Some(promise) = PROMISES.iter().find(|promise| promise.name == name) else {
            bail!("there is no promise {name}; plait-lab verify --list prints all");
        };
        selected.push(promise);
    }
    Ok(selected)
}

/// A promise as it was checked before, or is now.
fn checked(
    promise: &Promise,
    effort: Effort,
    records: &mut Records,
    meter: &mut Meter,
) -> Result<Checked> {
    let Promise { name, claim, check } = *promise;
    if let Some(known) = records.find(name, effort.thoroughness()) {
        output::note(format!("{name}: {claim} (checked before: {})", known.origin()));
        return Ok(known.clone());
    }
    output::note(format!("{name}: {claim} ({})", meter.text()));
    let mut checked = Checked::now(name, claim, effort.thoroughness());
    match check(effort) {
        Ok(figures) => checked.figures = figures,
        Err(error) => {
            output::print_error(&error);
            checked.error = Some(format!("{error:#}"));
        }
    }
    for figure in &mut checked.figures {
        figure.name = format!("{name}: {}", figure.name);
    }
    records.add(checked.clone())?;
    meter.finished_one();
    Ok(checked)
}

/// The promise's rows of the table.
fn tell(checked: &Checked, table: &mut Table) {
    let name = &checked.promise;
    if checked.error.is_some() {
        table.row([name.clone(), "error".to_owned()]);
    }
    for figure in &checked.figures {
        let short = figure.name.strip_prefix(&format!("{name}: ")).unwrap_or(&figure.name);
        let (value, band) = (figure.value_text(), figure.band_text());
        table.row([name.clone(), short.to_owned(), value, band, figure.verdict().to_owned()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_found_by_name() {
        assert_eq!(select(&[]).unwrap().len(), PROMISES.len());
        assert_eq!(select(&["bond.2".into()]).unwrap()[0].name, "bond.2");
        let error = select(&["bond.9".into()]).err().unwrap();
        assert!(error.to_string().contains("--list"));
    }

    #[test]
    fn statistics_become_figures() {
        let value = serde_json::json!({"waited_packets": 3, "released": {"timer": 1, "gap": null}});
        let figures = leaves("resequencer", &value);
        let texts: Vec<_> =
            figures.iter().map(|f| format!("{}={}", f.name, f.value_text())).collect();
        assert!(texts.contains(&"resequencer waited packets=3".to_owned()), "{texts:?}");
        assert!(texts.contains(&"resequencer released timer=1".to_owned()), "{texts:?}");
        assert_eq!(texts.len(), 2);
    }
}
