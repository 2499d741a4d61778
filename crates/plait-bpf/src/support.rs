//! What the machine offers to programs in the kernel, looked at before anything is tried, so that
//! an error can name what is missing.

use std::fs;
use std::path::Path;

use libbpf_rs::Btf;
use libbpf_rs::btf::BtfType;

use crate::error::Error;

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Below this, things are pinned.
const BPFFS: &str = "/sys/fs/bpf";
/// The structure that a kernel has when it takes controllers as `struct_ops`.
const CONTROLLERS: &str = "bpf_struct_ops_tcp_congestion_ops";
/// The one that it has when a link can hold them (Linux 6.4).
const LINKS: &str = "bpf_struct_ops_link";
/// Rights by their numbers, and what stands for all of them.
const RIGHTS: [(u32, &str); 3] = [(39, "CAP_BPF"), (12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON")];
const CAP_SYS_ADMIN: u32 = 21;

/// What keeps a controller in force once its loader is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// A link that is pinned.
    Link,
    /// The registration itself, until it is undone: kernels before Linux 6.4 have no such link.
    Registration,
}

/// Whether controllers can be loaded here, and what holds them.
///
/// # Errors
/// Names what is missing.
pub fn check() -> Result<Holder, Error> {
    rights(
        &fs::read_to_string("/proc/self/status").unwrap_or_default(),
        &fs::read_to_string("/proc/self/uid_map").unwrap_or_default(),
    )?;
    let holder = structures(Path::new(BTF))?;
    pins(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())?;
    Ok(holder)
}

/// Whether the process may load programs, by its `status` and its map of users.
fn rights(status: &str, uid_map: &str) -> Result<(), Error> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|word| u64::from_str_radix(word.trim(), 16).ok());
    let has = |number: u32| effective.is_none_or(|set| (set >> number) & 1 == 1);
    // Rights in a user namespace do not count.
    let words: Vec<_> = uid_map.split_whitespace().collect();
    if !matches!(words[..], [] | ["0", "0", _]) {
        return Err(Error::NoRights("rights outside its user namespace"));
    }
    let missing = RIGHTS.into_iter().find(|&(number, _)| {
        let stands_for = number != 12 && has(CAP_SYS_ADMIN);
        !has(number) && !stands_for
    });
    missing.map_or(Ok(()), |(_, name)| Err(Error::NoRights(name)))
}

fn structures(btf: &Path) -> Result<Holder, Error> {
    if !btf.exists() {
        return Err(Error::NoBtf(btf.to_owned()));
    }
    let known = Btf::from_path(btf).map_err(|_| Error::NoBtf(btf.to_owned()))?;
    let has = |name| known.type_by_name::<BtfType<'_>>(name).is_some();
    if !has(CONTROLLERS) {
        return Err(Error::NoStructOps(CONTROLLERS));
    }
    Ok(if has(LINKS) { Holder::Link } else { Holder::Registration })
}

/// Whether the BPF file system is mounted, by the process's table of mounts.
fn pins(mounts: &str) -> Result<(), Error> {
    // Fields: id, parent, device, root, place, options, optional ones, `-`, type, …
    let is_it = |line: &str| {
        let mut words = line.split(' ');
        let place = words.nth(4);
        place == Some(BPFFS) && words.skip_while(|word| *word != "-").nth(1) == Some("bpf")
    };
    if mounts.lines().any(is_it) { Ok(()) } else { Err(Error::NoBpffs(BPFFS.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "         0          0 4294967295\n";

    #[test]
    fn rights_that_are_missing_are_named() {
        assert!(rights("CapEff:\t000001ffffffffff\n", HOST).is_ok());
        let none = rights("CapEff:\t0000000000000000\n", HOST);
        assert!(matches!(none, Err(Error::NoRights("CAP_BPF"))), "{none:?}");
        let old = rights("CapEff:\t0000000000201000\n", HOST);
        assert!(old.is_ok(), "CAP_SYS_ADMIN and CAP_NET_ADMIN: {old:?}");
        let inside = rights("CapEff:\t000001ffffffffff\n", "0 1000 1\n");
        assert!(matches!(inside, Err(Error::NoRights(_))), "{inside:?}");
    }

    #[test]
    fn a_kernel_without_btf_is_told() {
        let missing = structures(Path::new("/nonexistent/btf"));
        assert!(matches!(missing, Err(Error::NoBtf(_))), "{missing:?}");
    }

    #[test]
    fn only_a_mounted_bpf_file_system_counts() {
        let mounted = "31 23 0:27 / /sys/fs/bpf rw,nosuid shared:9 - bpf bpf rw,mode=700\n";
        assert!(pins(mounted).is_ok());
        assert!(pins("31 23 0:27 / /sys/fs/bpf rw shared:9 - tmpfs bpf rw\n").is_err());
        assert!(pins("31 23 0:27 / /elsewhere rw - bpf bpf rw\n").is_err());
        assert!(matches!(pins(""), Err(Error::NoBpffs(_))));
    }
}
