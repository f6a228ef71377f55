//! The mailer: builds messages and hands them to the server.

use std::time::Duration;

use async_trait::async_trait;
use labdata_ports::notifications::mailer::{Email, MailOutcome, Mailer, SEND_WITHIN};
use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
    transport::smtp::{Error as SmtpError, response::Category},
};
use tokio::time::timeout;
use url::Url;

use crate::server_url::with_encryption;

/// Timeout of each response of the server.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// An unusable setting of the mailer: one line for the operator, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMailSettings {
    /// The server's URL.
    #[error("the mail server's URL cannot be used: {0}")]
    Url(String),
    /// The sender's address.
    #[error("the sender's e-mail address cannot be used: {0}")]
    From(String),
}

/// Sends e-mails by SMTP, over one connection per e-mail.
pub struct SmtpMailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl std::fmt::Debug for SmtpMailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the server's URL: it may contain a password.
        f.debug_struct("SmtpMailer")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl SmtpMailer {
    /// Creates a mailer that sends as `from` through the server at this URL (`smtp://` or
    /// `smtps://`, with user and password if the server requires them). Does not connect.
    ///
    /// # Errors
    /// [`InvalidMailSettings`].
    pub fn new(server: &str, from: &str) -> Result<Self, InvalidMailSettings> {
        let url: Url = server
            .parse()
            .map_err(|error| InvalidMailSettings::Url(format!("{error}")))?;
        let transport =
            AsyncSmtpTransport::<Tokio1Executor>::from_url(with_encryption(url).as_str())
                .map_err(|error| InvalidMailSettings::Url(error.to_string()))?
                .timeout(Some(RESPONSE_TIMEOUT))
                .build();
        let from = from
            .parse()
            .map_err(|error| InvalidMailSettings::From(format!("{error}")))?;
        Ok(Self { transport, from })
    }

    /// Connects, authenticates and leaves again.
    ///
    /// # Errors
    /// Why the server cannot be used.
    pub async fn check(&self) -> Result<(), String> {
        match timeout(SEND_WITHIN, self.transport.test_connection()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("the server does not respond as a mail server does".to_owned()),
            Ok(Err(error)) => Err(described(&error)),
            Err(_) => Err(format!("no response within {} s", SEND_WITHIN.as_secs())),
        }
    }

    fn message(&self, email: &Email) -> Result<Message, String> {
        let to: Mailbox = email
            .to
            .parse()
            .map_err(|error| format!("the recipient: {error}"))?;
        // The same in each attempt, so that mailboxes can recognize a second copy.
        let id = format!("<{}@{}>", email.id, self.from.email.domain());
        let mut message = Message::builder()
            .message_id(Some(id))
            .from(self.from.clone())
            .to(to)
            .subject(one_line(&email.subject))
            // Readers without HTML, and spam filters, expect a plain text.
            .multipart(MultiPart::alternative_plain_html(
                email.text.clone(),
                email.html.clone(),
            ))
            .map_err(|error| error.to_string())?;
        // Prevents automatic replies (RFC 3834).
        let mut headers = vec![(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        )];
        if let Some(url) = &email.unsubscribe_url {
            headers.push((
                HeaderName::new_from_ascii_str("List-Unsubscribe"),
                format!("<{}>", one_line(url)),
            ));
            headers.push((
                HeaderName::new_from_ascii_str("List-Unsubscribe-Post"),
                "List-Unsubscribe=One-Click".to_owned(),
            ));
        }
        for (name, value) in headers {
            message
                .headers_mut()
                .insert_raw(HeaderValue::new(name, value));
        }
        Ok(message)
    }
}

/// Replaces line breaks and other control characters by spaces: text after a line break would
/// become a header.
fn one_line(text: &str) -> String {
    text.replace(|character: char| character.is_control(), " ")
}

fn described(error: &SmtpError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Classifies a failure. Refusals of the e-mail or its recipient are permanent. Failures to connect
/// or authenticate are for the operator to fix, so the e-mail is retried.
fn outcome_of(error: &SmtpError) -> MailOutcome {
    let text = described(error);
    let about_the_email = error
        .status()
        .is_some_and(|code| matches!(code.category, Category::Syntax | Category::MailSystem));
    if error.is_permanent() && about_the_email {
        MailOutcome::Permanent(text)
    } else {
        MailOutcome::Transient(text)
    }
}

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, email: &Email) -> MailOutcome {
        let message = match self.message(email) {
            Ok(message) => message,
            // The same e-mail cannot be built the next time either.
            Err(error) => return MailOutcome::Permanent(error),
        };
        match timeout(SEND_WITHIN, self.transport.send(message)).await {
            Ok(Ok(_)) => MailOutcome::Sent,
            Ok(Err(error)) => outcome_of(&error),
            // It may have been delivered; a second copy is better than none.
            Err(_) => MailOutcome::Transient("the mail server took too long".to_owned()),
        }
    }
}
