//! Settings of outgoing e-mail.

use std::{fmt, sync::Arc};

use labdata_ports::notifications::mailer::Mailer;

/// Settings of outgoing e-mail.
#[derive(Clone)]
pub struct MailSettings {
    /// Sender of e-mails.
    pub mailer: Arc<dyn Mailer>,
    /// Base of links in e-mails, without a trailing slash.
    pub public_url: String,
}

impl fmt::Debug for MailSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailSettings")
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}
