//! Requests to receivers of this test.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use labdata_domain::{
    ids::{DeliveryId, WebhookId},
    outward::webhooks::{
        AttemptResult, DeliverySubject, SecretVersion, WebhookFormat, WebhookSecret, message,
        signatures,
    },
};
use labdata_http_client::Authorities;
use labdata_ports::outward::webhooks::{WebhookRequest, WebhookSender};
use labdata_webhook_sender::HttpWebhookSender;
use standardwebhooks::Webhook;
use time::OffsetDateTime;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};
use uuid::Uuid;

/// Permits what is not loopback, as the platform's rule does among others.
fn is_permitted(address: IpAddr, allow: &[IpNet]) -> bool {
    let is_allowed = allow.iter().any(|network| network.contains(&address));
    is_allowed || !address.to_canonical().is_loopback()
}

fn sender(allow: &[&str]) -> HttpWebhookSender {
    let allow = allow
        .iter()
        .map(|network| network.parse().unwrap())
        .collect();
    HttpWebhookSender::new(Authorities::none, allow, is_permitted)
}

fn request(url: &str) -> WebhookRequest {
    WebhookRequest {
        url: url.to_owned(),
        headers: vec![("webhook-id", "msg-1".to_owned())],
        body: "{\"type\":\"webhook.test\"}".to_owned(),
    }
}

/// A receiver that answers each connection with this text; returns its port, and the requests.
async fn receiver(response: &'static str) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                let mut chunk = [0; 4096];
                let count = connection.read(&mut chunk).await.unwrap();
                if count == 0 {
                    break;
                }
                request.extend_from_slice(&chunk[..count]);
            }
            sender.send(String::from_utf8(request).unwrap()).unwrap();
            connection.write_all(response.as_bytes()).await.unwrap();
        }
    });
    (port, received)
}

#[tokio::test]
async fn the_body_and_the_headers_arrive() {
    let (port, mut received) = receiver("HTTP/1.1 204 No Content\r\n\r\n").await;
    let url = format!("http://127.0.0.1:{port}/hook?a=1");
    let result = sender(&["127.0.0.0/8"]).send(&request(&url)).await;
    assert_eq!(result, AttemptResult::Responded(204));
    let request = received.recv().await.unwrap();
    assert!(
        request.starts_with("POST /hook?a=1 HTTP/1.1\r\n"),
        "{request}"
    );
    for part in [
        "webhook-id: msg-1\r\n",
        "content-type: application/json\r\n",
        "\r\n\r\n{\"type\":\"webhook.test\"}",
    ] {
        assert!(request.contains(part), "{request}");
    }
}

#[tokio::test]
async fn a_redirect_is_a_response_like_any_other() {
    let (port, mut received) = receiver(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let url = format!("http://127.0.0.1:{port}/");
    let result = sender(&["127.0.0.0/8"]).send(&request(&url)).await;
    assert_eq!(result, AttemptResult::Responded(302));
    received.recv().await.unwrap();
    assert!(received.is_empty());
}

#[tokio::test]
async fn a_body_without_an_end_delays_nothing() {
    let (port, _received) =
        receiver("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nbegin").await;
    let url = format!("http://127.0.0.1:{port}/");
    let result = sender(&["127.0.0.0/8"]).send(&request(&url)).await;
    assert_eq!(result, AttemptResult::Responded(200));
}

#[tokio::test]
async fn no_spelling_of_an_address_that_is_not_permitted_is_reached() {
    let (port, mut received) = receiver("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "127.1",
        "2130706433",
        "0x7f000001",
    ] {
        let result = sender(&[])
            .send(&request(&format!("http://{host}:{port}/")))
            .await;
        let AttemptResult::Failed(reason) = result else {
            panic!("{host}: {result:?}");
        };
        assert!(!reason.contains("127.0.0.1"), "{reason}");
    }
    assert!(received.try_recv().is_err(), "nothing connected");
    // By name and by address, where the operator permits it.
    for host in ["127.0.0.1", "localhost"] {
        let result = sender(&["127.0.0.0/8"])
            .send(&request(&format!("http://{host}:{port}/")))
            .await;
        assert_eq!(result, AttemptResult::Responded(200), "{host}");
    }
}

#[tokio::test]
async fn an_address_of_this_machine_is_refused_although_it_is_not_loopback() {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    // A machine without a route has no such address.
    if socket.connect("192.0.2.1:9").is_err() {
        return;
    }
    let own = socket.local_addr().unwrap().ip();
    let result = sender(&[])
        .send(&request(&format!("http://{own}:9/")))
        .await;
    let refused = AttemptResult::Failed("its address is not permitted".to_owned());
    assert_eq!(result, refused);
}

/// Headers and body of a request as they arrived.
fn parsed(request: &str) -> (HeaderMap, &str) {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    (headers.collect(), body)
}

/// The public library of Standard Webhooks verifies what arrives, by the old and by the new secret after a rotation.
#[tokio::test]
async fn what_arrives_verifies_with_the_public_library() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the library compares the time with that of the machine"
    )]
    let now = OffsetDateTime::now_utc();
    let (platform, webhook) = ([7; 32], WebhookId::new(Uuid::from_u128(1)));
    let id = DeliveryId::new(Uuid::from_u128(2));
    let rotated = SecretVersion::FIRST.rotated(now);
    let body = message(WebhookFormat::Standard, &DeliverySubject::Test, now).unwrap();
    let (port, mut received) = receiver("HTTP/1.1 204 No Content\r\n\r\n").await;
    let request = WebhookRequest {
        url: format!("http://127.0.0.1:{port}/"),
        headers: vec![
            ("webhook-id", id.to_string()),
            ("webhook-timestamp", now.unix_timestamp().to_string()),
            (
                "webhook-signature",
                signatures(&platform, webhook, rotated, id, now, &body),
            ),
        ],
        body,
    };
    let result = sender(&["127.0.0.0/8"]).send(&request).await;
    assert_eq!(result, AttemptResult::Responded(204));
    let arrived = received.recv().await.unwrap();
    let (headers, body) = parsed(&arrived);
    let verify = |version, body: &str| {
        let secret = WebhookSecret::derive(&platform, webhook, version).reveal();
        let library = Webhook::new(&secret).unwrap();
        library.verify(body.as_bytes(), &headers).is_ok()
    };
    assert!(verify(1, body) && verify(2, body));
    assert!(!verify(3, body), "a secret that was never the webhook's");
    assert!(!verify(1, &body.replace("test", "tost")), "another body");
}
