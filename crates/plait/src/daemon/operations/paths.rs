//! Paths that are changed while the gateway runs.

use std::time::Duration;

use plait_proto::endpoint::Endpoint;
use plait_proto::time::Instant;

use super::Operations;
use crate::config::{Down, Quota};
use crate::control::message::{LinkTold, PathTold};
use crate::daemon::links::Links;
use crate::daemon::runtime::{PathChange, RefusedChange};

/// A path that is put down stands by for so long before its sockets are closed: the peer hears of
/// it and uses others, and what is on its way arrives.
const LEAVING_TIME: Duration = Duration::from_secs(1);

/// Days on which the months of a quota begin unless the file says otherwise.
const FIRST_DAY: u8 = plait_toml::gateway::Path::QUOTA_DAY;

/// A path that is being put down.
#[derive(Debug)]
pub(super) struct Leaving {
    path: String,
    until: Instant,
}

impl Operations {
    /// Changes a path. Let the links follow afterwards, then call [`Self::follow_links`]. Returns
    /// what looks unintended.
    ///
    /// # Errors
    /// There is no such path.
    pub(in crate::daemon) fn change_path(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        links: &Links,
        name: &str,
        change: PathChange,
    ) -> Result<Vec<String>, RefusedChange> {
        let known: Vec<&str> = self.config.paths.iter().map(|path| &*path.name).collect();
        if known.is_empty() {
            return Err(RefusedChange::NoPaths);
        }
        let at = known.iter().position(|known| *known == name).ok_or_else(|| {
            RefusedChange::NoPath { name: name.to_owned(), known: known.join(", ") }
        })?;
        let mut warnings = Vec::new();
        let path = &mut self.config.paths[at];
        match change {
            PathChange::Down => warnings.extend(self.put_down(now, endpoint, links, at)),
            PathChange::Up => {
                path.down = Down::No;
                let (own, others) =
                    self.leaving.drain(..).partition(|leaving| leaving.path == name);
                self.leaving = own;
                self.forget_leaving(now, endpoint, links);
                self.leaving = others;
            }
            PathChange::Standby(standby) => path.standby = standby,
            PathChange::Price(price) => path.price = price,
            PathChange::Quota(bytes) => {
                let first_day = path.quota.map_or(FIRST_DAY, |quota| quota.first_day);
                path.quota = bytes.map(|bytes| Quota { bytes, first_day });
            }
        }
        if matches!(change, PathChange::Standby(_) | PathChange::Quota(_)) {
            self.forget_spent(now, endpoint, links);
        }
        log::info!("path {name}: {change:?} by command");
        Ok(warnings)
    }

    /// Lets the other paths carry what this one did, and closes it a little later.
    fn put_down(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        links: &Links,
        at: usize,
    ) -> Option<String> {
        let name = self.config.paths[at].name.clone();
        let is_leaving = |path: &str| self.leaving.iter().any(|leaving| leaving.path == path);
        if self.config.paths[at].down != Down::No || is_leaving(&name) {
            return Some(format!("{name} was down already"));
        }
        let mut live = links.sockets();
        let carries = live.any(|(_, other)| other != name && !is_leaving(other));
        for (socket, _) in links.sockets().filter(|(_, of)| *of == name) {
            let reason = Down::ByCommand.reason().map(str::to_owned);
            endpoint.set_standby(now, socket, true, reason);
        }
        let warning = format!("no other path has a link now: the bond is cut until `{name}` is up");
        self.leaving.push(Leaving { path: name, until: now + LEAVING_TIME });
        (!carries).then_some(warning)
    }

    /// Why the link of this name is gone, for a hook.
    pub(in crate::daemon) fn why_gone(&self, link: &str) -> String {
        let path = self.config.paths.iter().find(|path| path.name == link);
        let reason = path.and_then(|path| path.down.reason());
        reason.unwrap_or("its link is gone or changed").to_owned()
    }

    /// Lets the paths that are being put down carry data as before.
    pub(super) fn forget_leaving(&mut self, now: Instant, endpoint: &mut Endpoint, links: &Links) {
        for leaving in std::mem::take(&mut self.leaving) {
            let path = self.config.paths.iter().find(|path| path.name == leaving.path);
            let standby = path.is_some_and(|path| path.standby);
            for (socket, _) in links.sockets().filter(|(_, of)| *of == leaving.path) {
                endpoint.set_standby(now, socket, standby, None);
            }
        }
    }

    pub(super) fn leaving_due(&self) -> Option<Instant> {
        self.leaving.iter().map(|leaving| leaving.until).min()
    }

    /// Puts down the paths whose time has come; says whether there is any: then the links follow.
    pub(in crate::daemon) fn leave_due(&mut self, now: Instant) -> bool {
        let mut any = false;
        let paths = &mut self.config.paths;
        self.leaving.retain(|leaving| {
            let stays = leaving.until > now;
            let path = paths.iter_mut().find(|path| !stays && path.name == leaving.path);
            if let Some(path) = path {
                path.down = Down::ByCommand;
                any = true;
            }
            stays
        });
        any
    }

    /// The configured paths, as the control socket tells them.
    pub(in crate::daemon) fn list_paths(&self, links: &Links) -> Vec<PathTold> {
        let told = self.config.paths.iter().enumerate().map(|(at, path)| {
            let links = links.states().filter(|(of, _)| *of == at).map(|(_, link)| LinkTold {
                name: link.name.clone(),
                interface: link.interface.clone(),
                state: link.state.name().to_owned(),
                reason: link.reason.clone(),
            });
            let is_leaving = self.leaving.iter().any(|leaving| leaving.path == path.name);
            PathTold {
                name: path.name.clone(),
                price: path.price,
                standby: path.standby,
                down: path.down != Down::No || is_leaving,
                quota_bytes: path.quota.map(|quota| quota.bytes),
                links: links.collect(),
            }
        });
        told.collect()
    }
}
