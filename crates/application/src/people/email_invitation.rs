//! Sends the link of an invitation.

use labdata_domain::{
    notifications::EmailText,
    people::{
        invitation::Invitation,
        invitation_email::{EmailNotSent, InvitationEmail, invitation_email},
        tenancy::User,
    },
};
use labdata_ports::notifications::mailer::{Email, MailOutcome};

use crate::Services;

/// Sends the link once. It cannot be sent later, because no outbox may store it.
pub(super) async fn email_invitation(
    services: &Services,
    inviter: &User,
    invitation: &Invitation,
    base_url: &str,
    link: &str,
) -> InvitationEmail {
    let Some(mailer) = &services.mailer else {
        return InvitationEmail::NotSent(EmailNotSent::NoMailServer);
    };
    let EmailText {
        subject,
        text,
        html,
    } = invitation_email(inviter, base_url, link, invitation.expires_at);
    let email = Email {
        id: invitation.id.as_uuid(),
        to: invitation.email.clone(),
        subject,
        text,
        html,
        unsubscribe_url: None,
    };
    let invitation = invitation.id;
    match mailer.send(&email).await {
        MailOutcome::Sent => InvitationEmail::Sent,
        MailOutcome::Permanent(error) => {
            tracing::warn!(%invitation, error, "the e-mail of an invitation was refused");
            InvitationEmail::NotSent(EmailNotSent::Refused)
        }
        MailOutcome::Transient(error) => {
            tracing::warn!(%invitation, error, "the e-mail of an invitation was not sent");
            InvitationEmail::NotSent(EmailNotSent::Failed)
        }
    }
}
