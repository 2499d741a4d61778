//! How both ends are set up: keys for one run, windows as of the kernel's TCP.

use std::sync::Arc;

use anyhow::{Context, Result};
use plait_sim::scenario::app::TcpKind;
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name in the receiver's certificate.
pub(super) const SERVER_NAME: &str = "receiver";
/// Controllers of the simulator that quinn has, too.
pub(crate) const CONTROLLERS: [&str; 2] = ["cubic", "new-reno"];

/// A configuration for each end.
#[derive(Debug)]
pub(super) struct Configs {
    pub(super) server: Option<Arc<ServerConfig>>,
    pub(super) client: ClientConfig,
}

impl Configs {
    pub(super) fn new(kind: &TcpKind) -> Result<Self> {
        let transport = Arc::new(transport(kind)?);
        let names = [SERVER_NAME.to_owned()];
        let made = rcgen::generate_simple_self_signed(names).context("cannot make a certificate")?;
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = [&rustls::version::TLS13];
        let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)?;
        let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        server.transport_config(Arc::clone(&transport));
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        client.transport_config(transport);
        Ok(Self { server: Some(Arc::new(server)), client })
    }
}

fn transport(kind: &TcpKind) -> Result<TransportConfig> {
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match kind.controller.as_str() {
        "new-reno" => Arc::new(NewRenoConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    let window = VarInt::from_u64(kind.window_bytes_max).context("the receiver's window")?;
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(controller)
        .stream_receive_window(window)
        .receive_window(VarInt::MAX)
        .send_window(kind.window_bytes_max)
        // A link may be silent for as long as a scenario likes.
        .max_idle_timeout(None)
        // The links of the emulator take packets one by one.
        .enable_segmentation_offload(false);
    Ok(transport)
}
