//! Credentials of a served cluster: bearer token and TLS certificate.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ServerConfig};

/// A bearer token, and a self-signed certificate for the loopback addresses.
///
/// TLS is required: kubectl does not send tokens over plain HTTP (`clientcmd/client_config.go`
/// reads users only for TLS).
#[derive(Clone)]
pub struct Access {
    token: String,
    certificate: String,
    tls: Arc<ServerConfig>,
}

/// The credentials cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Key or certificate cannot be generated.
    #[error("failed to create the certificate of the embedded cluster: {0}")]
    Certificate(#[from] rcgen::Error),
    /// rustls rejects the certificate.
    #[error("failed to configure TLS for the embedded cluster: {0}")]
    Tls(#[from] rustls::Error),
}

impl Access {
    /// Creates a new certificate for clients with the token.
    pub fn new(token: impl Into<String>) -> Result<Self, AccessError> {
        let names = ["127.0.0.1", "::1", "localhost"].map(str::to_owned);
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names)?;
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)?;
        Ok(Self { token: token.into(), certificate: cert.pem(), tls: Arc::new(tls) })
    }

    /// Returns a kubeconfig for the API at an address.
    pub fn kubeconfig(&self, address: SocketAddr) -> String {
        let certificate = STANDARD.encode(&self.certificate);
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: evictlab-embedded
  cluster:
    server: https://{address}
    certificate-authority-data: {certificate}
users:
- name: evictlab-embedded
  user:
    token: {}
contexts:
- name: evictlab-embedded
  context:
    cluster: evictlab-embedded
    user: evictlab-embedded
current-context: evictlab-embedded
",
            self.token
        )
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn tls(&self) -> Arc<ServerConfig> {
        self.tls.clone()
    }
}
