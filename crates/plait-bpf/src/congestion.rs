//! Loads controllers into the kernel, unloads them, and says which are there.

use std::fs;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore as _, MapType, Object};
use serde::Serialize;

use crate::choose;
use crate::controller::Controller;
use crate::error::{Error, InUse};
use crate::object::Compiled;
use crate::pins::{Folder, REGISTERED, Record, State};
use crate::support::{self, Holder};

const KIND: &str = "cc";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// The kernel takes a controller out a moment after its link is gone.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// A controller that is loaded, or what is left of one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Loaded {
    /// Which.
    pub controller: Controller,
    /// Whether it is in force.
    pub state: State,
    /// Who loaded it; `None` where the loader died before it wrote that.
    pub record: Option<Record>,
}

/// Names of the controllers that the kernel has now, its own and ours. Its modules that are not
/// loaded are not among them.
pub fn available() -> Vec<String> {
    let names = fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// The default of the network namespace in which this runs.
pub fn default_here() -> String {
    fs::read_to_string(DEFAULT).unwrap_or_default().trim().to_owned()
}

fn is_available(controller: Controller) -> bool {
    available().iter().any(|name| name == controller.kernel_name())
}

/// What is loaded, and what is left of what was.
///
/// # Errors
/// When the BPF file system cannot be read.
pub fn list() -> Result<Vec<Loaded>, Error> {
    let folders = Folder::all(KIND)?;
    let known = folders.iter().filter_map(|folder| {
        let controller = folder.name().parse().ok()?;
        let in_force = folder.is_complete() && is_available(controller);
        let state = match in_force {
            true => State::Loaded,
            false if folder.is_complete() => State::Detached,
            false => State::Incomplete,
        };
        Some(Loaded { controller, state, record: folder.record() })
    });
    Ok(known.collect())
}

/// Loads a controller. It stays when this process ends. What a process left that died while loading
/// it is replaced; says whether there was such.
///
/// # Errors
/// Names what the machine lacks. Nothing is left in the kernel then.
pub fn load(controller: Controller) -> Result<bool, Error> {
    load_held_by(controller, support::check()?)
}

/// The same with a holder of choice, which the kernel must have; all have
/// [`Holder::Registration`].
///
/// # Errors
/// As [`load`]'s.
pub fn load_held_by(controller: Controller, holder: Holder) -> Result<bool, Error> {
    let folder = Folder::new(KIND, controller.name());
    if folder.is_complete() && is_available(controller) {
        return Err(Error::AlreadyLoaded(controller));
    }
    let had_leftovers = folder.exists();
    if had_leftovers {
        folder.remove()?;
    }
    if is_available(controller) {
        return Err(Error::NameTaken(controller));
    }
    let program = Compiled::of(controller);
    let attached = match holder {
        Holder::Link => {
            let mut object = program.load()?;
            folder.fill(&mut object, "", &[])?;
            register(&mut object, controller).and_then(|mut link| folder.keep(&mut link))
        }
        Holder::Registration => {
            let mut object = program.load_without_link()?;
            folder.fill(&mut object, "", &[(controller.kernel_name(), REGISTERED)])?;
            // Else the registration would end with this process.
            register(&mut object, controller).map(|mut link| link.disconnect())
        }
    };
    if attached.is_err() {
        // The first error is the one to tell.
        let _ = folder.remove();
    }
    attached.map(|()| had_leftovers)
}

/// Puts a controller that is in the kernel in force.
fn register(object: &mut Object, controller: Controller) -> Result<Link, Error> {
    let map = object.maps_mut().find(|map| matches!(map.map_type(), MapType::StructOps));
    let mut map = map.ok_or(Error::NoStructOps("map of them"))?;
    map.attach_struct_ops().map_err(Error::map("register", controller.kernel_name()))
}

/// Unloads a controller, or removes what is left of one. With `force` also while connections run
/// it: they keep it to their end, and no new one gets it.
///
/// # Errors
/// When it is in use, or not loaded.
pub fn unload(controller: Controller, force: bool) -> Result<(), Error> {
    let folder = Folder::new(KIND, controller.name());
    if !folder.exists() {
        return Err(Error::NotLoaded(controller));
    }
    if folder.is_complete() {
        let in_use = user_of(controller, &folder)?;
        let in_use = in_use.filter(|it| !force || *it == InUse::Default);
        if let Some(use_) = in_use {
            return Err(Error::InUse { controller, use_ });
        }
    }
    folder.remove()?;
    let deadline = Instant::now() + GONE_WITHIN;
    while is_available(controller) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Who uses it, as far as can be seen from here: connections everywhere, the default of this
/// network namespace, rules of cgroups.
fn user_of(controller: Controller, folder: &Folder) -> Result<Option<InUse>, Error> {
    if default_here() == controller.kernel_name() {
        return Ok(Some(InUse::Default));
    }
    for cgroup in choose::list()? {
        if cgroup.rules.iter().any(|rule| rule.name == controller.kernel_name()) {
            return Ok(Some(InUse::Rule(cgroup.cgroup)));
        }
    }
    let connections = folder.record().map_or(0, |record| record.connections);
    Ok((connections > 0).then_some(InUse::Connections(connections)))
}
