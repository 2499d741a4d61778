//! What `[[lan]]` needs of the machine: the interfaces, IPv6, and the right to send advertisements.

use plait_net::icmp::router::RouterSocket;

use super::network::{Network, sysctl};
use super::{Finding, option_at};
use crate::config::{Config, Lan};
use crate::daemon::host::IPV6_OFF_HELP;

/// What is missing in each network.
pub(super) fn lans(config: &Config, network: &Network) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        config.lans.iter().map(|lan| interface(config, lan, network)).collect();
    if let Some(lan) = config.lans.iter().find(|lan| lan.tells()) {
        let subject = option_at(config, lan.line, "[[lan]] advertise");
        findings.push(match RouterSocket::open() {
            Ok(_) => Finding::ok(subject, "router advertisements can be sent"),
            Err(error) => {
                let text = format!("router advertisements cannot be sent: {error}");
                let help = "run it as root, or give it CAP_NET_RAW; or set `advertise = false`";
                Finding::error(subject, text, help)
            }
        });
    }
    findings
}

fn interface(config: &Config, lan: &Lan, network: &Network) -> Finding {
    let name = &lan.interface;
    let subject = option_at(config, lan.line, "[[lan]] interface");
    let Some(found) = network.interface(name) else {
        let text = format!("there is no interface {name} now: the LAN waits for it");
        let help = "`ip link` shows this machine's interfaces; correct `interface`";
        return Finding::warning(subject, text, help);
    };
    let is_off = sysctl(&format!("ipv6/conf/{name}/disable_ipv6")).is_none_or(|off| off != 0);
    if is_off && lan.ipv6().next().is_some() {
        let text = format!("IPv6 is switched off on {name}");
        let help = IPV6_OFF_HELP.replace("default", name);
        return Finding::error(subject, text, help);
    }
    let taken = network.addresses().find(|(other, theirs)| {
        other.name != *name && lan.addresses.iter().any(|own| own.overlaps(*theirs))
    });
    if let Some((other, theirs)) = taken {
        let text = format!("{theirs} on {} overlaps with the LAN", other.name);
        let help = "give the LAN a prefix of its own";
        return Finding::warning(subject, text, help);
    }
    let is_set = |own: &&crate::config::Cidr| {
        network.addresses().any(|(other, theirs)| other.name == *name && theirs == **own)
    };
    let missing = lan.addresses.iter().filter(|own| !is_set(own)).map(ToString::to_string);
    let missing: Vec<String> = missing.collect();
    let mut text = match &missing[..] {
        [] => format!("{name} has its addresses"),
        _ => format!("{name} gets {}", missing.join(", ")),
    };
    if !found.up {
        text.push_str("; it is off, and is switched on");
    }
    Finding::ok(subject, text)
}
