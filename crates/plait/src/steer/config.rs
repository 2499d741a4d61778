//! The configuration of a steering node: read from a TOML file, checked, ready to use.
//!
//! Like a gateway's ([`crate::config`]): everything that can be checked from the file alone is
//! checked in one pass, and each mistake is reported with its place. The options, their units and
//! defaults are described in `docs/guide/steering.md`.

mod check;
mod client;
mod node;

use std::path::{Path, PathBuf};

use plait_proto::steer::{AttachmentConfig, ClientConfig, NodeConfig};
use plait_toml::{Place, Problems, Section, Table};

pub(crate) use client::{Attachment, Client};
pub(crate) use node::NodeSection;

use crate::config::{self, ConfigErrors, Kind};

/// Clients that one node may have: each costs two policy routing rules, which the kernel tests for
/// every packet.
pub(crate) const CLIENTS_MAX: usize = 1024;

/// A checked configuration of a steering node.
#[derive(Clone, Debug)]
pub(crate) struct SteerConfig {
    /// The file it came from, as the user named it.
    pub(crate) file: PathBuf,
    /// `[node]`.
    pub(crate) node: NodeSection,
    /// Each `[[client]]`, in the order of the file.
    pub(crate) clients: Vec<Client>,
    /// `[dida]`.
    pub(crate) dida: Option<plait_proto::dida::DidaConfig>,
}

impl SteerConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, each with file, line, option and remedy.
    pub(crate) fn load(file: &Path) -> Result<Self, ConfigErrors> {
        let document = config::read(file)?;
        Kind::Node.expect(file, &document)?;
        let problems = Problems::default();
        let config = sections(&problems, file, &document);
        problems.finish(config)
    }

    /// The path of the control socket that a file names.
    ///
    /// # Errors
    ///
    /// The file names the socket wrongly.
    pub(crate) fn control_socket_of(
        file: &Path,
        document: &Table,
    ) -> Result<PathBuf, ConfigErrors> {
        let problems = Problems::default();
        let folder = file.parent().unwrap_or(Path::new(""));
        let section = top(&problems, file, document).single("node");
        let socket = node::read_control_socket(section, folder);
        problems.finish(Some(socket))
    }

    /// The protocol's configuration.
    pub(crate) fn node_config(&self) -> NodeConfig {
        let attachment = |attachment: &Attachment| AttachmentConfig {
            name: attachment.name.clone(),
            address: attachment.address,
            weight: attachment.weight,
            price: attachment.price,
        };
        let client = |client: &Client| ClientConfig {
            name: client.name.clone(),
            address: client.address,
            attachments: client.attachments.iter().map(attachment).collect(),
        };
        NodeConfig {
            clients: self.clients.iter().map(client).collect(),
            policy: self.node.policy,
            granularity: self.node.granularity,
            first_packets: self.node.first_packets,
            other: self.node.other,
            unknown: self.node.unknown,
            probe: self.node.probe,
            flows_per_client_max: self.node.flows_per_client_max,
            flow_idle: self.node.flow_idle,
            dida: self.dida,
        }
    }
}

fn top<'a>(problems: &'a Problems, file: &Path, document: &'a Table) -> Section<'a> {
    Section::top(problems, Place::Line(file.into(), 1), document)
}

/// Reads all sections, then checks them against each other. `None` when a problem was noted.
fn sections(problems: &Problems, file: &Path, document: &Table) -> Option<SteerConfig> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut top = top(problems, file, document);
    let node = node::read(top.single("node"), folder);
    let clients: Vec<_> = top.many("client").into_iter().map(client::read).collect();
    let dida = plait_toml::dida::read(top.single("dida"));
    top.finish();
    if !problems.none_found() {
        return None;
    }
    let config = SteerConfig { file: file.to_owned(), node, clients, dida };
    check::check(problems, &config);
    problems.none_found().then_some(config)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A configuration from its text.
    pub(crate) fn parse(text: &str) -> Result<SteerConfig, ConfigErrors> {
        let file = Path::new("node.toml");
        let document = plait_toml::tree::parse(file, text)?;
        let problems = Problems::default();
        let config = sections(&problems, file, &document);
        problems.finish(config)
    }
}

#[cfg(test)]
mod tests {
    use plait_proto::dida::{DidaConfig, HoldPolicy};
    use plait_proto::steer::{Granularity, Policy, ProbeConfig, UnknownClient};
    use plait_proto::time::Duration;

    use super::testing::parse;
    use super::*;

    const SMALL: &str = "[node]\n[[client]]\nname = \"phone\"\naddress = \"10.1.0.1\"\n\
                         [[client.attachment]]\nname = \"lte\"\n\
                         [[client.attachment]]\nname = \"wifi\"\naddress = \"10.2.0.1\"\n";

    #[test]
    fn what_is_not_said_has_its_default() {
        let config = parse(SMALL).unwrap();
        assert_eq!(config.node.tun, "steer0");
        assert_eq!(config.node.control_socket, Path::new("/run/plait/steer0.sock"));
        assert_eq!(config.node.table, 5200);
        let node = config.node_config();
        assert_eq!(node.check(), Ok(()));
        assert_eq!(NodeConfig { clients: Vec::new(), ..node.clone() }, NodeConfig::default());
        assert_eq!(node.clients[0].attachments.len(), 2);
        let lte = &config.clients[0].attachments[0];
        assert_eq!((lte.weight, lte.price, &lte.interface), (1, 0, &None));
    }

    #[test]
    fn every_option_has_its_effect() {
        let text = "[node]\ntun = \"s1\"\npolicy = \"fixed\"\nper = \"flow\"\n\
                    first_packets = 100\nunknown_clients = \"drop\"\nprobe_interval_ms = 50\n\
                    probe_timeout_ms = 400\ntable = 6000\nmtu = 1400\nforward = true\n\
                    [[client]]\nname = \"phone\"\naddress = \"10.1.0.1\"\naddress6 = \"fd00::1\"\n\
                    [[client.attachment]]\nname = \"lte\"\ninterface = \"lte0\"\nweight = 20\n\
                    [[client.attachment]]\nname = \"wifi\"\naddress = \"10.2.0.1\"\n\
                    address6 = \"fd00::2\"\ngateway = [\"10.4.0.2\", \"fd04::2\"]\nprice = 3\n\
                    [dida]\nhold = 50\nsack = \"pass\"\nhold_max_ms = 300\nflows_max = 10\n";
        let config = parse(text).unwrap();
        let node = config.node_config();
        assert_eq!(node.policy, Policy::Fixed);
        assert_eq!((node.granularity, node.first_packets), (Granularity::Flow, 100));
        assert_eq!(node.unknown, UnknownClient::Drop);
        let (interval, timeout) = (Duration::from_millis(50), Duration::from_millis(400));
        assert_eq!(node.probe, Some(ProbeConfig { interval, timeout, ..ProbeConfig::default() }));
        assert_eq!(
            (config.node.table, config.node.mtu, config.node.forward),
            (6000, Some(1400), true)
        );
        let dida = node.dida.unwrap();
        assert_eq!(dida.hold, HoldPolicy::Fixed(Duration::from_millis(50)));
        assert_eq!((dida.hold_max, dida.flows_max), (Duration::from_millis(300), 10));
        let wifi = &config.clients[0].attachments[1];
        assert_eq!(wifi.gateway.iter().count(), 2);
        assert_eq!((wifi.weight, wifi.price), (1, 3));
    }

    #[test]
    fn dida_may_hold_by_a_policys_name_and_probes_may_be_off() {
        let dida = |line: &str| {
            parse(&format!("{SMALL}[dida]\n{line}\n")).unwrap().dida.expect("there is a section")
        };
        assert_eq!(dida(""), DidaConfig::default());
        assert_eq!(dida("hold = \"delay-difference\"").hold, HoldPolicy::DelayDifference);
        assert_eq!(dida("hold = 12.5").hold, HoldPolicy::Fixed(Duration::from_micros(12_500)));
        let off = SMALL.replace("[node]\n", "[node]\nprobe = false\npolicy = \"fixed\"\n");
        assert_eq!(parse(&off).unwrap().node_config().probe, None);
    }
}
