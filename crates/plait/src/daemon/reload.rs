//! Another configuration for a running gateway: read and checked outside the loop, then applied
//! whole or not at all.

use std::path::Path;

use plait_proto::config::PeerConfig;

use crate::config::{Config, ConfigErrors, PathConfig, WhenDown};

/// A configuration that was read again.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) config: Config,
    /// Its peers, with the known addresses of their names.
    pub(super) peers: Vec<PeerConfig>,
}

/// Reads the file again.
///
/// # Errors
/// Everything that is wrong, in one text, which was logged.
pub(super) fn read(file: &Path) -> Result<Config, String> {
    match Config::load(file) {
        Ok(config) => {
            for warning in &config.warnings {
                let (file, line) = (file.display(), warning.line);
                log::warn!(
                    "{file}:{line}: {}: {} ({})",
                    warning.option,
                    warning.text,
                    warning.help
                );
            }
            Ok(config)
        }
        Err(errors) => Err(log_errors(file, &errors)),
    }
}

/// Logs what is wrong with a file that was to be reloaded, and gives it back as one text.
pub(crate) fn log_errors(file: &Path, errors: &ConfigErrors) -> String {
    let texts: Vec<_> = errors.iter().map(|error| format!("{error} ({})", error.help())).collect();
    for text in &texts {
        log::error!("{text}");
    }
    log::error!("{}: the old configuration stays", file.display());
    texts.join("; ")
}

/// Options that changed but take effect only at a start. `serves_measurements` tells whether the
/// measuring service has its socket.
pub(super) fn needs_restart(old: &Config, new: &Config, serves_measurements: bool) -> Vec<String> {
    let (before, now) = (&old.gateway, &new.gateway);
    let port = |gateway: &crate::config::Gateway| gateway.listen_port.as_ref().map(|p| p.value);
    let user = |gateway: &crate::config::Gateway| gateway.user.as_ref().map(|u| u.value.clone());
    let metrics = |gateway: &crate::config::Gateway| gateway.metrics.as_ref().map(|m| m.value);
    let changes = [
        ("tun", before.tun != now.tun),
        ("private_key_file", before.public_key != now.public_key),
        ("control_socket", before.control_socket != now.control_socket),
        ("state_file", before.state_file != now.state_file),
        ("listen_port", port(before) != port(now)),
        ("more_ports", before.more_ports != now.more_ports),
        ("user", user(before) != user(now)),
        ("sandbox", before.sandbox != now.sandbox),
        ("nat", is_nat_out_of_reach(old, new)),
        ("sandbox for a [[hook]] with a command", are_hooks_out_of_reach(old, new)),
        ("when_down", must_when_down_wait(old, new)),
        ("sandbox for [[beside]]", is_beside_out_of_reach(old, new)),
        ("mtu", before.mtu != now.mtu),
        ("address", before.addresses != now.addresses),
        ("measure_port", before.measure_port != now.measure_port),
        ("metrics", metrics(before) != metrics(now)),
        ("measure", !serves_measurements && new.serves_measurements()),
    ];
    let changed = changes.into_iter().filter(|(_, changed)| *changed);
    let mut names: Vec<_> = changed.map(|(name, _)| format!("[gateway] {name}")).collect();
    if old.dns.is_none() && new.dns.is_some() {
        names.push("[dns], which was not there,".into());
    }
    if listening_link_differs(&old.paths, &new.paths) {
        names.push("whether there is any [[path]]".into());
    }
    names
}

/// A sandbox entered without NAT lets no program run, and NAT needs one.
fn is_nat_out_of_reach(old: &Config, new: &Config) -> bool {
    old.gateway.sandbox && !old.needs_nft() && new.needs_table()
}

/// The same goes for what goes beside the bond.
fn is_beside_out_of_reach(old: &Config, new: &Config) -> bool {
    old.gateway.sandbox && !old.needs_nft() && !new.beside.is_empty()
}

/// The kill switch is there before the sockets, which have its mark; and a sandbox may let no
/// program run.
fn must_when_down_wait(old: &Config, new: &Config) -> bool {
    let (before, now) = (old.gateway.when_down, new.gateway.when_down);
    let nft_is_away = old.gateway.sandbox && !old.needs_nft() && now != WhenDown::Hold;
    before != now && ([before, now].contains(&WhenDown::Block) || nft_is_away)
}

/// The same goes for hooks: programs in folders that were not named at the start.
fn are_hooks_out_of_reach(old: &Config, new: &Config) -> bool {
    let folder = |program: &Path| program.parent().map(Path::to_owned);
    let known: Vec<_> = old.hook_programs().map(folder).collect();
    old.gateway.sandbox && new.hook_programs().any(|program| !known.contains(&folder(program)))
}

/// Whether the listening socket is the one link before and not after, or the other way round.
fn listening_link_differs(old: &[PathConfig], new: &[PathConfig]) -> bool {
    old.is_empty() != new.is_empty()
}

/// The new configuration, but with the old values of options that need a restart.
pub(super) fn keep_what_stays(old: &Config, mut new: Config) -> Config {
    let nat_waits = is_nat_out_of_reach(old, &new);
    let when_down_waits = must_when_down_wait(old, &new);
    if is_beside_out_of_reach(old, &new) {
        new.beside.clone_from(&old.beside);
    }
    let (before, now) = (&old.gateway, &mut new.gateway);
    if nat_waits {
        now.nat.clone_from(&before.nat);
        now.return_by_bond = before.return_by_bond;
        new.forwards.clone_from(&old.forwards);
    }
    if when_down_waits {
        now.when_down = before.when_down;
    }
    now.sandbox = before.sandbox;
    now.tun.clone_from(&before.tun);
    now.control_socket.clone_from(&before.control_socket);
    now.state_file.clone_from(&before.state_file);
    now.listen_port.clone_from(&before.listen_port);
    now.more_ports.clone_from(&before.more_ports);
    now.user.clone_from(&before.user);
    now.addresses.clone_from(&before.addresses);
    now.mtu = before.mtu;
    now.measure_port = before.measure_port;
    now.metrics.clone_from(&before.metrics);
    now.private_key.clone_from(&before.private_key);
    now.public_key = before.public_key;
    if old.dns.is_none() {
        new.dns = None;
    }
    if listening_link_differs(&old.paths, &new.paths) {
        new.paths.clone_from(&old.paths);
    }
    new
}

/// Whether forwarding or NAT has to be set up again.
pub(super) fn host_differs(old: &Config, new: &Config) -> bool {
    let asked = |config: &Config| {
        let gateway = &config.gateway;
        let forwards = config.forwards.clone();
        let lans = config.lan_prefixes();
        (gateway.forward, lans, gateway.nat.clone(), gateway.return_by_bond, forwards)
    };
    let prefixes = |config: &Config| -> Vec<_> {
        config.peers.iter().flat_map(|peer| &peer.allowed_ips).map(|p| p.value).collect()
    };
    let any = new.gateway.forward || new.needs_table();
    asked(old) != asked(new) || (any && prefixes(old) != prefixes(new))
}
