//! The mailer against a mail server of the test's own.

#![expect(clippy::unwrap_used, reason = "a test that goes wrong ends there")]

mod sink;

use labdata_mail::{InvalidMailSettings, SmtpMailer};
use labdata_ports::notifications::mailer::{Email, MailOutcome, Mailer};
use uuid::Uuid;

use crate::sink::{Behavior, Sink};

const FROM: &str = "Lab <lab@example.org>";

fn email() -> Email {
    Email {
        id: Uuid::from_u128(7),
        to: "ada@example.org".to_owned(),
        subject: "Run 7 done".to_owned(),
        text: "All 96 wells.\n.\nNo more.".to_owned(),
        html: "<p>All 96 wells.</p>".to_owned(),
        unsubscribe_url: Some(unsubscribe_url()),
    }
}

fn unsubscribe_url() -> String {
    format!("https://lab.example.org/unsubscribe/{}", "a".repeat(86))
}

fn mailer(sink: &Sink) -> SmtpMailer {
    SmtpMailer::new(&sink.url(), FROM).unwrap()
}

#[tokio::test]
async fn an_email_arrives_as_text_and_html_with_its_headers() {
    let sink = Sink::start(Behavior::Accepts).await;
    assert_eq!(mailer(&sink).send(&email()).await, MailOutcome::Sent);
    let taken = sink.received();
    let [taken] = taken.as_slice() else {
        panic!("{taken:?}")
    };
    assert_eq!(taken.recipients, ["ada@example.org"]);
    let header = |name| taken.header(name).unwrap_or_default();
    assert_eq!(header("From"), "Lab <lab@example.org>");
    assert_eq!(header("To"), "ada@example.org");
    assert_eq!(header("Subject"), "Run 7 done");
    let id = "<00000000-0000-0000-0000-000000000007@example.org>";
    assert_eq!(header("Message-ID"), id);
    assert_eq!(
        header("List-Unsubscribe"),
        format!("<{}>", unsubscribe_url())
    );
    assert_eq!(
        header("List-Unsubscribe-Post"),
        "List-Unsubscribe=One-Click"
    );
    assert_eq!(header("Auto-Submitted"), "auto-generated");
    assert!(
        header("Content-Type").starts_with("multipart/alternative"),
        "{}",
        taken.content
    );
    assert!(!header("Date").is_empty());
    for part in [
        "Content-Type: text/plain; charset=utf-8",
        "Content-Type: text/html; charset=utf-8",
        "All 96 wells.\r\n.\r\nNo more.",
        "<p>All 96 wells.</p>",
    ] {
        assert!(taken.content.contains(part), "{part} in {}", taken.content);
    }
}

#[tokio::test]
async fn no_text_becomes_a_header_or_a_recipient() {
    let sink = Sink::start(Behavior::Accepts).await;
    let nasty = "x\r\nBcc: eve@example.org\r\n\r\nbody\u{2028}ü";
    let nasty = Email {
        subject: nasty.to_owned(),
        unsubscribe_url: Some(nasty.to_owned()),
        ..email()
    };
    assert_eq!(mailer(&sink).send(&nasty).await, MailOutcome::Sent);
    let taken = sink.received().remove(0);
    assert_eq!(taken.header("Bcc"), None);
    assert_eq!(taken.recipients, ["ada@example.org"]);
    let to = Email {
        to: "ada@example.org\r\nBcc: eve@example.org".to_owned(),
        ..email()
    };
    let outcome = mailer(&sink).send(&to).await;
    assert!(matches!(outcome, MailOutcome::Permanent(_)), "{outcome:?}");
    assert_eq!(sink.received().len(), 1);
}

#[tokio::test]
async fn the_same_email_has_the_same_identity() {
    let sink = Sink::start(Behavior::Accepts).await;
    for _ in 0..2 {
        mailer(&sink).send(&email()).await;
    }
    let ids: Vec<_> = sink
        .received()
        .iter()
        .map(|taken| taken.header("Message-ID"))
        .collect();
    assert!(
        ids.len() == 2 && ids.windows(2).all(|pair| pair.first() == pair.last()),
        "{ids:?}"
    );
}

#[tokio::test]
async fn what_may_pass_is_transient_and_what_is_final_is_permanent() {
    for (response, permanent) in [
        ("450 mailbox busy", false),
        ("451 greylisted", false),
        ("530 authenticate first", false),
        ("550 no such mailbox", true),
        ("501 bad address", true),
    ] {
        let sink = Sink::start(Behavior::Rejects(response)).await;
        let outcome = mailer(&sink).send(&email()).await;
        assert_eq!(
            matches!(outcome, MailOutcome::Permanent(_)),
            permanent,
            "{response}: {outcome:?}"
        );
        assert_ne!(outcome, MailOutcome::Sent);
        assert_eq!(sink.connections(), 1);
    }
    let nobody = SmtpMailer::new("smtp://127.0.0.1:1", FROM).unwrap();
    let outcome = nobody.send(&email()).await;
    assert!(matches!(outcome, MailOutcome::Transient(_)), "{outcome:?}");
}

#[test]
fn settings_that_cannot_be_used_are_refused_without_secrets() {
    for url in [
        "http://host",
        "smtp://u:hunter2@",
        "smtp://u:hunter2@host?tls=x",
        "nonsense",
    ] {
        let error = SmtpMailer::new(url, FROM).unwrap_err();
        assert!(
            matches!(error, InvalidMailSettings::Url(_)),
            "{url}: {error}"
        );
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    let error = SmtpMailer::new("smtp://host", "nobody").unwrap_err();
    assert!(matches!(error, InvalidMailSettings::From(_)), "{error}");
    let mailer = SmtpMailer::new("smtps://u:hunter2@host", FROM).unwrap();
    assert!(!format!("{mailer:?}").contains("hunter2"));
}
