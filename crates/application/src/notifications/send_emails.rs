//! Sends the e-mails that wait in the outbox.
//!
//! Exactly one e-mail per notification: a claim makes it one worker's until its lease ends, and
//! only who holds the last claim settles it. A worker that dies before the mail server took the
//! e-mail loses it to another worker. One that dies after that, but before it has said so, cannot
//! be told from it: the e-mail goes out again, under the same Message-ID. SMTP knows no better.

use futures::future::join_all;
use labdata_domain::notifications::{
    AfterFailure, EmailText, MAX_EMAIL_AGE, MAX_EMAIL_TRIES, after_failure, unsubscribe_token,
};
use labdata_ports::notifications::{
    ClaimedEmail, EmailFate,
    mailer::{Email, MailOutcome, Mailer},
};
use time::Duration;

use crate::{Error, Ports, notifications::notification_preferences::unsubscribing_secret};

/// How long a claim holds: longer than [`labdata_ports::notifications::mailer::SEND_WITHIN`] and settling take.
pub const EMAIL_LEASE: Duration = Duration::seconds(60);

/// How many e-mails are claimed, and sent side by side.
const BATCH: u32 = 8;

/// Sends what is due, up to a batch of it; returns how many it claimed. No caller asks for it: it
/// is the platform's own work, for all organizations, and several workers may do it at once. The
/// URL is the platform's, without a slash at the end.
///
/// # Errors
/// What the outbox answers. An e-mail that could not be sent is no error: it is tried again.
pub async fn send_emails(
    ports: &Ports,
    mailer: &dyn Mailer,
    public_url: &str,
) -> Result<usize, Error> {
    let now = ports.clock.now();
    let claimed = ports
        .notifications
        .claim_emails(now, EMAIL_LEASE, BATCH)
        .await?;
    if claimed.is_empty() {
        return Ok(0);
    }
    let secret = unsubscribing_secret(ports).await?;
    let sending = claimed.iter().map(async |email| {
        let fate = attempt(ports, mailer, public_url, &secret, email).await;
        settle(ports, email, &fate).await
    });
    let settled = join_all(sending).await;
    settled.into_iter().collect::<Result<Vec<()>, Error>>()?;
    Ok(claimed.len())
}

async fn attempt(
    ports: &Ports,
    mailer: &dyn Mailer,
    public_url: &str,
    secret: &[u8; 32],
    email: &ClaimedEmail,
) -> EmailFate {
    let ClaimedEmail {
        claim,
        to,
        notification,
    } = email;
    let at = ports.clock.now();
    if claim.tries > MAX_EMAIL_TRIES {
        return EmailFate::Dead {
            at,
            error: "its workers died over it too often".to_owned(),
        };
    }
    if at - notification.created_at > MAX_EMAIL_AGE {
        return EmailFate::Dead {
            at,
            error: "nobody sent it for too long".to_owned(),
        };
    }
    let EmailText {
        subject,
        text,
        html,
    } = EmailText::of(notification, public_url);
    let token = unsubscribe_token(secret, claim.organization, claim.user);
    let email = Email {
        id: notification.id.as_uuid(),
        to: to.clone(),
        subject,
        text,
        html,
        unsubscribe_url: format!("{public_url}/unsubscribe/{token}"),
    };
    let outcome = mailer.send(&email).await;
    let at = ports.clock.now();
    match outcome {
        MailOutcome::Sent => EmailFate::Sent { at },
        MailOutcome::Permanent(error) => EmailFate::Dead { at, error },
        MailOutcome::Transient(error) => match after_failure(claim.tries, at) {
            AfterFailure::RetryAt(at) => EmailFate::Retry { at, error },
            AfterFailure::GiveUp => EmailFate::Dead { at, error },
        },
    }
}

async fn settle(ports: &Ports, email: &ClaimedEmail, fate: &EmailFate) -> Result<(), Error> {
    let (notification, tries) = (email.claim.notification, email.claim.tries);
    let stood = ports.notifications.settle_email(email.claim, fate).await?;
    match fate {
        _ if !stood => {
            tracing::warn!(%notification, tries, ?fate, "an e-mail took longer than its lease");
        }
        EmailFate::Sent { .. } => tracing::debug!(%notification, tries, "e-mail sent"),
        EmailFate::Retry { at, error } => {
            tracing::info!(%notification, tries, %at, error, "e-mail not sent, will be tried again");
        }
        EmailFate::Dead { error, .. } => {
            tracing::warn!(%notification, tries, error, "e-mail given up");
        }
    }
    Ok(())
}
