//! Answers to what came out of the bond go back into it, whatever the host's routes say: a rule of
//! policy routing for packets with a mark, and a table whose default route is the TUN device.
//! [`super::forwards`] has the rules that mark them.

use anyhow::Context as _;
use plait_net::netlink::Netlink;
use plait_net::netlink::policy::{Action, Family, Rule, Selector, TableRoute};

use super::policy::{PRIORITY, PROTOCOL, added, everywhere, removed, take_from_everywhere};
use super::state::StateFile;

/// Marks, and tables of the same numbers: this and the device's index.
const BASE: u32 = 0x7062_0000;

/// The mark of a device's answers, and the number of their table.
pub(super) fn mark_of(tun: &str) -> anyhow::Result<u32> {
    Ok(BASE | (index_of(&mut Netlink::open()?, tun)? & 0xffff))
}

fn index_of(netlink: &mut Netlink, tun: &str) -> anyhow::Result<u32> {
    Ok(netlink.link(tun)?.with_context(|| format!("there is no device {tun}"))?.index)
}

fn rule(family: Family, mark: u32) -> Rule {
    let (selector, action) = (Selector::Mark(mark), Action::Table(mark));
    Rule { priority: PRIORITY, family, selector, action }
}

/// Leads marked packets into the device. What cannot be set is an error with its cause.
pub(super) fn lead_back(tun: &str, mark: u32, file: &mut StateFile) -> anyhow::Result<()> {
    let mut netlink = Netlink::open()?;
    let index = Some(index_of(&mut netlink, tun)?);
    file.state.answer_mark = Some(mark);
    file.save();
    for family in Family::ALL {
        let destination = everywhere(family);
        let route = TableRoute { table: mark, destination, prefix: 0, gateway: None, index };
        // The route stays as long as the device: over a reload, too.
        let route = added(netlink.add_table_route(&route, PROTOCOL));
        match route.and_then(|()| added(netlink.add_rule(&rule(family, mark), PROTOCOL))) {
            // A host may be without IPv6.
            Err(error) if family == Family::V6 => log::debug!("{error}: {}", error.source),
            result => result?,
        }
    }
    // By the host's own routes they would come from elsewhere. The device is plait's own.
    take_from_everywhere(tun);
    log::info!("answers to what comes out of {tun} go back into it");
    Ok(())
}

/// Removes the rules of this run, or of one that crashed. The routes go with the device.
pub(super) fn undo(file: &mut StateFile) {
    let Some(mark) = file.state.answer_mark.take() else { return };
    // Somebody else may have written the file: only rules of ours are removed.
    if mark & 0xffff_0000 != BASE {
        return;
    }
    let Ok(mut netlink) = Netlink::open() else { return };
    for family in Family::ALL {
        removed(netlink.remove_rule(&rule(family, mark), PROTOCOL));
    }
}
