//! Network of sandboxed processes.
//!
//! In namespaces a process has a separate network, with nothing but listeners that this program
//! serves: the platform, and an HTTP proxy that refuses addresses which are not public. The supervisor
//! opens the listeners inside the namespace and sends them here. Under Landlock the listeners are on
//! this machine's loopback interface, and the kernel permits TCP to their ports only.

mod addresses;
mod endpoint;
mod gateway;
mod mirror;
mod proxy;
mod request_head;
mod services;
mod special_addresses;
mod upstream;

use ipnet::IpNet;
use url::Url;

use crate::spec::Network;

pub use addresses::is_permitted;
pub(crate) use endpoint::Endpoint;
pub(crate) use gateway::{Gateway, GatewayRequest, Reach};
pub(crate) use mirror::MirroredServer;
pub(crate) use upstream::{Upstream, authorization};

/// Network settings of a sandbox.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// Access of scripts.
    pub access: Network,
    /// URL at which scripts reach the platform.
    pub platform: Option<Url>,
    /// Networks that scripts reach through the proxy although they are not public.
    pub allow: Vec<IpNet>,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            access: Network::Host,
            platform: None,
            allow: Vec::new(),
        }
    }
}
