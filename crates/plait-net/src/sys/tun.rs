//! The ioctls of /dev/net/tun (Documentation/networking/tuntap.rst of Linux).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::c_int;

/// TUN_F_USO4 of linux/if_tun.h, since Linux 6.2.
const TUN_F_USO4: u32 = 0x20;
/// TUN_F_USO6 of linux/if_tun.h, since Linux 6.2.
const TUN_F_USO6: u32 = 0x40;

/// Checksums and nothing else.
pub(crate) const OFFLOAD_CHECKSUM: u32 = libc::TUN_F_CSUM;
/// TCP segmentation too.
pub(crate) const OFFLOAD_TCP: u32 = OFFLOAD_CHECKSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
/// UDP segmentation too.
pub(crate) const OFFLOAD_UDP: u32 = OFFLOAD_TCP | TUN_F_USO4 | TUN_F_USO6;

/// Bytes of the longest interface name.
pub(crate) const NAME_LEN_MAX: usize = libc::IFNAMSIZ - 1;

/// Makes `device` a TUN interface `name` and returns the name that the kernel gave it.
pub(crate) fn set_interface(
    device: BorrowedFd<'_>,
    name: &str,
    vnet_header: bool,
) -> io::Result<String> {
    assert!(name.len() <= NAME_LEN_MAX, "invariant: the caller checked the name's length");
    let mut flags = libc::IFF_TUN | libc::IFF_NO_PI;
    if vnet_header {
        flags |= libc::IFF_VNET_HDR;
    }
    // SAFETY: `ifreq` is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    check(result)?;
    let given = request.ifr_name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
    Ok(String::from_utf8_lossy(&given.collect::<Vec<u8>>()).into_owned())
}

/// Sets the length of the header before each packet.
pub(crate) fn set_vnet_header_len(device: BorrowedFd<'_>, len: usize) -> io::Result<()> {
    let len = len as c_int;
    // SAFETY: TUNSETVNETHDRSZ reads one int, which lives until the call returns.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const len) })
}

/// Says which offloads the reader understands.
pub(crate) fn set_offload(device: BorrowedFd<'_>, offload: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    check(unsafe {
        libc::ioctl(device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload))
    })
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
