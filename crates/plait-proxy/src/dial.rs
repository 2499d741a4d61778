//! Connects to the server that a client asked for: directly, or by way of the next proxy.

mod race;
mod upstream;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use plait_net::mptcp;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::config::WayOut;
use crate::policy::leads_back;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::sockets::{Manner, connect};
use crate::target::{Host, Target};

/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// A connection to a server, or to the next proxy.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) stream: TcpStream,
    /// What the server has said already, in one segment with the next proxy's answer.
    pub(crate) first: Bytes,
    /// Whether the next proxy has answered, or there is none that would.
    pub(crate) is_answered: bool,
}

impl From<TcpStream> for Dialled {
    fn from(stream: TcpStream) -> Self {
        Self { stream, first: Bytes::new(), is_answered: true }
    }
}

impl Shared {
    /// A connection to the server, or why there is none.
    pub(crate) async fn dial(&self, target: &Target) -> Result<Dialled, Refusal> {
        self.config.reach.permit_port(target.port)?;
        let dialled = timeout(self.config.limits.connect_timeout, self.dial_whole(target));
        dialled.await.unwrap_or(Err(Refusal::ConnectTimeout))
    }

    /// A connection for a client that cannot be told why there is none. It need not wait for the
    /// next proxy's answer: what the client says goes along with the question.
    pub(crate) async fn dial_ahead(&self, target: &Target) -> Result<Dialled, Refusal> {
        let upstream = self.config.upstream.as_ref();
        let convert = upstream.filter(|upstream| upstream.way == WayOut::Convert);
        let Some((upstream, Host::Address(address))) = convert.zip(Some(&target.host)) else {
            return self.dial(target).await;
        };
        let server = SocketAddr::new(*address, target.port);
        self.permit(server)?;
        let asked = upstream::ask_by_convert(self, upstream, server);
        let asked = timeout(self.config.limits.connect_timeout, asked).await;
        let stream = asked.unwrap_or(Err(Refusal::ConnectTimeout))?;
        Ok(Dialled { is_answered: false, ..stream.into() })
    }

    /// Waits for the next proxy's answer, if it is still to come.
    pub(crate) async fn answer(&self, stream: &TcpStream) -> Result<(), Refusal> {
        let answered = timeout(self.config.limits.connect_timeout, upstream::read_answer(stream));
        answered.await.unwrap_or(Err(Refusal::ConnectTimeout))
    }

    async fn dial_whole(&self, target: &Target) -> Result<Dialled, Refusal> {
        let Some(upstream) = &self.config.upstream else {
            let addresses = self.addresses_of(target).await?;
            return self.connect_to_first(addresses).await.map(Dialled::from);
        };
        // What has a name is judged where it is looked up.
        if let Host::Address(address) = target.host {
            self.permit(SocketAddr::new(address, target.port))?;
        }
        upstream::dial(self, upstream, target).await
    }

    /// Offers MPTCP to servers that are not known to lack it.
    async fn connect_to_first(&self, addresses: Vec<SocketAddr>) -> Result<TcpStream, Refusal> {
        let connect_to = |address: SocketAddr| {
            let multipath = self.config.multipath_out && !self.plain_servers.know(address);
            let plain_servers = Arc::clone(&self.plain_servers);
            let manner = self.manner(multipath, false);
            async move {
                let stream = connect(address, manner).await?;
                if multipath && matches!(mptcp::subflows(&stream), Ok(None)) {
                    plain_servers.note(address);
                }
                Ok(stream)
            }
        };
        let first = race::first_of(addresses, connect_to).await;
        first.map_err(|error: std::io::Error| Refusal::from_connect(&error))
    }

    fn manner(&self, multipath: bool, fast_open: bool) -> Manner {
        Manner { multipath, fast_open, congestion: self.config.congestion.clone() }
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
