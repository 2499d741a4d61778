//! Connects to the server that a client asked for: directly, or by way of the next proxy.

mod race;
mod upstream;

use std::net::SocketAddr;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::policy::leads_back;
use crate::refusal::Refusal;
use crate::server::Shared;
use crate::sockets::connect;
use crate::target::{Host, Target};

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

impl Shared {
    /// A connection to the server, or why there is none.
    pub(crate) async fn dial(&self, target: &Target) -> Result<TcpStream, Refusal> {
        self.config.reach.permit_port(target.port)?;
        let dialled = timeout(self.config.limits.connect_timeout, self.dial_whole(target));
        dialled.await.unwrap_or(Err(Refusal::ConnectTimeout))
    }

    async fn dial_whole(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let Some(upstream) = &self.config.upstream else {
            let addresses = self.addresses_of(target).await?;
            let multipath = self.config.multipath_out;
            return race::first_of(addresses, move |address| connect(address, multipath, false))
                .await
                .map_err(|error| Refusal::from_connect(&error));
        };
        upstream::dial(self, upstream, target).await
    }

    /// The addresses of a target that may be connected to; at least one.
    async fn addresses_of(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        let addresses: Vec<SocketAddr> = match &target.host {
            Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
            Host::Name(name) => {
                let found = lookup_host((name.as_str(), target.port)).await;
                found.map_err(|_| Refusal::NameUnknown)?.take(ADDRESSES_MAX).collect()
            }
        };
        let mut refusal = Refusal::NameUnknown;
        let mut permitted = Vec::new();
        for address in addresses {
            match self.permit(address) {
                Ok(()) => permitted.push(address),
                Err(why) => refusal = why,
            }
        }
        if permitted.is_empty() { Err(refusal) } else { Ok(permitted) }
    }

    fn permit(&self, address: SocketAddr) -> Result<(), Refusal> {
        if leads_back(&self.config.listeners, address) {
            return Err(Refusal::Loop);
        }
        self.config.reach.permit(address)
    }
}
