//! The commands' part that works with programs in the kernel.

use std::net::IpAddr;
use std::path::Path;

use plait_bpf::choose::{self, Chosen, Rule, Whose};
use plait_bpf::congestion::{self, Loaded};
use plait_bpf::pins::State;
use plait_bpf::{Controller, support};
use plait_net::netlink::Netlink;
use serde_json::json;

use super::{namespace, report};
use crate::advice::Advised;
use crate::cli::Outcome;

/// The sockets that a rule is for.
#[derive(Debug)]
pub(super) struct Meant<'a> {
    /// In this cgroup.
    pub(super) cgroup: &'a Path,
    /// Bound to one of these interfaces, or with an address of theirs.
    pub(super) interfaces: &'a [String],
    /// With one of these addresses.
    pub(super) addresses: &'a [IpAddr],
}

fn advised(error: plait_bpf::Error) -> anyhow::Error {
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(source) = cause {
        message = format!("{message}: {source}");
        cause = source.source();
    }
    Advised::new(message, error.help()).into()
}

fn parse(name: &str) -> anyhow::Result<Controller> {
    name.parse().map_err(|error| {
        let help = "`plait cc list` shows what there is; `plait cc use` takes the kernel's, too";
        Advised::new(format!("{error}"), help).into()
    })
}

/// The name by which the kernel knows a controller.
pub(super) fn kernel_name(name: &str) -> String {
    let ours = name.parse::<Controller>().map(|known| known.kernel_name().to_owned());
    ours.unwrap_or_else(|_| name.to_owned())
}

const fn state_name(state: State) -> &'static str {
    match state {
        State::Loaded => "loaded",
        State::Incomplete => "incomplete",
        State::Detached => "detached",
    }
}

pub(super) fn list(as_json: bool) -> anyhow::Result<Outcome> {
    let loaded = congestion::list().map_err(advised)?;
    let cgroups = choose::list().map_err(advised)?;
    for controller in Controller::ALL {
        let known = loaded.iter().find(|each| each.controller == controller);
        list_controller(controller, known, as_json)?;
    }
    let ours = |name: &String| name.starts_with("bpf_") && name.parse::<Controller>().is_ok();
    let kernels: Vec<_> = namespace::available().into_iter().filter(|name| !ours(name)).collect();
    report::kernels(&kernels, &namespace::default(), as_json)?;
    for cgroup in &cgroups {
        list_cgroup(cgroup, as_json)?;
    }
    let left = leftovers(&loaded, &cgroups);
    let missing = support::check().err();
    let told = json!({
        "type": "summary",
        "default": namespace::default(),
        "loaded": loaded.iter().filter(|each| each.state == State::Loaded).count(),
        "leftovers": left,
        "can_load": missing.is_none(),
        "missing": missing.as_ref().map(ToString::to_string),
    });
    if as_json {
        report::line(true, &told, String::new)?;
    }
    if let Some(error) = missing.filter(|_| !as_json) {
        report::line(false, &told, || format!("more cannot be loaded: {error}"))?;
    }
    if !left.is_empty() && !as_json {
        let left = left.join(", ");
        report::line(false, &told, || {
            format!("left over, and does nothing: {left}; `plait cc unload --all` removes it")
        })?;
    }
    Ok(if left.is_empty() { Outcome::Good } else { Outcome::No })
}

fn list_controller(
    controller: Controller,
    known: Option<&Loaded>,
    as_json: bool,
) -> std::io::Result<()> {
    let record = known.and_then(|known| known.record.as_ref());
    let state = known.map_or("not loaded", |known| state_name(known.state));
    let told = json!({
        "type": "controller",
        "name": controller.name(),
        "kernel_name": controller.kernel_name(),
        "state": if known.is_some() { state } else { "absent" },
        "connections": record.map(|record| record.connections),
        "since_unix_s": record.map(|record| record.since_unix_s),
        "pid": record.map(|record| record.pid),
        "version": record.map(|record| record.version.as_str()),
        "summary": controller.summary(),
        "note": controller.note(),
    });
    report::line(as_json, &told, || {
        let connections = match record.map(|record| record.connections) {
            Some(1) => ", 1 connection".to_owned(),
            Some(count) => format!(", {count} connections"),
            None => String::new(),
        };
        let state = format!("{state}{connections}");
        format!("{:<11}{state:<26}{}", controller.name(), controller.summary())
    })
}

fn list_cgroup(cgroup: &Chosen, as_json: bool) -> std::io::Result<()> {
    let mut told = json!(cgroup);
    told["type"] = "cgroup".into();
    report::line(as_json, &told, || {
        let rules = cgroup.rules.iter().map(rule_text).collect::<Vec<_>>().join("; ");
        let refused = cgroup.record.as_ref().map_or(0, |record| record.refused);
        let refused = match refused {
            0 => String::new(),
            count => format!("; {count} sockets could not be given theirs"),
        };
        format!("{} ({}): {rules}{refused}", cgroup.cgroup, state_name(cgroup.state))
    })
}

fn rule_text(rule: &Rule) -> String {
    let whose = match rule.whose {
        Whose::Interface(index) => format!("on interface {index}"),
        Whose::Address(address) => format!("on {address}"),
        Whose::Any => "else".to_owned(),
    };
    format!("{whose} {} ({} sockets)", rule.name, rule.chosen)
}

/// Names of what does nothing any more.
fn leftovers(loaded: &[Loaded], cgroups: &[Chosen]) -> Vec<String> {
    let controllers = loaded.iter().filter(|each| each.state != State::Loaded);
    let cgroups = cgroups.iter().filter(|each| each.state != State::Loaded);
    let names = controllers.map(|each| each.controller.name().to_owned());
    names.chain(cgroups.map(|each| each.cgroup.clone())).collect()
}

/// Says on stderr what processes left that died.
fn warn_of_leftovers() {
    let (Ok(loaded), Ok(cgroups)) = (congestion::list(), choose::list()) else { return };
    let left = leftovers(&loaded, &cgroups);
    if !left.is_empty() {
        let left = left.join(", ");
        warn(&format!("left over, and does nothing: {left}; `plait cc unload --all` removes it"));
    }
}

fn warn(text: &str) {
    // With stderr closed there is nobody to warn.
    let _ =
        std::io::Write::write_all(&mut std::io::stderr(), format!("plait: {text}\n").as_bytes());
}

pub(super) fn load(names: &[String], as_json: bool) -> anyhow::Result<Outcome> {
    let controllers = names.iter().map(|name| parse(name)).collect::<anyhow::Result<Vec<_>>>()?;
    for controller in controllers {
        let replaced = congestion::load(controller).map_err(advised)?;
        if replaced {
            warn(&format!("what was left of {controller} is replaced"));
        }
        if let Some(note) = controller.note() {
            warn(&format!("{controller}: {note}"));
        }
        let told = json!({
            "type": "loaded",
            "name": controller.name(),
            "kernel_name": controller.kernel_name(),
            "replaced_leftovers": replaced,
            "note": controller.note(),
        });
        report::line(as_json, &told, || {
            format!("{controller} is loaded: `plait cc use {controller}` chooses it")
        })?;
    }
    warn_of_leftovers();
    Ok(Outcome::Good)
}

/// Unloads the controllers of these names; without names all of them, and the rules of cgroups.
pub(super) fn unload(
    names: Option<&[String]>,
    force: bool,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let controllers = match names {
        Some(names) => names.iter().map(|name| parse(name)).collect::<anyhow::Result<Vec<_>>>()?,
        None => {
            let loaded = congestion::list().map_err(advised)?;
            loaded.iter().map(|each| each.controller).collect()
        }
    };
    let cgroups = match names {
        Some(_) => 0,
        None => choose::clear_all().map_err(advised)?,
    };
    for controller in &controllers {
        congestion::unload(*controller, force).map_err(advised)?;
        let told = json!({ "type": "unloaded", "name": controller.name() });
        report::line(as_json, &told, || format!("{controller} is unloaded"))?;
    }
    let done = controllers.len() + cgroups;
    let told = json!({ "type": "summary", "unloaded": controllers.len(), "cgroups": cgroups });
    if as_json {
        report::line(true, &told, String::new)?;
    } else if cgroups > 0 {
        report::line(false, &told, || format!("rules of {cgroups} cgroups are gone"))?;
    } else if done == 0 {
        report::line(false, &told, || "nothing was loaded".to_owned())?;
    }
    Ok(if done == 0 { Outcome::No } else { Outcome::Good })
}

/// Which sockets are meant, as rules have it.
fn whose(meant: &Meant<'_>) -> anyhow::Result<Vec<Whose>> {
    let mut whose: Vec<_> = meant.addresses.iter().map(|each| Whose::Address(*each)).collect();
    if !meant.interfaces.is_empty() {
        let mut netlink = Netlink::open()?;
        let addresses = netlink.addresses()?;
        for name in meant.interfaces {
            let Some(link) = netlink.link(name)? else {
                let help = "`ip link` shows the interfaces of this network namespace";
                return Err(Advised::new(format!("there is no interface {name}"), help).into());
            };
            whose.push(Whose::Interface(link.index));
            let own = addresses.iter().filter(|(index, ..)| *index == link.index);
            whose.extend(own.map(|(_, address, _)| Whose::Address(*address)));
        }
    }
    Ok(whose)
}

pub(super) fn choose(meant: &Meant<'_>, name: &str, as_json: bool) -> anyhow::Result<Outcome> {
    let kernel_name = kernel_name(name);
    let there = namespace::available();
    if !there.contains(&kernel_name) {
        let help = match kernel_name.strip_prefix("bpf_") {
            Some(ours) => format!("load it first: plait cc load {ours}"),
            None => format!("the kernel has {}", there.join(", ")),
        };
        return Err(
            Advised::new(format!("the kernel has no controller {kernel_name}"), help).into()
        );
    }
    let mut rules = whose(meant)?;
    if rules.is_empty() {
        rules.push(Whose::Any);
    }
    let found = choose::set(meant.cgroup, &rules, &kernel_name).map_err(advised)?;
    if found.leftovers {
        warn("what a dead process had left on this cgroup is replaced");
    }
    if found.others > 0 {
        let count = found.others;
        warn(&format!("{count} other programs choose on this cgroup, too: the last has the word"));
    }
    let cgroup = meant.cgroup.display();
    let told = json!({
        "type": "rule",
        "cgroup": meant.cgroup,
        "name": kernel_name,
        "whose": rules,
        "others": found.others,
    });
    report::line(as_json, &told, || {
        let addresses = meant.addresses.iter().map(ToString::to_string);
        let on = meant.interfaces.iter().cloned().chain(addresses);
        let on = on.collect::<Vec<_>>().join(", ");
        let on = if on.is_empty() { on } else { format!(" on {on}") };
        format!("new sockets of {cgroup}{on} get {kernel_name}")
    })?;
    Ok(Outcome::Good)
}

pub(super) fn take_back(meant: &Meant<'_>, as_json: bool) -> anyhow::Result<Outcome> {
    let rules = whose(meant)?;
    let some = (!rules.is_empty()).then_some(&rules[..]);
    choose::clear(meant.cgroup, some).map_err(advised)?;
    let told = json!({ "type": "rule", "cgroup": meant.cgroup, "name": null, "whose": some });
    report::line(as_json, &told, || {
        format!("new sockets of {} get the default again", meant.cgroup.display())
    })?;
    Ok(Outcome::Good)
}
