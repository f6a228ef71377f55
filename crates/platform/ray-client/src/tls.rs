//! Encryption of calls: the certificate authorities that are trusted.

use std::{error::Error, io, path::Path, sync::Arc, time::Duration};

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{
    ClientConfig, Error as TlsError, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Error: no certificate authority can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAuthorities {
    /// The file cannot be read, or is no PEM file.
    #[error("{path:?} cannot be used: {cause}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause, in one line.
        cause: String,
    },
    /// The machine has no certificates.
    #[error(
        "this machine has no certificates of authorities; install its package ca-certificates, or \
         set LABDATA_RAY_CA_FILE"
    )]
    NoneOnThisMachine,
    /// The TLS library refuses the configuration.
    #[error("{0}")]
    Tls(#[from] TlsError),
}

/// Checks that a PEM file contains certificates of authorities.
///
/// # Errors
/// [`InvalidAuthorities`].
pub fn check_authorities(path: &Path) -> Result<(), InvalidAuthorities> {
    read_authorities(path).map(drop)
}

/// Returns a connector for HTTP and HTTPS. Only HTTPS requires that there are authorities.
pub(crate) fn connector(
    is_encrypted: bool,
    ca_file: Option<&Path>,
    connect_timeout: Duration,
) -> Result<HttpsConnector<HttpConnector>, InvalidAuthorities> {
    let roots = match ca_file {
        Some(path) => read_authorities(path)?,
        None if is_encrypted => machine_authorities()?,
        None => RootCertStore::empty(),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(connect_timeout));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp))
}

fn machine_authorities() -> Result<RootCertStore, InvalidAuthorities> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(InvalidAuthorities::NoneOnThisMachine);
    }
    Ok(roots)
}

fn read_authorities(path: &Path) -> Result<RootCertStore, InvalidAuthorities> {
    let read = || {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|it| it.to_string())? {
            let certificate = certificate.map_err(|it| it.to_string())?;
            roots.add(certificate).map_err(|it| it.to_string())?;
        }
        if roots.is_empty() {
            return Err("it contains no certificate".to_owned());
        }
        Ok(roots)
    };
    read().map_err(|cause| InvalidAuthorities::File {
        path: path.display().to_string(),
        cause,
    })
}

/// Returns the problem with the server's certificate, if the error is one.
pub(crate) fn certificate_problem(error: &(dyn Error + 'static)) -> Option<String> {
    // The inner error of an I/O error is not among its sources. The connector nests them.
    let mut inner: &(dyn Error + 'static) = error;
    while let Some(error) = inner.downcast_ref::<io::Error>() {
        inner = error.get_ref()?;
    }
    match inner.downcast_ref::<TlsError>()? {
        TlsError::InvalidCertificate(problem) => Some(problem.to_string()),
        _ => None,
    }
}
