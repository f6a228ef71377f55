//! Services that a sandboxed process reaches at a loopback address.

use std::{io, sync::Arc};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use super::{endpoint::Endpoint, mirror::Mirror, proxy::ProxyPolicy};

/// Maximum number of connections of a process to one service at a time; more wait.
const MAX_CONNECTIONS: usize = 256;

/// Service behind a listener.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// Passes bytes on to the platform.
    Platform(Endpoint),
    /// The HTTP proxy.
    Proxy(Arc<ProxyPolicy>),
    /// Package indexes with credentials.
    Mirror(Arc<Mirror>),
}

/// Serves all connections until it is dropped.
pub(crate) async fn serve(listener: TcpListener, service: Service) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let client = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let client = match client {
            Ok((client, _)) => client,
            Err(error) => {
                // Too many open files, perhaps.
                tracing::warn!(%error, "could not accept a connection of a script");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let service = service.clone();
        connections.spawn(async move {
            // An error ends the connection, which is all that can be reported to the script.
            let _ = service.connect(client).await;
            drop(place);
        });
    }
}

impl Service {
    async fn connect(&self, mut client: TcpStream) -> io::Result<()> {
        match self {
            Self::Platform(Endpoint { host, port }) => {
                let mut server = TcpStream::connect((&**host, *port)).await?;
                // Small requests are not delayed twice.
                client.set_nodelay(true)?;
                server.set_nodelay(true)?;
                copy_bidirectional(&mut client, &mut server).await?;
                Ok(())
            }
            Self::Proxy(policy) => policy.serve(client).await,
            Self::Mirror(mirror) => mirror.serve(client).await,
        }
    }
}
