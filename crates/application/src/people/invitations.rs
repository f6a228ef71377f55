//! Invitations: an administrator makes a link for a colleague.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::{GroupId, InvitationId, UserId},
    names::RecordName,
    page::{Cursor, Page, PageRequest},
    people::{
        actor::Actor,
        credential::InvalidCredential,
        group::{Group, UnknownGroup},
        invitation::{INVITATION_LIFETIME, Invitation},
        invitation_email::{InvitationEmail, link_with_token},
        role::Role,
        run_key::GuardedAction,
        scope::Scope,
        session::PlainToken,
        tenancy::{User, UserChange, check_email},
    },
    refusal::Resource,
};
use labdata_ports::PortError;

use crate::{
    Error, Services,
    audit::record::{Record, audited, record},
    maintenance::disk_reserve::require_reserve,
    people::{
        email_invitation::email_invitation,
        groups::changed,
        sessions::{random_token, record_refusal, user_with_email},
        update_user::role_changed,
    },
};

/// The invitation to make.
#[derive(Clone, Debug)]
pub struct CreateInvitation {
    /// E-mail address of the colleague.
    pub email: String,
    /// Role that the colleague gets.
    pub role: Role,
    /// Names of groups that the colleague joins.
    pub groups: Vec<String>,
    /// True sends the link to the colleague by e-mail.
    pub sends_email: bool,
    /// Base of the link: the platform's URL as the administrator reaches it.
    pub base_url: String,
}

/// A new invitation.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    /// The invitation.
    pub named: NamedInvitation,
    /// The link, which is stored nowhere.
    pub link: String,
    /// Outcome of sending the link.
    pub email: InvitationEmail,
}

/// An invitation, and the names of its groups.
#[derive(Clone, Debug)]
pub struct NamedInvitation {
    /// The invitation.
    pub invitation: Invitation,
    /// Names of the groups that still exist.
    pub groups: Vec<String>,
}

/// Makes an invitation. The link is returned this once and stored nowhere. An e-mail that cannot be sent is no
/// error: the invitation stands.
///
/// # Errors
/// `Forbidden` without the admin scope, to a narrowed key, and for a role with scopes that the key lacks; `Invalid` for
/// an address that is none, and an unknown group.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_invitation(
    services: &Services,
    actor: &Actor,
    command: CreateInvitation,
) -> Result<NewInvitation, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    require_reserve(services)?;
    let email = command.email.trim().to_owned();
    check_email(&email).map_err(Error::refused)?;
    // The link opens a session with the role that a user of this address has already.
    let existing = user_with_email(services, actor.organization, &email).await?;
    let role = Invitation::accepted_role(command.role, existing.as_ref());
    actor.require_to_give_role(None, role)?;
    let known = services.groups.list(actor.organization).await?;
    let mut groups: Vec<GroupId> = Vec::new();
    for name in &command.groups {
        let name = RecordName::find(name, |name| known.iter().any(|group| group.name == name));
        let group = known.iter().find(|group| group.name == name);
        let group = group.ok_or_else(|| Error::refused(UnknownGroup(name)))?;
        groups.push(group.id);
    }
    let token = random_token(services);
    let now = services.clock.now();
    let invitation = Invitation {
        id: InvitationId::new(services.ids.next_id()),
        organization: actor.organization,
        email,
        role: command.role,
        groups,
        token: token.hash(),
        created_by: actor.user,
        created_at: now,
        expires_at: now + INVITATION_LIFETIME,
    };
    let inviter = services
        .tenancy
        .user(actor.organization, actor.user)
        .await?;
    let named = named(invitation, &known);
    let made = audited(services, actor, |within| async move {
        within.invitations.add(&named.invitation).await?;
        let record = Record::of(AuditAction::InvitationCreated, target(&named.invitation))
            .with("role", named.invitation.role.as_str())
            .with("groups", named.groups.clone())
            .with("email_requested", command.sends_email);
        Ok((named, Some(record)))
    });
    let named = made.await?;
    let link = link_with_token(&command.base_url, token.reveal());
    // After the transaction, which must not last as long as a mail server takes, and whose failure would leave the
    // colleague with a link that is refused.
    let email = if command.sends_email {
        email_invitation(
            services,
            &inviter,
            &named.invitation,
            &command.base_url,
            &link,
        )
        .await
    } else {
        InvitationEmail::NotRequested
    };
    Ok(NewInvitation { named, link, email })
}

/// The organization's pending invitations, newest first, expired ones too.
///
/// # Errors
/// `Forbidden` without the admin scope and to a narrowed key.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_invitations(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<NamedInvitation>, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    let known = services.groups.list(actor.organization).await?;
    let all = services.invitations.list(actor.organization).await?;
    let page = Page::of_all(all, page, |invitation| Cursor {
        at: invitation.created_at,
        id: invitation.id.as_uuid(),
    });
    let items = page.items.into_iter().map(|it| named(it, &known));
    Ok(Page {
        items: items.collect(),
        next: page.next,
    })
}

/// Revokes an invitation: its link is refused from then on.
///
/// # Errors
/// `Forbidden` without the admin scope and to a narrowed key; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn revoke_invitation(
    services: &Services,
    actor: &Actor,
    id: InvitationId,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    audited(services, actor, |within| async move {
        let revoked = within.invitations.remove(actor.organization, id).await?;
        let record = Record::of(AuditAction::InvitationRevoked, target(&revoked));
        Ok(((), Some(record)))
    })
    .await
}

/// Accepts the invitation of that token: makes the user, or enables and promotes the one who exists. `None` if
/// the token is of no invitation.
pub(super) async fn accept_invitation(
    services: &Services,
    token: &PlainToken,
) -> Result<Option<User>, Error> {
    let Some(found) = services.invitations.find(token.hash()).await? else {
        return Ok(None);
    };
    let inviter = services
        .tenancy
        .user(found.organization, found.created_by)
        .await?;
    if !found.is_acceptable(services.clock.now(), &inviter) {
        record_refusal(services, found.organization, target(&found)).await?;
        return Err(Error::refused(InvalidCredential::Link));
    }
    let operator = Actor::operator(found.organization, found.created_by);
    let operator = &operator;
    let accepted = audited(services, operator, |within| async move {
        // Removed before it takes effect: an invitation works once, also if two accept it at the same time.
        let invitation = match within
            .invitations
            .remove(found.organization, found.id)
            .await
        {
            Ok(invitation) => invitation,
            Err(PortError::NotFound(_)) => return Err(Error::refused(InvalidCredential::Link)),
            Err(error) => return Err(error.into()),
        };
        let (user, mut entries) = joined(&within, &invitation).await?;
        // In one order: of two who accept at the same time, none waits for a group of the other.
        let mut groups = invitation.groups.clone();
        groups.sort_unstable();
        for group in groups {
            entries.extend(join_group(&within, &invitation, group, user.id).await?);
        }
        let user = within.tenancy.user(user.organization, user.id).await?;
        // After the groups: who changes one locks it before the audit log.
        for entry in entries {
            record(&within, operator, entry).await?;
        }
        Ok((user, None))
    });
    let user = accepted.await?;
    services.key_cache.evict_user(user.id);
    Ok(Some(user))
}

/// The user of an invitation, made or changed, and the records of that.
async fn joined(
    services: &Services,
    invitation: &Invitation,
) -> Result<(User, Vec<Record>), Error> {
    let now = services.clock.now();
    let candidate = User {
        id: UserId::new(services.ids.next_id()),
        organization: invitation.organization,
        email: invitation.email.clone(),
        name: invitation.email.clone(),
        role: invitation.role,
        groups: Vec::new(),
        created_at: now,
        disabled_at: None,
    };
    let user = services.tenancy.ensure_user(&candidate).await?;
    let target = AuditTarget::new(AuditTargetKind::User, user.id, &user.email);
    // A user of that address may have been there: then the invitation changes it.
    if user.id == candidate.id {
        let made = Record::of(AuditAction::UserCreated, target)
            .with("role", user.role.as_str())
            .with("invitation_id", invitation.id.to_string());
        return Ok((user, vec![made]));
    }
    let change = invitation.change_of(&user);
    if change == UserChange::default() {
        return Ok((user, Vec::new()));
    }
    let changed = services
        .tenancy
        .update_user(user.organization, user.id, &change, now)
        .await?;
    let enabled = change.disabled.map(|disabled| {
        Record::of(AuditAction::UserUpdated, target)
            .with("disabled", disabled)
            .with("invitation_id", invitation.id.to_string())
    });
    let entries = role_changed(&user, &changed).into_iter().chain(enabled);
    Ok((changed, entries.collect()))
}

/// Adds the user to a group of the invitation, if it still exists, and returns the record of that.
async fn join_group(
    services: &Services,
    invitation: &Invitation,
    id: GroupId,
    user: UserId,
) -> Result<Option<Record>, Error> {
    let organization = invitation.organization;
    let joined = match services.groups.add_member(organization, id, user).await {
        Ok(joined) => joined,
        // Deleted since the invitation was made.
        Err(PortError::NotFound(Resource::Group)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(joined.map(|group| {
        changed(&group, &group.name, &[user], &[]).with("invitation_id", invitation.id.to_string())
    }))
}

fn named(invitation: Invitation, groups: &[Group]) -> NamedInvitation {
    let ids = invitation.groups.iter();
    let known = ids.filter_map(|id| groups.iter().find(|group| group.id == *id));
    NamedInvitation {
        groups: known.map(|group| group.name.clone()).collect(),
        invitation,
    }
}

fn target(invitation: &Invitation) -> AuditTarget {
    AuditTarget::new(
        AuditTargetKind::Invitation,
        invitation.id,
        &invitation.email,
    )
}
