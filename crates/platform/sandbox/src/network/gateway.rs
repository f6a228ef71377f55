//! Network access of one process: its listeners and who serves them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use labdata_redacted::{Secret, Variables};
use tokio::{net::TcpListener, task::JoinSet};
use url::{Host, Url};

use super::{
    NetworkSettings,
    endpoint::Endpoint,
    mirror::{Mirror, MirroredServer},
    proxy::ProxyPolicy,
    services::{Service, serve},
    upstream::Upstream,
};
use crate::{
    launch::NamespaceNetwork,
    spec::{Isolation, Network},
};

/// First port inside a namespace that is given to a service; that of the platform is left out.
const FIRST_PORT: u16 = 3128;

/// Variables that name the proxy.
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// Servers that a process needs besides what its network has.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Endpoints that the proxy permits at any address.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Proxy of the lab's network.
    pub(crate) upstream: Upstream,
    /// Package indexes with credentials.
    pub(crate) mirrored: Vec<MirroredServer>,
}

/// Access that a process asks for.
pub(crate) struct GatewayRequest<'a> {
    pub(crate) isolation: Isolation,
    pub(crate) network: Network,
    pub(crate) settings: &'a NetworkSettings,
    pub(crate) reach: Reach,
}

impl GatewayRequest<'_> {
    /// Returns true if the network is not that of the machine.
    fn is_restricted(&self) -> bool {
        match self.network {
            Network::Platform | Network::Internet => self.isolation > Isolation::Nothing,
            Network::Host | Network::Denied => false,
        }
    }
}

/// Listeners of a process. Their connections end when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Gateway {
    /// Services whose listeners the supervisor opens in the namespace, in the order of
    /// [`NamespaceNetwork::listen`].
    awaited: Vec<Service>,
    serving: JoinSet<()>,
}

/// Consequences of a gateway for the launch of its process.
#[derive(Debug, Default)]
pub(crate) struct GatewayLaunch {
    /// Network in the namespace, if the process has its own.
    pub(crate) namespace: NamespaceNetwork,
    /// TCP ports that Landlock permits.
    pub(crate) ports: Vec<u16>,
    /// Variables that name the proxy.
    pub(crate) environment: Variables,
    /// URL of the mirrored indexes, if any.
    pub(crate) mirror: Option<Secret>,
}

impl Gateway {
    /// Prepares the access of a process.
    pub(crate) async fn prepare(request: GatewayRequest<'_>) -> io::Result<(Self, GatewayLaunch)> {
        let (mut gateway, mut launch) = (Self::default(), GatewayLaunch::default());
        let is_restricted = request.is_restricted();
        let in_namespace = is_restricted && request.isolation == Isolation::Namespaces;
        let mut direct = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut platform = None;
        if is_restricted {
            launch.namespace.hosts.push_str("127.0.0.1 localhost\n");
            let url = request.settings.platform.as_ref();
            if let Some((url, endpoint)) = url.and_then(|it| Some((it, Endpoint::of(it)?))) {
                platform = Some(endpoint.clone());
                direct.push(endpoint.host.clone());
                launch.ports.push(endpoint.port);
                if in_namespace {
                    let address = address_in_namespace(url, &mut launch.namespace.hosts);
                    let listen = SocketAddr::new(address, endpoint.port);
                    launch.namespace.listen.push(listen);
                    gateway.awaited.push(Service::Platform(endpoint));
                }
            }
        }
        let Reach {
            mut endpoints,
            upstream,
            mirrored,
        } = request.reach;
        let has_internet = !is_restricted || request.network == Network::Internet;
        // On the machine's own network, a proxy is needed only to keep credentials from the process.
        let needs_proxy = if is_restricted {
            has_internet || !endpoints.is_empty()
        } else {
            !endpoints.is_empty() && upstream.has_credentials()
        };
        if needs_proxy {
            // Some clients ask the proxy for every address.
            endpoints.extend(platform);
            let service = Service::Proxy(Arc::new(ProxyPolicy {
                has_internet,
                allow: request.settings.allow.clone(),
                endpoints,
                upstream,
            }));
            let port = gateway.open(service, in_namespace, &mut launch).await?;
            let proxy = format!("http://127.0.0.1:{port}");
            let direct = direct.join(",");
            let variables = PROXY_VARIABLES.map(|name| (name, &proxy));
            let exceptions = ["NO_PROXY", "no_proxy"].map(|name| (name, &direct));
            let variables = variables.into_iter().chain(exceptions);
            let owned = variables.map(|(name, value)| (name.to_owned(), value.clone()));
            launch.environment.extend(owned);
        }
        if !mirrored.is_empty() {
            let mirror = Arc::new(Mirror::new(mirrored, in_namespace)?);
            let service = Service::Mirror(Arc::clone(&mirror));
            let port = gateway.open(service, in_namespace, &mut launch).await?;
            launch.mirror = Some(Secret::new(mirror.url(port)));
        }
        Ok((gateway, launch))
    }

    /// Opens a listener for the service on a loopback interface, and returns its port.
    async fn open(
        &mut self,
        service: Service,
        in_namespace: bool,
        launch: &mut GatewayLaunch,
    ) -> io::Result<u16> {
        let port = if in_namespace {
            // The platform's own port is taken if it is among these.
            let mut free = (FIRST_PORT..).filter(|port| !launch.ports.contains(port));
            let port = free.next().unwrap_or(FIRST_PORT);
            let listen = (Ipv4Addr::LOCALHOST, port).into();
            launch.namespace.listen.push(listen);
            self.awaited.push(service);
            port
        } else {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let port = listener.local_addr()?.port();
            self.serving.spawn(serve(listener, service));
            port
        };
        launch.ports.push(port);
        Ok(port)
    }

    /// Number of listeners that the supervisor sends.
    pub(crate) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Serves the listeners that the supervisor sent, in the order of the services.
    pub(crate) fn serve_received(
        &mut self,
        listeners: Vec<std::net::TcpListener>,
    ) -> io::Result<()> {
        // Addresses to listen on and awaited services were added in pairs, so they have one order.
        for (listener, service) in listeners.into_iter().zip(self.awaited.drain(..)) {
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            self.serving.spawn(serve(listener, service));
        }
        Ok(())
    }
}

/// Returns the address of the platform in a namespace. Names lead to the loopback interface, and so
/// does an address, which the interface is given.
fn address_in_namespace(platform: &Url, hosts: &mut String) -> IpAddr {
    match platform.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(name)) => {
            // No DNS server is reached from the namespace: the name leads to the listener whose
            // connections the worker forwards.
            hosts.push_str("127.0.0.1 ");
            hosts.push_str(name);
            hosts.push('\n');
            Ipv4Addr::LOCALHOST.into()
        }
        None => Ipv4Addr::LOCALHOST.into(),
    }
}
