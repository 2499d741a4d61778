//! What the machine lacks for a program in the kernel, each with what still works.

use std::io;
use std::path::PathBuf;

/// Why there is no program in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refuses this process.
    #[error("loading programs into the kernel is not allowed")]
    NoRights(#[source] io::Error),
    /// The kernel does not describe its structures.
    #[error("the kernel has no BTF: {} is missing", .0.display())]
    NoBtf(PathBuf),
    /// The kernel is too old for the program, or built without what it needs.
    #[error("the kernel has no {0}")]
    Unsupported(&'static str),
    /// A program was not taken.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A program that was not opened or loaded.
#[derive(Debug, thiserror::Error)]
#[error("the program `{name}` is not taken")]
pub struct LoadError {
    name: &'static str,
    #[source]
    cause: libbpf_rs::Error,
}

impl LoadError {
    pub(crate) fn new(name: &'static str, cause: libbpf_rs::Error) -> Self {
        Self { name, cause }
    }

    /// Of which kind the refusal is.
    pub fn kind(&self) -> libbpf_rs::ErrorKind {
        self.cause.kind()
    }
}

impl Error {
    /// What to do, and what works without.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoRights(_) => {
                "run it as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; bonds need none \
                 of it"
            }
            Self::NoBtf(_) => {
                "it takes a kernel with CONFIG_DEBUG_INFO_BTF; bonds and proxies work without"
            }
            Self::Unsupported(_) => {
                "it takes Linux 6.4 or later; bonds and proxies work without, and the kernel's own \
                 controllers can be chosen"
            }
            Self::Load(_) => {
                "`-v` shows what the kernel says of it; bonds and proxies work without"
            }
        }
    }
}
