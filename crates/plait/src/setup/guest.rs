//! One more customer of a provider's end that is there already.

use std::collections::BTreeMap;

use plait_proto::session::PrivateKey;
use plait_toml::value::{Cidr, Endpoint};

use super::end::{End, Role};
use super::invitation::Invitation;
use crate::advice::Advised;
use crate::config::Config;

/// Numbers of hosts in the inner networks: 1 is the provider's.
const NUMBERS: std::ops::RangeInclusive<u8> = 2..=254;

/// An invitation for one more customer, with the first inner addresses that nobody has. `key` is
/// the customer's.
///
/// # Errors
/// The provider's end has no inner address, or all are taken.
pub(crate) fn invite(
    provider: &Config,
    key: PrivateKey,
    endpoint: Endpoint,
    lan: Vec<Cidr>,
) -> Result<Invitation, Advised> {
    let own = &provider.gateway.addresses;
    if own.is_empty() {
        let message = format!("{} gives the gateway no inner address", provider.file.display());
        let help = "add `address = [\"10.99.0.1/24\"]` under [gateway]";
        return Err(Advised::new(message, help));
    }
    let peers = provider.peers.iter().flat_map(|peer| &peer.allowed_ips).map(|net| net.value);
    let taken: Vec<Cidr> = peers.collect();
    let is_free = |address: &Cidr| {
        let alone = alone(*address);
        own.iter().all(|own| own.address != address.address)
            && taken.iter().all(|taken| *taken != alone)
    };
    let addresses = NUMBERS.map(|number| own.iter().map(|own| host(*own, number)).collect());
    let mut free = addresses.filter(|all: &Vec<Cidr>| all.iter().all(is_free));
    let addresses = free.next().ok_or_else(|| {
        let message = "every inner address of the provider's networks has its customer";
        Advised::new(message, "add a further network to `address` under [gateway]")
    })?;
    let end = End {
        role: Role::Customer,
        private_key: key,
        customer: addresses.iter().map(|address| alone(*address)).collect(),
        addresses,
        peer: provider.gateway.public_key,
        endpoint,
        more_ports: provider.gateway.more_ports.clone(),
        lan,
        links: Vec::new(),
        macs: BTreeMap::new(),
        nat: true,
        user: None,
        router: None,
    };
    Ok(Invitation { end })
}

/// The address of a host in the network of another.
fn host(other: Cidr, number: u8) -> Cidr {
    let address = match other.network().address {
        std::net::IpAddr::V4(v4) => (v4.to_bits() | u32::from(number)).to_be_bytes().into(),
        std::net::IpAddr::V6(v6) => (v6.to_bits() | u128::from(number)).to_be_bytes().into(),
    };
    Cidr { address, length: other.length }
}

/// The prefix of this address alone.
fn alone(cidr: Cidr) -> Cidr {
    Cidr { length: if cidr.address.is_ipv4() { 32 } else { 128 }, ..cidr }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::end::testing;

    fn texts(cidrs: &[Cidr]) -> Vec<String> {
        cidrs.iter().map(Cidr::to_string).collect()
    }

    #[test]
    fn each_customer_has_addresses_of_its_own() {
        let (provider, first) = testing::pair();
        let mut config = testing::load(&provider, "guest");
        let endpoint = || Endpoint::parse("gw.example.net:7788").unwrap();
        let guest = |config: &Config, key: u8| {
            let key = PrivateKey::from_bytes([key; 32]);
            invite(config, key, endpoint(), Vec::new()).unwrap().end
        };
        let second = guest(&config, 3);
        let [v4, v6] = &texts(&second.addresses)[..] else { panic!("two addresses") };
        let own = texts(&provider.addresses);
        assert_eq!(*v4, own[0].replace(".1/24", ".3/24"), "2 is the first customer's");
        assert_eq!(*v6, own[1].replace("::1/64", "::3/64"));
        assert!(second.addresses.iter().all(|own| !first.end.addresses.contains(own)));
        assert_eq!(second.peer, first.end.peer);

        config.gateway.addresses.clear();
        let error = invite(&config, PrivateKey::from_bytes([4; 32]), endpoint(), Vec::new());
        assert!(error.unwrap_err().to_string().contains("no inner address"));
    }
}
