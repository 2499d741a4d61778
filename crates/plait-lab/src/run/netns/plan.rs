//! Checks which scenarios the namespaces can run, and sets the kernel up for them.

use std::path::Path;

use plait_net::netns::NetNs;
use plait_proto::congestion::Algorithm;
use plait_sim::scenario::app::{Direction, TcpKind, TcpSpec, Traffic, Via, controller};
use plait_sim::scenario::rate::UDP_HEADER_BYTES;
use plait_sim::scenario::{AppSpec, Backend, Scenario, SteerSpec};

use super::error::NetnsError;
use super::player::{check_video, videos};
use crate::machine::Machine;
use crate::quic;

/// Each link has its own network, 10.N.0.0/30, and 10.99.0.0/24 is the bond's.
const LINKS_MAX: usize = 64;
/// Each flow of the kernel's TCP has two threads.
const TCP_FLOWS_MAX: u32 = 200;
/// Hosts are on Ethernet, as in the simulator.
pub(super) const HOST_MTU_BYTES: u32 = 1500;
/// From this release on the kernel's TCP has only RACK.
const RACK_ALONE: (u32, u32) = (6, 17);

/// Whether the scenario is meant for namespaces.
pub(super) fn check_meant(scenario: &Scenario) -> Result<(), NetnsError> {
    if !scenario.backends.contains(&Backend::Netns) {
        return Err(NetnsError::NotMeant { name: scenario.name.clone() });
    }
    Ok(())
}

/// Whether a file is visible from namespaces.
pub(super) fn check_file(file: &Path) -> Result<(), NetnsError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    if folder.is_ok_and(|folder| folder.starts_with("/run")) {
        return Err(NetnsError::Hidden { file: file.display().to_string() });
    }
    Ok(())
}

/// Whether the namespaces can run the scenario, judged by its settings.
pub(super) fn check(scenario: &Scenario) -> Result<(), NetnsError> {
    let too_many = |what: &str, count: u64, max: u64| {
        let what = what.to_owned();
        if count > max { Err(NetnsError::TooMany { what, count, max }) } else { Ok(()) }
    };
    too_many("links", scenario.links.len() as u64, LINKS_MAX as u64)?;
    check_steering(scenario)?;
    let mut flows = 0;
    for app in &scenario.apps {
        match &app.traffic {
            Traffic::Web(web) if web.tcp.is_quic() => {
                return Err(NetnsError::QuicPages { app: app.name.clone() });
            }
            Traffic::Web(web) => {
                flows += web.connections;
                check_kernel_tcp(app, &web.tcp)?;
            }
            Traffic::Udp(udp) => check_length(app, udp.payload_bytes)?,
            Traffic::OnOff(on_off) => check_length(app, on_off.udp.payload_bytes)?,
            Traffic::Voip(_) => {}
            Traffic::Video(video) => {
                too_many("videos", videos(scenario).count() as u64, 1)?;
                check_video(scenario, app, video)?;
                check_kernel_tcp(app, &video.tcp)?;
            }
            Traffic::Tcp(tcp) if tcp.tcp.is_quic() => {
                flows += tcp.flows;
                check_quic(app, &tcp.tcp)?;
            }
            Traffic::Tcp(tcp) => {
                flows += tcp.flows;
                check_kernel_tcp(app, &tcp.tcp)?;
                check_mptcp(scenario, app, tcp)?;
            }
        }
    }
    too_many("TCP flows", flows.into(), TCP_FLOWS_MAX.into())?;
    sack_of(scenario)?;
    for side in [Direction::Down, Direction::Up] {
        recovery_of(scenario, side, &Machine::detect().kernel)?;
    }
    Ok(())
}

/// Whether the kernel's TCP matches an application's settings.
fn check_kernel_tcp(app: &AppSpec, tcp: &TcpKind) -> Result<(), NetnsError> {
    if tcp.paced {
        return Err(NetnsError::Paced { app: app.name.clone() });
    }
    if !tcp.undo {
        return Err(NetnsError::Undo { app: app.name.clone() });
    }
    kernel_controller(app, tcp)?;
    check_controller_options(app, tcp)
}

/// Real senders decide themselves how they start and what they take for a queue.
fn check_controller_options(app: &AppSpec, tcp: &TcpKind) -> Result<(), NetnsError> {
    match controller::told(&tcp.congestion).first() {
        Some(option) => Err(NetnsError::ControllerOption { app: app.name.clone(), option }),
        None => Ok(()),
    }
}

/// Whether the kernel's MPTCP matches an application's settings.
fn check_mptcp(scenario: &Scenario, app: &AppSpec, tcp: &TcpSpec) -> Result<(), NetnsError> {
    let strange = tcp.mptcp.as_ref().and_then(|it| it.beyond_linux(scenario.links.keys()));
    match strange {
        Some((option, value)) => Err(NetnsError::Mptcp { app: app.name.clone(), option, value }),
        None => Ok(()),
    }
}

/// Whether the lab's QUIC matches an application's settings.
fn check_quic(app: &AppSpec, quic: &TcpKind) -> Result<(), NetnsError> {
    let (name, controller) = (app.name.clone(), quic.controller.clone());
    if app.via == Via::Mptcp {
        return Err(NetnsError::QuicOverMptcp { app: name });
    }
    if !quic::CONTROLLERS.contains(&controller.as_str()) {
        let known = quic::CONTROLLERS.join(", ");
        return Err(NetnsError::QuicController { app: name, controller, known });
    }
    check_controller_options(app, quic)
}

/// The applications that use the kernel's TCP.
fn kernel_tcp(scenario: &Scenario) -> impl Iterator<Item = (&AppSpec, &TcpKind)> {
    let of_kernel = |tcp: &&TcpKind| !tcp.is_quic();
    scenario.apps.iter().filter_map(move |app| Some((app, app.traffic.tcp().filter(of_kernel)?)))
}

/// Whether the hosts' TCP uses SACK.
fn sack_of(scenario: &Scenario) -> Result<bool, NetnsError> {
    let mut found: Option<(&str, bool)> = None;
    for (app, tcp) in kernel_tcp(scenario) {
        match found {
            Some((other, known)) if known != tcp.sack => {
                let (app, other) = (app.name.clone(), other.to_owned());
                return Err(NetnsError::Sacks { app, other });
            }
            _ => found = Some((&app.name, tcp.sack)),
        }
    }
    Ok(found.is_none_or(|(_, sack)| sack))
}

/// Checks the steering node between provider and server.
fn check_steering(scenario: &Scenario) -> Result<(), NetnsError> {
    let not_yet = |what: &str| Err(NetnsError::NotYet { what: what.to_owned() });
    match (&scenario.steer, &scenario.bond) {
        (_, Some(bond)) if bond.dida.is_some() => not_yet("[bond.dida]"),
        (Some(_), Some(_)) => not_yet("[bond] and [steer] in one scenario"),
        (Some(steer), None) if steer.t_reordering.is_some() => Err(NetnsError::Reordering),
        (Some(steer), None) if steer.clients > 1 => {
            let (what, count) = ("steer.clients".to_owned(), steer.clients.into());
            Err(NetnsError::TooMany { what, count, max: 1 })
        }
        (Some(steer), None) if steers(scenario) => check_beside(scenario, steer),
        _ => Ok(()),
    }
}

/// Whether any application uses the scenario's steering node.
pub(super) fn steers(scenario: &Scenario) -> bool {
    scenario.apps.iter().any(|app| app.via == Via::Steer)
}

/// Whether any application uses the kernel's MPTCP.
pub(super) fn needs_mptcp(scenario: &Scenario) -> bool {
    scenario.apps.iter().any(|app| app.via == Via::Mptcp)
}

fn check_beside(scenario: &Scenario, steer: &SteerSpec) -> Result<(), NetnsError> {
    for app in &scenario.apps {
        if let Via::Link(link) = &app.via
            && steer.links.contains(link)
        {
            return Err(NetnsError::Beside { app: app.name.clone(), link: link.clone() });
        }
    }
    Ok(())
}

fn check_length(app: &AppSpec, payload_bytes: u32) -> Result<(), NetnsError> {
    let bytes = payload_bytes + UDP_HEADER_BYTES;
    if bytes <= HOST_MTU_BYTES {
        return Ok(());
    }
    let less = bytes - HOST_MTU_BYTES;
    Err(NetnsError::Length { app: app.name.clone(), bytes, max: HOST_MTU_BYTES, less })
}

/// The kernel's name of an application's congestion controller.
pub(super) fn kernel_controller(app: &AppSpec, tcp: &TcpKind) -> Result<String, NetnsError> {
    let kernel_name = match tcp.controller.as_str() {
        "new-reno" => "reno",
        "cubic-linux" => "cubic",
        other => other,
    };
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.unwrap_or_default();
    // plait's own, in the kernel while they are loaded.
    let loaded = format!("bpf_{kernel_name}");
    for name in [kernel_name, &loaded] {
        if known.split_whitespace().any(|other| other == name) {
            return Ok(name.to_owned());
        }
    }
    let (app, controller) = (app.name.clone(), tcp.controller.clone());
    let known = known.split_whitespace().collect::<Vec<_>>().join(", ");
    Err(match tcp.congestion.algorithm {
        Algorithm::NewReno | Algorithm::Cubic | Algorithm::CubicLinux | Algorithm::Gauge => {
            let kernel_name = kernel_name.to_owned();
            NetnsError::Controller { app, controller, kernel_name, known }
        }
        Algorithm::Illinois
        | Algorithm::Lia
        | Algorithm::Olia
        | Algorithm::Balia
        | Algorithm::WhiteHaul
        | Algorithm::Edinburgh => NetnsError::LoadedController { app, controller, known },
        Algorithm::Fixed => NetnsError::SimController { app, controller, known },
    })
}

/// The loss recovery of the host that sends in a direction, and the most segments of its
/// duplicate-ACK threshold; `None` without TCP.
fn recovery_of<'a>(
    scenario: &'a Scenario,
    direction: Direction,
    kernel: &str,
) -> Result<Option<(&'a str, u32)>, NetnsError> {
    let mut found: Option<(&str, (&str, u32))> = None;
    for (app, tcp) in kernel_tcp(scenario).filter(|(app, _)| app.direction == direction) {
        let recovery = tcp.recovery.as_str();
        if recovery == "linux-3.2" {
            let what = format!("app.{}: recovery = \"{recovery}\"", app.name);
            return Err(NetnsError::NotYet { what });
        }
        // Without SACK every kernel counts duplicate ACKs (RFC 6582).
        let is_old = recovery != "rack-tlp" && tcp.sack;
        if is_old && release(kernel).is_none_or(|known| known >= RACK_ALONE) {
            return Err(NetnsError::Recovery {
                app: app.name.clone(),
                recovery: recovery.to_owned(),
                kernel: format!("Linux {kernel}"),
            });
        }
        let own = (recovery, tcp.reordering_max);
        match found {
            Some((other, known)) if known != own => {
                let (app, other) = (app.name.clone(), other.to_owned());
                return Err(NetnsError::Recoveries { app, other });
            }
            _ => found = Some((&app.name, own)),
        }
    }
    Ok(found.map(|(_, recovery)| recovery))
}

/// The first two numbers of a kernel's release.
fn release(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.split(['.', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Sets the loss recovery of a sending host's TCP (ip-sysctl of Linux: tcp_sack, tcp_recovery,
/// tcp_early_retrans, tcp_max_reordering). Without SACK that is RFC 6582's.
pub(super) fn set_recovery(
    scenario: &Scenario,
    direction: Direction,
    host: &NetNs,
) -> anyhow::Result<()> {
    let recovery = recovery_of(scenario, direction, &Machine::detect().kernel)?;
    // A connection has SACK when both of its ends enable it.
    let has_sack = sack_of(scenario)?;
    host.set_sysctl("net.ipv4.tcp_sack", if has_sack { "1" } else { "0" })?;
    let Some((recovery, most)) = recovery else { return Ok(()) };
    let most = most.to_string();
    let settings = match recovery {
        _ if !has_sack => [("tcp_early_retrans", "0"), ("tcp_max_reordering", &most)],
        "rfc6675" => [("tcp_recovery", "0"), ("tcp_max_reordering", "3")],
        "rfc6675-adaptive" => [("tcp_recovery", "0"), ("tcp_max_reordering", &most)],
        _ => [("tcp_recovery", "1"), ("tcp_early_retrans", "3")],
    };
    for (key, value) in settings {
        host.set_sysctl(&format!("net.ipv4.{key}"), value)?;
    }
    Ok(())
}

/// Makes a host that receives tell every segment beyond a gap at once, as the simulator's does and
/// kernels before Linux 4.18 did (`tcp_comp_sack_nr` of ip-sysctl), where the sender counts them.
pub(super) fn set_receiver(
    scenario: &Scenario,
    direction: Direction,
    host: &NetNs,
) -> anyhow::Result<()> {
    let recovery = recovery_of(scenario, direction, &Machine::detect().kernel)?;
    if recovery.is_some_and(|(name, _)| name.starts_with("rfc6675")) {
        host.set_sysctl("net.ipv4.tcp_comp_sack_nr", "0")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plait_sim::scenario::Experiment;

    use super::*;

    fn scenario(apps: &str) -> Scenario {
        let head = "name = \"x/y\"\ntitle = \"t\"\nsource = \"s\"\nduration_s = 1\n\
                    backends = [\"netns\"]\n\
                    links.dsl = { rate_mbit = 10, rtt_ms = 10, mtu = 9000 }\n";
        let text = format!("{head}app = [{apps}]\n");
        let read = |_: &Path| Ok(text.clone());
        let none: [&str; 0] = [];
        Experiment::load(Path::new("y.toml"), &none, &read).unwrap().scenario
    }

    #[test]
    fn what_netns_lacks_is_refused_with_a_remedy() {
        for (app, expected) in [
            (
                "{ name = \"a\", kind = \"web\", recovery = \"quic\", via = \"dsl\" }",
                "pages over QUIC",
            ),
            ("{ name = \"a\", kind = \"web\", paced = true, via = \"dsl\" }", "paced = false"),
            ("{ name = \"a\", kind = \"tcp\", flows = 201, via = \"dsl\" }", "201 where"),
            ("{ name = \"a\", kind = \"tcp\", undo = false, via = \"dsl\" }", "undo = true"),
            ("{ name = \"a\", kind = \"tcp\", paced = true, via = \"dsl\" }", "paced = false"),
            (
                "{ name = \"a\", kind = \"tcp\", recovery = \"quic\", controller = \"bbr\", \
                 via = \"dsl\" }",
                "(it has: cubic, new-reno)",
            ),
            (
                "{ name = \"a\", kind = \"tcp\", controller = \"fixed\", via = \"dsl\" }",
                "no TCP congestion controller",
            ),
            (
                "{ name = \"a\", kind = \"tcp\", controller = \"whitehaul\", via = \"dsl\" }",
                "plait cc load whitehaul",
            ),
            (
                "{ name = \"a\", kind = \"tcp\", slow_start = \"hystart++\", via = \"dsl\" }",
                "do not take slow_start; take it out",
            ),
            (
                "{ name = \"a\", kind = \"tcp\", recovery = \"quic\", slow_start = \"standard\", \
                 controller = \"cubic\", via = \"dsl\" }",
                "do not take slow_start; take it out",
            ),
            (
                "{ name = \"a\", kind = \"tcp\", via = \"mptcp\", scheduler = \"min-rtt\" }",
                "app.a: scheduler = \"min-rtt\": the kernel's MPTCP has one scheduler",
            ),
            (
                "{ name = \"a\", kind = \"tcp\", via = \"mptcp\", penalise = true }",
                "penalise = true",
            ),
            (
                "{ name = \"a\", kind = \"tcp\", via = \"mptcp\", send_buffer_bytes = 65536 }",
                "send_buffer_bytes = 65536",
            ),
            (
                "{ name = \"a\", kind = \"video\", kbit = 900, size_spread = 0.2, via = \"dsl\" }",
                "take size_spread out",
            ),
            (
                "{ name = \"a\", kind = \"video\", kbit = 900, page_s = 0, via = \"dsl\" }",
                "take page_s out",
            ),
            (
                "{ name = \"a\", kind = \"video\", kbit = 900, clip_s = 7.5, via = \"dsl\" }",
                "whole numbers",
            ),
            (
                "{ name = \"a\", kind = \"video\", kbit = 900, buffer_s_resume = 4, \
                 via = \"dsl\" }",
                "buffer_s_start and buffer_s_resume",
            ),
            (
                "{ name = \"a\", kind = \"video\", kbit = [900, 2000], abr = \"buffer\", \
                 via = \"dsl\" }",
                "take abr out",
            ),
            ("{ name = \"a\", kind = \"video\", kbit = 200, via = \"dsl\" }", "300 kbit/s"),
            (
                "{ name = \"a\", kind = \"video\", kbit = 900, via = \"dsl\" }, \
                 { name = \"b\", kind = \"video\", kbit = 900, via = \"dsl\" }",
                "videos: 2 where",
            ),
            (
                "{ name = \"a\", kind = \"video\", kbit = 900, via = \"mptcp\", \
                 scheduler = \"min-rtt\" }",
                "one scheduler",
            ),
            (
                "{ name = \"a\", kind = \"udp\", payload_bytes = 1473, via = \"dsl\", \
                 rate = { mbit = 1, layer = \"wire\" } }",
                "make payload_bytes 1 less",
            ),
        ] {
            let error = check(&scenario(app)).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("--on sim"), "{error}");
        }
    }

    #[test]
    fn of_steering_what_only_the_simulator_has_is_refused() {
        let steer_beside = |via: &str, more: &str| {
            let text = format!(
                "name = \"x/y\"\ntitle = \"t\"\nsource = \"s\"\nduration_s = 1\n\
                 links.a = {{ rate_mbit = 10, rtt_ms = 10 }}\n\
                 app = [{{ name = \"a\", kind = \"tcp\" }}, {{ name = \"b\", kind = \"voip\", \
                 via = \"{via}\" }}]\n\
                 [steer]\nlinks = [\"a\"]\n{more}\n"
            );
            let read = |_: &Path| Ok(text.clone());
            let none: [&str; 0] = [];
            Experiment::load(Path::new("y.toml"), &none, &read).unwrap().scenario
        };
        let steer = |more: &str| steer_beside("steer", more);
        let beside = check(&steer_beside("a", "")).unwrap_err();
        assert!(matches!(beside, NetnsError::Beside { .. }), "{beside:?}");
        assert_eq!(check(&steer("[steer.dida]\nhold = 50")), Ok(()));
        for (more, expected) in [
            ("[steer.client]\nt_reordering_ms = 100", "take it out"),
            ("clients = 2", "steer.clients: 2 where netns takes 1"),
            ("[bond]\nlinks = [\"a\"]", "[bond] and [steer]"),
            ("[bond]\nlinks = [\"a\"]\n[bond.dida]", "[bond.dida]"),
        ] {
            let error = check(&steer(more)).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("--on sim"), "{error}");
        }
    }

    #[test]
    fn sack_is_one_for_all_and_without_it_every_kernel_counts_duplicates() {
        let tcp = |name: &str, more: &str| {
            format!("{{ name = \"{name}\", kind = \"tcp\", via = \"dsl\"{more} }}")
        };
        let without = scenario(&tcp("a", ", sack = false"));
        assert_eq!((sack_of(&without), check(&without)), (Ok(false), Ok(())));
        assert_eq!(recovery_of(&without, Direction::Down, "7.0.1"), Ok(Some(("rfc6675", 3))));
        let both = scenario(&[tcp("a", ", sack = false"), tcp("b", "")].join(", "));
        let refused = check(&both).unwrap_err();
        assert!(matches!(refused, NetnsError::Sacks { .. }), "{refused:?}");
        assert_eq!(sack_of(&scenario(&tcp("a", ""))), Ok(true));
    }

    #[test]
    fn recoveries_depend_on_the_kernel_and_are_one_per_host() {
        let tcp = |name, recovery, direction| {
            format!(
                "{{ name = \"{name}\", kind = \"tcp\", via = \"dsl\", recovery = \"{recovery}\", \
                 direction = \"{direction}\" }}"
            )
        };
        let old = scenario(&tcp("a", "rfc6675", "down"));
        assert_eq!(recovery_of(&old, Direction::Down, "6.16.2-x"), Ok(Some(("rfc6675", 300))));
        assert_eq!(recovery_of(&old, Direction::Up, "6.18.0"), Ok(None));
        for kernel in ["6.17.0", "7.0.1", "unknown"] {
            let refused = recovery_of(&old, Direction::Down, kernel);
            assert!(matches!(refused, Err(NetnsError::Recovery { .. })), "{refused:?}");
        }
        let both = [tcp("a", "rfc6675", "up"), tcp("b", "rack-tlp", "up")].join(", ");
        let both = scenario(&both);
        let refused = recovery_of(&both, Direction::Up, "6.1.0");
        assert!(matches!(refused, Err(NetnsError::Recoveries { .. })), "{refused:?}");
        let apart = [tcp("a", "rfc6675", "up"), tcp("b", "rack-tlp", "down")].join(", ");
        let apart = scenario(&apart);
        let known = recovery_of(&apart, Direction::Up, "6.1.0");
        assert_eq!(known, Ok(Some(("rfc6675", 300))));
    }
}
