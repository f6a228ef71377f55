//! Encryption of connections: `sslmode` and `sslrootcert`, by rustls.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use postgres_protocol::message::frontend;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::TlsConnector;

use crate::database::password_guard::PasswordGuard;

/// `sslmode`, with what it needs.
#[derive(Clone)]
pub(crate) enum Encryption {
    /// `disable`, and sockets.
    Disabled,
    /// `prefer`: TLS where the server has it, without a check of its certificate.
    Preferred(Arc<ClientConfig>),
    /// `require`, `verify-ca` and `verify-full`: TLS, or no connection.
    Required(Arc<ClientConfig>),
}

impl Encryption {
    /// Reads `sslmode` and `sslrootcert` as libpq does; `verify-full` without a file trusts the
    /// system's certificates.
    ///
    /// # Errors
    /// The reason, in one line.
    pub(crate) fn parse(mode: Option<&str>, root: Option<&str>) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        match (mode.unwrap_or("prefer"), root) {
            ("disable", _) => Ok(Self::Disabled),
            ("prefer", _) => Ok(Self::Preferred(unverified(provider)?)),
            ("require", None) => Ok(Self::Required(unverified(provider)?)),
            // As libpq: `require` checks the certificate as soon as a root file is given.
            ("require" | "verify-ca", root) => Ok(Self::Required(verified(provider, root, false)?)),
            ("verify-full", root) => Ok(Self::Required(verified(provider, root, true)?)),
            (other, _) => Err(format!(
                "sslmode is {other:?}; it takes disable, prefer, require, verify-ca or verify-full"
            )),
        }
    }
}

fn client(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<Arc<ClientConfig>, String> {
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        // The method takes any verifier; with `verify-full` it is that of rustls.
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn unverified(provider: Arc<CryptoProvider>) -> Result<Arc<ClientConfig>, String> {
    let verifier = Arc::new(AnyCertificate(Arc::clone(&provider)));
    client(provider, verifier)
}

fn verified(
    provider: Arc<CryptoProvider>,
    root: Option<&str>,
    by_name: bool,
) -> Result<Arc<ClientConfig>, String> {
    let roots = match root {
        None | Some("system") => system_roots(),
        Some(path) => roots_of(path)?,
    };
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| format!("sslrootcert: {error}"))?;
    if by_name {
        client(provider, verifier)
    } else {
        client(provider, Arc::new(AnyName(verifier)))
    }
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // A certificate of the system that cannot be read leaves the rest usable.
    for error in &found.errors {
        tracing::debug!(%error, "certificates of the system");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

fn roots_of(path: &str) -> Result<RootCertStore, String> {
    let unusable = |reason: String| format!("sslrootcert {path:?} cannot be used: {reason}");
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    // A file without PEM sections is no error of the parser, but would fail every connection.
    if roots.is_empty() {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    Ok(roots)
}

/// Accepts any certificate: protects against listening, not against another server.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts a certificate of a trusted authority, for any name (`verify-ca`).
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        match self
            .0
            .verify_server_cert(certificate, intermediates, name, ocsp, now)
        {
            Err(TlsError::InvalidCertificate(
                // The verifier checks the chain before the name, so the chain is trusted here.
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Encrypts connections; all clones warn once together.
#[derive(Clone)]
pub(crate) struct Connector {
    encryption: Encryption,
    has_warned: Arc<AtomicBool>,
}

impl Connector {
    pub(crate) fn new(encryption: Encryption) -> Self {
        Self {
            encryption,
            has_warned: Arc::default(),
        }
    }

    /// Asks the server for TLS and encrypts the stream, as `sslmode` demands.
    ///
    /// # Errors
    /// When the server has no TLS but `sslmode` requires it, or its certificate is not trusted.
    pub(crate) async fn encrypt<S>(&self, mut stream: S, host: &str) -> io::Result<ServerStream<S>>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let (config, is_required) = match &self.encryption {
            Encryption::Disabled => return Ok(self.plain(stream, host)),
            Encryption::Preferred(config) => (config, false),
            Encryption::Required(config) => (config, true),
        };
        let mut request = bytes::BytesMut::new();
        frontend::ssl_request(&mut request);
        stream.write_all(&request).await?;
        stream.flush().await?;
        // Exactly one byte: what follows it in plain text was inserted by someone (CVE-2021-23222).
        if stream.read_u8().await? != b'S' {
            if is_required {
                return Err(io::Error::other(
                    "the server has no TLS, which sslmode requires",
                ));
            }
            return Ok(self.plain(stream, host));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::clone(config))
            .connect(name, stream)
            .await?;
        Ok(ServerStream::Tls(PasswordGuard::new(Box::new(stream))))
    }

    fn plain<S>(&self, stream: S, host: &str) -> ServerStream<S> {
        // Once: every connection of the pool passes here.
        if !is_this_machine(host) && !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                host,
                "connections to the database are not encrypted: set sslmode=verify-full in DATABASE_URL"
            );
        }
        ServerStream::Plain(PasswordGuard::new(stream))
    }
}

/// True for names and addresses of the machine itself, and for sockets.
fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    host.is_empty() || host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// A connection to the server, encrypted or not, that refuses to show a password.
pub(crate) enum ServerStream<S> {
    Plain(PasswordGuard<S>),
    Tls(PasswordGuard<Box<tokio_rustls::client::TlsStream<S>>>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ServerStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ServerStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for ServerStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// One connection of the driver that is to be encrypted.
pub(crate) struct Handshake {
    connector: Connector,
    host: String,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = ServerStream<Socket>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        Ok(Handshake {
            connector: self.clone(),
            host: host.to_owned(),
        })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = ServerStream<Socket>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<ServerStream<Socket>>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { self.connector.encrypt(socket, &self.host).await })
    }
}
