//! What the gateway opens besides the device: ports, the control socket, its file; and the user it
//! becomes.

use std::fs::File;
use std::io;
use std::net::TcpListener;

use plait_net::rights::can_become;
use plait_net::tcp;
use plait_net::udp::{BindError, BindTo, UdpSocket};

use super::{Finding, Running, gateway_option, option_at};
use crate::config::{Config, user_of};
use crate::control;
use crate::daemon::{CANNOT_BECOME_HELP, CannotListen, StateFile};
use crate::holder::{Holder, by};

pub(super) fn listen_port(subject: &str, port: u16, running: Running) -> Finding {
    match UdpSocket::bind(&BindTo { port, ..BindTo::default() }) {
        Ok(_) => Finding::ok(subject, format!("UDP port {port} is free")),
        Err(BindError::PortInUse { .. }) => {
            let holder = Holder::of_udp_port(port);
            if let Some(own) =
                running.finding(subject, &format!("UDP port {port}"), holder.as_ref())
            {
                return own;
            }
            let text = format!("UDP port {port} is in use{}", by(holder.as_ref()));
            let help = match holder {
                Some(_) => "stop that, or choose another port".to_owned(),
                None => format!(
                    "`ss -ulpn sport = :{port}` shows by whom; stop that, or choose another port"
                ),
            };
            Finding::error(subject, text, help)
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            Finding::error(
                subject,
                format!("UDP port {port} cannot be opened{}", cause.unwrap_or_default()),
                "choose a port from 1024 on, or run plait as root",
            )
        }
    }
}

pub(super) fn control_socket(config: &Config, running: Running) -> Finding {
    let path = &config.gateway.control_socket;
    let subject = gateway_option(config, "control_socket");
    // By it the running gateway was found.
    if let Some(own) = running.its_own(&subject, &path.display().to_string()) {
        return own;
    }
    // A missing user is a finding of its own.
    let user = user_of(config.gateway.user.as_ref()).ok().flatten();
    match control::probe(path, "[gateway]", user) {
        Ok(()) => Finding::ok(subject, format!("{} can be opened", path.display())),
        Err(error) => {
            let causes = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let text = format!("{error}{}", causes.unwrap_or_default());
            Finding::error(subject, text, error.help())
        }
    }
}

pub(super) fn state_file(config: &Config, running: Running) -> Finding {
    let path = &config.gateway.state_file;
    let subject = gateway_option(config, "state_file");
    if let Err(error) = StateFile::check_unused(path) {
        let holder = File::open(path).ok().and_then(|file| Holder::of_lock(&file));
        return running
            .finding(&subject, &path.display().to_string(), holder.as_ref())
            .unwrap_or_else(|| Finding::error(subject, error.to_string(), error.help()));
    }
    match StateFile::problem(path) {
        None => Finding::ok(subject, format!("{} can be written", path.display())),
        Some(problem) => Finding::warning(
            subject,
            format!("{}: {problem}; a restart forgets quotas and addresses", path.display()),
            "set `state_file` to one that plait may write; one that is damaged can be removed",
        ),
    }
}

/// The device does not exist yet, so the port is tried on the loopback device: a program that
/// listens on all devices blocks it there too.
pub(super) fn measure_port(config: &Config, running: Running) -> Option<Finding> {
    let port = config.gateway.measure_port;
    let subject = gateway_option(config, "measure_port");
    let tried = config.serves_measurements().then(|| tcp::listen_on("lo", port))?;
    Some(match tried {
        Ok(_) => Finding::ok(subject, format!("TCP port {port} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let help = format!(
                "`ss -tlpn sport = :{port}` shows by whom; stop that, or set another \
                 `measure_port`"
            );
            let text = format!("TCP port {port} is in use");
            let own = of_tcp(running, &subject, port);
            own.unwrap_or_else(|| Finding::error(subject, text, help))
        }
        Err(error) => Finding::error(
            subject,
            format!("TCP port {port} cannot be opened: {error}"),
            "choose a port from 1024 on, or run plait as root",
        ),
    })
}

/// An inner address does not exist yet: its port is tried on the loopback device instead.
pub(super) fn metrics(config: &Config, running: Running) -> Option<Finding> {
    let metrics = config.gateway.metrics.as_ref()?;
    let subject = option_at(config, metrics.line, "[gateway] metrics");
    let address = metrics.value;
    let is_inner = config.gateway.addresses.iter().any(|own| own.address == address.ip());
    if is_inner && config.serves_measurements() && config.gateway.measure_port == address.port() {
        let text = format!("TCP port {} is `measure_port` too", address.port());
        return Some(Finding::error(subject, text, "set another port"));
    }
    let tried = match is_inner {
        true => tcp::listen_on("lo", address.port()),
        false => TcpListener::bind(address),
    };
    Some(match tried {
        Ok(_) => Finding::ok(subject, format!("{address} can be listened on")),
        Err(error) => {
            // That an address is not this machine's is no matter of who has the port.
            if error.kind() == io::ErrorKind::AddrInUse
                && let Some(own) = of_tcp(running, &subject, address.port())
            {
                return Some(own);
            }
            let problem = CannotListen { address, cause: error };
            Finding::error(subject, problem.to_string(), problem.help())
        }
    })
}

/// What was found of a TCP port that cannot be had, if the running gateway has it.
fn of_tcp(running: Running, subject: &str, port: u16) -> Option<Finding> {
    let holder = Holder::of_tcp_port(port);
    running.finding(subject, &format!("TCP port {port}"), holder.as_ref())
}

pub(super) fn user(config: &Config) -> Option<Finding> {
    let user = config.gateway.user.as_ref()?;
    let subject = option_at(config, user.line, "[gateway] user");
    let id = match user_of(Some(user)) {
        Ok(id) => id?,
        Err(error) => return Some(Finding::error(subject, error.to_string(), error.help())),
    };
    Some(match can_become(id) {
        Ok(()) => Finding::ok(subject, format!("{} exists", user.value)),
        Err(error) => {
            let text = format!("plait cannot become {}: {error}", user.value);
            Finding::error(subject, text, CANNOT_BECOME_HELP)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::super::Level;
    use super::*;

    #[test]
    fn a_port_in_use_is_found() {
        let holder = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = holder.local_addr().unwrap().port();
        let in_use = listen_port("x", port, Running(None)).text;
        assert!(in_use.starts_with(&format!("UDP port {port} is in use by `")), "{in_use}");
        let own = format!("(process {})", std::process::id());
        assert!(in_use.ends_with(&own), "{in_use}");
        let own = listen_port("x", port, Running(Some(std::process::id())));
        assert_eq!(own.level, Level::Ok, "{}", own.text);
        assert_ne!(listen_port("x", port, Running(Some(1))).level, Level::Ok);
        drop(holder);
        assert_eq!(listen_port("x", port, Running(None)).level, Level::Ok);
    }
}
