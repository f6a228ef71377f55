//! Sends the e-mails in the outbox.
//!
//! Exactly one e-mail per notification: a claim makes it one worker's until its lease ends, and
//! only who holds the last claim settles it. A worker that dies before the mail server took the
//! e-mail loses it to another worker. One that dies after that, but before it has said so, cannot
//! be distinguished from it: the e-mail goes out again, under the same Message-ID. SMTP knows no better.

use futures::future::join_all;
use labdata_domain::notifications::{EmailOutcome, EmailText, unsubscribe_token};
use labdata_ports::notifications::{
    ClaimedEmail,
    mailer::{Email, MailOutcome, Mailer},
};
use time::Duration;

use crate::{Error, Services, notifications::notification_preferences::unsubscribing_secret};

/// Lease of a claimed e-mail: longer than [`labdata_ports::notifications::mailer::SEND_WITHIN`] and settling take.
pub const EMAIL_LEASE: Duration = Duration::seconds(60);

/// Number of e-mails that are claimed at once and sent concurrently.
const BATCH: u32 = 8;

/// Sends up to a batch of due e-mails; returns how many it claimed. No caller requests it: it is
/// the platform's own work for all organizations, and several workers may do it at once.
/// `public_url` is the platform's URL, without a slash at the end.
///
/// # Errors
/// Errors of the outbox. An e-mail that could not be sent is no error: it is tried again.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn send_emails(
    services: &Services,
    mailer: &dyn Mailer,
    public_url: &str,
) -> Result<usize, Error> {
    let now = services.clock.now();
    let claimed = services
        .notifications
        .claim_emails(now, EMAIL_LEASE, BATCH)
        .await?;
    if claimed.is_empty() {
        return Ok(0);
    }
    let secret = unsubscribing_secret(services).await?;
    // Concurrently: one after the other, a slow server could take longer than the lease.
    let sending = claimed.iter().map(async |email| {
        let outcome = attempt(services, mailer, public_url, &secret, email).await;
        settle(services, email, &outcome).await
    });
    let settled = join_all(sending).await;
    // Only after all of them: the failure of one must not cut off the rest.
    settled.into_iter().collect::<Result<Vec<()>, Error>>()?;
    Ok(claimed.len())
}

async fn attempt(
    services: &Services,
    mailer: &dyn Mailer,
    public_url: &str,
    secret: &[u8; 32],
    email: &ClaimedEmail,
) -> EmailOutcome {
    let ClaimedEmail {
        claim,
        to,
        notification,
    } = email;
    let now = services.clock.now();
    let (tries, created_at) = (claim.tries, notification.created_at);
    if let Some(given_up) = EmailOutcome::before_attempt(tries, created_at, now) {
        return given_up;
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
        unsubscribe_url: Some(format!("{public_url}/unsubscribe/{token}")),
    };
    let outcome = mailer.send(&email).await;
    let at = services.clock.now();
    match outcome {
        MailOutcome::Sent => EmailOutcome::Sent { at },
        MailOutcome::Permanent(error) => EmailOutcome::refused(&error, at),
        MailOutcome::Transient(error) => EmailOutcome::failed(tries, &error, at),
    }
}

async fn settle(
    services: &Services,
    email: &ClaimedEmail,
    outcome: &EmailOutcome,
) -> Result<(), Error> {
    let (notification, tries) = (email.claim.notification, email.claim.tries);
    let stood = services
        .notifications
        .settle_email(email.claim, outcome)
        .await?;
    match outcome {
        // Another worker has claimed it since, so it may be sent twice.
        _ if !stood => {
            tracing::warn!(%notification, tries, ?outcome, "an e-mail took longer than its lease");
        }
        EmailOutcome::Sent { .. } => tracing::debug!(%notification, tries, "e-mail sent"),
        EmailOutcome::Retry { at, error } => {
            tracing::info!(%notification, tries, %at, error, "e-mail not sent, will be tried again");
        }
        EmailOutcome::Dead { error, .. } => {
            tracing::warn!(%notification, tries, error, "e-mail given up");
        }
    }
    Ok(())
}
