//! `labdata sign-in`, beside a running server.

use serde_json::{Value, json};

use crate::process::{Program, directory, labdata, run, text};

#[tokio::test]
async fn the_printed_link_signs_the_administrator_in_at_a_running_server() {
    let directory = directory();
    let place = directory.path().to_owned();
    let server = Program::serve(&place, &[]);
    let public = ("LABDATA_PUBLIC_URL", "https://lab.example.org");
    let printed = tokio::task::spawn_blocking(move || {
        run(labdata(&place, &["sign-in"]).env(public.0, public.1))
    });
    let printed = printed.await.unwrap();
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    let link = text(&printed.stdout);
    let token = link
        .trim_end()
        .strip_prefix("https://lab.example.org/#token=");
    let body = json!({"token": token.unwrap()});
    let http = reqwest::Client::new();
    let url = format!("{}/api/v1/session", server.url);
    let reply = http.post(&url).json(&body).send().await.unwrap();
    let me: Value = reply.json().await.unwrap();
    assert_eq!(me["user"]["email"], "admin@localhost");
    assert_eq!(me["organization"]["name"], "default");
    let again = http.post(&url).json(&body).send().await.unwrap();
    assert_eq!(again.status(), 401);

    let place = directory.path().to_owned();
    let unknown = tokio::task::spawn_blocking(move || {
        run(&mut labdata(
            &place,
            &["sign-in", "--user", "nobody@example.org"],
        ))
    });
    let unknown = unknown.await.unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    let refusal = text(&unknown.stderr);
    assert!(refusal.contains("nobody@example.org"), "{refusal}");
    assert!(refusal.contains("api-key create"), "{refusal}");
}
