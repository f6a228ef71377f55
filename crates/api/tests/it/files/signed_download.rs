//! Signed download URLs

use reqwest::Method;
use time::Duration;

use super::{Lab, text};

const BYTES: &[u8] = b"0123456789";

async fn with(name: &str) -> (Lab, String) {
    let lab = Lab::start().await;
    let id = lab.upload(name, BYTES).await;
    let url = lab.content(&id).await["download_url"]
        .as_str()
        .unwrap()
        .to_owned();
    (lab, url)
}

#[tokio::test]
async fn a_file_is_served_whole_without_a_key_as_an_attachment() {
    let (lab, url) = with("plate 1.csv").await;
    let reply = lab.call(Method::GET, &url, &[]).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_bytes()), (200, BYTES));
    let header = |name| text(&reply.headers, name);
    assert_eq!(header("content-type"), "text/csv");
    assert_eq!(
        header("content-disposition"),
        "attachment; filename=\"plate 1.csv\""
    );
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("accept-ranges"), "bytes");
    assert_eq!(header("content-length"), "10");
}

#[tokio::test]
async fn head_tells_the_same_without_the_bytes() {
    let (lab, url) = with("a.csv").await;
    let get = lab.call(Method::GET, &url, &[]).await;
    let head = lab.call(Method::HEAD, &url, &[]).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
    for name in [
        "content-type",
        "content-length",
        "etag",
        "accept-ranges",
        "content-disposition",
    ] {
        assert_eq!(
            text(&head.headers, name),
            text(&get.headers, name),
            "{name}"
        );
    }
    let part = lab
        .call(Method::HEAD, &url, &[("range", "bytes=2-4")])
        .await;
    assert_eq!(
        (part.status.as_u16(), text(&part.headers, "content-length")),
        (206, "3")
    );
}

#[tokio::test]
async fn a_range_is_served_as_a_part() {
    let (lab, url) = with("a.csv").await;
    for (range, content_range, bytes) in [
        ("bytes=0-0", "bytes 0-0/10", "0"),
        ("bytes=3-5", "bytes 3-5/10", "345"),
        ("bytes=7-", "bytes 7-9/10", "789"),
        ("bytes=-2", "bytes 8-9/10", "89"),
        ("bytes=0-999", "bytes 0-9/10", "0123456789"),
    ] {
        let reply = lab.call(Method::GET, &url, &[("range", range)]).await;
        assert_eq!(
            (reply.status.as_u16(), reply.text.as_str()),
            (206, bytes),
            "{range}"
        );
        assert_eq!(text(&reply.headers, "content-range"), content_range);
    }
    let behind = lab.call(Method::GET, &url, &[("range", "bytes=10-")]).await;
    assert_eq!(behind.status, 416);
    assert_eq!(text(&behind.headers, "content-range"), "bytes */10");
    for ignored in ["bytes=0-1,3-4", "items=1-2", "bytes=5-2"] {
        let reply = lab.call(Method::GET, &url, &[("range", ignored)]).await;
        assert_eq!(
            (reply.status.as_u16(), reply.text.as_bytes()),
            (200, BYTES),
            "{ignored}"
        );
    }
}

#[tokio::test]
async fn an_entity_tag_saves_a_second_download_and_guards_a_range() {
    let (lab, url) = with("a.csv").await;
    let etag = text(&lab.call(Method::HEAD, &url, &[]).await.headers, "etag").to_owned();
    assert_eq!(
        lab.call(Method::GET, &url, &[("if-none-match", &etag)])
            .await
            .status,
        304
    );
    let range = ("range", "bytes=0-1");
    assert_eq!(
        lab.call(Method::GET, &url, &[range, ("if-range", &etag)])
            .await
            .status,
        206
    );
    assert_eq!(
        lab.call(Method::GET, &url, &[range, ("if-range", "\"x\"")])
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn no_name_breaks_out_of_its_header() {
    for (name, expected) in [
        (
            "Süd.csv",
            "attachment; filename=\"S_d.csv\"; filename*=UTF-8''S%C3%BCd.csv",
        ),
        (
            "a\\\"; x=\\\"b",
            "attachment; filename=\"a_; x=_b\"; filename*=UTF-8''a%22%3B%20x%3D%22b",
        ),
        (
            "%0d%0aSet-Cookie: a=b",
            "attachment; filename=\"_0d_0aSet-Cookie_ a=b\"; \
             filename*=UTF-8''%250d%250aSet-Cookie%3A%20a%3Db",
        ),
    ] {
        let (lab, url) = with(name).await;
        let reply = lab.call(Method::GET, &url, &[]).await;
        assert_eq!(text(&reply.headers, "content-disposition"), expected);
        assert_eq!(reply.header("set-cookie"), None);
    }
}

#[tokio::test]
async fn after_15_minutes_the_url_is_expired() {
    let (lab, url) = with("a.csv").await;
    lab.server.clock.advance(Duration::seconds(899));
    assert_eq!(lab.call(Method::GET, &url, &[]).await.status, 200);
    lab.server.clock.advance(Duration::seconds(1));
    for method in [Method::GET, Method::HEAD] {
        let reply = lab.call(method, &url, &[]).await;
        assert_eq!(reply.status, 400);
    }
    let reply = lab.call(Method::GET, &url, &[]).await;
    assert!(
        reply.text.contains("<Code>ExpiredToken</Code>"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn a_tampered_url_is_refused() {
    let (lab, url) = with("a.csv").await;
    let (path, query) = url.split_once('?').unwrap();
    let other = "0191d5a4-0000-7000-8000-000000000000";
    let object = path.rsplit('/').next().unwrap();
    let organization = path.rsplit('/').nth(1).unwrap();
    let tampered = [
        url.replace("text%2Fcsv", "text%2Fhtml"),
        url.replace("a.csv", "b.csv"),
        url.replace(object, other),
        url.replace(organization, other),
        url.replace("x-labdata-expires=1", "x-labdata-expires=2"),
        format!("{url}0"),
        format!("{url}&x=1"),
        path.to_owned(),
        format!("{path}%2f..%2f{object}?{query}"),
    ];
    for tampered in tampered {
        assert_ne!(tampered, url);
        let reply = lab.call(Method::GET, &tampered, &[]).await;
        assert_eq!(reply.status, 403, "{tampered}");
        assert!(
            reply.text.contains("<Code>SignatureDoesNotMatch</Code>"),
            "{}",
            reply.text
        );
    }
    assert_eq!(lab.call(Method::PUT, &url, &[]).await.status, 403);
    lab.call(Method::DELETE, &url, &[]).await.detail(405);
}

#[tokio::test]
async fn paths_that_lead_elsewhere_are_refused() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let lab = Lab::start().await;
    for path in [
        "/storage/../../../etc/passwd",
        "/storage/%2e%2e/%2e%2e/etc/passwd",
        "/storage//etc/passwd",
        "/storage/incoming/x",
        "/storage/",
        "/storage/%00",
    ] {
        // As it is, not as a client tidies it up.
        let mut socket = tokio::net::TcpStream::connect(lab.server.address)
            .await
            .unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 403"), "{path}: {response}");
    }
}
