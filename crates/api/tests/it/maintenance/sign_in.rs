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

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_start_prints_a_link_that_signs_the_administrator_in_once() {
    let directory = directory();
    let mut program = Program::serve_on_terminal(directory.path(), &[]);
    assert!(program.line().starts_with("Reference of the API: "));
    let said = program.line();
    assert!(
        said.starts_with("Console, signed in as the administrator"),
        "{said}"
    );
    let link = program.line();
    let (url, token) = link.split_once("/#token=").unwrap();
    assert_eq!(url, program.url);
    let http = reqwest::Client::new();
    for status in [200, 401] {
        let body = json!({ "token": token });
        let signed_in = http
            .post(format!("{url}/api/v1/session"))
            .json(&body)
            .send();
        assert_eq!(signed_in.await.unwrap().status(), status);
    }
    assert_eq!(program.end("TERM").0.code(), Some(0));
}

#[test]
fn who_chose_the_first_key_gets_no_link_on_a_terminal_either() {
    let directory = directory();
    let key = "ldk_terminal_0123456789abcdefghijklmnopqrstuvwxyz";
    let environment = [("LABDATA_BOOTSTRAP_KEY", key)];
    let program = Program::serve_on_terminal(directory.path(), &environment);
    let (status, rest) = program.end("TERM");
    assert_eq!(status.code(), Some(0));
    assert!(rest.contains("Reference of the API: "), "{rest}");
    assert!(!rest.contains("#token="), "{rest}");
}
