//! Finds the interface that a file names by what stays of it: its hardware address, or its place on
//! PCI or USB.

use std::fs;
use std::path::{Path, PathBuf};

use plait_net::netlink::Interface;

use super::Identity;

/// Where the kernel describes devices.
pub(crate) const SYSFS: &str = "/sys";

/// Several interfaces have one identity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} have {identity} in common", names.join(" and "))]
pub(crate) struct SharedIdentity {
    /// What they have in common.
    pub(crate) identity: String,
    /// Their names.
    pub(crate) names: Vec<String>,
}

impl SharedIdentity {
    /// The remedy.
    pub(crate) fn help(&self) -> String {
        match self.identity.starts_with("mac:") {
            true => "name the link by its place, as in `link = \"bus:1-1.4\"`, or by `interface`; \
                     bridges and VLANs have the hardware address of the interface below them"
                .to_owned(),
            false => "name the link by its hardware address, as in `link = \
                      \"mac:02:00:00:00:00:01\"`, or write more of its place"
                .to_owned(),
        }
    }
}

/// The one interface with an identity; `sysfs` is [`SYSFS`] but in tests.
///
/// # Errors
/// There are several.
pub(crate) fn find<'a>(
    identity: &Identity,
    interfaces: &'a [Interface],
    sysfs: &Path,
) -> Result<Option<&'a Interface>, SharedIdentity> {
    let mut found = interfaces.iter().filter(|known| is_of(identity, known, sysfs));
    let first = found.next();
    let names: Vec<String> = first.into_iter().chain(found).map(|one| one.name.clone()).collect();
    if names.len() > 1 {
        return Err(SharedIdentity { identity: identity.to_string(), names });
    }
    Ok(first)
}

/// Whether an interface has an identity.
pub(crate) fn is_of(identity: &Identity, interface: &Interface, sysfs: &Path) -> bool {
    match identity {
        Identity::Mac(address) => interface.mac == Some(*address),
        Identity::Bus(place) => {
            device_of(&interface.name, sysfs).is_some_and(|device| is_at(&device, place))
        }
    }
}

/// The path of an interface's device; none for one without hardware.
fn device_of(interface: &str, sysfs: &Path) -> Option<PathBuf> {
    fs::canonicalize(sysfs.join("class/net").join(interface).join("device")).ok()
}

/// Whether a device is there. A USB device is a folder above those of its interfaces, which are
/// called as in `1-1.4:1.0`, and a virtual device on PCI is a folder below its own.
fn is_at(device: &Path, place: &str) -> bool {
    device.ends_with(place) || device.parent().is_some_and(|above| above.ends_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, mac: Option<[u8; 6]>) -> Interface {
        let (index, addresses) = (1, Vec::new());
        Interface { index, name: name.into(), mac, up: true, running: true, addresses }
    }

    /// A folder like `/sys` with these interfaces at these places.
    fn sysfs(name: &str, devices: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("plait-sysfs-{}-{name}", std::process::id()));
        for (interface, place) in devices {
            let (device, class) = (root.join("devices").join(place), root.join("class/net"));
            fs::create_dir_all(&device).unwrap();
            fs::create_dir_all(class.join(interface)).unwrap();
            std::os::unix::fs::symlink(&device, class.join(interface).join("device")).unwrap();
        }
        root
    }

    #[test]
    fn an_interface_is_found_by_its_hardware_address() {
        let (a, b) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let all = [interface("a", Some(a)), interface("b", Some(b)), interface("lo", None)];
        let find_in = |all: &[Interface], identity: &Identity| {
            find(identity, all, Path::new("/nowhere")).map(|found| found.map(|i| i.name.clone()))
        };
        assert_eq!(find_in(&all, &Identity::Mac(b)), Ok(Some("b".into())));
        assert_eq!(find_in(&all, &Identity::Mac([2, 0, 0, 0, 0, 3])), Ok(None));
        let bridge = [interface("a", Some(a)), interface("br0", Some(a))];
        let shared = find_in(&bridge, &Identity::Mac(a)).unwrap_err();
        assert_eq!(shared.to_string(), "a and br0 have mac:02:00:00:00:00:01 in common");
        assert!(shared.help().contains("bus:"), "{}", shared.help());
    }

    #[test]
    fn an_interface_is_found_by_its_place() {
        let root = sysfs(
            "place",
            &[
                ("eth0", "pci0000:00/0000:00:1f.6"),
                ("ens3", "pci0000:00/0000:00:03.0/virtio0"),
                ("wwan0", "pci0000:00/0000:00:14.0/usb1/1-1/1-1.4/1-1.4:1.0"),
                ("wwan1", "pci0000:00/0000:00:14.0/usb1/1-1/1-1.4/1-1.4:1.2"),
                ("usb0", "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0"),
            ],
        );
        let names = ["eth0", "ens3", "wwan0", "wwan1", "usb0", "lo"];
        let all = names.map(|name| interface(name, None));
        let found = |place: &str| {
            find(&Identity::Bus(place.into()), &all, &root).map(|found| found.map(|i| &*i.name))
        };
        assert_eq!(found("0000:00:1f.6"), Ok(Some("eth0")));
        assert_eq!(found("0000:00:03.0"), Ok(Some("ens3")));
        assert_eq!(found("2-1"), Ok(Some("usb0")));
        assert_eq!(found("1-1.4:1.2"), Ok(Some("wwan1")));
        assert_eq!(found("usb2/2-1"), Ok(Some("usb0")));
        assert_eq!(found("1.4"), Ok(None), "whole parts of the path alone");
        assert_eq!(found("1-1"), Ok(None), "a hub");
        assert_eq!(found("1-1.4").unwrap_err().names, ["wwan0", "wwan1"]);
        fs::remove_dir_all(root).unwrap();
    }
}
