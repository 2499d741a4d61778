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
        // Network namespaces other than the first do not show it on some kernels.
        None => Finding::ok(subject, "not shown here"),
    }
}
