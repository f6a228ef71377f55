//! Resolver of host names that leaves out addresses that are not permitted.

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use http::Uri;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

/// Decides to which addresses a client connects.
pub type Permit = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Error: no address of a host is permitted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no address of the host is permitted")]
pub(crate) struct NotPermitted;

/// The resolver of this machine, restricted to permitted addresses.
#[derive(Clone)]
pub(crate) struct Resolver {
    inner: GaiResolver,
    permit: Option<Permit>,
}

impl Resolver {
    pub(crate) fn new(permit: Option<Permit>) -> Self {
        Self {
            inner: GaiResolver::new(),
            permit,
        }
    }
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, permit) = (self.inner.call(name), self.permit.clone());
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.collect();
            let Some(permit) = permit else {
                return Ok(found.into_iter());
            };
            let is_found = !found.is_empty();
            let permitted: Vec<SocketAddr> =
                found.into_iter().filter(|it| permit(it.ip())).collect();
            if is_found && permitted.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    NotPermitted,
                ));
            }
            Ok(permitted.into_iter())
        })
    }
}

/// The address that stands in a URL in place of a name, as the connector reads it.
pub(crate) fn literal_address(uri: &Uri) -> Option<IpAddr> {
    let host = uri.host()?;
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Some(address.into());
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<Ipv6Addr>().ok().map(Into::into)
}
