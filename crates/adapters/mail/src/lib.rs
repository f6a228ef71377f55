//! Sends e-mails to a mail server by SMTP.
//!
//! **Invariants.** No text of an e-mail can inject a header. The Message-ID depends only on the
//! e-mail's id, so that recipients recognize one that is sent twice. Passwords go unencrypted to
//! another machine only if the URL has `tls=none`.

mod mailer;
mod server_url;

pub use mailer::{InvalidMailSettings, SmtpMailer};
