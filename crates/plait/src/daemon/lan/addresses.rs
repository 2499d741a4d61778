//! The gateway's own addresses in its LANs: set where they are missing, and taken back.
//!
//! Changes are written to the state file first, so that they can be undone at exit, or by the next
//! start if there was no orderly exit.

use std::net::IpAddr;

use plait_net::netlink::{LinkInfo, Netlink, NetlinkError};

use super::super::host::IPV6_OFF_HELP;
use super::super::state::{KeptAddress, StateFile};
use crate::advice::Advised;
use crate::config::Lan;

/// Number of plait's addresses (`protocol`, as of routes).
const PROTOCOL: u8 = 112;
const EPERM: i32 = 1;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const EADDRNOTAVAIL: i32 = 99;

/// Switches an interface on, if it is new, and gives it the addresses that it lacks; says whether
/// there was anything to do.
///
/// # Errors
/// One cannot be set, with the remedy.
pub(super) fn set(
    netlink: &mut Netlink,
    lan: &Lan,
    (link, is_new): (&LinkInfo, bool),
    file: &mut StateFile,
) -> Result<bool, Advised> {
    let mut changed = false;
    let interface = &lan.interface;
    if !link.up && is_new {
        if !file.state.lan_switched_on.contains(interface) {
            file.state.lan_switched_on.push(interface.clone());
            file.save();
        }
        netlink.set_up(link.index).map_err(|error| advised(interface, error))?;
        log::info!("{interface} is switched on");
        changed = true;
    }
    let held = netlink.addresses().map_err(|error| advised(interface, error))?;
    for own in &lan.addresses {
        let (address, length) = (own.address, own.length);
        if held.contains(&(link.index, address, length)) {
            continue;
        }
        let kept = KeptAddress { interface: interface.clone(), address, length };
        if !file.state.lan_addresses.contains(&kept) {
            file.state.lan_addresses.push(kept);
            file.save();
        }
        match netlink.add_lan_address(link.index, address, length, PROTOCOL) {
            // Somebody else was quicker.
            Err(error) if error.errno() == Some(EEXIST) => {}
            Err(error) => return Err(advised(interface, error)),
            Ok(()) => {
                log::info!("{interface} has the address {own}");
                changed = true;
            }
        }
    }
    Ok(changed)
}

fn advised(interface: &str, error: NetlinkError) -> Advised {
    let help = match error.errno() {
        Some(EACCES) => IPV6_OFF_HELP.replace("default", interface),
        Some(EPERM) => "run plait as root, or give it CAP_NET_ADMIN".into(),
        _ => "correct `interface` or `prefixes` of the [[lan]]".into(),
    };
    Advised::new(format!("[[lan]] {interface}: {error}"), help).caused_by(error.source)
}

/// Takes back what this run or an earlier one set, except what these networks want.
pub(super) fn undo_all_but(netlink: &mut Netlink, wanted: &[Lan], file: &mut StateFile) {
    let stays = |kept: &KeptAddress| {
        wanted.iter().filter(|lan| lan.interface == kept.interface).any(|lan| {
            let is_same = |own: &crate::config::Cidr| {
                (own.address, own.length) == (kept.address, kept.length)
            };
            lan.addresses.iter().any(is_same)
        })
    };
    let all = std::mem::take(&mut file.state.lan_addresses);
    let (kept, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(stays);
    for address in &gone {
        remove(netlink, address);
    }
    let names = std::mem::take(&mut file.state.lan_switched_on);
    let (on, off): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| wanted.iter().any(|lan| lan.interface == *name));
    for name in &off {
        switch_off(netlink, name);
    }
    (file.state.lan_addresses, file.state.lan_switched_on) = (kept, on);
    file.save();
}

/// An interface went, and what it had with it.
pub(super) fn forget(interface: &str, file: &mut StateFile) {
    file.state.lan_addresses.retain(|kept| kept.interface != interface);
    file.state.lan_switched_on.retain(|name| name != interface);
    file.save();
}

fn remove(netlink: &mut Netlink, kept: &KeptAddress) {
    let KeptAddress { interface, address, length } = kept;
    let Ok(Some(link)) = netlink.link(interface) else { return };
    // Somebody else may have written the file: only addresses that a LAN can have are removed.
    if !is_of_lan(*address) {
        return;
    }
    match netlink.remove_address(link.index, *address, *length) {
        Err(error) if error.errno() != Some(EADDRNOTAVAIL) => {
            log::warn!("{interface}: {error}: {}", error.source);
        }
        _ => log::info!("{interface} has the address {address}/{length} no more"),
    }
}

fn is_of_lan(address: IpAddr) -> bool {
    let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    !address.is_loopback() && !is_link_local
}

fn switch_off(netlink: &mut Netlink, name: &str) {
    if let Ok(Some(link)) = netlink.link(name)
        && name != "lo"
        && let Err(error) = netlink.set_down(link.index)
    {
        log::warn!("{name}: {error}: {}", error.source);
    }
}
