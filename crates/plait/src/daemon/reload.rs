//! Another configuration for a running gateway: read and checked beside the loop, then taken whole
//! or not at all.

use std::path::Path;

use crate::config::{Config, Nat, PathConfig, Resolved};

/// A configuration that was read again.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) config: Config,
    pub(super) resolved: Resolved,
}

/// Reads the file again and asks DNS. `None` when anything is wrong, which is logged.
pub(super) fn read(file: &Path) -> Option<Reload> {
    let loaded = Config::load(file).and_then(|config| {
        let resolved = config.resolve()?;
        Ok(Reload { config, resolved })
    });
    match loaded {
        Ok(reload) => {
            for warning in &reload.config.warnings {
                log::warn!(
                    "{}:{}: {}: {}",
                    file.display(),
                    warning.line,
                    warning.option,
                    warning.text
                );
            }
            Some(reload)
        }
        Err(errors) => {
            for error in errors.iter() {
                log::error!("{error} ({})", error.help());
            }
            log::error!("{}: the old configuration stays", file.display());
            None
        }
    }
}

/// Options that changed but only act at a start.
pub(super) fn needs_restart(old: &Config, new: &Config) -> Vec<String> {
    let (before, now) = (&old.gateway, &new.gateway);
    let port = |gateway: &crate::config::Gateway| gateway.listen_port.as_ref().map(|p| p.value);
    let user = |gateway: &crate::config::Gateway| gateway.user.as_ref().map(|u| u.value.clone());
    let changes = [
        ("tun", before.tun != now.tun),
        ("private_key_file", before.public_key != now.public_key),
        ("control_socket", before.control_socket != now.control_socket),
        ("state_file", before.state_file != now.state_file),
        ("listen_port", port(before) != port(now)),
        ("user", user(before) != user(now)),
        ("sandbox", before.sandbox != now.sandbox),
        ("nat", is_nat_out_of_reach(old, new)),
        ("mtu", before.mtu != now.mtu),
        ("address", before.addresses != now.addresses),
        ("routes", before.routes != now.routes),
        ("measure_port", before.measure_port != now.measure_port),
        ("measure", !old.serves_measurements() && new.serves_measurements()),
    ];
    let changed = changes.into_iter().filter(|(_, changed)| *changed);
    let mut names: Vec<_> = changed.map(|(name, _)| format!("[gateway] {name}")).collect();
    if listening_link_differs(&old.paths, &new.paths) {
        names.push("whether there is any [[path]]".into());
    }
    names
}

/// A sandbox that was entered without NAT lets no program run, and NAT is one's work.
fn is_nat_out_of_reach(old: &Config, new: &Config) -> bool {
    old.gateway.sandbox && old.gateway.nat == Nat::Off && new.gateway.nat != Nat::Off
}

/// Whether the listening socket is the one link before and not after, or the other way round.
fn listening_link_differs(old: &[PathConfig], new: &[PathConfig]) -> bool {
    old.is_empty() != new.is_empty()
}

/// The new configuration, with what stays until a restart as it was.
pub(super) fn keep_what_stays(old: &Config, mut new: Config) -> Config {
    let nat_waits = is_nat_out_of_reach(old, &new);
    let (before, now) = (&old.gateway, &mut new.gateway);
    if nat_waits {
        now.nat.clone_from(&before.nat);
    }
    now.sandbox = before.sandbox;
    now.tun.clone_from(&before.tun);
    now.control_socket.clone_from(&before.control_socket);
    now.state_file.clone_from(&before.state_file);
    now.listen_port.clone_from(&before.listen_port);
    now.user.clone_from(&before.user);
    now.addresses.clone_from(&before.addresses);
    (now.mtu, now.routes) = (before.mtu, before.routes);
    now.measure_port = before.measure_port;
    now.private_key.clone_from(&before.private_key);
    now.public_key = before.public_key;
    if listening_link_differs(&old.paths, &new.paths) {
        new.paths.clone_from(&old.paths);
    }
    new
}

/// Whether forwarding or NAT is to be set up anew.
pub(super) fn host_differs(old: &Config, new: &Config) -> bool {
    let asked = |config: &Config| (config.gateway.forward, config.gateway.nat.clone());
    let prefixes = |config: &Config| -> Vec<_> {
        config.peers.iter().flat_map(|peer| &peer.allowed_ips).map(|p| p.value).collect()
    };
    let any = new.gateway.forward || new.gateway.nat != Nat::Off;
    asked(old) != asked(new) || (any && prefixes(old) != prefixes(new))
}
