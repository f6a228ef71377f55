//! Groups in memory.

use async_trait::async_trait;
use labdata_domain::{
    catalog::TableAccess,
    conflict::Conflict,
    ids::{GroupId, OrganizationId, UserId},
    people::group::{Group, GroupChange, sorted_members},
    refusal::Resource,
};
use labdata_ports::{PortError, people::groups::GroupRepository};

use crate::memory::{State, fake};

fake!(
    /// Groups in memory.
    pub struct InMemoryGroupRepository;
);

impl State {
    /// Names of the groups of a user, sorted.
    pub(crate) fn groups_of(&self, user: UserId) -> Vec<String> {
        let groups = self.groups.iter();
        let own = groups.filter(|group| group.members.contains(&user));
        let mut names: Vec<String> = own.map(|group| group.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Tells the organization's tables which groups there are; `renamed` has the former and the new name of one.
    pub(crate) fn name_groups(
        &mut self,
        organization: OrganizationId,
        renamed: Option<(&str, &str)>,
    ) -> Result<(), PortError> {
        let groups = self.groups.iter();
        let own = groups.filter(|group| group.organization == organization);
        let names: Vec<String> = own.map(|group| group.name.clone()).collect();
        let tables = self.tables_mut(organization)?;
        if tables.groups != names {
            tables.groups = names;
            tables.version += 1;
        }
        let Some((from, to)) = renamed else {
            return Ok(());
        };
        let tables = self.tables.entry(organization).or_default();
        let defined = tables.defined.iter_mut();
        let rows = self.trash.iter_mut();
        let rows = rows.filter(|row| row.organization == organization);
        let dropped = rows.filter_map(|row| row.thing.content.table_mut());
        for table in defined.chain(dropped) {
            let TableAccess { read, write } = &mut table.access;
            for name in read.iter_mut().chain(write).filter(|name| *name == from) {
                to.clone_into(name);
            }
            table.access = std::mem::take(&mut table.access).normalized();
        }
        Ok(())
    }

    fn check_group(&self, group: &Group) -> Result<(), PortError> {
        self.require_organization(group.organization)?;
        let others = self.groups.iter();
        let others = others.filter(|it| it.organization == group.organization && it.id != group.id);
        if let Some(taken) = group.name_taken(others.map(|it| it.name.as_str())) {
            return Err(PortError::Conflict(taken));
        }
        for member in &group.members {
            self.require_user(group.organization, *member)?;
        }
        Ok(())
    }

    fn group(&self, organization: OrganizationId, id: GroupId) -> Result<Group, PortError> {
        let mut groups = self.groups.iter();
        let found = groups.find(|group| group.organization == organization && group.id == id);
        found.cloned().ok_or(PortError::NotFound(Resource::Group))
    }
}

#[async_trait]
impl GroupRepository for InMemoryGroupRepository {
    async fn add(&self, group: &Group) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.check_group(group)?;
        state.groups.push(group.clone());
        state.name_groups(group.organization, None)
    }

    async fn get(&self, organization: OrganizationId, id: GroupId) -> Result<Group, PortError> {
        self.memory.lock().group(organization, id)
    }

    async fn list(&self, organization: OrganizationId) -> Result<Vec<Group>, PortError> {
        let state = self.memory.lock();
        let groups = state.groups.iter();
        let own = groups.filter(|group| group.organization == organization);
        let mut groups: Vec<Group> = own.cloned().collect();
        groups.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(groups)
    }

    async fn update(
        &self,
        organization: OrganizationId,
        id: GroupId,
        change: &GroupChange,
    ) -> Result<Group, PortError> {
        let mut state = self.memory.lock();
        let before = state.group(organization, id)?;
        let members = change.members.clone().map(sorted_members);
        let after = Group {
            name: change.name.clone().unwrap_or_else(|| before.name.clone()),
            members: members.unwrap_or_else(|| before.members.clone()),
            ..before.clone()
        };
        state.check_group(&after)?;
        for group in state.groups.iter_mut().filter(|group| group.id == id) {
            *group = after.clone();
        }
        state.name_groups(organization, Some((&before.name, &after.name)))?;
        Ok(after)
    }

    async fn add_member(
        &self,
        organization: OrganizationId,
        id: GroupId,
        user: UserId,
    ) -> Result<Option<Group>, PortError> {
        let mut state = self.memory.lock();
        state.group(organization, id)?;
        state.require_user(organization, user)?;
        let mut groups = state.groups.iter_mut();
        let group = groups.find(|group| group.id == id && !group.members.contains(&user));
        Ok(group.map(|group| {
            group.members.push(user);
            group.members.sort_unstable();
            group.clone()
        }))
    }

    async fn remove(&self, organization: OrganizationId, id: GroupId) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let group = state.group(organization, id)?;
        let tables = state.tables_mut(organization)?;
        let mut tables = tables.defined.iter();
        if tables.any(|table| table.access.groups().any(|name| name == group.name)) {
            return Err(PortError::Conflict(Conflict::GroupInUse(group.name)));
        }
        state.groups.retain(|other| other.id != id);
        state.name_groups(organization, None)
    }
}
