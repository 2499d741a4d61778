//! A pair of gateways over the links of a topology.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use plait_toml::tuning::Tuning;

use super::config::{path_over, without_ipv6};
use super::{
    Gateway, GatewayFile, GatewayPath, Status, customer_file, endpoint_v4, make_key, provider_file,
};
use crate::process::wait_until;
use crate::scratch::Scratch;
use crate::topology::{Customer, Topology};

const UP_LIMIT: Duration = Duration::from_secs(15);

/// A bond's setup.
#[derive(Clone, Debug)]
pub(crate) struct BondSetup {
    /// Links, and devices, that carry a path.
    pub(crate) paths: Vec<GatewayPath>,
    pub(crate) endpoints: Vec<SocketAddr>,
    /// Settings of both gateways' bond; `None`: defaults.
    pub(crate) tuning: Option<Tuning>,
    /// For both gateways. Below 1280 there is no IPv6 inside (RFC 8200 section 5).
    pub(crate) inner_mtu: Option<u16>,
    /// Whether each gateway lets the other measure.
    pub(crate) measures: bool,
    /// Other programs than the lab's `plait`.
    pub(crate) customer_program: Option<PathBuf>,
    pub(crate) provider_program: Option<PathBuf>,
}

impl BondSetup {
    /// A bond over these links with plait's defaults.
    pub(crate) fn over(links: &[&str]) -> Self {
        Self {
            paths: links.iter().map(|name| path_over(name)).collect(),
            endpoints: vec![endpoint_v4()],
            tuning: None,
            inner_mtu: None,
            measures: false,
            customer_program: None,
            provider_program: None,
        }
    }
}

/// Two running gateways that know each other.
#[derive(Debug)]
pub(crate) struct Bond<'a> {
    customer_netns: &'a NetNs,
    provider_netns: &'a NetNs,
    pub(crate) customer: Gateway,
    pub(crate) provider: Gateway,
    /// Keys, configurations and logs; kept while the gateways use them.
    _scratch: Scratch,
}

impl<'a> Bond<'a> {
    /// plait with its defaults over all links of a topology's first customer: starts both gateways
    /// and waits until every path is up.
    pub(crate) fn over(topology: &'a Topology) -> Result<Self> {
        let Customer { netns, links } = topology.customer();
        let names: Vec<&str> = links.iter().map(|link| link.spec.name).collect();
        Self::start(netns, &topology.provider, &BondSetup::over(&names))
    }

    /// Starts both gateways and waits until every path is up.
    pub(crate) fn start(
        customer_netns: &'a NetNs,
        provider_netns: &'a NetNs,
        setup: &BondSetup,
    ) -> Result<Self> {
        let mut bond = Self::start_without_waiting(customer_netns, provider_netns, setup)?;
        bond.wait_until_up(setup.paths.len())?;
        Ok(bond)
    }

    /// Starts both gateways.
    pub(crate) fn start_without_waiting(
        customer_netns: &'a NetNs,
        provider_netns: &'a NetNs,
        setup: &BondSetup,
    ) -> Result<Self> {
        let scratch = Scratch::in_memory("bond")?;
        let (customer, provider) = files(&scratch, setup)?;
        let start = |netns, name, file, program: &Option<PathBuf>| {
            Gateway::start_program(netns, scratch.path(), name, file, program.clone())
        };
        let provider = start(provider_netns, "provider", &provider, &setup.provider_program)?;
        let customer = start(customer_netns, "customer", &customer, &setup.customer_program)?;
        Ok(Self { customer_netns, provider_netns, customer, provider, _scratch: scratch })
    }

    /// Waits until both gateways count `paths` paths up.
    pub(crate) fn wait_until_up(&mut self, paths: usize) -> Result<()> {
        let what = format!("a bond with {paths} paths up");
        let waited = wait_until(&what, UP_LIMIT, || {
            let customer = self.customer.status(self.customer_netns)?;
            let provider = self.provider.status(self.provider_netns)?;
            let up = |status: Option<Status>| status.is_some_and(|status| status.is_up(paths));
            Ok((up(customer) && up(provider)).then_some(()))
        });
        waited.with_context(|| {
            format!(
                "the customer's log ends:\n{}\nthe provider's log ends:\n{}",
                self.customer.log_tail(),
                self.provider.log_tail()
            )
        })
    }

    /// Where the customer's gateway runs.
    pub(crate) fn customer_netns(&self) -> &'a NetNs {
        self.customer_netns
    }

    /// The customer's status; the gateway must answer.
    pub(crate) fn customer_status(&mut self) -> Result<Status> {
        self.customer.status(self.customer_netns)?.context("the customer's gateway says nothing")
    }

    /// The provider's status; the gateway must answer.
    pub(crate) fn provider_status(&mut self) -> Result<Status> {
        self.provider.status(self.provider_netns)?.context("the provider's gateway says nothing")
    }

    /// Checks that neither gateway has ended by itself.
    pub(crate) fn ensure_both_run(&mut self) -> Result<()> {
        self.customer.ensure_runs().context("the customer's gateway")?;
        self.provider.ensure_runs().context("the provider's gateway")
    }

    /// Stops both; each must end by itself with status 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.customer.stop().context("the customer's gateway")?;
        self.provider.stop().context("the provider's gateway")
    }
}

/// Makes both keys and both configurations.
fn files(scratch: &Scratch, setup: &BondSetup) -> Result<(GatewayFile, GatewayFile)> {
    let customer_key = make_key(&scratch.path().join("customer.key"))?;
    let provider_key = make_key(&scratch.path().join("provider.key"))?;
    let mut customer =
        customer_file("customer.key", 2, &provider_key, &setup.endpoints, &setup.paths);
    let mut provider = provider_file("provider.key", &[(customer_key, 2)]);
    for file in [&mut customer, &mut provider] {
        file.tuning.clone_from(&setup.tuning);
        file.gateway.mtu = setup.inner_mtu;
        file.gateway.measure = setup.measures;
        if setup.inner_mtu.is_some_and(|mtu| mtu < 1280) {
            without_ipv6(file);
        }
    }
    Ok((customer, provider))
}
