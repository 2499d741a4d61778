//! Who has something that a gateway needs: a port, a device, a file. Asked only when it cannot be
//! had, so that the error can name the program.
//!
//! All of it stands in `/proc`. What may not be read there stays unknown.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// So many open files are looked at, at most.
const LOOKS_MAX: usize = 50_000;
/// So much is shown of a command line, in characters.
const SHOWN_MAX: usize = 60;

/// A process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pid: u32,
    /// Its command line, or what may be known of it.
    command: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command.as_str() {
            "" => write!(f, "process {}", self.pid),
            command => write!(f, "`{command}` (process {})", self.pid),
        }
    }
}

/// ` by …` where the holder is known, and nothing where it is not.
pub(crate) fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

impl Holder {
    /// The process of that number, where there is one.
    pub(crate) fn of_process(pid: u32) -> Option<Self> {
        // A process of another namespace has no number here.
        (pid != 0).then_some(())?;
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}"));
        let line =
            read("cmdline").ok().filter(|line| !line.is_empty()).or_else(|| read("comm").ok());
        Some(Self { pid, command: shown(&line.unwrap_or_default()) })
    }

    /// Whether it is the process of that number.
    pub(crate) fn is(&self, pid: u32) -> bool {
        self.pid == pid
    }

    /// Who has a UDP port of this network.
    pub(crate) fn of_udp_port(port: u16) -> Option<Self> {
        Self::of_port(["/proc/self/net/udp", "/proc/self/net/udp6"], port)
    }

    /// Who has a TCP port of this network; of several connections over it any.
    pub(crate) fn of_tcp_port(port: u16) -> Option<Self> {
        Self::of_port(["/proc/self/net/tcp", "/proc/self/net/tcp6"], port)
    }

    fn of_port(tables: [&str; 2], port: u16) -> Option<Self> {
        let sockets: Vec<String> = tables
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| sockets_at(&table, port))
            .collect();
        (!sockets.is_empty()).then_some(())?;
        find(|link, _| sockets.iter().any(|socket| link == socket))
    }

    /// Who keeps a TUN device of this network.
    pub(crate) fn of_device(name: &str) -> Option<Self> {
        let own_network = fs::read_link("/proc/self/ns/net").ok()?;
        find(|link, file| {
            // Beside each open file stands what the driver says of it.
            link == "/dev/net/tun"
                && fs::read_to_string(file.replace("/fd/", "/fdinfo/")).is_ok_and(|said| {
                    said.lines().any(|line| {
                        line.strip_prefix("iff:").is_some_and(|device| device.trim() == name)
                    })
                })
                && file.split("/fd/").next().is_some_and(|process| {
                    fs::read_link(format!("{process}/ns/net")).is_ok_and(|net| net == own_network)
                })
        })
    }

    /// Who has locked a file.
    pub(crate) fn of_lock(file: &File) -> Option<Self> {
        let inode = file.metadata().ok()?.ino();
        let pid = lock_holder(&fs::read_to_string("/proc/locks").ok()?, inode)?;
        Self::of_process(pid)
    }
}

/// The first process with an open file that `is_meant` takes, which is given where the file leads
/// and its name in `/proc`.
fn find(is_meant: impl Fn(&str, &str) -> bool) -> Option<Holder> {
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let files = pids.flat_map(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.map(move |file| (pid, file.path()))
    });
    let found = files.take(LOOKS_MAX).find(|(_, file)| leads_to(file, &is_meant));
    Holder::of_process(found?.0)
}

fn leads_to(file: &Path, is_meant: impl Fn(&str, &str) -> bool) -> bool {
    let link = fs::read_link(file).ok();
    link.and_then(|link| Some(is_meant(link.to_str()?, file.to_str()?))).unwrap_or(false)
}

/// The sockets of `/proc/net/udp` or `tcp` at a port, as links of open files name them.
fn sockets_at(table: &str, port: u16) -> Vec<String> {
    let at_port = |line: &str| {
        let mut words = line.split_whitespace();
        let local = words.nth(1)?.rsplit_once(':')?.1;
        let inode = words.nth(7)?;
        (u16::from_str_radix(local, 16) == Ok(port)).then(|| format!("socket:[{inode}]"))
    };
    table.lines().skip(1).filter_map(at_port).collect()
}

/// Who holds a lock in `/proc/locks` on the file with this inode.
fn lock_holder(locks: &str, inode: u64) -> Option<u32> {
    let end = format!(":{inode}");
    let line = locks.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.nth(1) == Some("FLOCK") && words.nth(3).is_some_and(|file| file.ends_with(&end))
    })?;
    line.split_whitespace().nth(4)?.parse().ok()
}

/// A command line in one line that cannot deceive: another user may have chosen it.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let words = text.split(['\0', '\n']).filter(|word| !word.is_empty());
    let text = words.collect::<Vec<_>>().join(" ");
    let text = text.replace(|c: char| c.is_control() || c == '`', "?");
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_port_and_a_lock_of_this_process_are_its_own() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let pid = std::process::id();
        assert_eq!(Holder::of_udp_port(port).map(|holder| holder.pid), Some(pid));
        drop(socket);
        assert_eq!(Holder::of_udp_port(port), None);

        let name = std::env::temp_dir().join(format!("plait-holder-{pid}"));
        let file = File::create(&name).unwrap();
        assert_eq!(Holder::of_lock(&file), None);
        file.try_lock().unwrap();
        assert_eq!(Holder::of_lock(&file).map(|holder| holder.pid), Some(pid));
        fs::remove_file(name).unwrap();
        assert_eq!(Holder::of_device("plait-nowhere"), None);
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let udp = "  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid \
                   timeout inode ref pointer drops\n   \
                   9: 00000000:1E6C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0 \
                   0 4711 2 0000000000000000 0\n";
        assert_eq!(sockets_at(udp, 7788), ["socket:[4711]"]);
        assert_eq!(sockets_at(udp, 7789), [""; 0]);
        let locks = "1: POSIX  ADVISORY  WRITE 12 08:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 34 00:1f:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 56 00:1f:177 0 EOF\n";
        assert_eq!(lock_holder(locks, 77), Some(34));
        assert_eq!(lock_holder(locks, 7), None);
    }

    #[test]
    fn a_command_line_is_shown_in_one_short_line() {
        assert_eq!(shown(b"plait\0up\0a.toml\0"), "plait up a.toml");
        assert_eq!(shown(b"a\x1b[31m`b`\0\nc"), "a?[31m?b? c");
        assert_eq!(shown(&[b'x'; 100]).chars().count(), SHOWN_MAX + 1);
        let holder = Holder { pid: 7, command: String::new() };
        assert_eq!(by(Some(&holder)), " by process 7");
        assert_eq!(by(None), "");
    }
}
