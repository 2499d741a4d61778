//! The kernel, the TUN device node, rights and buffers.

use plait_net::machine::{Machine, TunDevice};

use super::Finding;

/// Major and minor number of a kernel's release.
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn kernel(machine: &Machine) -> Finding {
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

pub(super) fn tun_device(machine: &Machine) -> Finding {
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

/// `may_change` tells whether the kernel let this process change the network.
pub(super) fn rights(machine: &Machine, may_change: bool) -> Finding {
    if machine.net_admin && may_change {
        Finding::ok("rights", "CAP_NET_ADMIN is held")
    } else if machine.net_admin {
        Finding::error(
            "rights",
            "no right to set up a TUN device: CAP_NET_ADMIN is held in a user namespace that this \
             network does not belong to",
            "run plait as root outside of it, or in a network namespace of its own",
        )
    } else {
        Finding::error(
            "rights",
            "no right to set up a TUN device: CAP_NET_ADMIN is missing",
            "run plait as root, or give it the right: `setcap cap_net_admin+ep` on the binary",
        )
    }
}

pub(super) fn aes(machine: &Machine) -> Finding {
    if machine.aes {
        Finding::ok("cipher", "AES in hardware: AES-256-GCM where the peer has it too")
    } else {
        Finding::ok("cipher", "no AES in hardware: ChaCha20-Poly1305")
    }
}

pub(super) fn buffer(direction: &str, sysctl: &str, bytes: Option<u64>) -> Finding {
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
        // On some kernels, only the first network namespace shows it.
        None => Finding::ok(subject, "not shown here"),
    }
}

#[cfg(test)]
mod tests {
    use plait_net::machine::UserNamespaces;

    use super::super::Level;
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
            rights(&machine, true),
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
            rights(&machine, false).text,
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
    fn an_old_kernel_and_a_small_buffer_are_warnings() {
        let old = Machine { kernel_release: "5.15.0-1".into(), ..machine() };
        assert_eq!(kernel(&old).level, Level::Warning);
        let small = buffer("receive", "rmem_max", Some(212_992));
        assert_eq!(small.level, Level::Warning);
        assert_eq!(small.help.as_deref(), Some("sysctl -w net.core.rmem_max=4194304"));
    }

    #[test]
    fn rights_over_another_network_are_told_from_none() {
        let finding = rights(&machine(), false);
        assert_eq!(finding.level, Level::Error);
        assert!(finding.text.contains("in a user namespace"), "{}", finding.text);
    }

    #[test]
    fn kernel_releases_are_understood() {
        assert_eq!(kernel_version("6.12.1-x"), Some((6, 12)));
        assert_eq!(kernel_version("odd"), None);
    }
}
