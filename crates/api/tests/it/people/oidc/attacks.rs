//! Attacks on sign-in by an identity provider: none signs in.

use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use time::Duration;

use super::{COOKIE, Lab, PATH, session_of};

#[tokio::test]
async fn replayed_and_swapped_callbacks_sign_nobody_in() {
    let lab = Lab::start("lab=member", "false").await;
    let (one, other) = (lab.begin("").await, lab.begin("").await);
    for (why, state, cookie) in [
        ("another sign-in's state", &other.state, &one.cookie),
        ("another browser's cookie", &one.state, &other.cookie),
        ("no cookie", &one.state, &String::new()),
        ("no state", &String::new(), &one.cookie),
        ("a forged cookie", &one.state, &format!("{COOKIE}=AAAA")),
    ] {
        let reply = lab.callback(&format!("code=1&state={state}"), cookie).await;
        assert_eq!(reply.status(), 401, "{why}");
    }
    let twice = format!("code=1&state={}&state={}", one.state, one.state);
    assert_eq!(lab.callback(&twice, &one.cookie).await.status(), 401);
    let foreign = format!("{}&iss=https://evil.example.org", one.query("1"));
    assert_eq!(lab.callback(&foreign, &one.cookie).await.status(), 403);
    let query = one.query("same");
    assert_eq!(lab.callback(&query, &one.cookie).await.status(), 303);
    let replayed = lab.callback(&query, &one.cookie).await;
    assert_eq!(replayed.status(), 401, "used");
    let first = lab.callback(&other.query("1"), &other.cookie).await;
    assert_eq!(first.status(), 303);
    let third = lab.begin("").await;
    let reused = lab.callback(&third.query("1"), &third.cookie).await;
    assert_eq!(reused.status(), 403, "a used code");
    let late = lab.begin("").await;
    lab.server.clock.advance(Duration::minutes(10));
    let reply = lab.callback(&late.query("9"), &late.cookie).await;
    assert_eq!(reply.status(), 401, "too late");
}

#[tokio::test]
async fn a_session_that_was_in_the_browser_before_opens_nothing() {
    let lab = Lab::start("lab=member", "false").await;
    // Somebody else put a token that they know into the browser, to use it once the person has signed in.
    let planted = format!("labdata-session={}", "A".repeat(43));
    let begun = lab.begin("").await;
    let cookies = format!("{planted}; {}", begun.cookie);
    let session = session_of(&lab.callback(&begun.query("1"), &cookies).await);
    assert_ne!(session, planted);
    assert_eq!(lab.get("/api/v1/me", &planted).await.status(), 401);
    assert_eq!(lab.get("/api/v1/me", &session).await.status(), 200);
    // The token of another session is not replaced by a known one, either.
    let second = lab.begin("").await;
    let cookies = format!("{session}; {}", second.cookie);
    let other = session_of(&lab.callback(&second.query("2"), &cookies).await);
    assert_ne!(session, other);
}

#[tokio::test]
async fn no_other_site_is_returned_to() {
    let lab = Lab::start("lab=member", "false").await;
    for path in [
        "https://evil.example.org",
        "//evil.example.org",
        "/%5Cevil.example.org",
        "/%09/evil.example.org",
        "javascript:1",
    ] {
        let reply = lab.get(&format!("{PATH}?return_to={path}"), "").await;
        assert_eq!(reply.status(), 422, "{path}");
        let problem: Value = reply.json().await.unwrap();
        assert_eq!(problem["detail"][0]["loc"], json!(["query", "return_to"]));
    }
}

#[tokio::test]
async fn a_browser_gets_a_page_that_says_why() {
    let lab = Lab::start("lab=member", "false").await;
    let page = async |query: &str, cookie: &str| {
        let url = format!("http://{}{PATH}{query}", lab.server.address);
        let request = lab.http.get(url).header("Cookie", cookie);
        let reply = request.header(ACCEPT, "text/html,*/*;q=0.8").send().await;
        let reply = reply.unwrap();
        let kind = reply.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/html"), "{kind}");
        assert!(!reply.headers().contains_key("set-cookie"));
        (reply.status().as_u16(), reply.text().await.unwrap())
    };
    let (status, text) = page("/callback?code=1&state=2", "").await;
    assert_eq!(status, 401);
    assert!(
        text.contains("This sign-in is not valid any more"),
        "{text}"
    );
    assert!(text.contains(&format!("href=\"{PATH}\"")), "{text}");
    let begun = lab.begin("").await;
    let denied = format!(
        "/callback?error=%3Cscript%3Eaccess_denied&state={}",
        begun.state
    );
    let (status, text) = page(&denied, &begun.cookie).await;
    assert_eq!(status, 403);
    assert!(text.contains("&lt;script&gt;access_denied"), "{text}");
    assert!(!text.contains("<script"), "{text}");
    assert_eq!(page("?return_to=//evil.example.org", "").await.0, 422);
}
