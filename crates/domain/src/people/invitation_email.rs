//! E-mails of invitations.

use time::OffsetDateTime;

use crate::{notifications::EmailText, people::tenancy::User, timestamp::render_date};

/// Outcome of sending an invitation's link to the colleague.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvitationEmail {
    /// The administrator passes the link on.
    NotRequested,
    /// The mail server took the e-mail.
    Sent,
    /// The mail server did not take it. The invitation stands.
    NotSent(EmailNotSent),
}

/// Reason for which an invitation's link was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmailNotSent {
    /// The operator has set none.
    #[error("the platform has no mail server: give the link to your colleague yourself")]
    NoMailServer,
    /// The mail server refused this e-mail.
    #[error(
        "the mail server refused the e-mail: check the address, or give the link to your colleague yourself"
    )]
    Refused,
    /// The mail server was not reached, or did not take the e-mail.
    #[error("the mail server did not take the e-mail: give the link to your colleague yourself")]
    Failed,
}

/// The link that accepts an invitation, or signs in. The token is in the fragment, which browsers send to no server.
#[must_use]
pub fn link_with_token(base_url: &str, token: &str) -> String {
    format!("{}/#token={token}", base_url.trim_end_matches('/'))
}

/// Renders the e-mail of an invitation by that administrator.
#[must_use]
pub fn invitation_email(
    inviter: &User,
    base_url: &str,
    link: &str,
    expires_at: OffsetDateTime,
) -> EmailText {
    let name = &inviter.name;
    let date = render_date(expires_at.date());
    EmailText::with_link(
        &format!("{name} invites you to the lab's data platform"),
        &format!("Open this link to sign in. It works once, until {date}. Do not forward it."),
        link,
        &format!("Sent for {name} ({}) by {base_url}", inviter.email),
    )
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::{OrganizationId, UserId},
        people::role::Role,
    };

    fn text(name: &str) -> EmailText {
        let inviter = User {
            id: UserId::new(Uuid::nil()),
            organization: OrganizationId::new(Uuid::nil()),
            email: "ada@lab.example".to_owned(),
            name: name.to_owned(),
            role: Role::Admin,
            groups: Vec::new(),
            created_at: OffsetDateTime::UNIX_EPOCH,
            disabled_at: None,
        };
        let base_url = "https://lab.example";
        let link = link_with_token(base_url, "abc");
        let expires_at = datetime!(2026-12-03 10:00 UTC);
        invitation_email(&inviter, base_url, &link, expires_at)
    }

    #[test]
    fn an_invitation_says_who_invites_where_and_until_when() {
        let email = text("Ada");
        assert_eq!(email.subject, "Ada invites you to the lab's data platform");
        assert_eq!(
            email.text,
            "Ada invites you to the lab's data platform\n\n\
             Open this link to sign in. It works once, until 2026-12-03. Do not forward it.\n\n\
             https://lab.example/#token=abc\n\n\
             Sent for Ada (ada@lab.example) by https://lab.example\n"
        );
        assert!(
            email
                .html
                .contains("href=\"https://lab.example/#token=abc\"")
        );
    }

    #[test]
    fn a_name_is_neither_a_header_nor_markup() {
        let email = text("<b>Ada</b>\r\nBcc: all@lab.example");
        assert!(!email.subject.contains(char::is_control));
        assert!(!email.html.contains("<b>"), "{}", email.html);
    }
}
