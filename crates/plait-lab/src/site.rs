//! A fresh network with a carrier, for one set of measurements.

use std::net::IpAddr;

use anyhow::Result;

use crate::emulator::{Lateness, Way};
use crate::gateway::{Bond, BondSetup};
use crate::measure::{IperfServer, Stream, Target, Transport};
use crate::topology::{LinkSpec, SERVER_BARE_V4, SERVER_V4, Topology};

/// The carrier of the traffic.
#[derive(Clone, Debug)]
pub(crate) enum Carrier {
    /// A link without plait.
    Bare(&'static str),
    /// The kernel's MPTCP over all links without plait.
    Mptcp,
    /// plait, with the paths of this setup.
    Plait(Box<BondSetup>),
}

impl Carrier {
    /// plait with its defaults over these links.
    pub(crate) fn plait(links: &[&str]) -> Self {
        Self::Plait(Box::new(BondSetup::over(links)))
    }
}

/// A running network. iperf3 listens on the server.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub(crate) topology: &'a Topology,
    /// The two gateways, when plait is the carrier.
    pub(crate) bond: Option<Bond<'a>>,
    transport: Transport,
    server: IpAddr,
    /// The address of the link to use, if any.
    source: Option<IpAddr>,
}

impl Site<'_> {
    /// The download that measurements use.
    pub(crate) fn target(&self) -> Target<'_> {
        let client = &self.topology.customer().netns;
        Target { client, server: self.server, bind: self.source }
    }

    /// Begins a download of one CUBIC flow.
    pub(crate) fn download(&self) -> Result<Stream> {
        Stream::start_to(self.target(), &self.topology.server, self.transport, Way::Down)
    }
}

/// Builds a network of these links, does `work` on it and removes it. Gateways must then end by
/// themselves. How late the links released packets is added to `lateness`.
pub(crate) fn on_site<T>(
    links: &[LinkSpec],
    carrier: &Carrier,
    lateness: &mut Lateness,
    work: impl FnOnce(&mut Site<'_>) -> Result<T>,
) -> Result<T> {
    let topology = Topology::build(links)?;
    let customer = &topology.customer().netns;
    let mut site = Site {
        topology: &topology,
        bond: None,
        transport: Transport::Tcp,
        server: SERVER_BARE_V4.into(),
        source: None,
    };
    match carrier {
        Carrier::Bare(name) => site.source = Some(topology.link(name)?.customer_address()),
        Carrier::Mptcp => {
            topology.enable_mptcp()?;
            site.transport = Transport::Mptcp;
        }
        Carrier::Plait(setup) => {
            site.bond = Some(Bond::start(customer, &topology.provider, setup)?);
            site.server = SERVER_V4.into();
        }
    }
    let _iperf = IperfServer::start(&topology.server, site.target().server)?;
    let result = work(&mut site)?;
    if let Some(bond) = &mut site.bond {
        bond.stop()?;
    }
    for link in &topology.customer().links {
        lateness.add(&link.emulator.report().lateness);
    }
    Ok(result)
}
