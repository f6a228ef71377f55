//! HTTP proxy through which scripts reach public addresses.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    net::{TcpStream, lookup_host},
    time::timeout,
};
use url::Url;

use super::{
    addresses::is_permitted, endpoint::Endpoint, request_head::RequestHead, upstream::Upstream,
};

/// Time limit of a request's head, of a name lookup and of a connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// Destinations to which the proxy connects.
#[derive(Clone, Debug)]
pub(crate) struct ProxyPolicy {
    /// Public addresses, and those of `allow`. Otherwise only the endpoints.
    pub(crate) has_internet: bool,
    /// Networks that are permitted although they are not public.
    pub(crate) allow: Vec<IpNet>,
    /// Endpoints that are permitted at any address.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Proxy that leads to the internet, if any.
    pub(crate) upstream: Upstream,
}

/// Why the proxy did not connect.
enum Refusal {
    /// The policy forbids it.
    Forbidden(String),
    /// The other side cannot be reached.
    Unreachable(String),
}

impl ProxyPolicy {
    /// Serves one connection of a script.
    pub(crate) async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let Ok(head) = timeout(PATIENCE, RequestHead::read(&mut client)).await else {
            return Ok(());
        };
        let Some(head) = head? else {
            return response(&mut client, "400 Bad Request", "this is an HTTP proxy").await;
        };
        let is_tunnel = head.method == "CONNECT";
        let url = if is_tunnel {
            Url::parse(&format!("https://{}", head.target))
        } else {
            Url::parse(&head.target)
        };
        // Without a tunnel only plain HTTP can be forwarded.
        let url = url.ok().filter(|url| is_tunnel || url.scheme() == "http");
        let Some((url, endpoint)) = url
            .and_then(|url| Some((Endpoint::of(&url)?, url)))
            .map(|(endpoint, url)| (url, endpoint))
        else {
            return response(&mut client, "400 Bad Request", "this is an HTTP proxy").await;
        };
        match self.dial(&endpoint, is_tunnel).await {
            Ok(Dialed { mut server, side }) => {
                if is_tunnel {
                    client
                        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                        .await?;
                    // A client may send the beginning of its data along
                    // with the request for the tunnel.
                    server.write_all(&head.rest).await?;
                } else {
                    // One request per connection: the next one may be for another host.
                    let mut added = vec![("Connection", "close")];
                    let target = match &side {
                        // A proxy is asked with the whole URL, a server with the path alone.
                        OtherSide::Proxy(credentials) => {
                            let credentials = credentials.as_deref();
                            added.extend(credentials.map(|it| ("Proxy-Authorization", it)));
                            url.as_str().to_owned()
                        }
                        OtherSide::Endpoint => {
                            let query = url.query().map(|query| format!("?{query}"));
                            format!("{}{}", url.path(), query.unwrap_or_default())
                        }
                    };
                    server.write_all(&head.to_bytes(&target, &added)).await?;
                }
                copy_bidirectional(&mut client, &mut server).await?;
                Ok(())
            }
            Err(Refusal::Forbidden(reason)) => {
                response(&mut client, "403 Forbidden", &reason).await
            }
            Err(Refusal::Unreachable(reason)) => {
                response(&mut client, "502 Bad Gateway", &reason).await
            }
        }
    }

    async fn dial(&self, endpoint: &Endpoint, is_tunnel: bool) -> Result<Dialed, Refusal> {
        let Endpoint { host, port } = endpoint;
        let is_named = self.endpoints.contains(endpoint);
        if !is_named && !self.has_internet {
            return Err(Refusal::Forbidden(format!(
                "scripts reach the platform only, not {host} (LABDATA_JOB_NETWORK)"
            )));
        }
        let upstream = self.upstream.for_host(host, is_tunnel);
        let found = resolve(host, *port).await;
        let permitted: Vec<SocketAddr> = match &found {
            Ok(found) => found
                .iter()
                // An operator may name an index at a private address.
                .filter(|it| is_named || is_permitted(it.ip(), &self.allow))
                .copied()
                .collect(),
            // Only the upstream proxy may know the name.
            Err(_) if upstream.is_some() => Vec::new(),
            Err(error) => return Err(Refusal::Unreachable(format!("{host}: {error}"))),
        };
        if permitted.is_empty() && found.is_ok() {
            return Err(Refusal::Forbidden(format!(
                "{host} is at a private address, which scripts do not reach \
                 (LABDATA_JOB_NETWORK_ALLOW)"
            )));
        }
        let unreachable = |error: io::Error| Refusal::Unreachable(format!("{host}: {error}"));
        if let Some(proxy) = upstream {
            let server = timeout(PATIENCE, proxy.connect(is_tunnel.then_some(endpoint)));
            return Ok(Dialed {
                server: server
                    .await
                    .map_err(io::Error::from)
                    .flatten()
                    .map_err(unreachable)?,
                side: if is_tunnel {
                    OtherSide::Endpoint
                } else {
                    OtherSide::Proxy(proxy.authorization.clone())
                },
            });
        }
        // To the addresses that were checked: a name that is resolved again could lead elsewhere.
        let server = timeout(PATIENCE, TcpStream::connect(&*permitted));
        let server = server
            .await
            .map_err(io::Error::from)
            .flatten()
            .map_err(unreachable)?;
        if !is_named && self.is_own(&server) {
            return Err(Refusal::Forbidden(format!(
                "{host} is the worker's own machine, which scripts do not reach"
            )));
        }
        Ok(Dialed {
            server,
            side: OtherSide::Endpoint,
        })
    }

    /// Returns true for a connection to this machine, unless the address is allowed by the operator.
    fn is_own(&self, server: &TcpStream) -> bool {
        let (Ok(own), Ok(peer)) = (server.local_addr(), server.peer_addr()) else {
            // In doubt it counts as this machine, and is refused.
            return true;
        };
        // A connection to a public address of this machine has it on both sides.
        own.ip() == peer.ip() && !self.allow.iter().any(|it| it.contains(&peer.ip()))
    }
}

/// Connection for a request.
struct Dialed {
    server: TcpStream,
    side: OtherSide,
}

/// Other side of a connection.
enum OtherSide {
    /// The endpoint of the request.
    Endpoint,
    /// A proxy, which must be asked for the endpoint with these credentials.
    Proxy(Option<String>),
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let found = timeout(PATIENCE, lookup_host((host, port))).await??;
    Ok(found.collect())
}

async fn response(client: &mut TcpStream, status: &str, reason: &str) -> io::Result<()> {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{reason}\n",
        reason.len() + 1
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}
