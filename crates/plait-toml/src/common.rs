//! Options shared by several kinds of section, each declared once; the section says where its value
//! goes.

use std::net::SocketAddr;

use plait_proto::steer::{Granularity, NoPolicy, Policy};

use crate::form::{Flag, Form, Maybe, Parsed, Whole, alternatives, text};
use crate::option::Field;
use crate::problem::Problem;
use crate::section::Section;
use crate::value::names;

/// The folder of daemons' control sockets unless their files say otherwise.
pub const SOCKETS: &str = "/run/plait";
/// The folder of daemons' state files unless their files say otherwise.
pub const STATES: &str = "/var/lib/plait";

/// An address with a port, to listen on.
pub(crate) const SOCKET_ADDRESS: Parsed<SocketAddr> =
    Parsed { told: "`IP:port`", read: socket_address };

fn socket_address(text: &str) -> Result<SocketAddr, Problem> {
    let address: Option<SocketAddr> = text.parse().ok();
    address.filter(|address| address.port() > 0).ok_or_else(|| {
        let help = "write it as in \"192.168.1.1:3128\" or \"[fd00::1]:3128\"; \"0.0.0.0\" is \
                    every address of IPv4, \"[::]\" of both";
        Problem::new(format!("\"{text}\" is no IP address with a port"), help)
    })
}

/// The name of a daemon's TUN device.
pub const fn tun<C>(at: fn(&mut C) -> &mut String) -> Field<C, Parsed<String>> {
    let form = Parsed { told: names::NAME_RANGE, read: names::device };
    Field::new("tun", "name of the TUN device", form, at)
}

/// A daemon's control socket.
pub const fn control_socket<C>(
    at: fn(&mut C) -> &mut Option<String>,
) -> Field<C, Maybe<Parsed<String>>> {
    let meaning = "Unix socket that answers `plait status`";
    Field::new("control_socket", meaning, Maybe(text("file")), at).absent("`/run/plait/TUN.sock`")
}

/// The control socket of the daemon with this device.
pub fn control_socket_of(said: Option<&str>, tun: &str) -> String {
    said.map_or_else(|| format!("{SOCKETS}/{tun}.sock"), str::to_owned)
}

/// A daemon's state file.
pub const fn state_file<C>(
    meaning: &'static str,
    at: fn(&mut C) -> &mut Option<String>,
) -> Field<C, Maybe<Parsed<String>>> {
    Field::new("state_file", meaning, Maybe(text("file")), at).absent("`/var/lib/plait/TUN.json`")
}

/// The state file of the daemon with this device.
pub fn state_file_of(said: Option<&str>, tun: &str) -> String {
    said.map_or_else(|| format!("{STATES}/{tun}.json"), str::to_owned)
}

/// The user that a daemon becomes.
pub const fn user<C>(at: fn(&mut C) -> &mut Option<String>) -> Field<C, Maybe<Parsed<String>>> {
    let meaning = "plait becomes this user of `/etc/passwd` once all is set up";
    let form = Maybe(Parsed { told: "name", read: names::user });
    Field::new("user", meaning, form, at).absent("stays who it is")
}

/// Whether a daemon enters its sandbox.
pub const fn sandbox<C>(at: fn(&mut C) -> &mut bool) -> Field<C, Flag> {
    let meaning = "files and system calls that the running program does not need are out of its \
                   reach, by Landlock and seccomp, where the kernel has them";
    Field::new("sandbox", meaning, Flag, at)
}

/// Whether the host is made to forward packets.
pub const fn forward<C>(at: fn(&mut C) -> &mut bool) -> Field<C, Flag> {
    let meaning = "make the host forward packets while plait runs (`net.ipv4.ip_forward`, \
                   `net.ipv6.conf.all.forwarding`; a gateway also sets `accept_ra` of the links)";
    Field::new("forward", meaning, Flag, at)
}

/// The largest packet inside a bond.
pub const fn inner_mtu<C>(
    name: &'static str,
    at: fn(&mut C) -> &mut Option<u16>,
) -> Field<C, Maybe<Whole<u16>>> {
    Field::new(name, "largest inner packet", Maybe(Whole::new(516, 9000, "bytes")), at)
}

/// The price class of a path or attachment.
pub const fn price<C>(at: fn(&mut C) -> &mut u8) -> Field<C, Whole<u8>> {
    Field::new("price", "price class; cheaper first", Whole::new(0, 255, ""), at)
}

/// The weight of a path or attachment.
pub const fn weight<C>(at: fn(&mut C) -> &mut u16) -> Field<C, Whole<u16>> {
    Field::new("weight", "share, for `fixed`", Whole::new(1, 65_535, ""), at)
}

/// How packets are shared out over a client's attachments.
pub const fn policy<C>(at: fn(&mut C) -> &mut Policy) -> Field<C, PolicyForm> {
    Field::new("policy", "which attachment gets how much", PolicyForm, at)
}

/// Whether packets or flows are steered.
pub const fn per<C>(at: fn(&mut C) -> &mut Granularity) -> Field<C, PerForm> {
    let meaning = "steer each `packet` of a TCP flow by itself, or the `flow` as a whole";
    Field::new("per", meaning, PER, at)
}

/// How many packets of a flow stay on the primary.
pub const fn first_packets<C>(at: fn(&mut C) -> &mut u32) -> Field<C, Whole<u32>> {
    let meaning = "so many packets of a flow stay on the primary at first";
    Field::new("first_packets", meaning, Whole::new(0, 1_000_000, "packets"), at)
}

type PerForm = crate::form::Named<Granularity>;

const PER: PerForm =
    PerForm { all: &[Granularity::Packet, Granularity::Flow], name: Granularity::name };

/// A policy of a steering node.
#[derive(Debug)]
pub struct PolicyForm;

impl Form for PolicyForm {
    type Value = Policy;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Policy> {
        section.parsed(name, |text| {
            text.parse().map_err(|error| match error {
                NoPolicy::Unknown(_) => {
                    Problem::choice(text, Policy::ALL.map(Policy::name).into_iter())
                }
                NoPolicy::Refused { algorithm, why } => Problem::new(
                    format!("\"{algorithm}\" is no policy of a steering node: {why}"),
                    format!("choose one of: {}", Policy::ALL.map(Policy::name).join(", ")),
                ),
            })
        })
    }

    fn write(&self, value: &Policy) -> Option<toml::Value> {
        Some(toml::Value::String(value.name().to_owned()))
    }

    fn told(&self) -> String {
        alternatives(Policy::ALL.map(Policy::name).into_iter())
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut crate::testing::Random) -> Policy {
        Policy::ALL[random.up_to(Policy::ALL.len() as u64 - 1) as usize]
    }
}
