//! Certificate and key of the relay.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

/// Error: files that are no certificate with its key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file holds no certificates.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The key does not fit the certificate.
    #[error("certificate and key: {0}")]
    Pair(#[from] rustls::Error),
}

/// Reads a chain of certificates and its key, both PEM.
///
/// # Errors
/// [`TlsError`].
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let failed = |path: &Path, reason: String| TlsError::File {
        path: path.display().to_string(),
        reason,
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| failed(certificate, error.to_string()))?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
