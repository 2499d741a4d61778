//! A sandbox that limits later faults: Landlock restricts files, seccomp system calls, each where
//! the kernel has it. Neither can be undone; threads and programs started later are in it too.
//!
//! Seccomp refuses, with EPERM, a list of calls that a gateway never makes: a list of those it may
//! make would differ with every C library.

use std::collections::BTreeMap;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// What this process still needs. Folders include all that is in them; what does not exist is
/// ignored.
#[derive(Clone, Default, Debug)]
pub struct Needs {
    /// Files and folders to read.
    pub read: Vec<PathBuf>,
    /// Files and folders to read and write, to make files in and to remove them from.
    pub write: Vec<PathBuf>,
    /// Folders of programs to run, and of their libraries; empty when no program is to be run.
    pub run: Vec<PathBuf>,
}

/// What is restricted from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sandbox {
    /// Whether files beyond the needed ones are out of reach; else why not.
    pub landlock: Result<(), String>,
    /// Whether dangerous system calls are refused; else why not.
    pub seccomp: Result<(), String>,
}

/// Puts the calling thread into the sandbox. Call it before threads are started.
pub fn enter(needs: &Needs) -> Sandbox {
    // Landlock first: it needs a system call, while seccomp needs no files.
    let landlock = restrict_files(needs);
    let seccomp = restrict_calls(!needs.run.is_empty());
    Sandbox { landlock, seccomp }
}

fn restrict_files(needs: &Needs) -> Result<(), String> {
    match landlock(needs).map_err(|error| error.to_string())? {
        RulesetStatus::NotEnforced => Err("the kernel has no Landlock".into()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn landlock(needs: &Needs) -> Result<RulesetStatus, RulesetError> {
    // On an older kernel the parts that it lacks are left out.
    const ABI: ABI = ABI::V6;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write: BitFlags<AccessFs> =
        read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI))?
        .scope(Scope::from_all(ABI))?
        .create()?
        .add_rules(path_beneath_rules(&needs.read, read))?
        .add_rules(path_beneath_rules(&needs.write, write))?
        .add_rules(path_beneath_rules(&needs.run, read | AccessFs::Execute))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Calls that reach into other processes, into the kernel, or out of namespaces.
const REFUSED: &[i64] = &[
    // Other processes' memory and files.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // BPF programs, kernel modules, and calls that often had security holes.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_personality,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_mknod,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// The mark of x32 in numbers of system calls, and those that have one of their own there: execve,
/// ptrace, kexec_load, process_vm_readv, process_vm_writev, execveat. No gateway is built for it.
const X32: i64 = 0x4000_0000;
const X32_ONLY: [i64; 6] = [520, 521, 528, 539, 540, 545];

/// Families of sockets that a gateway uses: control socket, links, TUN, netlink. Not among them are
/// packet sockets, which would read all that the machine's other programs send.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Flags that ask for new namespaces when a process is made.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

fn restrict_calls(programs_run: bool) -> Result<(), String> {
    for filter in filters(programs_run).map_err(|error| error.to_string())? {
        seccompiler::apply_filter(&filter).map_err(|error| match error {
            seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => {
                format!("the kernel refuses the filter: {error}")
            }
            other => other.to_string(),
        })?;
    }
    Ok(())
}

fn filters(programs_run: bool) -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut refused: Vec<_> = REFUSED.iter().chain(REFUSED_HERE).copied().collect();
    if !programs_run {
        refused.extend([libc::SYS_execve, libc::SYS_execveat]);
    }
    rules.extend(refused.into_iter().map(|call| (call, Vec::new())));
    rules.insert(libc::SYS_socket, vec![none_of(&FAMILIES)?]);
    let clone = NEW_NAMESPACES.iter().map(|flag| has_flag(*flag));
    rules.insert(libc::SYS_clone, clone.collect::<Result<_, _>>()?);
    // The same calls by their numbers of the x32 ABI, which few kernels have.
    if cfg!(target_arch = "x86_64") {
        let again: Vec<_> = rules.iter().map(|(call, rule)| (call | X32, rule.clone())).collect();
        rules.extend(again);
        rules.extend(X32_ONLY.iter().map(|call| (call | X32, Vec::new())));
    }
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let main = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    // A filter cannot see its flags. C libraries use `clone` where it does not exist.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let clone3 = SeccompFilter::new(clone3, SeccompAction::Allow, absent, arch)?;
    Ok([main.try_into()?, clone3.try_into()?])
}

/// Matches a call whose first argument is none of these.
fn none_of(values: &[libc::c_int]) -> Result<SeccompRule, seccompiler::BackendError> {
    let differs = |value: &libc::c_int| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *value as u64)
    };
    SeccompRule::new(values.iter().map(differs).collect::<Result<_, _>>()?)
}

/// Matches a call whose first argument has this bit.
fn has_flag(flag: libc::c_int) -> Result<SeccompRule, seccompiler::BackendError> {
    let bit = flag as u64;
    let operator = SeccompCmpOp::MaskedEq(bit);
    SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Qword, operator, bit)?])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::process::Command;

    use socket2::{Domain, Socket, Type};

    use super::*;

    /// Runs `check` in a sandbox, on a thread of its own, unless the kernel has none.
    fn caged(needs: Needs, check: impl FnOnce() + Send + 'static) {
        let run = move || {
            let sandbox = enter(&needs);
            for (part, result) in [("landlock", sandbox.landlock), ("seccomp", sandbox.seccomp)] {
                if let Err(why) = result {
                    eprintln!("skipped: {part}: {why}");
                    return;
                }
            }
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            assert!(status.contains("Seccomp:\t2\n"), "{status}");
            assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
            check();
        };
        std::thread::spawn(run).join().unwrap();
    }

    fn needs() -> Needs {
        Needs { read: vec!["/proc".into()], ..Needs::default() }
    }

    fn refused<T>(result: std::io::Result<T>) -> bool {
        result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    #[test]
    fn files_beyond_the_needed_ones_are_out_of_reach() {
        let folder = std::env::temp_dir().join(format!("plait-cage-{}", std::process::id()));
        for name in ["read", "write", "other"] {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("file"), "text").unwrap();
        }
        let mut needs = needs();
        needs.read.push(folder.join("read"));
        needs.write.extend([folder.join("write"), "/nonexistent".into()]);
        let inside = folder.clone();
        caged(needs, move || {
            let file = |name: &str| inside.join(name).join("file");
            assert_eq!(fs::read_to_string(file("read")).unwrap(), "text");
            assert!(refused(fs::write(file("read"), "")));
            assert!(refused(fs::read(file("other"))) && refused(fs::write(file("other"), "")));
            let (new, kept) = (inside.join("write/file.new"), file("write"));
            fs::write(&new, "new").unwrap();
            fs::rename(&new, &kept).unwrap();
            assert_eq!(fs::read_to_string(&kept).unwrap(), "new");
            fs::remove_file(&kept).unwrap();
        });
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn dangerous_calls_are_refused_and_ordinary_ones_go_on() {
        caged(needs(), || {
            assert!(refused(Socket::new(Domain::PACKET, Type::RAW, None)));
            for domain in [Domain::IPV4, Domain::IPV6, Domain::UNIX] {
                Socket::new(domain, Type::DGRAM, None).unwrap();
            }
            assert!(crate::netlink::Netlink::open().is_ok());
            assert!(refused(crate::netns::NetNs::anonymous()));
            assert!(Command::new("/bin/true").status().is_err());
            // Threads are made by `clone`, where `clone3` is absent.
            assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
        });
    }

    #[test]
    fn programs_run_from_the_folders_named_only() {
        let run = ["/bin", "/usr/bin", "/lib", "/lib64", "/usr/lib", "/usr/lib64"];
        let mut needs = needs();
        needs.run.extend(run.map(PathBuf::from));
        needs.read.push("/etc".into());
        needs.write.push("/dev/null".into());
        let copy = std::env::temp_dir().join(format!("plait-true-{}", std::process::id()));
        fs::copy("/bin/true", &copy).unwrap();
        let elsewhere = copy.clone();
        caged(needs, move || {
            assert!(Command::new("/bin/true").status().unwrap().success());
            assert!(refused(Command::new(&elsewhere).status()));
        });
        fs::remove_file(copy).unwrap();
    }
}
