//! Package indexes with credentials, served to installations without them.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{
    Request, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION},
};
use http_body_util::{BodyExt, Empty, Limited};
use labdata_http_client::{Authorities, HttpClient, TimedBody};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use super::request_head::RequestHead;

/// Timeout of connecting to an index.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of a request's head, of the index's response until its body begins, and of each chunk.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum length of a page of an index, in bytes.
const MAX_PAGE_BYTES: usize = 64 << 20;

/// Headers that are passed to the index.
const REQUEST_HEADERS: [&str; 5] = [
    "accept",
    "range",
    "if-none-match",
    "if-modified-since",
    "user-agent",
];

/// Headers that are passed to the installation.
const RESPONSE_HEADERS: [&str; 8] = [
    "content-type",
    "content-encoding",
    "content-range",
    "accept-ranges",
    "cache-control",
    "etag",
    "last-modified",
    "location",
];

/// Server with credentials.
#[derive(Clone)]
pub(crate) struct MirroredServer {
    /// Scheme, host and port, without a slash at the end.
    pub(crate) origin: String,
    /// Value of `Authorization`.
    pub(crate) authorization: String,
}

impl std::fmt::Debug for MirroredServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the credentials.
        f.debug_tuple("MirroredServer").field(&self.origin).finish()
    }
}

/// Servers of an installation, at `/<token>/<number>/` of a listener.
pub(crate) struct Mirror {
    /// Start of all paths: on the machine's own network a secret that excludes other processes.
    token: String,
    servers: Vec<MirroredServer>,
    client: HttpClient<Empty<Bytes>>,
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the credentials.
        f.debug_struct("Mirror").finish_non_exhaustive()
    }
}

impl Mirror {
    /// Creates a mirror that trusts the certificates that this machine trusts. On the network of a
    /// namespace its URL is always the same, so that uv finds what it has in its cache.
    pub(crate) fn new(servers: Vec<MirroredServer>, in_namespace: bool) -> io::Result<Self> {
        // Under Landlock other accounts of the machine reach the port, so its path is a secret.
        let token = if in_namespace {
            "index".to_owned()
        } else {
            random_token()?
        };
        let authorities = Authorities::of_machine().map_err(io::Error::other)?;
        Ok(Self {
            token,
            servers,
            client: HttpClient::new(authorities, CONNECT_TIMEOUT).map_err(io::Error::other)?,
        })
    }

    /// Returns the URL of the servers, to which the number of one is added, at a port of the loopback
    /// interface.
    pub(crate) fn url(&self, port: u16) -> String {
        format!("http://127.0.0.1:{port}/{}", self.token)
    }

    /// Serves one request.
    pub(crate) async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let Ok(head) = timeout(TIMEOUT, RequestHead::read(&mut client)).await else {
            return Ok(());
        };
        let port = client.local_addr()?.port();
        let target = head?.and_then(|head| Some((self.request(&head)?, head)));
        let Some(((number, server, request), head)) = target else {
            return respond(&mut client, "404 Not Found", &[], b"").await;
        };
        let response = match self.client.send(request, TIMEOUT).await {
            Ok(response) => response,
            Err(error) => return refuse(&mut client, &error.to_string()).await,
        };
        let own = format!("{}/{number}", self.url(port));
        let headers = headers(&response, &server.origin, &own);
        let status = response.status().to_string();
        let kind = response.headers().get(CONTENT_TYPE);
        let is_page = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.contains("html") || kind.contains("json"));
        // Without a length, since that of a page changes when it is rewritten.
        if head.method == "HEAD" {
            return respond_head(&mut client, &status, &headers, None).await;
        }
        // Only pages are held in memory and rewritten; packages, which are large, are passed on as they arrive.
        if is_page {
            let body = Limited::new(response.into_body(), MAX_PAGE_BYTES)
                .collect()
                .await;
            let body = body.map_err(io::Error::other)?.to_bytes();
            // Links of an index page are absolute or rooted: both have to lead back through this mirror.
            let page = lead_through(&String::from_utf8_lossy(&body), &server.origin, &own);
            return respond(&mut client, &status, &headers, page.as_bytes()).await;
        }
        let length = response.headers().get("content-length").cloned();
        respond_head(&mut client, &status, &headers, length.as_ref()).await?;
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(bytes) = frame.map_err(io::Error::other)?.into_data() {
                client.write_all(&bytes).await?;
            }
        }
        client.shutdown().await
    }

    /// Returns the request to a server, if the path leads to one.
    fn request(
        &self,
        head: &RequestHead,
    ) -> Option<(usize, &MirroredServer, Request<Empty<Bytes>>)> {
        // An installation only reads: the credentials that are added
        // here must serve for nothing else.
        if !matches!(&*head.method, "GET" | "HEAD") {
            return None;
        }
        let path = head.target.strip_prefix('/')?.strip_prefix(&*self.token)?;
        let (number, path) = path.strip_prefix('/')?.split_once('/')?;
        let number: usize = number.parse().ok()?;
        let server = self.servers.get(number)?;
        let mut request = Request::builder()
            .method(&*head.method)
            .uri(format!("{}/{path}", server.origin))
            .header(AUTHORIZATION, sensitive(&server.authorization)?);
        for (name, value) in &head.headers {
            if REQUEST_HEADERS
                .iter()
                .any(|it| name.eq_ignore_ascii_case(it))
            {
                request = request.header(name, value);
            }
        }
        Some((number, server, request.body(Empty::new()).ok()?))
    }
}

fn random_token() -> io::Result<String> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(base16ct::lower::encode_string(&random))
}

/// Returns a page whose links to the same server lead through the mirror.
fn lead_through(page: &str, origin: &str, own: &str) -> String {
    let mut page = page.replace(origin, own);
    // Links that begin at the root of the server, as in PEP 503 (HTML) and PEP 691 (JSON).
    for start in ["href=\"", "href='", "\"url\":\"", "\"url\": \""] {
        page = page.replace(&format!("{start}/"), &format!("{start}{own}/"));
    }
    page
}

fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    // Hides the credentials from the client's debug output.
    value.set_sensitive(true);
    Some(value)
}

/// Returns the headers for the installation.
fn headers(response: &Response<TimedBody>, origin: &str, own: &str) -> Vec<(HeaderName, String)> {
    let passed = response.headers().iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        let value = if name == LOCATION {
            value.replace(origin, own)
        } else {
            value.to_owned()
        };
        RESPONSE_HEADERS
            .contains(&name.as_str())
            .then(|| (name.clone(), value))
    });
    passed.collect()
}

async fn refuse(client: &mut TcpStream, reason: &str) -> io::Result<()> {
    respond(client, "502 Bad Gateway", &[], reason.as_bytes()).await
}

async fn respond(
    client: &mut TcpStream,
    status: &str,
    headers: &[(HeaderName, String)],
    body: &[u8],
) -> io::Result<()> {
    let length = HeaderValue::from(body.len());
    respond_head(client, status, headers, Some(&length)).await?;
    client.write_all(body).await?;
    client.shutdown().await
}

async fn respond_head(
    client: &mut TcpStream,
    status: &str,
    headers: &[(HeaderName, String)],
    length: Option<&HeaderValue>,
) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    let length = length.and_then(|length| length.to_str().ok());
    let length = length.map(|length| ("content-length", length));
    let headers = headers
        .iter()
        .map(|(name, value)| (name.as_str(), &**value));
    for (name, value) in headers.chain(length) {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    client.write_all(text.as_bytes()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_link_to_the_index_leads_through_the_mirror() {
        let own = "http://127.0.0.1:1/t/0";
        let page = "<a href=\"https://index.lab/p/a.whl#sha256=1\"> <a href=\"/p/b.whl\"> \
                    <a href=\"../c.whl\"> <a href=\"https://other.lab/d.whl\"> \
                    {\"url\": \"/p/e.whl\"}";
        assert_eq!(
            lead_through(page, "https://index.lab", own),
            "<a href=\"http://127.0.0.1:1/t/0/p/a.whl#sha256=1\"> \
             <a href=\"http://127.0.0.1:1/t/0/p/b.whl\"> <a href=\"../c.whl\"> \
             <a href=\"https://other.lab/d.whl\"> {\"url\": \"http://127.0.0.1:1/t/0/p/e.whl\"}"
        );
    }
}
