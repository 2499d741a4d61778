//! Checks what a gateway needs from the machine to start, and finds what slows it down or makes the
//! bond useless.
//!
//! Facts come from [`plait_net::machine`], from rtnetlink and from sockets that are opened and
//! closed again; nothing is changed. `plait check` prints every finding, `plait up` stops at the
//! errors. Everything that `up` sets up has a check here: an error is where `up` would fail.

mod beside;
mod device;
mod dns;
mod forwarding;
mod lan;
mod links;
mod network;
mod services;
mod system;
mod when_down;

use std::net::SocketAddr;

use plait_net::machine::Machine;
use plait_net::netlink::NetlinkError;

use crate::config::{Config, Endpoint, Located};
use crate::holder::Holder;
use crate::{control, daemon};
use network::Network;

/// What was found on the machine.
#[derive(Debug)]
pub(crate) struct Facts {
    machine: Machine,
    network: Result<Network, NetlinkError>,
    /// The gateway whose device, ports and files are not in the way.
    running: Running,
}

impl Facts {
    /// Looks at this machine, on which a gateway is to start.
    pub(crate) fn gather() -> Self {
        Self { machine: Machine::inspect(), network: Network::look(), running: Running(None) }
    }

    /// The same where the gateway of this configuration may run already.
    pub(crate) fn gather_beside(config: &Config) -> Self {
        Self { running: Running::find(config), ..Self::gather() }
    }
}

/// The process of the gateway that runs with a configuration, where there is one: it answers at the
/// control socket and keeps the device.
#[derive(Clone, Copy, Debug)]
struct Running(Option<u32>);

impl Running {
    fn find(config: &Config) -> Self {
        let answers = control::process_at(&config.gateway.control_socket);
        let keeps = Holder::of_device(&config.gateway.tun);
        Self(answers.filter(|pid| keeps.is_some_and(|holder| holder.is(*pid))))
    }

    /// What was found of something that `holder` keeps: well, if that is the running gateway.
    fn finding(self, subject: &str, what: &str, holder: Option<&Holder>) -> Option<Finding> {
        let pid = self.0.filter(|pid| holder.is_some_and(|holder| holder.is(*pid)))?;
        let text = format!("the running gateway, process {pid}, keeps {what}");
        Some(Finding::ok(subject, text))
    }

    /// The same of what only the running gateway can keep.
    fn its_own(self, subject: &str, what: &str) -> Option<Finding> {
        self.finding(subject, what, self.0.and_then(Holder::of_process).as_ref())
    }
}

/// Where the peers listen.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// The addresses of each peer that listens.
    endpoints: Vec<Vec<SocketAddr>>,
}

impl Peers {
    /// The endpoints given as addresses, without asking DNS for names.
    pub(crate) fn written_out(config: &Config) -> Self {
        Self::resolved(config, |endpoint| match &endpoint.value {
            Endpoint::Address(address) => vec![*address],
            Endpoint::Name(..) => Vec::new(),
        })
    }

    /// All endpoints, each resolved by `resolve`.
    pub(crate) fn resolved(
        config: &Config,
        mut resolve: impl FnMut(&Located<Endpoint>) -> Vec<SocketAddr>,
    ) -> Self {
        let mut endpoints = Vec::new();
        for peer in &config.peers {
            let found: Vec<_> = peer.endpoints.iter().flat_map(&mut resolve).collect();
            if !found.is_empty() {
                endpoints.push(found);
            }
        }
        Self { endpoints }
    }

    fn addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.endpoints.iter().flatten()
    }
}

/// Effect of a finding on starting the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// The gateway starts, but something is worth a look.
    Warning,
    /// The gateway cannot start.
    Error,
}

/// One fact about the configuration or the machine, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    /// Its effect on starting.
    pub(crate) level: Level,
    /// What it is about: a place in the file, or a part of the machine.
    pub(crate) subject: String,
    /// What was found.
    pub(crate) text: String,
    /// What to do; `None` when all is well.
    pub(crate) help: Option<String>,
}

impl Finding {
    pub(crate) fn ok(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, subject: subject.into(), text: text.into(), help: None }
    }

    pub(crate) fn warning(
        subject: impl Into<String>,
        text: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let help = Some(help.into());
        Self { level: Level::Warning, subject: subject.into(), text: text.into(), help }
    }

    pub(crate) fn error(
        subject: impl Into<String>,
        text: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let help = Some(help.into());
        Self { level: Level::Error, subject: subject.into(), text: text.into(), help }
    }
}

/// Compares what the configuration needs with what the machine has.
pub(crate) fn examine(config: &Config, peers: &Peers, facts: &mut Facts) -> Vec<Finding> {
    let machine = &facts.machine;
    let running = facts.running;
    let may_change = facts.network.as_ref().is_ok_and(|network| network.may_change);
    let rights = system::rights(machine, may_change);
    let has_rights = rights.level == Level::Ok;
    let mut findings = vec![
        system::kernel(machine),
        system::tun_device(machine),
        rights,
        system::aes(machine),
        system::buffer("receive", "rmem_max", machine.rmem_max),
        system::buffer("send", "wmem_max", machine.wmem_max),
        device::tun_name(config, running),
    ];
    findings.extend(config.gateway.listen_port.as_ref().map(|port| {
        let subject = option_at(config, port.line, "[gateway] listen_port");
        services::listen_port(&subject, port.value, running)
    }));
    findings.extend(
        config.gateway.listen_ports().skip(1).map(|port| {
            services::listen_port(&gateway_option(config, "more_ports"), port, running)
        }),
    );
    findings.push(services::control_socket(config, running));
    findings.push(services::state_file(config, running));
    findings.extend(services::measure_port(config, running));
    findings.extend(services::metrics(config, running));
    findings.extend(services::user(config));
    findings.extend(forwarding::forwarding(config));
    // Without rights, asking the packet filter tells nothing more.
    findings.extend(forwarding::nat(config, || daemon::can_masquerade(config, has_rights)));
    findings.extend(when_down::rules(config, has_rights));
    findings.extend(dns::way(config));
    findings.extend(beside::rules(config, has_rights));
    match &mut facts.network {
        Ok(network) => {
            findings.extend(device::addresses_and_routes(config, network));
            findings.extend(links::links(config, peers, network));
            findings.extend(when_down::exits(config, network));
            findings.extend(beside::links(config, network));
            findings.extend(forwarding::addresses(config, network));
            findings.extend(lan::lans(config, network));
        }
        Err(error) => findings.push(Finding::error(
            "network",
            format!("{error}: {}", error.source),
            "plait needs rtnetlink: a sandbox must allow sockets of the family AF_NETLINK",
        )),
    }
    findings
}

/// The place of an option in the file.
fn option_at(config: &Config, line: usize, option: &str) -> String {
    format!("{}:{line}: {option}", config.file.display())
}

/// An option of `[gateway]`, at the section's line.
fn gateway_option(config: &Config, option: &str) -> String {
    option_at(config, config.gateway.line, &format!("[gateway] {option}"))
}

/// A peer's prefixes.
fn peer_option(config: &Config, line: usize) -> String {
    option_at(config, line, "[[peer]] allowed_ips")
}
