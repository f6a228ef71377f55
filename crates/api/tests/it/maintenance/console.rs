//! The console as browsers get it.

use labdata_console::{Plots, plots};
use reqwest::{Method, header::ACCEPT_ENCODING};

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
        assert_eq!(file.header("content-encoding"), None);
        assert_eq!(file.text.as_bytes(), asset.bytes);
        let packed = browser.request(Method::GET, &path);
        let packed = packed.header(ACCEPT_ENCODING, "gzip").send().await.unwrap();
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        let packed = packed.bytes().await.unwrap();
        assert_eq!(
            Some(&*packed),
            labdata_console::packed_asset(version, asset.path)
        );
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

#[tokio::test]
async fn plotly_js_is_sent_as_it_is_held_and_unpacked_to_those_who_need_it() {
    let server = TestServer::start().await;
    let browser = server.anonymous();
    let address = format!("{}/{}", plots().version, Plots::PATH);
    assert!(browser.get("/").await.text.contains(&address));
    let path = format!("/console/{address}");
    for (coding, is_packed) in [
        ("gzip, deflate, br, zstd", true),
        ("deflate, GZIP;q=0.5", true),
        ("identity", false),
        ("br, gzip;q=0", false),
    ] {
        let request = browser
            .request(Method::GET, &path)
            .header(ACCEPT_ENCODING, coding);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{coding}");
        let header = |name: &str| response.headers().get(name).and_then(|it| it.to_str().ok());
        assert_eq!(header("content-type"), Some(Plots::CONTENT_TYPE));
        assert_eq!(header("vary"), Some("accept-encoding"));
        assert!(header("cache-control").unwrap().ends_with("immutable"));
        assert_eq!(header("content-encoding"), is_packed.then_some("gzip"));
        let body = response.bytes().await.unwrap();
        if is_packed {
            assert_eq!(body, plots().gzip());
        } else {
            assert_eq!(body, plots().unpacked().unwrap());
        }
    }
    let other = format!("/console/0000000000000000/{}", Plots::PATH);
    assert_eq!(browser.get(&other).await.status, 404);
}

#[tokio::test]
async fn the_path_of_a_notice_leads_to_its_page() {
    let server = TestServer::start().await;
    let browser = server.anonymous();
    let id = "01a2099c-d3ac-7000-8bc4-4b219dc4bca8";
    for (path, page) in [
        ("jobs", "jobs"),
        ("job-executions", "executions"),
        ("ml-models", "models"),
    ] {
        let response = browser.get(&format!("/{path}/{id}")).await;
        assert_eq!(response.status, 302, "{path}");
        let expected = format!("../#/{page}/{id}");
        assert_eq!(response.header("location"), Some(expected.as_str()));
        browser.get(&format!("/{path}/x%0d%0ay")).await.detail(404);
    }
}
