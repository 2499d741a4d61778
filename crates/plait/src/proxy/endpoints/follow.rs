//! Makes the changes, and again whenever links come and go.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use plait_net::netlink::{Monitor, Netlink};

use super::change::Change;
use super::found::Found;
use super::plan::plan;
use super::wanted::Wanted;
use super::{EndpointsConfig, State, links, open_netlink};
use crate::advice::Advised;
use crate::proxy::ip::{IpError, shell};
use crate::proxy::kept::Kept;

const MONITOR: Token = Token(0);
const STOP: Token = Token(1);

/// Changes of links come in bursts: what follows the first so soon is looked at together.
const NEWS_PAUSE: Duration = Duration::from_millis(250);
/// The kernel does not tell of routes here: so often they are looked at.
const LOOK_PAUSE: Duration = Duration::from_secs(10);
/// The same while a link lacks its route, or the kernel refused something.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Follows the links. What was set is undone when it is dropped.
#[derive(Debug)]
pub(super) struct Follower {
    config: EndpointsConfig,
    netlink: Netlink,
    monitor: Monitor,
    kept: Kept<State>,
    /// What was last told, so that it is told once.
    told: Vec<String>,
}

impl Follower {
    /// Reads the state file; what an earlier run left and is still wanted stays, so that
    /// connections keep their subflows.
    pub(super) fn open(config: EndpointsConfig) -> Result<Self, Advised> {
        let mut netlink = open_netlink()?;
        let monitor = Monitor::open().map_err(|error| {
            Advised::new("cannot watch the links", "look at the cause").caused_by(error)
        })?;
        let mut kept: Kept<State> = Kept::open(&config.state_file);
        if kept.value != State::default() && kept.value.table != config.table {
            undo(&mut netlink, &mut kept)?;
        }
        let found = Found::read(&mut netlink, config.table)?;
        kept.value.table = config.table;
        kept.value.owned.begin(&found);
        Ok(Self { config, netlink, monitor, kept, told: Vec::new() })
    }

    /// Sets everything up, and keeps it so until told to stop.
    pub(super) fn run(mut self, stop: &UnixStream) -> Result<(), Advised> {
        let failed = |error: io::Error| {
            Advised::new("cannot wait for changes of links", "look at the cause").caused_by(error)
        };
        let mut poll = Poll::new().map_err(failed)?;
        for (descriptor, token) in [(self.monitor.as_raw_fd(), MONITOR), (stop.as_raw_fd(), STOP)] {
            let mut source = SourceFd(&descriptor);
            let registry = poll.registry();
            registry.register(&mut source, token, Interest::READABLE).map_err(failed)?;
        }
        let mut events = Events::with_capacity(4);
        let mut is_first = true;
        loop {
            // The look that follows covers changes until now.
            self.monitor.drain().map_err(failed)?;
            let is_complete = self.look()?;
            if std::mem::take(&mut is_first) {
                log::info!("MPTCP follows {} links", self.config.links.len());
            }
            let mut look_at = Instant::now() + if is_complete { LOOK_PAUSE } else { RETRY_PAUSE };
            while let Some(timeout) = look_at.checked_duration_since(Instant::now()) {
                match poll.poll(&mut events, Some(timeout)) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    result => result.map_err(failed)?,
                }
                if events.iter().any(|event| event.token() == STOP) {
                    return Ok(());
                }
                if self.monitor.drain().map_err(failed)? {
                    look_at = look_at.min(Instant::now() + NEWS_PAUSE);
                }
            }
        }
    }

    /// Reads, plans, writes down what is to be undone, and makes the changes. Says whether all
    /// links have what they need.
    ///
    /// # Errors
    /// A program or a right is missing. What the kernel refuses for another reason is told, and
    /// tried again.
    fn look(&mut self) -> Result<bool, Advised> {
        let Self { config, netlink, kept, .. } = self;
        let found = Found::read(netlink, config.table)?;
        let links = links::now(&config.links, netlink, &found, &kept.value.owned)?;
        let wanted = Wanted::of(config, &links.ways, &found);
        let plan = plan(&found, &wanted, &kept.value.owned);
        kept.value.owned = plan.owned;
        kept.save();
        let mut notes = links.notes;
        notes.extend(plan.notes);
        let refused = make(&plan.changes, kept, &mut notes);
        for note in notes.iter().filter(|note| !self.told.contains(note)) {
            log::warn!("{note}");
        }
        self.told = notes;
        match refused {
            Some(error) if error.is_denied() => Err(error.into()),
            refused => Ok(refused.is_none() && !links.incomplete),
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Err(error) = undo(&mut self.netlink, &mut self.kept) {
            log::warn!("not everything is put back: {error}; {}", error.help());
        }
    }
}

/// Makes the changes; gives the first that was refused. An endpoint that was refused is not ours.
fn make(changes: &[Change], kept: &mut Kept<State>, notes: &mut Vec<String>) -> Option<IpError> {
    let mut refused = None;
    for change in changes {
        match change.apply() {
            Ok(()) => log::info!("{}", shell(&change.arguments())),
            Err(error) => {
                if let Change::AddEndpoint(endpoint) = change {
                    kept.value.owned.forget(endpoint.address);
                }
                notes.push(error.to_string());
                refused.get_or_insert(error);
            }
        }
    }
    kept.save();
    refused
}

/// Puts back what the state says is ours.
pub(super) fn undo(netlink: &mut Netlink, kept: &mut Kept<State>) -> Result<(), Advised> {
    let found = Found::read(netlink, kept.value.table)?;
    let plan = plan(&found, &Wanted::default(), &kept.value.owned);
    for note in &plan.notes {
        log::warn!("{note}");
    }
    if let Some(error) = make(&plan.changes, kept, &mut Vec::new()) {
        return Err(error.into());
    }
    kept.value = State::default();
    kept.save();
    Ok(())
}
