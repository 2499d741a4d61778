//! One change to the host, as a command of ip(8).

use std::net::IpAddr;

use plait_net::netlink::policy::Family;
use serde::{Deserialize, Serialize};

use crate::proxy::ip::{IpError, PROTOCOL, run, words};

/// An endpoint of the kernel's path manager, as `ip -j mptcp endpoint show` has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    /// The kernel chooses one when it is added without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dev: Option<String>,
    /// Subflows are opened from it.
    #[serde(default)]
    pub(super) subflow: bool,
    /// Others are told of it.
    #[serde(default)]
    pub(super) signal: bool,
    /// Subflows from it carry data only while no other can.
    #[serde(default)]
    pub(super) backup: bool,
    #[serde(default)]
    pub(super) fullmesh: bool,
    /// The kernel made it for a connection; whoever adds the address replaces it.
    #[serde(default)]
    pub(super) implicit: bool,
    /// Flags that this version of `ip` has no name for, as a hexadecimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rawflags: Option<String>,
}

/// The flag of an implicit endpoint (linux/mptcp.h), which iproute2 6.1 has no name for.
const IMPLICIT: u32 = 1 << 4;

impl Endpoint {
    /// An endpoint without flags.
    pub(super) fn new(address: IpAddr, dev: &str) -> Self {
        Self {
            address,
            id: None,
            port: None,
            dev: Some(dev.to_owned()),
            subflow: false,
            signal: false,
            backup: false,
            fullmesh: false,
            implicit: false,
            rawflags: None,
        }
    }

    /// With the flags named that `ip` did not name.
    pub(super) fn named(mut self) -> Self {
        let raw = self.rawflags.as_deref().map(|raw| u32::from_str_radix(raw, 16));
        if let Some(Ok(raw)) = raw
            && raw & IMPLICIT != 0
        {
            self.implicit = true;
            self.rawflags = Some(format!("{:x}", raw & !IMPLICIT)).filter(|rest| rest != "0");
        }
        self
    }

    /// Whether both are the same but for the number.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        *self == Self { id: self.id, ..other.clone() }
    }

    fn options(&self) -> String {
        let mut text = self.address.to_string();
        let optional = [
            self.dev.as_ref().map(|dev| format!(" dev {dev}")),
            self.id.map(|id| format!(" id {id}")),
            self.port.map(|port| format!(" port {port}")),
        ];
        text.extend(optional.into_iter().flatten());
        for (is_set, flag) in [
            (self.subflow, " subflow"),
            (self.signal, " signal"),
            (self.backup, " backup"),
            (self.fullmesh, " fullmesh"),
        ] {
            text.push_str(if is_set { flag } else { "" });
        }
        text
    }
}

/// What a connection may have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Limits {
    /// Subflows besides the first.
    pub(super) subflows: u8,
    /// Addresses of the other end that are taken.
    pub(super) add_addr_accepted: u8,
}

/// Which packets a rule is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Which {
    /// All, as far as the table `main` has more for them than a default route.
    KnownToMain,
    /// Those from this address, to this table.
    From(IpAddr, u32),
}

/// A rule of policy routing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rule {
    pub(super) family: Family,
    pub(super) priority: u32,
    pub(super) which: Which,
}

/// The default route of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Route {
    pub(super) family: Family,
    pub(super) table: u32,
    pub(super) gateway: Option<IpAddr>,
    pub(super) dev: String,
}

/// A change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    RemoveEndpoint(Endpoint),
    RemoveRule(Rule),
    RemoveRoute(Route),
    AddRoute(Route),
    AddRule(Rule),
    SetLimits(Limits),
    /// Of an endpoint that is there; its subflows stay.
    SetBackup {
        id: u8,
        backup: bool,
    },
    AddEndpoint(Endpoint),
}

impl Change {
    /// The words of the command.
    pub(super) fn arguments(&self) -> Vec<String> {
        words(&match self {
            Self::RemoveEndpoint(endpoint) => {
                // Numbers begin at 1; an endpoint that was read has one.
                format!("mptcp endpoint delete id {}", endpoint.id.unwrap_or_default())
            }
            Self::AddEndpoint(endpoint) => format!("mptcp endpoint add {}", endpoint.options()),
            Self::SetBackup { id, backup } => {
                let flag = if *backup { "backup" } else { "nobackup" };
                format!("mptcp endpoint change id {id} {flag}")
            }
            Self::SetLimits(Limits { subflows, add_addr_accepted }) => format!(
                "mptcp limits set subflows {subflows} add_addr_accepted {add_addr_accepted}"
            ),
            Self::AddRule(rule) => rule_text("add", rule),
            Self::RemoveRule(rule) => rule_text("delete", rule),
            Self::AddRoute(route) => route_text("add", route),
            Self::RemoveRoute(route) => route_text("delete", route),
        })
    }

    /// Makes the change. What is there already, or gone already, is as it should be.
    pub(super) fn apply(&self) -> Result<(), IpError> {
        let is_removal =
            matches!(self, Self::RemoveEndpoint(_) | Self::RemoveRule(_) | Self::RemoveRoute(_));
        match run(&self.arguments()) {
            Err(error) if is_removal && error.is_gone_already() => Ok(()),
            Err(error) if matches!(self, Self::AddRule(_)) && error.is_there_already() => Ok(()),
            result => result.map(|_| ()),
        }
    }
}

fn option(family: Family) -> &'static str {
    if family == Family::V4 { "-4" } else { "-6" }
}

fn rule_text(action: &str, rule: &Rule) -> String {
    let Rule { family, priority, which } = rule;
    let which = match which {
        Which::KnownToMain => "from all lookup main suppress_prefixlength 0".to_owned(),
        Which::From(address, table) => format!("from {address} lookup {table}"),
    };
    let family = option(*family);
    format!("{family} rule {action} priority {priority} {which} protocol {PROTOCOL}")
}

/// IPv4 gateways may lie outside of the link's network, as they do at some providers of machines.
fn route_text(action: &str, route: &Route) -> String {
    let Route { family, table, gateway, dev } = route;
    let via = gateway.map_or(String::new(), |gateway| format!(" via {gateway}"));
    let onlink = gateway.is_some_and(|gateway| gateway.is_ipv4());
    let onlink = if onlink { " onlink" } else { "" };
    let family = option(*family);
    format!(
        "{family} route {action} default{via} dev {dev}{onlink} table {table} protocol {PROTOCOL}"
    )
}
