//! Groups of users.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::{GroupId, UserId},
    names::Named,
    page::{Cursor, Page, PageRequest},
    people::{
        actor::Actor,
        group::{Group, GroupChange, GroupInUse, sorted_members},
        run_key::GuardedAction,
        scope::Scope,
    },
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    maintenance::disk_reserve::require_reserve,
};

/// The group to create.
#[derive(Clone, Debug)]
pub struct CreateGroup {
    /// Name, unique within the organization.
    pub name: String,
    /// Its members.
    pub members: Vec<UserId>,
}

/// The organization's groups, newest first.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_groups(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Group>, Error> {
    actor.require(Scope::Read)?;
    let all = services.groups.list(actor.organization).await?;
    Ok(Page::of_all(all, page, |group| Cursor {
        at: group.created_at,
        id: group.id.as_uuid(),
    }))
}

/// Creates a group. Tables may name it from then on.
///
/// # Errors
/// `Forbidden` without the admin scope and to a narrowed key; `Invalid` for a name that cannot be read; `NotFound` for
/// an unknown member; `Conflict` when the organization has a group of that name or of one that differs in case.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_group(
    services: &Services,
    actor: &Actor,
    command: CreateGroup,
) -> Result<Group, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    require_reserve(services)?;
    let name = Named::Group.parse(&command.name).map_err(Error::refused)?;
    let group = Group {
        id: GroupId::new(services.ids.next_id()),
        organization: actor.organization,
        name: name.into(),
        members: sorted_members(command.members),
        created_at: services.clock.now(),
    };
    let created = audited(services, actor, |within| async move {
        within.groups.add(&group).await?;
        let record = Record::of(AuditAction::GroupCreated, target(&group))
            .with("members", ids(&group.members));
        Ok((group, Some(record)))
    })
    .await?;
    // After the commit: a look-up in between would cache the former groups again.
    services.key_cache.evict_organization(actor.organization);
    Ok(created)
}

/// Changes a group. Rights of former members end at once in this process, within seconds in every other.
///
/// # Errors
/// As [`create_group`], and `NotFound` for an unknown group.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn update_group(
    services: &Services,
    actor: &Actor,
    id: GroupId,
    mut change: GroupChange,
) -> Result<Group, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    if let Some(name) = &mut change.name {
        *name = Named::Group.parse(name).map_err(Error::refused)?.into();
    }
    let group = audited(services, actor, |within| async move {
        let before = within.groups.get(actor.organization, id).await?;
        let updated = within.groups.update(actor.organization, id, &change);
        let group = updated.await?;
        let joined = group.members.iter();
        let joined: Vec<UserId> = joined
            .filter(|id| !before.members.contains(id))
            .copied()
            .collect();
        let left = before.members.iter();
        let left: Vec<UserId> = left
            .filter(|id| !group.members.contains(id))
            .copied()
            .collect();
        let record = changed(&group, &before.name, &joined, &left);
        let is_changed = group != before;
        Ok((group, is_changed.then_some(record)))
    })
    .await?;
    services.key_cache.evict_organization(actor.organization);
    Ok(group)
}

/// Deletes a group that no table names.
///
/// # Errors
/// `Forbidden` without the admin scope and to a narrowed key; `NotFound`; `Conflict`, naming the tables whose access
/// names the group: without it they would be open.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_group(services: &Services, actor: &Actor, id: GroupId) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ManagePeople)?;
    audited(services, actor, |within| async move {
        let group = within.groups.get(actor.organization, id).await?;
        let catalog = within.catalog.snapshot(actor.organization).await?;
        let naming = catalog.tables().iter();
        let naming = naming.filter(|it| it.access.groups().any(|name| name == group.name));
        let tables: Vec<String> = naming.map(|table| table.name.clone()).collect();
        if !tables.is_empty() {
            return Err(Error::refused(GroupInUse(tables)));
        }
        within.groups.remove(actor.organization, id).await?;
        Ok((
            (),
            Some(Record::of(AuditAction::GroupDeleted, target(&group))),
        ))
    })
    .await?;
    services.key_cache.evict_organization(actor.organization);
    Ok(())
}

/// Record of a changed group.
pub(super) fn changed(
    group: &Group,
    former_name: &str,
    joined: &[UserId],
    left: &[UserId],
) -> Record {
    Record::of(AuditAction::GroupUpdated, target(group))
        .with("former_name", former_name)
        .with("joined", ids(joined))
        .with("left", ids(left))
}

fn target(group: &Group) -> AuditTarget {
    AuditTarget::new(AuditTargetKind::Group, group.id, &group.name)
}

fn ids(users: &[UserId]) -> Vec<String> {
    users.iter().map(ToString::to_string).collect()
}
