//! Forwarding and NAT of the host, only when the configuration asks for them.
//!
//! Changes are written to the state file first, so that they can be undone at exit, or by the next
//! start if there was no orderly exit.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use plait_net::rights::may_write;
use plait_proto::config::Prefix;

use super::advertisements;
use super::state::StateFile;
use super::{answers, forwards};
use crate::config::{Config, Nat};

/// Whether the host forwards IPv4.
pub(crate) const FORWARD_IPV4: &str = "/proc/sys/net/ipv4/ip_forward";
/// Whether the host forwards IPv6.
pub(crate) const FORWARD_IPV6: &str = "/proc/sys/net/ipv6/conf/all/forwarding";

/// Forwarding or NAT cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error("the program nft is missing, which [gateway] nat needs")]
    NftMissing,
    #[error("[gateway] nat: nft refused: {0}")]
    NftRefused(String),
    #[error("[gateway] nat: cannot run nft: {0}")]
    Nft(io::Error),
    #[error("[gateway] return_by_bond: {0:#}")]
    Answers(anyhow::Error),
    #[error("forward: cannot set {sysctl}: {cause}")]
    Sysctl { sysctl: &'static str, cause: io::Error },
}

impl HostError {
    /// The error, where another option of `[gateway]` than `nat` needs nft.
    pub(crate) fn of(&self, option: &str) -> String {
        match self {
            Self::NftMissing => format!("the program nft is missing, which {option} needs"),
            _ => self.of_table(&format!("[gateway] {option}")),
        }
    }

    /// The error, where a section of the file needs nft.
    pub(crate) fn of_table(&self, section: &str) -> String {
        match self {
            Self::NftMissing => format!("the program nft is missing, which {section} needs"),
            Self::NftRefused(said) => format!("{section}: nft refused: {said}"),
            Self::Nft(cause) => format!("{section}: cannot run nft: {cause}"),
            Self::Sysctl { .. } | Self::Answers(_) => self.to_string(),
        }
    }

    /// The remedy, where another option of `[gateway]` than `nat` needs nft.
    pub(crate) fn help_of(&self, option: &str) -> String {
        match self {
            Self::NftMissing => {
                format!("install it (Debian and Ubuntu: package nftables), or remove `{option}`")
            }
            Self::NftRefused(_) => {
                "the kernel needs nf_tables with NAT, FIB look-ups and zones of conntrack \
                 (`modprobe -a nft_masq nft_fib_inet nft_ct`), and plait the right CAP_NET_ADMIN"
                    .into()
            }
            Self::Nft(_) | Self::Sysctl { .. } | Self::Answers(_) => self.help().into(),
        }
    }

    /// The remedy.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::NftMissing => {
                "install it (Debian and Ubuntu: package nftables), or remove `nat` and hide the \
                 inner addresses by other means"
            }
            Self::NftRefused(_) => {
                "the kernel needs nf_tables with NAT (`modprobe nft_masq`), and plait the right \
                 CAP_NET_ADMIN"
            }
            Self::Nft(_) => "look at the program nft",
            Self::Answers(_) => {
                "the kernel needs policy routing (CONFIG_IP_MULTIPLE_TABLES), and plait the right \
                 CAP_NET_ADMIN; or remove `return_by_bond`"
            }
            Self::Sysctl { .. } => {
                "in a container /proc/sys may be read-only: set the sysctl outside and remove \
                 `forward`"
            }
        }
    }
}

/// Whether the program nft exists.
fn nft_exists() -> bool {
    let run = nft_command().arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    !run.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The program, also when PATH lacks the folders of system programs.
fn nft_command() -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("nft");
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// Gives commands to nft, which applies all or none; with the option `--check` none.
///
/// # Errors
/// nft is missing, does not run, or refuses.
pub(crate) fn nft(options: &[&str], script: &str) -> Result<(), HostError> {
    let spawned = nft_command()
        .args(options)
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HostError::NftMissing,
        _ => HostError::Nft(error),
    })?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    // Its answer shows whether it read everything.
    let _ = stdin.write_all(script.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(HostError::Nft)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(HostError::NftRefused(said.lines().next().unwrap_or("without a word").to_owned()))
}

/// What nft prints with these arguments.
///
/// # Errors
/// nft is missing, does not run, or refuses.
pub(super) fn nft_list(arguments: &[&str]) -> Result<String, HostError> {
    let listed = nft_command().args(arguments).stdin(Stdio::null()).output();
    let output = listed.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HostError::NftMissing,
        _ => HostError::Nft(error),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(HostError::NftRefused(said.lines().next().unwrap_or_default().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The `inet` tables of this host's packet filter.
///
/// # Errors
/// nft is missing, does not run, or refuses.
pub(super) fn nft_tables() -> Result<Vec<String>, HostError> {
    let listed = nft_list(&["list", "tables", "inet"])?;
    let names = listed.lines().filter_map(|line| line.strip_prefix("table inet "));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// A device's name as part of a table's. Device names may contain characters that table names may
/// not.
pub(super) fn plain_name(tun: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    tun.chars().map(plain).collect()
}

/// The name of a TUN device's table.
fn table_name(tun: &str) -> String {
    format!("plait_{}", plain_name(tun))
}

/// Commands that remove a table, whether it is there or not.
pub(super) fn removal(table: &str) -> String {
    format!("table inet {table}\ndelete table inet {table}\n")
}

/// Commands that make the table again: NAT, services behind the bond, the way back of answers.
fn table(config: &Config, prefixes: &[Prefix], answer_mark: Option<u32>) -> String {
    let Config { gateway, .. } = config;
    let mut chains = masquerading(&gateway.tun, &gateway.nat, prefixes);
    chains.push_str(&forwards::chains(config));
    chains.extend(answer_mark.map(|mark| forwards::marking(&gateway.tun, mark)));
    let table = table_name(&gateway.tun);
    let mut script = removal(&table);
    if !chains.is_empty() {
        let _ = write!(script, "table inet {table} {{\n{chains}}}\n");
    }
    script
}

/// A chain by which packets from the peers' prefixes leave with the host's own address.
fn masquerading(tun: &str, nat: &Nat, prefixes: &[Prefix]) -> String {
    if *nat == Nat::Off {
        return String::new();
    }
    let mut script = "  chain postrouting {\n".to_owned();
    script.push_str("    type nat hook postrouting priority srcnat; policy accept;\n");
    for rule in rules(tun, nat, prefixes) {
        let _ = writeln!(script, "    {rule}");
    }
    script.push_str("  }\n");
    script
}

/// A rule for each prefix; none when nothing is hidden.
fn rules(tun: &str, nat: &Nat, prefixes: &[Prefix]) -> Vec<String> {
    let leaves_by = match nat {
        Nat::Off => return Vec::new(),
        Nat::Everywhere => format!("!= \"{tun}\""),
        Nat::Interfaces(names) => {
            let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
            format!("{{ {} }}", quoted.join(", "))
        }
    };
    let rule = |Prefix { address, length }: &Prefix| {
        let source = match (address, length) {
            (IpAddr::V4(_), 0) => "meta nfproto ipv4".to_owned(),
            (IpAddr::V6(_), 0) => "meta nfproto ipv6".to_owned(),
            (IpAddr::V4(address), length) => format!("ip saddr {address}/{length}"),
            (IpAddr::V6(address), length) => format!("ip6 saddr {address}/{length}"),
        };
        format!("{source} oifname {leaves_by} masquerade")
    };
    prefixes.iter().map(rule).collect()
}

/// Hides more prefixes, beside those that are hidden already.
///
/// # Errors
/// nft does not run, or refuses.
pub(super) fn hide_more(config: &Config, prefixes: &[Prefix]) -> Result<(), HostError> {
    let Config { gateway, .. } = config;
    let table = table_name(&gateway.tun);
    let mut script = String::new();
    for rule in rules(&gateway.tun, &gateway.nat, prefixes) {
        let _ = writeln!(script, "add rule inet {table} postrouting {rule}");
    }
    nft(&[], &script)
}

/// Undoes what an earlier run left, then sets up what the configuration asks for.
///
/// # Errors
/// Something cannot be set up; the rest is then undone.
pub(super) fn apply(
    config: &Config,
    prefixes: &[Prefix],
    file: &mut StateFile,
) -> Result<(), HostError> {
    // A table that is made again is replaced in one step: without it, for a moment, the kernel
    // would reset the connections whose addresses it hides.
    let table = table_name(&config.gateway.tun);
    undo_but(file, config.needs_table().then_some(&table));
    let forwarded = match forwarded(config, prefixes) {
        [false, false] => Ok(()),
        [any_ipv4, any_ipv6] => {
            forward(file, any_ipv4, any_ipv6, &advertisements::links_of(config))
        }
    };
    let result = forwarded.and_then(|()| set_nat(config, prefixes, file));
    if result.is_err() {
        undo(file);
    }
    result
}

/// Whether any prefix is IPv4, and whether any is IPv6.
pub(super) fn families(prefixes: &[Prefix]) -> [bool; 2] {
    [IpAddr::is_ipv4, IpAddr::is_ipv6]
        .map(|is_of: fn(&IpAddr) -> bool| prefixes.iter().any(|prefix| is_of(&prefix.address)))
}

/// Whether the host is made to forward IPv4, and whether IPv6. `prefixes` are those of the peers.
pub(super) fn forwarded(config: &Config, prefixes: &[Prefix]) -> [bool; 2] {
    let of_peers = if config.gateway.forward { families(prefixes) } else { [false; 2] };
    let of_lans = families(&config.lan_prefixes());
    [of_peers[0] || of_lans[0], of_peers[1] || of_lans[1]]
}

/// The sysctls of the families that are to be forwarded.
fn sysctls(any_ipv4: bool, any_ipv6: bool) -> impl Iterator<Item = &'static str> {
    let both = [(FORWARD_IPV4, any_ipv4), (FORWARD_IPV6, any_ipv6)];
    both.into_iter().filter_map(|(sysctl, wanted)| wanted.then_some(sysctl))
}

/// Whether [`apply`] could switch on the forwarding that is asked for; nothing is changed.
///
/// # Errors
/// A sysctl is missing or may not be set.
pub(crate) fn can_forward(config: &Config) -> Result<(), HostError> {
    let [any_ipv4, any_ipv6] = forwarded(config, &config.allowed_prefixes());
    for sysctl in sysctls(any_ipv4, any_ipv6) {
        let failed = |cause| HostError::Sysctl { sysctl, cause };
        let is_on = fs::read_to_string(sysctl).map_err(failed)?.trim() == "1";
        if !is_on && !may_write(Path::new(sysctl)) {
            return Err(failed(io::ErrorKind::PermissionDenied.into()));
        }
    }
    Ok(())
}

/// Whether nft is there and, with `has_rights`, whether the kernel would take the table; nothing is
/// changed.
///
/// # Errors
/// The same as [`apply`]'s.
pub(crate) fn can_masquerade(config: &Config, has_rights: bool) -> Result<(), HostError> {
    if !nft_exists() {
        return Err(HostError::NftMissing);
    }
    let mark = config.gateway.return_by_bond.then_some(1);
    let script = table(config, &config.allowed_prefixes(), mark);
    if has_rights { nft(&["--check"], &script) } else { Ok(()) }
}

/// Makes the host forward packets of these families, until [`undo`], and keep accepting router
/// advertisements on its links.
///
/// # Errors
/// A sysctl cannot be set.
pub(crate) fn forward(
    file: &mut StateFile,
    any_ipv4: bool,
    any_ipv6: bool,
    links: &[String],
) -> Result<(), HostError> {
    if any_ipv6 {
        advertisements::keep(file, links);
    }
    for sysctl in sysctls(any_ipv4, any_ipv6) {
        let failed = |cause| HostError::Sysctl { sysctl, cause };
        let before = fs::read_to_string(sysctl).map_err(failed)?.trim().to_owned();
        if before == "1" {
            continue;
        }
        file.state.sysctls.insert(sysctl.into(), before);
        file.save();
        fs::write(sysctl, "1").map_err(failed)?;
        log::info!("{sysctl} is set to 1");
    }
    Ok(())
}

/// Sets the table up anew, if there is to be one.
///
/// # Errors
/// nft does not run, or refuses.
pub(super) fn set_nat(
    config: &Config,
    prefixes: &[Prefix],
    file: &mut StateFile,
) -> Result<(), HostError> {
    let Config { gateway, .. } = config;
    if !config.needs_table() {
        return Ok(());
    }
    let name = table_name(&gateway.tun);
    file.state.nat_table = Some(name.clone());
    file.save();
    let mark = gateway.return_by_bond.then(|| answers::mark_of(&gateway.tun)).transpose();
    let mark = mark.map_err(HostError::Answers)?;
    nft(&[], &table(config, prefixes, mark))?;
    if let Some(mark) = mark {
        answers::lead_back(&gateway.tun, mark, file).map_err(HostError::Answers)?;
    }
    log::info!("NAT is set up: nft list table inet {name}");
    Ok(())
}

/// Undoes what the state file says was done, by this run or one that crashed.
pub(crate) fn undo(file: &mut StateFile) {
    undo_but(file, None);
}

/// As [`undo`], but leaves the table of this name.
fn undo_but(file: &mut StateFile, kept: Option<&String>) {
    answers::undo(file);
    if let Some(table) = file.state.nat_table.take_if(|table| Some(&*table) != kept) {
        // Somebody else may have written the file: only a table of ours is removed.
        let ours = table.starts_with("plait_") && table_name(&table[6..]) == table;
        if ours && let Err(error) = nft(&[], &removal(&table)) {
            log::warn!("the table {table} is not removed: {error}");
        }
    }
    for (sysctl, before) in std::mem::take(&mut file.state.sysctls) {
        let known = [FORWARD_IPV4, FORWARD_IPV6].iter().any(|known| sysctl == Path::new(known))
            || advertisements::is_known(&sysctl);
        let sound = known && before.parse::<u8>().is_ok();
        if sound
            && let Err(error) = fs::write(&sysctl, &before)
            && !advertisements::is_gone(&sysctl, &error)
        {
            log::warn!("{} is not set back to {before}: {error}", sysctl.display());
        }
    }
    file.save();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix { address: text.parse().unwrap(), length }
    }

    #[test]
    fn the_table_hides_the_peers_prefixes_where_it_should() {
        let prefixes = [prefix("10.99.0.2", 32), prefix("::", 0)];
        let nat = Nat::Interfaces(vec!["eth0".into(), "wan".into()]);
        assert_eq!(
            masquerading("plait0", &nat, &prefixes),
            "  chain postrouting {\n    \
             type nat hook postrouting priority srcnat; policy accept;\n    \
             ip saddr 10.99.0.2/32 oifname { \"eth0\", \"wan\" } masquerade\n    \
             meta nfproto ipv6 oifname { \"eth0\", \"wan\" } masquerade\n  }\n"
        );
        let script = masquerading("a@b:1", &Nat::Everywhere, &prefixes[..1]);
        assert_eq!(table_name("a@b:1"), "plait_a_b_1");
        assert!(script.contains("10.99.0.2/32 oifname != \"a@b:1\" masquerade"), "{script}");
    }

    #[test]
    fn a_state_file_of_others_undoes_nothing() {
        let folder = std::env::temp_dir().join(format!("plait-undo-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let victim = folder.join("victim");
        fs::write(&victim, "kept").unwrap();
        let mut file = StateFile::open(&folder.join("state.json"));
        file.state.sysctls.insert(victim.clone(), "0".into());
        file.state.nat_table = Some("filter".into());
        undo(&mut file);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(file.state.nat_table, None);
        fs::remove_dir_all(folder).unwrap();
    }
}
