//! What the machine must offer before a gateway can start, and what slows it down.
//!
//! Facts come from [`plait_net::machine`] and from sockets that are opened and closed again;
//! nothing is changed. `plait check` prints every finding, `plait up` stops at the errors.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use plait_net::machine::{Machine, TunDevice};

use crate::config::{Config, Nat, PathConfig};
use crate::daemon::{self, HostError};

/// What was found on the machine.
#[derive(Debug)]
pub(crate) struct Facts {
    machine: Machine,
    /// Interfaces of this network namespace, in the kernel's order.
    interfaces: Vec<String>,
}

impl Facts {
    /// Looks at this machine.
    pub(crate) fn gather() -> Self {
        let net_dev = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
        Self { machine: Machine::inspect(), interfaces: interfaces(&net_dev) }
    }

    fn has_interface(&self, name: &str) -> bool {
        self.interfaces.iter().any(|interface| interface == name)
    }
}

/// Two lines of headings, then `name: counters` per interface.
fn interfaces(net_dev: &str) -> Vec<String> {
    let name = |line: &str| Some(line.split_once(": ")?.0.trim().to_owned());
    net_dev.lines().skip(2).filter_map(name).collect()
}

/// Major and minor number of a kernel's release.
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// How a finding bears on starting the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// The gateway starts, but something is worth a look.
    Warning,
    /// The gateway cannot start.
    Error,
}

/// One fact about the configuration or the machine, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    /// How it bears on starting.
    pub(crate) level: Level,
    /// What it is about: a place in the file, or a part of the machine.
    pub(crate) subject: String,
    /// What was found.
    pub(crate) text: String,
    /// What to do; `None` when all is well.
    pub(crate) help: Option<String>,
}

impl Finding {
    fn ok(subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, subject: subject.into(), text: text.into(), help: None }
    }

    pub(crate) fn warning(
        subject: impl Into<String>,
        text: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let help = Some(help.into());
        Self { level: Level::Warning, subject: subject.into(), text: text.into(), help }
    }

    pub(crate) fn error(
        subject: impl Into<String>,
        text: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let help = Some(help.into());
        Self { level: Level::Error, subject: subject.into(), text: text.into(), help }
    }
}

/// Compares what the configuration needs with what the machine has.
pub(crate) fn examine(config: &Config, facts: &Facts) -> Vec<Finding> {
    let machine = &facts.machine;
    let mut findings = vec![
        kernel(machine),
        tun_device(machine),
        rights(machine),
        aes(machine),
        buffer("receive", "rmem_max", machine.rmem_max),
        buffer("send", "wmem_max", machine.wmem_max),
        tun_name(config, facts),
    ];
    findings.extend(
        config.gateway.listen_port.as_ref().map(|port| {
            listen_port(&format!("{}:{}", config.file.display(), port.line), port.value)
        }),
    );
    findings.extend(nat(config, daemon::nft_exists));
    findings.extend(user(config));
    findings.extend(config.paths.iter().flat_map(|path| path_binding(config, path, facts)));
    findings
}

fn kernel(machine: &Machine) -> Finding {
    // USO, the last of the TUN offloads, came with Linux 6.2.
    const USO_SINCE: (u32, u32) = (6, 2);
    let text = format!("Linux {}", machine.kernel_release);
    match kernel_version(&machine.kernel_release) {
        Some(version) if version < USO_SINCE => {
            let text = format!("{text}: UDP inside the bond is not batched");
            Finding::warning("kernel", text, "Linux 6.2 or later makes UDP cheaper")
        }
        _ => Finding::ok("kernel", text),
    }
}

fn tun_device(machine: &Machine) -> Finding {
    const SUBJECT: &str = "/dev/net/tun";
    match machine.tun {
        TunDevice::Present { mode, openable: true } => {
            Finding::ok(SUBJECT, format!("can be opened, mode {mode:04o}"))
        }
        TunDevice::Present { mode, openable: false } => Finding::error(
            SUBJECT,
            format!("the TUN device cannot be opened, mode {mode:04o}"),
            "run plait as root; if it is, load the driver with `modprobe tun`",
        ),
        TunDevice::Missing => Finding::error(
            SUBJECT,
            "no TUN device on this machine",
            "load the driver with `modprobe tun`; in a container, pass the device in: \
             `--device /dev/net/tun`",
        ),
    }
}

fn rights(machine: &Machine) -> Finding {
    if machine.net_admin {
        Finding::ok("rights", "CAP_NET_ADMIN is held")
    } else {
        Finding::error(
            "rights",
            "no right to set up a TUN device: CAP_NET_ADMIN is missing",
            "run plait as root, or give it the right: `setcap cap_net_admin+ep` on the binary",
        )
    }
}

fn aes(machine: &Machine) -> Finding {
    if machine.aes {
        Finding::ok("cipher", "AES in hardware: AES-256-GCM where the peer has it too")
    } else {
        Finding::ok("cipher", "no AES in hardware: ChaCha20-Poly1305")
    }
}

fn buffer(direction: &str, sysctl: &str, bytes: Option<u64>) -> Finding {
    // 4 MB hold 30 ms of 1 Gbit/s.
    const WANTED_BYTES: u64 = 4 << 20;
    let subject = format!("net.core.{sysctl}");
    match bytes {
        Some(bytes) if bytes >= WANTED_BYTES => Finding::ok(subject, format!("{bytes} bytes")),
        Some(bytes) => Finding::warning(
            subject.as_str(),
            format!("{bytes} bytes: the {direction} buffer overflows in bursts on fast links"),
            format!("sysctl -w {subject}={WANTED_BYTES}"),
        ),
        // Network namespaces other than the first do not show it on some kernels.
        None => Finding::ok(subject, "not shown here"),
    }
}

fn tun_name(config: &Config, facts: &Facts) -> Finding {
    let tun = &config.gateway.tun;
    if facts.has_interface(tun) {
        let text = format!("an interface called {tun} exists already");
        let help = "if `plait up` is running, `plait status` shows it; else choose another `tun`";
        Finding::error("tun", text, help)
    } else {
        Finding::ok("tun", format!("the name {tun} is free"))
    }
}

fn listen_port(place: &str, port: u16) -> Finding {
    let subject = format!("{place}: [gateway] listen_port");
    let tried = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| {
        let no_ipv6 = error.kind() != io::ErrorKind::AddrInUse
            && error.kind() != io::ErrorKind::PermissionDenied;
        if no_ipv6 { UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)) } else { Err(error) }
    });
    match tried {
        Ok(_) => Finding::ok(subject, format!("UDP port {port} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Finding::error(
            subject,
            format!("UDP port {port} is in use"),
            format!("`ss -ulpn sport = :{port}` shows by whom; stop that, or choose another port"),
        ),
        Err(error) => Finding::error(
            subject,
            format!("UDP port {port} cannot be opened: {error}"),
            "choose a port from 1024 on, or run plait as root",
        ),
    }
}

fn nat(config: &Config, nft_exists: impl Fn() -> bool) -> Option<Finding> {
    (config.gateway.nat != Nat::Off).then(|| {
        if nft_exists() {
            return Finding::ok("nat", "nft is there");
        }
        let missing = HostError::NftMissing;
        Finding::error("nat", missing.to_string(), missing.help())
    })
}

fn user(config: &Config) -> Option<Finding> {
    let user = config.gateway.user.as_ref()?;
    let subject = format!("{}:{}: [gateway] user", config.file.display(), user.line);
    Some(match daemon::user_of(Some(user)) {
        Ok(_) => Finding::ok(subject, format!("{} exists", user.value)),
        Err(error) => Finding::error(subject, error.to_string(), error.help()),
    })
}

fn path_binding(config: &Config, path: &PathConfig, facts: &Facts) -> Vec<Finding> {
    let place =
        |line: usize, option: &str| format!("{}:{line}: [[path]] {option}", config.file.display());
    let interface = path.interface.as_ref().map(|interface| {
        let subject = place(interface.line, "interface");
        let name = &interface.value;
        let taken: Vec<_> =
            facts.interfaces.iter().filter(|known| path.takes_interface(known)).cloned().collect();
        if path.is_wildcard() && !taken.is_empty() {
            return Finding::ok(subject, format!("{name} takes {}", taken.join(", ")));
        }
        if !taken.is_empty() {
            return Finding::ok(subject, format!("{name} exists"));
        }
        let known = facts.interfaces.join(", ");
        let text = format!("no interface called {name} now; the path waits for it");
        Finding::warning(subject, text, format!("this machine has: {known}"))
    });
    let address = path.address.as_ref().map(|address| {
        let subject = place(address.line, "address");
        if is_local(address.value) {
            return Finding::ok(subject, format!("{} is this machine's", address.value));
        }
        let text =
            format!("{} is not an address of this machine now; the path waits", address.value);
        Finding::warning(subject, text, "`ip address` shows this machine's addresses")
    });
    interface.into_iter().chain(address).collect()
}

fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use plait_net::machine::UserNamespaces;

    use super::*;

    fn machine() -> Machine {
        Machine {
            tun: TunDevice::Present { mode: 0o666, openable: true },
            user_namespaces: UserNamespaces::Allowed,
            uid: 0,
            net_admin: true,
            aes: true,
            kernel_release: "6.12.1".into(),
            rmem_max: Some(4 << 20),
            wmem_max: None,
        }
    }

    #[test]
    fn a_good_machine_has_no_advice() {
        let machine = machine();
        let findings = [
            kernel(&machine),
            tun_device(&machine),
            rights(&machine),
            aes(&machine),
            buffer("receive", "rmem_max", machine.rmem_max),
            buffer("send", "wmem_max", machine.wmem_max),
        ];
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
        assert!(findings.iter().all(|finding| finding.help.is_none()));
    }

    #[test]
    fn a_missing_device_and_missing_rights_are_errors_with_a_remedy() {
        let machine = Machine { tun: TunDevice::Missing, net_admin: false, ..machine() };
        let device = tun_device(&machine);
        assert_eq!(device.level, Level::Error);
        assert_eq!(device.text, "no TUN device on this machine");
        assert!(device.help.unwrap().contains("modprobe tun"));
        assert_eq!(
            rights(&machine).text,
            "no right to set up a TUN device: CAP_NET_ADMIN is missing"
        );
    }

    #[test]
    fn a_device_that_does_not_open_is_an_error() {
        let tun = TunDevice::Present { mode: 0o600, openable: false };
        let device = tun_device(&Machine { tun, ..machine() });
        assert_eq!(device.level, Level::Error);
        assert_eq!(device.text, "the TUN device cannot be opened, mode 0600");
    }

    #[test]
    fn proc_files_are_understood() {
        let dev = "Inter-|\n face |\n    lo: 0 0\neth0.7: 1 2\n";
        assert_eq!(interfaces(dev), ["lo", "eth0.7"]);
        assert_eq!(kernel_version("6.12.1-x"), Some((6, 12)));
        assert_eq!(kernel_version("odd"), None);
        assert!(Facts::gather().has_interface("lo"));
    }

    #[test]
    fn an_old_kernel_and_a_small_buffer_are_warnings() {
        let old = Machine { kernel_release: "5.15.0-1".into(), ..machine() };
        assert_eq!(kernel(&old).level, Level::Warning);
        let small = buffer("receive", "rmem_max", Some(212_992));
        assert_eq!(small.level, Level::Warning);
        assert_eq!(small.help.as_deref(), Some("sysctl -w net.core.rmem_max=4194304"));
    }

    #[test]
    fn a_port_in_use_is_found() {
        let holder = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = holder.local_addr().unwrap().port();
        assert_eq!(listen_port("x", port).text, format!("UDP port {port} is in use"));
        drop(holder);
        assert_eq!(listen_port("x", port).level, Level::Ok);
    }

    #[test]
    fn only_own_addresses_are_local() {
        assert!(is_local(Ipv4Addr::LOCALHOST.into()));
        // TEST-NET-1 (RFC 5737) belongs to no machine.
        assert!(!is_local(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
