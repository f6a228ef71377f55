//! `POST /api/v1/invitations`

use labdata_application::{
    Error,
    people::invitations::{CreateInvitation, NewInvitation, create_invitation},
};
use labdata_domain::people::{
    group::MAX_GROUP_NAME_LENGTH,
    invitation_email::InvitationEmail,
    role::Role,
    tenancy::{EMAIL_PATTERN, MAX_EMAIL_LENGTH},
};
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    output,
    readers::{boolean, choice_of, list, text},
    shape,
};
use serde_json::json;

use super::InvitationView;
use crate::{About, Admin, Call, JsonBody, Method, Operation, Tag};

shape! {
    /// The invitation to make.
    #[derive(Clone, Debug)]
    pub struct CreateInvitationBody {
        /// E-mail address of the colleague.
        email: String = required(text(1..=MAX_EMAIL_LENGTH).with("pattern", EMAIL_PATTERN).example("ada@lab.example")),
        /// Role that the colleague gets.
        role: Role = or(json!("member"), choice_of(Role::ALL, Role::as_str)),
        /// Names of groups that the colleague joins.
        groups: Vec<String> = or(json!([]), list(text(1..=MAX_GROUP_NAME_LENGTH)).of(0..=100)),
        /// Sends the link to the colleague by e-mail, where the platform has a mail server.
        send_email: bool = or(json!(true), boolean()),
    }
    example json!({"email": "ada@lab.example", "role": "member", "groups": [], "send_email": true});
}

output! {
    /// A new invitation, with its link.
    #[derive(Clone)]
    pub struct NewInvitationView as "NewInvitation" from new: NewInvitation {
        #[flatten]
        about: InvitationView = new.named.into(),
        /// The link, for the colleague. It is displayed this once and stored nowhere.
        #[example = "https://lab.example/#token=…"]
        url: String = new.link,
        /// True if the mail server took an e-mail with the link.
        email_sent: bool = new.email == InvitationEmail::Sent,
        /// Why no e-mail was sent although it was asked for. The invitation and its link are valid nevertheless.
        #[example = json!(null)]
        email_error: Option<String> = match new.email {
            InvitationEmail::NotSent(reason) => Some(reason.to_string()),
            InvitationEmail::Sent | InvitationEmail::NotRequested => None,
        },
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "create_invitation",
        method: Method::Post,
        path: "/api/v1/invitations",
        tag: Tag::Users,
        summary: "Invites a colleague",
        description: "The response holds a link, which is never displayed again. The platform sends it to the colleague, \
            or says in `email_error` why it did not: send it yourself then. Good for \
            7 days and one use, it makes the user with role and groups, and signs in. A user of this address who \
            exists is enabled, joins the groups, and loses no rights.",
        returns: "The invitation, with its link",
        refusals: &[(400, "The address is none, or a group is unknown")],
    }
    .runs(run)
    .secret()
}

async fn run(
    call: Call<Admin, JsonBody<CreateInvitationBody>>,
) -> Result<NewInvitationView, Error> {
    let command = CreateInvitation {
        email: call.body.email,
        role: call.body.role,
        groups: call.body.groups,
        sends_email: call.body.send_email,
        base_url: call.base_url.reached,
    };
    let invitation = create_invitation(&call.services, &call.actor, command).await?;
    Ok(invitation.into())
}
