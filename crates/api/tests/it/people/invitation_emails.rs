//! E-mails of invitations, to a mail server of the test's own.

use std::sync::Arc;

use labdata_mail::SmtpMailer;
use labdata_memory::FixedClock;
use labdata_ports::Clock;
use serde_json::{Value, json};

use crate::{
    server::{TestServer, in_memory},
    smtp_sink::{Behavior, Sink},
};

const INVITATIONS: &str = "/api/v1/invitations";

async fn with_mail_server(sink: &Sink) -> TestServer {
    let clock = Arc::new(FixedClock::default());
    let displayed: Arc<dyn Clock> = clock.clone();
    let mut services = in_memory(displayed);
    let mailer = SmtpMailer::new(&sink.url(), "lab@example.org").unwrap();
    services.mailer = Some(Arc::new(mailer));
    TestServer::start_on(services, clock).await
}

/// Text of an e-mail whose lines the transport has broken and whose `=` it has escaped.
fn unfolded(content: &str) -> String {
    content.replace("=\r\n", "").replace("=3D", "=")
}

#[tokio::test]
async fn an_invitation_is_sent_by_email_and_its_link_signs_in() {
    let sink = Sink::start(Behavior::Accepts).await;
    let server = with_mail_server(&sink).await;
    let admin = server.admin().await;
    let invite = json!({"email": "grace@example.org"});
    let made = admin.post(INVITATIONS, &invite).await.json(200);
    assert_eq!(
        (&made["email_sent"], &made["email_error"]),
        (&json!(true), &Value::Null)
    );
    let received = sink.received();
    let [email] = received.as_slice() else {
        panic!("{received:?}")
    };
    assert_eq!(email.recipients, ["grace@example.org"]);
    assert_eq!(email.header("List-Unsubscribe"), None);
    let url = made["url"].as_str().unwrap();
    assert!(unfolded(&email.content).contains(url), "{}", email.content);
    let (_, token) = url.split_once("#token=").unwrap();
    let browser = server.anonymous();
    let token_of_link = json!({"token": token});
    let signed_in = browser.post("/api/v1/session", &token_of_link);
    let me = signed_in.await.json(200);
    assert_eq!(me["user"]["email"], "grace@example.org");
    let entries = admin
        .get("/api/v1/audit?action=invitation.created")
        .await
        .json(200);
    assert_eq!(entries[0]["details"]["email_requested"], true);
    assert!(!entries.to_string().contains(token), "{entries}");
}

#[tokio::test]
async fn an_invitation_stands_although_its_email_is_refused() {
    let sink = Sink::start(Behavior::Rejects("550 no such mailbox")).await;
    let server = with_mail_server(&sink).await;
    let admin = server.admin().await;
    let invite = json!({"email": "grace@example.org"});
    let made = admin.post(INVITATIONS, &invite).await.json(200);
    assert_eq!(made["email_sent"], false);
    let refused = "the mail server refused the e-mail: check the address, or give the link to your colleague yourself";
    assert_eq!(made["email_error"], refused);
    let (_, token) = made["url"].as_str().unwrap().split_once("#token=").unwrap();
    let browser = server.anonymous();
    let token_of_link = json!({"token": token});
    let signed_in = browser.post("/api/v1/session", &token_of_link);
    signed_in.await.json(200);
}

#[tokio::test]
async fn without_a_mail_server_or_a_request_nothing_is_sent() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let invite = json!({"email": "grace@example.org"});
    let made = admin.post(INVITATIONS, &invite).await.json(200);
    let missing = "the platform has no mail server: give the link to your colleague yourself";
    assert_eq!(made["email_error"], missing);
    let sink = Sink::start(Behavior::Accepts).await;
    let server = with_mail_server(&sink).await;
    let quiet = json!({"email": "grace@example.org", "send_email": false});
    let made = server
        .admin()
        .await
        .post(INVITATIONS, &quiet)
        .await
        .json(200);
    assert_eq!(
        (&made["email_sent"], &made["email_error"]),
        (&json!(false), &Value::Null)
    );
    assert_eq!(sink.connections(), 0);
}
