//! The console as browsers get it.

use crate::server::TestServer;

#[tokio::test]
async fn the_page_and_its_files_come_with_their_types_and_are_cached_by_version() {
    let server = TestServer::start().await;
    let browser = server.anonymous();
    let page = browser.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let version = labdata_console::version();
    assert!(page.text.contains(version));
    for asset in labdata_console::ASSETS {
        let path = format!("/console/{version}/{}", asset.path);
        let file = browser.get(&path).await;
        assert_eq!(file.status, 200, "{path}");
        assert_eq!(file.header("content-type"), Some(asset.content_type));
        let cached = file.header("cache-control").unwrap();
        assert!(cached.ends_with("immutable"), "{path}: {cached}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(file.text.as_bytes(), asset.bytes);
    }
    for path in [
        "/console/0000000000000000/app.js".to_owned(),
        format!("/console/{version}/nothing.js"),
        format!("/console/{version}/"),
        format!("/console/{version}/../app.js"),
    ] {
        assert_eq!(browser.get(&path).await.status, 404, "{path}");
    }
}
