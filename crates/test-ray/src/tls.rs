//! Encrypted access to a cluster. Ray's own job API is plain HTTP, so operators put a proxy in front.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// Proxy that speaks HTTPS, with a certificate for `localhost`. It ends with this value.
#[derive(Debug)]
pub struct TlsProxy {
    address: String,
    serving: JoinHandle<()>,
}

impl TlsProxy {
    /// Starts a proxy in front of the cluster at that address.
    pub async fn start(cluster: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let upstream = cluster.trim_start_matches("http://").to_owned();
        let acceptor = acceptor();
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, upstream.clone(), acceptor.clone()));
            }
        });
        Self {
            address: format!("https://localhost:{port}"),
            serving,
        }
    }

    /// Returns the address of the job API.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the PEM file of the authority that issued the certificate.
    #[must_use]
    pub fn authority() -> PathBuf {
        certificate("authority.pem")
    }

    /// Returns the PEM file of another authority.
    #[must_use]
    pub fn stranger() -> PathBuf {
        certificate("stranger.pem")
    }
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn certificate(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "certificates", name]
        .iter()
        .collect()
}

fn acceptor() -> TlsAcceptor {
    let certificates = CertificateDer::pem_file_iter(certificate("server.pem"))
        .and_then(Iterator::collect)
        .expect("the certificate of the proxy");
    let key = PrivateKeyDer::from_pem_file(certificate("server.key")).expect("its key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config
                .with_no_client_auth()
                .with_single_cert(certificates, key)
        });
    TlsAcceptor::from(Arc::new(config.expect("a server with that certificate")))
}

async fn forward(
    client: TcpStream,
    upstream: String,
    acceptor: TlsAcceptor,
) -> std::io::Result<()> {
    // Fails for clients that do not trust the certificate.
    let mut client = acceptor.accept(client).await?;
    let mut upstream = TcpStream::connect(upstream).await?;
    copy_bidirectional(&mut client, &mut upstream).await?;
    Ok(())
}
