//! Configuration of both ends: keys for one run, windows as in the kernel's TCP.

use std::sync::Arc;

use anyhow::{Context, Result};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use plait_sim::scenario::app::TcpKind;
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerIncompatible, SignatureScheme};

/// The receiver's server name, which is not checked: its key identifies it.
pub(super) const SERVER_NAME: &str = "receiver";
/// Controllers of the simulator that quinn also has.
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
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = [&rustls::version::TLS13];
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let pkcs8 = pkcs8.ok().context("cannot make a key")?.as_ref().to_vec();
        let private =
            provider.key_provider.load_private_key(PrivatePkcs8KeyDer::from(pkcs8).into())?;
        let public = private.public_key().context("a key without its public part")?.to_vec();
        let both = CertifiedKey::new(vec![CertificateDer::from(public.clone())], private);
        let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(both))));
        let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        server.transport_config(Arc::clone(&transport));
        let algorithms = provider.signature_verification_algorithms;
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OneKey { public, algorithms }))
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
        // A scenario may keep a link silent for any time.
        .max_idle_timeout(None)
        // The emulator's links take packets one by one.
        .enable_segmentation_offload(false);
    Ok(transport)
}

/// Verifies the receiver by its raw public key (RFC 7250), which is made for one run.
#[derive(Debug)]
struct OneKey {
    public: Vec<u8>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for OneKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if key.as_ref() == self.public {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
