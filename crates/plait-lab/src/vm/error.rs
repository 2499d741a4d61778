//! Why nothing can be run under another kernel.

use thiserror::Error;

/// Names another kernel than the one that `scripts/linux-6.1` builds.
pub(crate) const UML_ENV: &str = "PLAIT_LINUX_6_1";
/// Names another folder than the one that `scripts/linux-6.1-amd64` makes.
pub(crate) const QEMU_ENV: &str = "PLAIT_LINUX_6_1_AMD64";

/// Why nothing can be run under another kernel.
#[derive(Debug, Error)]
pub(crate) enum VmError {
    /// There is no kernel that is a program.
    #[error(
        "there is no Linux 6.1 to boot at {place}; build it with scripts/linux-6.1, which says \
         which packages it needs, or name one in {UML_ENV}"
    )]
    NoProgram { place: String },
    /// There is no kernel for qemu.
    #[error(
        "there is no Linux 6.1 for qemu at {place}; fetch the distribution's with \
         scripts/linux-6.1-amd64, or name a folder that it made in {QEMU_ENV}"
    )]
    NoImage { place: String },
    /// A file of the kernel for qemu is not as `scripts/linux-6.1-amd64` leaves it.
    #[error("{file} is missing or wrong; make it again with scripts/linux-6.1-amd64")]
    BadImage { file: String },
    /// A program is missing that the guest needs.
    #[error("{program} is missing; install it (Debian, Ubuntu: scripts/setup --vm)")]
    NoTool { program: String },
    /// The guest runs no programs of this machine.
    #[error(
        "the guest qemu runs programs for x86-64, and this machine is {here}; use --guest uml, or \
         another machine"
    )]
    OtherMachine { here: &'static str },
    /// It ended without having done its work.
    #[error(
        "the guest ended early ({status}); boot it by hand to see more: {kernel} --help. The \
         last it said:\n{said}"
    )]
    Failed { kernel: String, status: String, said: String },
    /// The command in the guest failed.
    #[error("{command} failed in the guest (exit status {code}); it said:\n{said}")]
    Command { command: String, code: i32, said: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_script() {
        let error = VmError::NoProgram { place: "/none".into() }.to_string();
        assert!(error.contains("scripts/linux-6.1,") && error.contains(UML_ENV), "{error}");
        let error = VmError::NoImage { place: "/none".into() }.to_string();
        assert!(error.contains("linux-6.1-amd64,") && error.contains(QEMU_ENV), "{error}");
    }
}
