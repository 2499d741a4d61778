//! The guest's first program: a shell script.

use std::fmt::Write as _;
use std::path::Path;

/// What the guest leaves in its folder: the command's output, what else it said, and its exit
/// status. Files, because a kernel that halts may lose the end of its console.
pub(super) const OUT: &str = "out";
pub(super) const SAID: &str = "said";
pub(super) const CODE: &str = "code";

/// What the script is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Init<'a> {
    /// Commands that give the guest its folder at [`GUEST_FOLDER`], and what else its kernel needs.
    pub(super) prelude: &'a str,
    /// The folder in which the command starts.
    pub(super) from: &'a Path,
    /// Where programs are looked for first.
    pub(super) programs: &'a Path,
    pub(super) command: &'a [String],
    /// The command that ends the guest.
    pub(super) end: &'a str,
}

/// Where the guest sees its folder. Inside it is at another path than outside, because /run is the
/// guest's own.
pub(super) const GUEST_FOLDER: &str = "/run/folder";

impl Init<'_> {
    pub(super) fn script(&self) -> String {
        let mut script = String::new();
        let path = quoted(&self.programs.display().to_string());
        let words: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        let lines = [
            "#!/bin/sh",
            &format!("export PATH={path}:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ TMPDIR=/run/tmp"),
            "mount -t proc proc /proc",
            "mount -t sysfs sysfs /sys",
            "mount -t devtmpfs devtmpfs /dev",
            "mount -t tmpfs tmpfs /run",
            &format!("mkdir -p /run/tmp /run/netns {GUEST_FOLDER}"),
            // Kernels may be without either.
            "mount -t bpf bpf /sys/fs/bpf 2>/dev/null",
            "mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null",
            self.prelude.trim_end(),
            "ip link set lo up",
            &format!("cd {}", quoted(&self.from.display().to_string())),
            &format!(
                "{} </dev/null >{GUEST_FOLDER}/{OUT} 2>{GUEST_FOLDER}/{SAID}",
                words.join(" ")
            ),
            &format!("echo $? >{GUEST_FOLDER}/{CODE}"),
            "sync",
            self.end,
        ];
        for line in lines {
            writeln!(script, "{line}").expect("a string takes everything");
        }
        script
    }
}

/// A word that a shell reads as it is.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_runs_the_command_word_by_word() {
        let command = ["/p", "run", "a b", "it's"].map(ToOwned::to_owned);
        let (from, programs) = (Path::new("/w"), Path::new("/t/debug"));
        let prelude = "mount -t hostfs none /run/folder -o '/f'\n";
        let init = Init { prelude, from, programs, command: &command, end: "halt -f" };
        let script = init.script();
        let expected = "'/p' 'run' 'a b' 'it'\\''s' </dev/null >/run/folder/out \
                        2>/run/folder/said\necho $? >/run/folder/code\n";
        assert!(script.contains(expected), "{script}");
        assert!(script.contains("PATH='/t/debug':/usr/sbin"), "{script}");
        let at = |text: &str| script.find(text).unwrap();
        assert!(at("tmpfs /run") < at(prelude) && at(prelude) < at(expected), "{script}");
    }
}
