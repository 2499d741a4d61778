//! The changes from what there is to what there should be, and what of them is to be undone.
//! Changes nothing itself.
//!
//! What others set stays as far as it can: an endpoint of theirs that fits is used as it is; one
//! that lacks a flag gets it, and is put back at the end. What others change of ours meanwhile is
//! theirs from then on.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::KERNEL_MAX;
use super::change::{Change, Endpoint, Limits};
use super::found::Found;
use super::wanted::Wanted;

/// What is to be undone.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Owned {
    #[serde(default)]
    endpoints: Vec<OwnedEndpoint>,
    #[serde(default)]
    limits: Option<OwnedLimits>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct OwnedEndpoint {
    /// What others had set for the address.
    before: Option<Endpoint>,
    /// As it was set, without number.
    after: Endpoint,
    /// Somebody changed or removed it: it is left alone while its address stays.
    #[serde(default)]
    given_up: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct OwnedLimits {
    before: Limits,
    after: Limits,
    #[serde(default)]
    given_up: bool,
}

/// What to do.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Plan {
    /// In the order in which they are to be made.
    pub(super) changes: Vec<Change>,
    /// What is to be undone afterwards.
    pub(super) owned: Owned,
    /// What the operator should know of.
    pub(super) notes: Vec<String>,
}

impl Owned {
    /// Addresses whose endpoints are ours.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.endpoints.iter().map(|one| one.after.address)
    }

    /// At the begin of a run: what is not there as it was set was changed by others, or was never
    /// set before the crash. Either way it is not ours, and may be set anew.
    pub(super) fn begin(&mut self, found: &Found) {
        let is_there = |one: &OwnedEndpoint| {
            !one.given_up && found.endpoints.iter().any(|there| there.is_like(&one.after))
        };
        self.endpoints.retain(is_there);
        self.limits = self.limits.filter(|limits| limits.after == found.limits);
    }

    /// Forgets an endpoint that the kernel refused.
    pub(super) fn forget(&mut self, address: IpAddr) {
        self.endpoints.retain(|one| one.after.address != address);
    }
}

/// Computes what to do.
pub(super) fn plan(found: &Found, wanted: &Wanted, owned: &Owned) -> Plan {
    let mut plan = Plan::default();
    let mut changes = EndpointChanges::default();
    for one in &owned.endpoints {
        follow_owned(one, found, wanted, &mut changes, &mut plan);
    }
    for endpoint in &wanted.endpoints {
        if !plan.owned.addresses().any(|address| address == endpoint.address) {
            take(endpoint, found, &mut changes, &mut plan);
        }
    }
    changes.leave_what_has_no_room(found, &mut plan);
    plan.changes.extend(changes.removed);
    let gone_rules = found.rules.iter().filter(|rule| !wanted.rules.contains(rule));
    plan.changes.extend(gone_rules.map(|rule| Change::RemoveRule(*rule)));
    let gone_routes = found.routes.iter().filter(|route| !wanted.routes.contains(route));
    plan.changes.extend(gone_routes.cloned().map(Change::RemoveRoute));
    // A subflow starts as soon as its endpoint is there: its way comes first.
    let new_routes = wanted.routes.iter().filter(|route| !found.routes.contains(route));
    plan.changes.extend(new_routes.cloned().map(Change::AddRoute));
    let new_rules = wanted.rules.iter().filter(|rule| !found.rules.contains(rule));
    plan.changes.extend(new_rules.map(|rule| Change::AddRule(*rule)));
    limit(found, wanted, owned.limits, &mut plan);
    plan.changes.extend(changes.altered);
    plan.changes.extend(changes.added.into_iter().map(Change::AddEndpoint));
    plan
}

#[derive(Default)]
struct EndpointChanges {
    removed: Vec<Change>,
    altered: Vec<Change>,
    added: Vec<Endpoint>,
}

impl EndpointChanges {
    /// Turns one endpoint into another of the same address.
    fn turn(&mut self, there: &Endpoint, into: &Endpoint) {
        let into = Endpoint { id: there.id, ..into.clone() };
        match there.id {
            _ if *there == into => {}
            Some(id) if *there == (Endpoint { backup: there.backup, ..into.clone() }) => {
                self.altered.push(Change::SetBackup { id, backup: into.backup });
            }
            _ => {
                self.removed.push(Change::RemoveEndpoint(there.clone()));
                self.added.push(into);
            }
        }
    }

    fn leave_what_has_no_room(&mut self, found: &Found, plan: &mut Plan) {
        // Those that keep their number come first: the kernel might give it to another.
        self.added.sort_by_key(|endpoint| endpoint.id.is_none());
        let there = found.endpoints.iter().filter(|endpoint| !endpoint.implicit).count();
        let room = (usize::from(KERNEL_MAX) + self.removed.len()).saturating_sub(there);
        for endpoint in self.added.split_off(room.min(self.added.len())) {
            let Endpoint { address, .. } = endpoint;
            plan.notes.push(format!("{address} gets no endpoint: the kernel takes {KERNEL_MAX}"));
            plan.owned.forget(address);
        }
    }
}

fn there(found: &Found, address: IpAddr) -> Option<&Endpoint> {
    let mut explicit = found.endpoints.iter().filter(|endpoint| !endpoint.implicit);
    explicit.find(|endpoint| endpoint.address == address)
}

/// What somebody else's endpoint has to become.
fn fitted(before: &Endpoint, wanted: &Endpoint) -> Endpoint {
    Endpoint {
        subflow: before.subflow || wanted.subflow,
        signal: before.signal || wanted.signal,
        backup: wanted.backup,
        dev: before.dev.clone().or_else(|| wanted.dev.clone()),
        ..before.clone()
    }
}

fn without_id(endpoint: &Endpoint) -> Endpoint {
    Endpoint { id: None, ..endpoint.clone() }
}

fn follow_owned(
    one: &OwnedEndpoint,
    found: &Found,
    wanted: &Wanted,
    changes: &mut EndpointChanges,
    plan: &mut Plan,
) {
    let address = one.after.address;
    let wanted = wanted.endpoints.iter().find(|endpoint| endpoint.address == address);
    let there = there(found, address).filter(|there| there.is_like(&one.after) && !one.given_up);
    match (there, wanted) {
        (None, None) => {}
        (None, Some(_)) => {
            if !one.given_up {
                let note = "was changed by another program, and is left to it";
                plan.notes.push(format!("the endpoint of {address} {note}"));
            }
            plan.owned.endpoints.push(OwnedEndpoint { given_up: true, ..one.clone() });
        }
        (Some(there), None) => match &one.before {
            Some(before) => changes.turn(there, before),
            None => changes.removed.push(Change::RemoveEndpoint(there.clone())),
        },
        (Some(there), Some(wanted)) => {
            let before = one.before.clone();
            let target = before.as_ref().map_or(without_id(wanted), |it| fitted(it, wanted));
            changes.turn(there, &target);
            let after = without_id(&target);
            plan.owned.endpoints.push(OwnedEndpoint { before, after, given_up: false });
        }
    }
}

/// Takes an address that was not ours yet.
fn take(wanted: &Endpoint, found: &Found, changes: &mut EndpointChanges, plan: &mut Plan) {
    let before = there(found, wanted.address).cloned();
    let after = match &before {
        Some(there) => {
            let target = fitted(there, wanted);
            if target == *there {
                return;
            }
            changes.turn(there, &target);
            without_id(&target)
        }
        None => {
            changes.added.push(wanted.clone());
            wanted.clone()
        }
    };
    plan.owned.endpoints.push(OwnedEndpoint { before, after, given_up: false });
}

/// Limits are only ever raised, and are put back when they are still what they were set to.
fn limit(found: &Found, wanted: &Wanted, owned: Option<OwnedLimits>, plan: &mut Plan) {
    let now = found.limits;
    let is_wanted = wanted.subflows > 0 || wanted.add_addr_accepted > 0;
    let changed = |limits: &OwnedLimits| limits.given_up || limits.after != now;
    if let Some(limits) = owned.filter(changed) {
        if is_wanted {
            if !limits.given_up {
                plan.notes.push("another program changed the limits: left to it".into());
            }
            plan.owned.limits = Some(OwnedLimits { given_up: true, ..limits });
        }
        return;
    }
    let before = owned.map_or(now, |limits| limits.before);
    let after = Limits {
        subflows: before.subflows.max(wanted.subflows),
        add_addr_accepted: before.add_addr_accepted.max(wanted.add_addr_accepted),
    };
    if after != now {
        plan.changes.push(Change::SetLimits(after));
    }
    if after != before {
        plan.owned.limits = Some(OwnedLimits { before, after, given_up: false });
    }
}
