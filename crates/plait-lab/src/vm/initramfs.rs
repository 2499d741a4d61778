//! The little file system from which a kernel under qemu comes to this machine's files: busybox,
//! the modules of 9p, and a script.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::error::VmError;
use crate::process;

/// The modules that reach this machine's files; those that they need are found.
const MODULES: [&str; 3] = ["virtio_pci", "9pnet_virtio", "9p"];
const FOLDERS: [&str; 5] = ["bin", "dev", "modules", "proc", "root"];
const LIMIT: Duration = Duration::from_secs(10);

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
/// Ends an archive.
const TRAILER: &str = "TRAILER!!!";

/// The archive's bytes. `modules` is the kernel's folder of modules; `share` is the tag under which
/// qemu offers this machine's files; `init` is the path of the guest's first script there.
pub(super) fn archive(modules: &Path, share: &str, init: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    FOLDERS.iter().for_each(|folder| archive.add(folder, FOLDER, &[]));
    let busybox = find("busybox")?;
    let read = |path: &Path| fs::read(path).with_context(|| format!("reading {}", path.display()));
    archive.add("bin/busybox", PROGRAM, &read(&busybox)?);
    for library in libraries(&busybox)? {
        archive.add_with_folders(&library, &read(&library)?);
    }
    let list = modules.join("modules.dep");
    let list = fs::read_to_string(&list)
        .map_err(|_| VmError::BadImage { file: list.display().to_string() })?;
    for (number, module) in in_order(&list)?.iter().enumerate() {
        archive.add(&format!("modules/{number:02}"), PROGRAM, &read(&modules.join(module))?);
    }
    archive.add("init", PROGRAM, script(share, init).as_bytes());
    Ok(archive.end())
}

fn script(share: &str, init: &Path) -> String {
    let options = "trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro";
    format!(
        "#!/bin/busybox sh\n\
         for module in /modules/*; do /bin/busybox insmod $module; done\n\
         /bin/busybox mount -t 9p -o {options} {share} /root\n\
         exec /bin/busybox switch_root /root /bin/sh {}\n",
        init.display()
    )
}

/// A program of this machine.
pub(super) fn find(program: &str) -> Result<PathBuf> {
    let folders = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];
    let mut paths = folders.iter().map(|folder| Path::new(folder).join(program));
    let found = paths.find(|path| path.is_file());
    found.ok_or_else(|| VmError::NoTool { program: program.to_owned() }.into())
}

/// The libraries that a program is linked with; none of a static one.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let said = process::run_any(Command::new("ldd").arg(program), "", LIMIT)?;
    Ok(linked(&said.stdout))
}

/// Reads what ldd(1) prints: `name => path (address)`, or `path (address)` of the loader.
fn linked(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let path = line.split("=>").last()?.split_whitespace().next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// The files of [`MODULES`] and of what they need, in the order in which they can be loaded.
fn in_order(list: &str) -> Result<Vec<String>> {
    let mut files: Vec<String> = Vec::new();
    for module in MODULES {
        let is_its = |line: &&str| {
            let file = line.split(':').next().unwrap_or_default();
            Path::new(file).file_stem().is_some_and(|stem| stem == module)
        };
        let line = list.lines().find(is_its);
        let line = line.ok_or_else(|| VmError::BadImage { file: format!("module {module}") })?;
        let (file, needs) = line.split_once(':').unwrap_or((line, ""));
        // What is needed stands after what needs it.
        let needs = needs.split_whitespace().rev().chain([file]);
        for file in needs {
            if !files.iter().any(|known| known == file) {
                files.push(file.to_owned());
            }
        }
    }
    Ok(files)
}

/// A cpio archive in the form `newc`.
#[derive(Debug, Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: Vec<PathBuf>,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("a file of an initramfs is below 4 GiB");
        let name_bytes = u32::try_from(name.len() + 1).expect("names are short");
        let mut header = String::from("070701");
        for field in [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_bytes, 0] {
            write!(header, "{field:08x}").expect("a string takes everything");
        }
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// A program at its own path, with the folders above it.
    fn add_with_folders(&mut self, path: &Path, content: &[u8]) {
        let relative = path.strip_prefix("/").unwrap_or(path).to_owned();
        let above: Vec<PathBuf> = relative.ancestors().skip(1).map(Path::to_owned).collect();
        for folder in above.into_iter().rev().filter(|folder| folder.components().count() > 0) {
            if !self.folders.contains(&folder) {
                self.add(&folder.display().to_string(), FOLDER, &[]);
                self.folders.push(folder);
            }
        }
        self.add(&relative.display().to_string(), PROGRAM, content);
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.add(TRAILER, 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read() {
        let text = "\tlinux-vdso.so.1 (0x00007f30)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f3015)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f30)\n";
        let paths = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(linked(text), paths.map(PathBuf::from));
        assert!(linked("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn modules_come_after_what_they_need() {
        let list = "a/9p.ko: n/9pnet.ko f/netfs.ko\nn/9pnet.ko:\n\
                    v/virtio_pci.ko: v/virtio.ko v/virtio_ring.ko\n\
                    n/9pnet_virtio.ko: n/9pnet.ko v/virtio.ko v/virtio_ring.ko\n";
        let expected = [
            "v/virtio_ring.ko",
            "v/virtio.ko",
            "v/virtio_pci.ko",
            "n/9pnet.ko",
            "n/9pnet_virtio.ko",
            "f/netfs.ko",
            "a/9p.ko",
        ];
        assert_eq!(in_order(list).unwrap(), expected);
        assert!(in_order("a/9p.ko:\n").unwrap_err().to_string().contains("virtio_pci"));
    }

    #[test]
    fn an_archive_has_the_form_of_cpio() {
        let mut archive = Archive::default();
        archive.add_with_folders(Path::new("/lib/a/x.so"), b"12345");
        archive.add_with_folders(Path::new("/lib/y.so"), b"");
        let bytes = archive.end();
        assert!(bytes.len().is_multiple_of(4));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches("070701").count(), 5, "two folders, two files, the end");
        assert!(
            text.contains("lib/a/x.so\0") && text.contains("12345\0\0\0") && text.contains(TRAILER)
        );
    }
}
