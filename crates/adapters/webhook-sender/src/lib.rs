//! Sends deliveries to the receivers of webhooks, over HTTP.
//!
//! **Invariants.** No connection to an address that is neither public nor in a network that the operator names,
//! nor to this machine; addresses are checked when connecting, not when a webhook is made. No redirect is
//! followed, no proxy is used, and no more of a response is read than [`MAX_RESPONSE`].

use std::{
    fmt,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::LazyLock,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{
    Method, Request,
    header::{CONTENT_TYPE, HeaderValue, USER_AGENT},
};
use http_body_util::{BodyExt, Full, Limited};
use ipnet::IpNet;
use labdata_domain::outward::webhooks::{ATTEMPT_TIMEOUT, AttemptResult};
use labdata_http_client::{Authorities, HttpClient, InvalidAuthorities};
use labdata_ports::outward::webhooks::{WebhookRequest, WebhookSender};
use tokio::time::timeout;

/// Largest part of a response that is read, in bytes, so that its connection can be used again.
pub const MAX_RESPONSE: usize = 8 << 10;

/// Time in which that part arrives; later than that, the connection is closed.
const RESPONSE_TIME: Duration = Duration::from_secs(1);

type Client = Result<HttpClient<Full<Bytes>>, InvalidAuthorities>;

/// Sends deliveries over HTTP.
pub struct HttpWebhookSender {
    /// Made by the first delivery: many servers have no webhook, and reading the authorities of a machine
    /// takes longer than much of a start.
    client: LazyLock<Client, Box<dyn FnOnce() -> Client + Send>>,
}

impl fmt::Debug for HttpWebhookSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWebhookSender").finish_non_exhaustive()
    }
}

impl HttpWebhookSender {
    /// A sender to addresses that `is_permitted` permits with these networks. If TLS cannot be set up,
    /// deliveries fail with the reason.
    #[must_use]
    pub fn new(
        authorities: impl FnOnce() -> Authorities + Send + 'static,
        allow: Vec<IpNet>,
        is_permitted: fn(IpAddr, &[IpNet]) -> bool,
    ) -> Self {
        let permit = move |address: IpAddr| {
            is_permitted(address, &allow)
                && (allow.iter().any(|network| network.contains(&address))
                    || !is_of_this_machine(address))
        };
        Self {
            client: LazyLock::new(Box::new(|| {
                HttpClient::to_permitted(authorities(), ATTEMPT_TIMEOUT, permit)
            })),
        }
    }
}

/// Returns whether a public address is one of this machine, whose other services may trust it.
fn is_of_this_machine(address: IpAddr) -> bool {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a datagram socket sends nothing; the kernel chooses the address that it would send from.
    let own = UdpSocket::bind(SocketAddr::new(unspecified, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    own.is_ok_and(|own| own.ip() == address)
}

#[async_trait]
impl WebhookSender for HttpWebhookSender {
    async fn send(&self, request: &WebhookRequest) -> AttemptResult {
        let mut built = Request::builder()
            .method(Method::POST)
            .uri(&request.url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(USER_AGENT, HeaderValue::from_static("labdata-webhooks/1"));
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        let body = Full::new(Bytes::from(request.body.clone()));
        let Ok(built) = built.body(body) else {
            return AttemptResult::Failed("the address is no URL that can be asked".to_owned());
        };
        let client = match &*self.client {
            Ok(client) => client,
            Err(error) => return AttemptResult::Failed(error.to_string()),
        };
        match client.send(built, ATTEMPT_TIMEOUT).await {
            Ok(response) => {
                let status = response.status().as_u16();
                // The status alone counts, so what becomes of the body does not matter.
                let rest = Limited::new(response.into_body(), MAX_RESPONSE).collect();
                timeout(RESPONSE_TIME, rest).await.ok();
                AttemptResult::Responded(status)
            }
            Err(error) => AttemptResult::Failed(error.to_string()),
        }
    }
}
