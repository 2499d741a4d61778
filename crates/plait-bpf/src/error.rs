//! What goes wrong with programs in the kernel: each with what is missing and what still works.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::controller::Controller;

/// Why there is no program in the kernel, or why it stays there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process may not load programs.
    #[error("programs may not be loaded into the kernel: this process lacks {0}")]
    NoRights(&'static str),
    /// The kernel does not describe its structures.
    #[error("the kernel does not describe its structures (BTF): {} is missing", .0.display())]
    NoBtf(PathBuf),
    /// The kernel takes no controllers from outside.
    #[error("the kernel takes no congestion controllers in eBPF (struct_ops): it has no `{0}`")]
    NoStructOps(&'static str),
    /// There is nowhere to pin what is loaded.
    #[error("{} is no BPF file system, where what is loaded is kept", .0.display())]
    NoBpffs(PathBuf),
    /// A program was not taken.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The controller is loaded already.
    #[error("{0} is loaded already")]
    AlreadyLoaded(Controller),
    /// The kernel has a controller of this name that this program did not load.
    #[error("the kernel has a controller `{}` that plait did not load", .0.kernel_name())]
    NameTaken(Controller),
    /// The controller is not loaded.
    #[error("{0} is not loaded")]
    NotLoaded(Controller),
    /// Somebody uses the controller.
    #[error("{controller} is in use: {use_}")]
    InUse {
        /// The controller.
        controller: Controller,
        /// Who uses it.
        use_: InUse,
    },
    /// What was given is no cgroup of the unified hierarchy.
    #[error("{} is no cgroup of version 2", .0.display())]
    NoCgroup(PathBuf),
    /// Something else chooses on this cgroup, and allows nobody beside it.
    #[error("another program has {} to itself", .0.display())]
    CgroupTaken(PathBuf),
    /// No rule of the cgroup was meant.
    #[error("{} has no such rule", .0.display())]
    NoRule(PathBuf),
    /// A step in the BPF file system, or with one of its maps.
    #[error("cannot {step} {}", .path.display())]
    Pin {
        /// What was tried.
        step: &'static str,
        /// With what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Who uses a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InUse {
    /// So many connections.
    Connections(u64),
    /// It is the default of the network namespace in which this runs.
    Default,
    /// A rule of a cgroup names it.
    Rule(String),
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connections(1) => f.write_str("a connection runs it"),
            Self::Connections(count) => write!(f, "{count} connections run it"),
            Self::Default => f.write_str("it is this network namespace's default"),
            Self::Rule(cgroup) => write!(f, "a rule of {cgroup} names it"),
        }
    }
}

/// A program that was not opened or loaded.
#[derive(Debug, thiserror::Error)]
#[error("the kernel does not take the program `{name}`{said}")]
pub struct LoadError {
    name: &'static str,
    /// The last that libbpf said of it, after a colon; empty when it said nothing.
    said: String,
    #[source]
    cause: libbpf_rs::Error,
}

impl LoadError {
    pub(crate) fn new(name: &'static str, said: &str, cause: libbpf_rs::Error) -> Self {
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        Self { name, said, cause }
    }

    /// Of which kind the refusal is.
    pub fn kind(&self) -> libbpf_rs::ErrorKind {
        self.cause.kind()
    }
}

impl Error {
    pub(crate) fn pin(
        step: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Pin { step, path, source }
    }

    /// The same of libbpf's errors.
    pub(crate) fn map(
        step: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(libbpf_rs::Error) -> Self {
        let path = path.into();
        move |source| Self::Pin { step, path, source: io::Error::other(source) }
    }

    /// What to do, and what works without.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoRights(_) => {
                "run it as root of the machine, not of a container; without, one of the \
                 controllers that are there can be chosen (`plait cc use`), and TCP be traced \
                 (`plait trace --source sock-diag`)"
            }
            Self::NoBtf(_) => {
                "it takes a kernel with CONFIG_DEBUG_INFO_BTF; without, the kernel's own \
                 controllers can be chosen (`plait cc use`), and TCP be traced (`plait trace \
                 --source sock-diag`); bonds and proxies need none of it"
            }
            Self::NoStructOps(_) => {
                "it takes Linux 6.1 or later with CONFIG_BPF_JIT; the kernel's own controllers can \
                 be chosen without (`plait cc use`), and bonds and proxies need none of it"
            }
            Self::NoBpffs(_) => {
                "mount it: mount -t bpf bpf /sys/fs/bpf; `ip netns exec` hides it, \
                 `nsenter --net=/run/netns/NAME` does not"
            }
            Self::Load(_) => {
                "the kernel may be too new or too old for it; without, the kernel's own \
                 controllers can be chosen (`plait cc use`), and TCP be traced (`plait trace \
                 --source sock-diag`); bonds and proxies need none of it"
            }
            Self::AlreadyLoaded(_) => "`plait cc list` shows it; `plait cc unload` removes it",
            Self::NameTaken(_) => "see who loaded it: bpftool struct_ops list",
            Self::NotLoaded(_) => "load it: `plait cc load`; `plait cc list` shows what there is",
            Self::InUse { use_: InUse::Connections(_), .. } => {
                "end them, or `--force`: they keep it to their end, and no new one gets it"
            }
            Self::InUse { use_: InUse::Default, .. } => {
                "choose another one first: plait cc use bbr"
            }
            Self::InUse { use_: InUse::Rule(_), .. } => {
                "take the rule back first: plait cc use default --cgroup PATH"
            }
            Self::NoCgroup(_) => {
                "give a folder below the mount of type cgroup2: mount | grep cgroup2"
            }
            Self::CgroupTaken(_) => {
                "make a cgroup below it, and give that one; bpftool cgroup show PATH tells who"
            }
            Self::NoRule(_) => "`plait cc list` shows the rules",
            Self::Pin { .. } => "`plait cc list` shows what is there; run it as root",
        }
    }
}
