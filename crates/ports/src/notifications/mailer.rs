//! Sending e-mail.

use std::fmt;

use async_trait::async_trait;
use uuid::Uuid;

/// An e-mail to one person.
#[derive(Clone, PartialEq, Eq)]
pub struct Email {
    /// Its identity: an e-mail that is sent again has the same one, so that the recipient
    /// can tell.
    pub id: Uuid,
    /// The address.
    pub to: String,
    /// The subject: one line.
    pub subject: String,
    /// The text part.
    pub text: String,
    /// The HTML part.
    pub html: String,
    /// URL where the recipient can turn such e-mails off with one POST and no key; `None` for an e-mail that is
    /// sent only once.
    pub unsubscribe_url: Option<String>,
}

impl fmt::Debug for Email {
    /// Without texts and the URL, which hold the recipient's permission to unsubscribe.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Email")
            .field("id", &self.id)
            .field("to", &self.to)
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Response of the mail server to an e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailOutcome {
    /// It took it.
    Sent,
    /// It did not, or the outcome is unknown; a retry may succeed. The text is for operators.
    Transient(String),
    /// It refused it for good. The text is for operators.
    Permanent(String),
}

/// Hands e-mails to a mail server.
#[async_trait]
pub trait Mailer: Send + Sync {
    /// Sends one e-mail. It MUST end within [`SEND_WITHIN`], and MUST NOT let any text of the
    /// e-mail become a separate header.
    async fn send(&self, email: &Email) -> MailOutcome;
}

/// The longest that one [`Mailer::send`] takes. Leases of claimed e-mails are longer.
pub const SEND_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);
