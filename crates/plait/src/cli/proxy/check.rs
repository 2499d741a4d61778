//! `plait proxy check`: is a proxy's file sound, and is the machine ready for it?

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use plait_net::rights::raise_open_files;
use plait_proxy::config::Listener;
use plait_proxy::{Proxy, StartError};

use crate::advice::Advised;
use crate::cli::check::{from_errors, plural, tell};
use crate::cli::{Outcome, control};
use crate::config::{ConfigErrors, user_of};
use crate::machine::Finding;
use crate::proxy::config::{ProxyConfig, host};
use crate::proxy::{Report, files_for};

pub(super) fn run(file: &Path, json: bool) -> anyhow::Result<Outcome> {
    tell(&findings(file), json)
}

fn findings(file: &Path) -> Vec<Finding> {
    let config = match ProxyConfig::load(file) {
        Ok(config) => config,
        Err(errors) => return from_errors(&errors),
    };
    let place = file.display().to_string();
    let mut findings = vec![Finding::ok(&place, summary(&config))];
    if let Err(error) = user_of(config.user.as_ref()) {
        findings.push(Finding::error(&place, error.to_string(), error.help()));
    }
    let mut congestion = config.config.congestion.as_deref();
    if let Err(error) = Proxy::check(&config.config) {
        if matches!(error, StartError::Congestion { .. }) {
            // Told once, not of each listener again.
            congestion = None;
        }
        findings.push(Finding::error(&place, error.to_string(), error.help()));
    }
    let running = running(&config);
    for listener in &config.config.listeners {
        findings.push(of_listener(listener, congestion, &running));
    }
    if !running.is_empty() {
        let told = format!("{} runs: `plait reload` has it read the file again", config.name);
        findings.push(Finding::ok("control socket", told));
    }
    findings.push(of_open_files(&config));
    findings.extend(of_host(file));
    findings
}

fn summary(config: &ProxyConfig) -> String {
    let ProxyConfig { name, config, .. } = config;
    let listeners = plural(config.listeners.len(), "listener");
    let accesses = match config.accesses.len() {
        0 => "no access of which the share is told".to_owned(),
        1 => "1 access".to_owned(),
        count => format!("{count} accesses"),
    };
    format!("{name} with {listeners}, {accesses}")
}

/// Where a proxy of this file listens now.
fn running(config: &ProxyConfig) -> Vec<SocketAddr> {
    let answer = control::ask_for(&config.control_socket, "status").unwrap_or_default();
    let report = serde_json::from_str::<Report>(&answer).ok();
    let listeners = report.map(|report| report.snapshot.listeners).unwrap_or_default();
    listeners.into_iter().map(|listener| listener.address).collect()
}

fn of_listener(listener: &Listener, congestion: Option<&str>, running: &[SocketAddr]) -> Finding {
    let Listener { address, way, multipath } = listener;
    let subject = format!("{} on {address}", way.name());
    match Proxy::try_listener(listener, congestion) {
        Ok(true) => Finding::ok(subject, "accepts MPTCP and TCP"),
        Ok(false) if *multipath => Finding::warning(
            subject,
            "accepts TCP alone: there is no MPTCP here",
            "take a kernel with CONFIG_MPTCP, and set net.mptcp.enabled to 1",
        ),
        Ok(false) => Finding::ok(subject, "accepts TCP"),
        Err(error) => match &error {
            StartError::Listen { cause, .. }
                if cause.kind() == io::ErrorKind::AddrInUse && running.contains(address) =>
            {
                Finding::ok(subject, "held by the proxy that runs")
            }
            _ => Finding::error(subject, error.to_string(), error.help()),
        },
    }
}

fn of_open_files(config: &ProxyConfig) -> Finding {
    let most = config.config.limits.connections_max;
    let wanted = files_for(most);
    // Of this process alone: as far as it goes is as far as it goes for the proxy.
    match raise_open_files(wanted) {
        Ok(limit) if limit < wanted => Finding::warning(
            "open files",
            format!("{limit} may be open, and {most} connections take {wanted}"),
            format!(
                "raise the limit (`ulimit -n {wanted}`, or LimitNOFILE= of a service), or lower \
                 `connections_max`"
            ),
        ),
        Ok(limit) => Finding::ok("open files", format!("{limit} may be open")),
        Err(error) => Finding::warning("open files", error.to_string(), "look at `ulimit -n`"),
    }
}

/// What the file says for `plait proxy endpoints` and `plait proxy rules`.
fn of_host(file: &Path) -> Vec<Finding> {
    let (has_links, has_rules) = match host::has_links_and_rules(file) {
        Ok(has) => has,
        Err(errors) => return from_errors(&errors),
    };
    let mut findings = Vec::new();
    if has_links {
        match host::load_endpoints(file) {
            Ok(config) => {
                let links = plural(config.links.len(), "link");
                findings.push(Finding::ok("plait proxy endpoints", links));
            }
            Err(errors) => findings.extend(from_errors(&errors)),
        }
    }
    if has_rules {
        findings.push(match host::load_rules(file) {
            Ok(rules) => {
                Finding::ok("plait proxy rules", plural(rules.len(), "transparent listener"))
            }
            Err(error) => of_error("plait proxy rules", &error),
        });
    }
    findings
}

/// An error of any kind, with its remedy where it has one.
fn of_error(subject: &str, error: &anyhow::Error) -> Finding {
    if let Some(errors) = error.downcast_ref::<ConfigErrors>()
        && let Some(first) = from_errors(errors).into_iter().next()
    {
        return first;
    }
    let help = error.downcast_ref::<Advised>().map_or("look at the file", |error| error.help());
    Finding::error(subject, format!("{error:#}"), help)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;

    use super::*;
    use crate::machine::Level;

    /// What is found of a file with this text.
    fn found(name: &str, text: &str) -> Vec<Finding> {
        let folder = std::env::temp_dir().join(format!("plait-check-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.toml"));
        fs::write(&file, text).unwrap();
        let found = findings(&file);
        fs::remove_file(file).unwrap();
        found
    }

    fn text_of(listener: SocketAddr, more: &str) -> String {
        format!(
            "[proxy]\nname = \"checked\"\nallow = [\"10.0.0.0/8\"]\nconnections_max = 10\n{more}\
             [[listen]]\naddress = \"{listener}\"\nmptcp = false\n"
        )
    }

    /// An address that nobody listens on, as a file needs a real port.
    fn free() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    fn errors(findings: &[Finding]) -> String {
        let errors = findings.iter().filter(|finding| finding.level == Level::Error);
        let errors = errors.map(|it| format!("{}: {} ({:?})", it.subject, it.text, it.help));
        errors.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_sound_file_has_no_errors_and_each_mistake_its_own() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let busy = taken.local_addr().unwrap();
        let any = free();
        assert_eq!(errors(&found("sound", &text_of(any, ""))), "");
        for (name, text, word) in [
            ("busy", text_of(busy, ""), "another program has port"),
            ("user", text_of(any, "user = \"nobody-of-this-name\"\n"), "no user called"),
            ("congestion", text_of(any, "congestion = \"no-such\"\n"), "congestion control"),
            ("typo", text_of(any, "alow = \"10.0.0.0/8\"\n"), "alow"),
            ("nobody", text_of(any, "").replace("allow =", "deny_to ="), "nobody could use"),
            ("link", text_of(any, "") + "[[path]]\nname = \"dsl\"\n", "path"),
            ("rules", text_of(any, "") + "[rules]\n", "no listener is transparent"),
        ] {
            let found = errors(&found(name, &text));
            assert!(found.contains(word) && !found.contains("None"), "{name}: {found}");
        }
    }
}
