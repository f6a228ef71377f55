//! Sends e-mails to a mail server by SMTP.
//!
//! **Invariants.** No text of an e-mail becomes a header of its own. Every e-mail has a Message-ID
//! made of its id alone, so that one that was sent again can be recognised. Passwords are never
//! sent in the clear to another machine unless the URL says `tls=none`.

mod mailer;
mod server_url;

pub use mailer::{InvalidMailSettings, SmtpMailer};
