//! One end of a bond as `plait setup` makes it, and its configuration file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use plait_proto::session::{PrivateKey, PublicKey};
use plait_toml::value::{Cidr, Endpoint, Identity};

use super::invitation::Invitation;
use super::networks::Networks;

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Has several links, and calls.
    Customer,
    /// Has a public address, and listens.
    Provider,
}

impl Role {
    /// Its number in the inner networks.
    fn host(self) -> u8 {
        match self {
            Self::Provider => 1,
            Self::Customer => 2,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Provider => Self::Customer,
            Self::Customer => Self::Provider,
        }
    }
}

/// One end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) role: Role,
    pub(crate) private_key: PrivateKey,
    /// Its inner addresses.
    pub(crate) addresses: Vec<Cidr>,
    /// The other end's public key.
    pub(crate) peer: PublicKey,
    /// Where the provider's end listens.
    pub(crate) endpoint: Endpoint,
    /// More ports on which it listens there.
    pub(crate) more_ports: Vec<u16>,
    /// Networks behind the customer's end.
    pub(crate) lan: Vec<Cidr>,
    /// The customer's inner addresses, each alone.
    pub(crate) customer: Vec<Cidr>,
    /// Interfaces of the customer's links.
    pub(crate) links: Vec<String>,
    /// The hardware addresses of those that are to be named by these.
    pub(crate) macs: BTreeMap<String, Identity>,
    /// Whether the provider's end hides the customer behind its own addresses.
    pub(crate) nat: bool,
    /// The user that the gateway becomes.
    pub(crate) user: Option<String>,
    /// The interface to the hosts behind the customer's end, and its addresses there.
    pub(crate) router: Option<(String, Vec<Cidr>)>,
}

impl End {
    /// Both ends of a new bond: the one of this machine, and what the other one is told. The first
    /// key is this end's.
    pub(crate) fn pair(
        role: Role,
        keys: [PrivateKey; 2],
        networks: Networks,
        endpoint: Endpoint,
        lan: Vec<Cidr>,
    ) -> (Self, Invitation) {
        let public = keys.each_ref().map(PrivateKey::public_key);
        let [own_key, other_key] = keys;
        let alone = |cidr: Cidr| Cidr::parse(&cidr.address.to_string());
        let customer = networks.host(Role::Customer.host());
        let customer: Vec<_> = customer.into_iter().filter_map(alone).collect();
        let end = |role: Role, private_key, peer| Self {
            role,
            private_key,
            addresses: networks.host(role.host()).to_vec(),
            peer,
            endpoint: endpoint.clone(),
            more_ports: Vec::new(),
            lan: lan.clone(),
            customer: customer.clone(),
            links: Vec::new(),
            macs: BTreeMap::new(),
            nat: true,
            user: None,
            router: None,
        };
        let [own_public, other_public] = public;
        let invited = end(role.other(), other_key, own_public);
        (end(role, own_key, other_public), Invitation { end: invited })
    }

    /// The port that the provider's end listens on.
    pub(crate) fn port(&self) -> u16 {
        match &self.endpoint {
            Endpoint::Address(address) => address.port(),
            Endpoint::Name(_, port) => *port,
        }
    }

    /// The inner address of the provider's end, which answers pings.
    pub(crate) fn provider_address(&self) -> Option<IpAddr> {
        let network = self.addresses.first()?.network();
        match (self.role, network.address) {
            (Role::Provider, _) => self.addresses.first().map(|cidr| cidr.address),
            (Role::Customer, IpAddr::V4(v4)) => Some(IpAddr::V4((v4.to_bits() | 1).into())),
            (Role::Customer, IpAddr::V6(v6)) => Some(IpAddr::V6((v6.to_bits() | 1).into())),
        }
    }

    /// The configuration file, where the gateway's name is `name`.
    pub(crate) fn text(&self, name: &str) -> String {
        let mut text = String::new();
        self.write(&mut text, name).expect("writing to a string cannot fail");
        text
    }

    fn write(&self, out: &mut String, name: &str) -> std::fmt::Result {
        let end = match self.role {
            Role::Customer => "customer's",
            Role::Provider => "provider's",
        };
        writeln!(out, "# The {end} end of a bond, made by `plait setup`. All options: plait(1),")?;
        writeln!(out, "# docs/guide/configuration.md. Check a change with `plait check`.\n")?;
        writeln!(out, "[gateway]\nprivate_key_file = \"{name}.key\"\ntun = \"{name}\"")?;
        writeln!(out, "address = {}", list(&self.addresses))?;
        writeln!(out, "# What peers may send goes into the bond.\nroutes = true")?;
        if let Some(user) = &self.user {
            writeln!(out, "user = \"{user}\"")?;
        }
        match self.role {
            Role::Provider => self.write_provider(out),
            Role::Customer => self.write_customer(out),
        }
    }

    fn write_provider(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "listen_port = {}", self.port())?;
        self.write_more_ports(out)?;
        writeln!(out, "# The customer reaches the internet through this host,\nforward = true")?;
        if self.nat {
            writeln!(out, "# under this host's addresses.\nnat = true")?;
        }
        writeln!(out, "# The customer may run `plait measure`.\nmeasure = true")?;
        writeln!(out, "\n[[peer]]\npublic_key = \"{}\"", self.peer)?;
        let allowed: Vec<_> = self.customer.iter().chain(&self.lan).copied().collect();
        writeln!(out, "# The customer's inner addresses, and the networks behind it.")?;
        writeln!(out, "allowed_ips = {}", list(&allowed))
    }

    fn write_more_ports(&self, out: &mut String) -> std::fmt::Result {
        match self.more_ports.is_empty() {
            true => Ok(()),
            false => writeln!(out, "more_ports = {:?}", self.more_ports),
        }
    }

    fn write_customer(&self, out: &mut String) -> std::fmt::Result {
        if !self.lan.is_empty() && self.router.is_none() {
            let lan = list(&self.lan);
            writeln!(out, "# The hosts of {lan} use this one as their router.\nforward = true")?;
        }
        for link in &self.links {
            match self.macs.get(link) {
                Some(mac) => {
                    writeln!(out, "\n# {link} when this was written.\n[[path]]\nlink = \"{mac}\"")?;
                    writeln!(out, "name = \"{link}\"")?;
                }
                None => writeln!(out, "\n[[path]]\ninterface = \"{link}\"")?,
            }
            writeln!(out, "# Billed by volume? Used only when the others are full: price = 1")?;
        }
        writeln!(out, "\n[[peer]]\npublic_key = \"{}\"", self.peer)?;
        writeln!(out, "endpoint = \"{}\"", self.endpoint)?;
        self.write_more_ports(out)?;
        writeln!(out, "allowed_ips = [\"0.0.0.0/0\", \"::/0\"]")?;
        let Some((interface, addresses)) = &self.router else { return Ok(()) };
        writeln!(
            out,
            "\n# Its hosts use this one as their router. Those of IPv6 set themselves up;"
        )?;
        writeln!(out, "# those of IPv4 need a DHCP server: docs/guide/lan.md.")?;
        writeln!(out, "[[lan]]\ninterface = \"{interface}\"\nprefixes = {}", list(addresses))
    }
}

fn list(cidrs: &[Cidr]) -> String {
    let texts: Vec<_> = cidrs.iter().map(|cidr| format!("\"{cidr}\"")).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
pub(super) mod testing {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::Config;

    /// Both ends of a bond, begun at the provider's.
    pub(crate) fn pair() -> (End, Invitation) {
        let keys = [[7; 32], [9; 32]].map(PrivateKey::from_bytes);
        let networks = Networks::choose(|| [1, 2, 3, 4, 5, 6, 7, 8], &[]);
        let endpoint = Endpoint::parse("gw.example.net:7788").unwrap();
        let lan = vec![Cidr::prefix("192.168.7.0/24").unwrap()];
        End::pair(Role::Provider, keys, networks, endpoint, lan)
    }

    /// Writes an end's file and key and reads them as the gateway does.
    pub(crate) fn load(end: &End, name: &str) -> Config {
        let folder = std::env::temp_dir().join(format!("plait-end-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, key) = (folder.join(format!("{name}.toml")), folder.join(format!("{name}.key")));
        fs::write(&file, end.text(name)).unwrap();
        fs::write(&key, end.private_key.to_base64().as_str()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let config = Config::load(&file).unwrap_or_else(|errors| panic!("{errors:?}"));
        fs::remove_dir_all(folder).unwrap();
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_named_by_their_hardware_addresses_where_that_is_wanted() {
        let (_, Invitation { end: mut customer }) = testing::pair();
        customer.links = vec!["dsl".into(), "ppp0".into()];
        customer.macs.insert("dsl".into(), Identity::Mac([2, 0, 0, 0, 0, 1]));
        let config = testing::load(&customer, "macs");
        let link = config.paths[0].link.as_ref().map(|link| link.value.to_string());
        assert_eq!(link.as_deref(), Some("mac:02:00:00:00:00:01"));
        assert_eq!((config.paths[0].name.as_str(), &config.paths[0].interface), ("dsl", &None));
        assert_eq!(config.paths[1].interface.as_ref().map(|one| &*one.value), Some("ppp0"));
    }

    #[test]
    fn both_ends_have_sound_files_that_fit_each_other() {
        let (provider, Invitation { end: mut customer }) = testing::pair();
        customer.links = vec!["dsl".into(), "lte".into()];
        customer.more_ports = vec![443, 4500];
        let provider = End { more_ports: vec![443, 4500], ..provider };
        let (at_provider, at_customer) =
            (testing::load(&provider, "one"), testing::load(&customer, "two"));
        assert!(at_provider.warnings.is_empty(), "{:?}", at_provider.warnings);
        assert!(at_customer.warnings.is_empty(), "{:?}", at_customer.warnings);
        let [peer_of_provider, peer_of_customer] =
            [&at_provider, &at_customer].map(|config| &config.peers[0]);
        assert_eq!(peer_of_provider.public_key.value, at_customer.gateway.public_key);
        assert_eq!(peer_of_customer.public_key.value, at_provider.gateway.public_key);
        for own in &at_customer.gateway.addresses {
            assert!(peer_of_provider.allowed_ips.iter().any(|p| p.value.holds(own.address)));
        }
        assert_eq!(at_customer.paths.len(), 2);
        assert_eq!(peer_of_customer.more_ports, at_provider.gateway.more_ports);
        assert_eq!(at_provider.gateway.listen_ports().collect::<Vec<_>>(), [7788, 443, 4500]);
        assert_eq!(customer.provider_address(), provider.provider_address());
    }

    #[test]
    fn a_router_has_a_lan_in_its_file() {
        let Invitation { end: mut customer } = testing::pair().1;
        customer.links = vec!["dsl".into(), "lte".into()];
        let addresses = vec![Cidr::parse("192.168.7.1/24").unwrap()];
        customer.router = Some(("eth1".into(), addresses.clone()));
        let config = testing::load(&customer, "three");
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!(
            (config.lans[0].interface.as_str(), &config.lans[0].addresses),
            ("eth1", &addresses)
        );
        assert!(config.makes_host_forward() && !config.gateway.forward);
    }
}
