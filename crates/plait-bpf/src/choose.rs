//! Which sockets of a cgroup get which congestion controller: a program on the cgroup that goes by
//! rules, for each socket when its connection begins. Subflows of an MPTCP connection are sockets
//! of their own, so each may get another one.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, ProgramAttachType};
use serde::Serialize;

use crate::error::Error;
use crate::object;
use crate::pins::{self, Folder, Record, State};
use crate::support;

const KIND: &str = "cgroup";
const RULES: &str = "rules";
const RULES_MAP: &str = "plait_rules";
const KEY_BYTES: usize = 24;
const NAME_BYTES: usize = 16;
const RULE_BYTES: usize = 24;
/// As the kernel numbers them.
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;

/// Which sockets a rule is for. Where several are, the first kind of these that there is a rule for
/// counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// Those bound to an interface, by its index; subflows of an endpoint with `dev` are.
    Interface(u32),
    /// Those with this address of their own.
    Address(IpAddr),
    /// All others.
    Any,
}

/// A rule of a cgroup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rule {
    /// Which sockets it is for.
    pub whose: Whose,
    /// The controller's name, as the kernel knows it.
    pub name: String,
    /// Sockets that it was followed for.
    pub chosen: u64,
}

/// A cgroup with rules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Chosen {
    /// Its folder.
    pub cgroup: String,
    /// Whether they are in force.
    pub state: State,
    /// By kind.
    pub rules: Vec<Rule>,
    /// Who attached the program.
    pub record: Option<Record>,
}

/// What setting a rule found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// What a dead process, or a cgroup of the same number, had left was replaced.
    pub leftovers: bool,
    /// So many programs of others' choose on the same cgroup; the last to run has the last word.
    pub others: usize,
}

impl Whose {
    /// As `struct rule_key` of `bpf/cc_choose.bpf.c`.
    fn to_key(self) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        match self {
            Self::Interface(index) => key[..4].copy_from_slice(&index.to_ne_bytes()),
            Self::Address(IpAddr::V4(address)) => {
                key[4..8].copy_from_slice(&AF_INET.to_ne_bytes());
                key[8..12].copy_from_slice(&address.octets());
            }
            Self::Address(IpAddr::V6(address)) => {
                key[4..8].copy_from_slice(&AF_INET6.to_ne_bytes());
                key[8..].copy_from_slice(&address.octets());
            }
            Self::Any => {}
        }
        key
    }

    fn from_key(key: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_ne_bytes(key.get(at..at + 4)?.try_into().ok()?));
        let address: [u8; 16] = key.get(8..KEY_BYTES)?.try_into().ok()?;
        Some(match (number(0)?, number(4)?) {
            (0, AF_INET) => {
                Self::Address(IpAddr::from([address[0], address[1], address[2], address[3]]))
            }
            (0, AF_INET6) => Self::Address(IpAddr::from(address)),
            (0, _) => Self::Any,
            (index, _) => Self::Interface(index),
        })
    }
}

/// A cgroup's number and path, as the kernel has them.
fn identify(cgroup: &Path) -> Result<(u64, PathBuf), Error> {
    let path = fs::canonicalize(cgroup).map_err(|_| Error::NoCgroup(cgroup.to_owned()))?;
    let facts = fs::metadata(&path).map_err(|_| Error::NoCgroup(cgroup.to_owned()))?;
    // The file is only in cgroups of the unified hierarchy.
    if !path.join("cgroup.procs").exists() || !path.join("cgroup.subtree_control").exists() {
        return Err(Error::NoCgroup(cgroup.to_owned()));
    }
    Ok((facts.ino(), path))
}

fn folder_of(number: u64) -> Folder {
    Folder::new(KIND, &number.to_string())
}

fn state_of(folder: &Folder) -> State {
    if !folder.is_complete() {
        return State::Incomplete;
    }
    let info = folder.link().ok().and_then(|link| link.info().ok());
    match info.map(|info| info.info) {
        Some(LinkTypeInfo::Cgroup(cgroup)) if cgroup.cgroup_id != 0 => State::Loaded,
        _ => State::Detached,
    }
}

fn rules_of(folder: &Folder) -> Result<Vec<Rule>, Error> {
    let map = folder.map(RULES)?;
    let mut rules: Vec<_> = map.keys().filter_map(|key| rule_at(&map, &key)).collect();
    rules.sort_by_key(|rule| rule.whose);
    Ok(rules)
}

fn rule_at(map: &MapHandle, key: &[u8]) -> Option<Rule> {
    let value = map.lookup(key, MapFlags::ANY).ok()??;
    let chosen = u64::from_ne_bytes(value.get(NAME_BYTES..RULE_BYTES)?.try_into().ok()?);
    Some(Rule { whose: Whose::from_key(key)?, name: pins::text(&value[..NAME_BYTES]), chosen })
}

/// Cgroups with rules, also such whose rules are no longer in force.
///
/// # Errors
/// When the BPF file system cannot be read.
pub fn list() -> Result<Vec<Chosen>, Error> {
    let folders = Folder::all(KIND)?;
    let known = folders.iter().map(|folder| {
        let record = folder.record();
        let about = record.as_ref().map(|record| record.about.clone());
        Chosen {
            cgroup: about.unwrap_or_else(|| folder.name()),
            state: state_of(folder),
            rules: rules_of(folder).unwrap_or_default(),
            record,
        }
    });
    Ok(known.collect())
}

/// How many programs of others' choose on the same cgroup. Only those attached by a link are seen.
fn others_on(number: u64, folder: &Folder) -> usize {
    let own = folder.link().ok().and_then(|link| link.info().ok()).map(|info| info.id);
    let is_other = |link: &libbpf_rs::query::LinkInfo| {
        let LinkTypeInfo::Cgroup(cgroup) = &link.info else { return false };
        cgroup.cgroup_id == number
            && matches!(cgroup.attach_type, ProgramAttachType::CgroupSockOps)
            && Some(link.id) != own
    };
    LinkInfoIter::default().filter(is_other).count()
}

/// Has the sockets of a cgroup that a rule is for begin with the controller `name`.
///
/// # Errors
/// Names what the machine lacks, or who has the cgroup to himself.
pub fn set(cgroup: &Path, whose: &[Whose], name: &str) -> Result<Found, Error> {
    support::check()?;
    let (number, path) = identify(cgroup)?;
    let folder = folder_of(number);
    let mut found = Found::default();
    if folder.exists() && state_of(&folder) != State::Loaded {
        folder.remove()?;
        found.leftovers = true;
    }
    if folder.exists() {
        write_rules(&folder, whose, name)?;
    } else {
        attach(&folder, &path, whose, name)?;
    }
    found.others = others_on(number, &folder);
    Ok(found)
}

/// The rules stand before the program is attached, so no socket falls between.
fn attach(folder: &Folder, path: &Path, whose: &[Whose], name: &str) -> Result<(), Error> {
    let opened = File::open(path).map_err(|_| Error::NoCgroup(path.to_owned()))?;
    let mut object = object::CHOOSE.load()?;
    folder.fill(&mut object, &path.to_string_lossy(), &[(RULES_MAP, RULES)])?;
    let attached = write_rules(folder, whose, name).and_then(|()| {
        let program = object.progs_mut().next().ok_or(Error::NoStructOps("program"))?;
        let link = program.attach_cgroup(opened.as_raw_fd());
        let mut link = link.map_err(|_| Error::CgroupTaken(path.to_owned()))?;
        folder.keep(&mut link)
    });
    if attached.is_err() {
        // The first error is the one to tell.
        let _ = folder.remove();
    }
    attached
}

fn write_rules(folder: &Folder, whose: &[Whose], name: &str) -> Result<(), Error> {
    let map = folder.map(RULES)?;
    let mut rule = [0; RULE_BYTES];
    pins::put_text(&mut rule[..NAME_BYTES], name);
    for each in whose {
        map.update(&each.to_key(), &rule, MapFlags::ANY).map_err(Error::map("write", RULES))?;
    }
    Ok(())
}

/// Takes rules of a cgroup back; without any, all of them. The program goes with the last.
///
/// # Errors
/// When there is no such rule.
pub fn clear(cgroup: &Path, whose: Option<&[Whose]>) -> Result<(), Error> {
    let (number, path) = identify(cgroup)?;
    let folder = folder_of(number);
    if !folder.exists() {
        return Err(Error::NoRule(path));
    }
    let Some(whose) = whose else { return folder.remove() };
    let map = folder.map(RULES)?;
    let removed = whose.iter().filter(|each| map.delete(&each.to_key()).is_ok()).count();
    if removed == 0 {
        return Err(Error::NoRule(path));
    }
    if rules_of(&folder)?.is_empty() { folder.remove() } else { Ok(()) }
}

/// Removes all rules of all cgroups, and what is left of such; says how many cgroups had any.
///
/// # Errors
/// When a pin stays.
pub fn clear_all() -> Result<usize, Error> {
    let folders = Folder::all(KIND)?;
    folders.iter().try_for_each(Folder::remove)?;
    Ok(folders.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_was_written() {
        let v4 = Whose::Address(IpAddr::from([192, 0, 2, 7]));
        let v6 = Whose::Address("2001:db8::7".parse().expect("an address"));
        for whose in [Whose::Interface(7), v4, v6, Whose::Any] {
            assert_eq!(Whose::from_key(&whose.to_key()), Some(whose));
        }
    }

    #[test]
    fn what_is_no_cgroup_is_told() {
        assert!(matches!(identify(Path::new("/tmp")), Err(Error::NoCgroup(_))));
        assert!(matches!(identify(Path::new("/nonexistent")), Err(Error::NoCgroup(_))));
    }
}
