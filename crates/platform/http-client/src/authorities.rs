//! Certificate authorities that are trusted.

use std::path::Path;

use rustls::{
    Error as TlsError, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Certificate authorities that a client trusts.
#[derive(Debug)]
pub struct Authorities(RootCertStore);

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
    #[error("this machine has no certificates of authorities; install its package ca-certificates")]
    NoneOnThisMachine,
    /// The TLS library refuses the configuration.
    #[error("{0}")]
    Tls(#[from] TlsError),
}

impl Authorities {
    /// No authority: every HTTPS connection fails.
    #[must_use]
    pub fn none() -> Self {
        Self(RootCertStore::empty())
    }

    /// Reads the authorities that this machine trusts. Certificates that cannot be parsed are skipped.
    ///
    /// # Errors
    /// [`InvalidAuthorities::NoneOnThisMachine`].
    pub fn of_machine() -> Result<Self, InvalidAuthorities> {
        let mut roots = RootCertStore::empty();
        // Skips certificates that rustls cannot read: machines have some, and the rest suffices.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(InvalidAuthorities::NoneOnThisMachine);
        }
        Ok(Self(roots))
    }

    /// Reads the authorities of a PEM file, all of which must be valid.
    ///
    /// # Errors
    /// [`InvalidAuthorities::File`].
    pub fn of_file(path: &Path) -> Result<Self, InvalidAuthorities> {
        let read = || {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|it| it.to_string())? {
                let certificate = certificate.map_err(|it| it.to_string())?;
                // None is skipped: a mistake in a file that an operator names must not go unnoticed.
                roots.add(certificate).map_err(|it| it.to_string())?;
            }
            if roots.is_empty() {
                // A PEM file with a key only is read without an error.
                return Err("it contains no certificate".to_owned());
            }
            Ok(Self(roots))
        };
        read().map_err(|cause| InvalidAuthorities::File {
            path: path.display().to_string(),
            cause,
        })
    }

    pub(crate) fn into_roots(self) -> RootCertStore {
        self.0
    }
}
