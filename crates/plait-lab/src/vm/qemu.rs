//! The distribution's own kernel under qemu, without KVM: for what user-mode Linux does not have,
//! such as BPF struct_ops and modules. It sees this machine's files through 9p, read-only, and has
//! a network of its own without a way out.
//!
//! Its time is virtual, too: qemu counts a nanosecond for each instruction, and while all sleep the
//! clock goes on to the next timer. What is computed takes time here, but always the same.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::error::{QEMU_ENV, VmError};
use super::init::{GUEST_FOLDER, quoted};
use super::initramfs;

const PROGRAM: &str = "qemu-system-x86_64";
const MEMORY_MIB: &str = "1024";
/// Tags of what the guest mounts: this machine's files, and the folder where it writes.
const ALL: &str = "all";
const FOLDER: &str = "folder";
/// Loads a module; the kernel calls it by itself, too.
const LOADER: &str = "/run/modprobe";

/// A kernel as `scripts/linux-6.1-amd64` leaves it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Image {
    pub(super) folder: PathBuf,
    pub(super) release: String,
    program: PathBuf,
}

/// The kernel to boot, of the folder of tools.
///
/// # Errors
///
/// [`VmError`]: no kernel, a wrong one, no qemu, or a machine whose programs it does not run.
pub(super) fn kernel(tools: &Path) -> Result<Image> {
    let here = env::consts::ARCH;
    if here != "x86_64" {
        return Err(VmError::OtherMachine { here }.into());
    }
    let folder = env::var_os(QEMU_ENV);
    let folder = folder.map_or_else(|| tools.join("linux-6.1-amd64"), PathBuf::from);
    if !folder.is_dir() {
        return Err(VmError::NoImage { place: folder.display().to_string() }.into());
    }
    let bad = |name: &str| VmError::BadImage { file: folder.join(name).display().to_string() };
    let release = fs::read_to_string(folder.join("release")).map_err(|_| bad("release"))?;
    if !folder.join("vmlinuz").is_file() {
        return Err(bad("vmlinuz").into());
    }
    initramfs::find("modprobe")?;
    let program = initramfs::find(PROGRAM)?;
    Ok(Image { release: release.trim().to_owned(), program, folder })
}

/// What the first script does here.
pub(super) fn prelude(image: &Image) -> String {
    let folder = quoted(&image.folder.display().to_string());
    format!(
        "mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 {FOLDER} {GUEST_FOLDER}\n\
         printf '#!/bin/sh\\nexec modprobe -d %s \"$@\"\\n' \"{folder}\" >{LOADER}\n\
         chmod 755 {LOADER}\n\
         echo {LOADER} >/proc/sys/kernel/modprobe\n\
         {LOADER} tun\n"
    )
}

/// How it ends.
pub(super) const END: &str = "busybox poweroff -f";

/// qemu with the kernel, whose first script is `init`. `folder` is the only place of this machine
/// where the guest writes.
pub(super) fn command(image: &Image, folder: &Path, init: &Path) -> Result<Command> {
    let modules = image.folder.join("lib/modules").join(&image.release);
    let initramfs = folder.join("initramfs");
    fs::write(&initramfs, initramfs::archive(&modules, ALL, init)?)?;
    let mut command = Command::new(&image.program);
    command.args(["-machine", "q35", "-cpu", "max", "-accel", "tcg", "-m", MEMORY_MIB]);
    // A nanosecond an instruction, and no waiting.
    command.args(["-icount", "shift=0,sleep=off"]);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    command.args(["-serial", "stdio"]);
    command.arg("-kernel").arg(image.folder.join("vmlinuz")).arg("-initrd").arg(&initramfs);
    command.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"]);
    for (tag, path, options) in
        [(ALL, Path::new("/"), ",readonly=on,multidevs=remap"), (FOLDER, folder, "")]
    {
        let path = path.display();
        command.arg("-fsdev");
        command.arg(format!("local,id={tag},path={path},security_model=none{options}"));
        command.args(["-device", &format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}")]);
    }
    Ok(command)
}
