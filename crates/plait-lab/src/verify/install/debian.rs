//! Debian systems in folders, each booted by systemd-nspawn in a network namespace of the lab's.
//! Nothing is downloaded: the system and the package were made before.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::process::{self, Finished, Service};

/// Unpacking a system of a few hundred megabytes on a slow disk.
const UNPACK_LIMIT: Duration = Duration::from_secs(180);
const BOOT_LIMIT: Duration = Duration::from_secs(30);
const STEP_LIMIT: Duration = Duration::from_secs(10);
/// The package's place in each system.
const PACKAGE: &str = "opt/plait.deb";

/// What the systems are made from.
pub(super) struct Sources {
    system: PathBuf,
    package: PathBuf,
}

impl Sources {
    /// Finds both, the package that was made of this code.
    ///
    /// # Errors
    /// One of them was not made yet; the text says how to.
    pub(super) fn find() -> Result<Self> {
        Self::find_in("package")
    }

    /// As [`Self::find`], with the package in this folder of the build's.
    pub(super) fn find_in(folder: &str) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own place")?;
        let target = program.ancestors().nth(2).context("this program is in no folder")?;
        let system = match std::env::var_os("PLAIT_DEBIAN") {
            Some(path) => PathBuf::from(path),
            None => target.join("debian.tar"),
        };
        ensure!(
            system.is_file(),
            "there is no Debian system at {}; make one: scripts/debian-system {}",
            system.display(),
            system.display()
        );
        let script = if folder == "package" { "package" } else { "previous-release" };
        let folder = target.join(folder);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut packages: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "deb"))
            .filter(|path| !path.to_string_lossy().contains("dbgsym"))
            .collect();
        packages.sort();
        let package = packages.pop().with_context(|| {
            format!("there is no package in {}; make one: scripts/{script}", folder.display())
        })?;
        Ok(Self { system, package })
    }

    /// Puts the package into a system, at `place`.
    pub(super) fn copy_into(&self, system: &Debian, place: &str) -> Result<()> {
        let place = system.root.join(place.trim_start_matches('/'));
        fs::copy(&self.package, place).map(drop).context("cannot copy the package")
    }

    /// Bytes of the package.
    pub(super) fn package_bytes(&self) -> Result<u64> {
        Ok(fs::metadata(&self.package)?.len())
    }
}

/// A Debian system that runs: systemd is its process 1.
pub(super) struct Debian {
    root: PathBuf,
    /// systemd-nspawn, with which everything in the system ends.
    container: Service,
    /// The system's process 1, as the lab sees it.
    leader: String,
}

impl Debian {
    /// Unpacks a clean system into a folder, with the package in `/opt`.
    pub(super) fn make(sources: &Sources, folder: &Path, netns: &str) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut unpack = Command::new("tar");
        unpack.arg("-xpf").arg(&sources.system).arg("-C").arg(folder).arg("--numeric-owner");
        process::run(&mut unpack, "", UNPACK_LIMIT).context("cannot unpack the system")?;
        fs::copy(&sources.package, folder.join(PACKAGE)).context("cannot copy the package")?;
        let (container, leader) = boot(folder, netns)?;
        let system = Self { root: folder.to_owned(), container, leader };
        system.wait_until_booted()?;
        Ok(system)
    }

    /// Ends the system as a power cut does, and starts it again.
    pub(super) fn cut_power_and_boot(&mut self, netns: &str) -> Result<()> {
        self.cut_power()?;
        (self.container, self.leader) = boot(&self.root, netns)?;
        self.wait_until_booted()
    }

    /// With its process 1 everything in the system ends at once; not with systemd-nspawn.
    fn cut_power(&mut self) -> Result<()> {
        process::run(Command::new("kill").args(["-KILL", &self.leader]), "", STEP_LIMIT)?;
        self.container.kill()
    }

    fn wait_until_booted(&self) -> Result<()> {
        process::wait_until("systemd's start in a system", BOOT_LIMIT, || {
            let state = self.run_any("systemctl is-system-running", STEP_LIMIT)?.stdout;
            let is_up = ["running", "degraded", "starting"].contains(&state.trim());
            Ok(is_up.then_some(()))
        })
    }

    /// The folder that is its root.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs a command line in it, as root, to its end.
    pub(super) fn run_any(&self, line: &str, limit: Duration) -> Result<Finished> {
        process::run_any(&mut self.command(line), "", limit)
    }

    /// Runs a command line that must succeed; gives its output.
    pub(super) fn run(&self, line: &str, limit: Duration) -> Result<String> {
        process::run(&mut self.command(line), "", limit)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.leader, "--all", "--"]);
        command.args(["/bin/sh", "-c", line]);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        command.env("DEBIAN_FRONTEND", "noninteractive").env("HOME", "/root");
        command
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        // It fails only if the system has ended itself.
        let _ended = self.cut_power();
    }
}

/// Starts a system in a network namespace of the lab's; gives its process 1, too. It may do with
/// its network what a machine may do.
fn boot(root: &Path, netns: &str) -> Result<(Service, String)> {
    let mut command = Command::new("systemd-nspawn");
    command.arg("--quiet").arg("--directory").arg(root).arg("--boot");
    command.arg(format!("--network-namespace-path=/run/netns/{netns}"));
    command.args(["--register=no", "--keep-unit", "--console=pipe", "--resolv-conf=off"]);
    // As udev has it, for the service's own user.
    let tun = root.with_extension("tun");
    if !tun.exists() {
        process::run(Command::new("mknod").arg(&tun).args(["c", "10", "200"]), "", STEP_LIMIT)?;
        fs::set_permissions(&tun, fs::Permissions::from_mode(0o666))?;
    }
    command.arg(format!("--bind={}:/dev/net/tun", tun.display()));
    command.args(["--capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_SYS_TIME"]);
    // A machine of its own may set its network's sysctls.
    command.env("SYSTEMD_SECCOMP", "0").env("SYSTEMD_NSPAWN_API_VFS_WRITABLE", "network");
    let log = root.with_extension("console");
    let container = Service::start(&mut command, &log)
        .context("scripts/setup --packages installs what is needed")?;
    let children = format!("/proc/{0}/task/{0}/children", container.pid());
    let leader = process::wait_until("the start of a system", BOOT_LIMIT, || {
        let children = fs::read_to_string(&children).unwrap_or_default();
        // Its first child only makes the second, which becomes systemd.
        let name = |pid: &&str| fs::read_to_string(format!("/proc/{pid}/comm"));
        let is_systemd = |pid: &&str| name(pid).is_ok_and(|name| name.trim() == "systemd");
        Ok(children.split_whitespace().find(is_systemd).map(str::to_owned))
    })?;
    Ok((container, leader))
}
