//! Access of restored tables.

use std::collections::BTreeSet;

use labdata_domain::{
    catalog::TableAccess,
    ids::{GroupId, OrganizationId},
    people::group::Group,
    trash::deleted_group_name,
};
use labdata_ports::PortError;
use time::OffsetDateTime;

use crate::memory::State;

impl State {
    /// Makes access name groups that exist.
    pub(super) fn restore_access(
        &mut self,
        organization: OrganizationId,
        access: &mut TableAccess,
        now: OffsetDateTime,
    ) -> Result<(), PortError> {
        let groups = self.groups.iter();
        let own = groups.filter(|group| group.organization == organization);
        let names: BTreeSet<String> = own.map(|group| group.name.clone()).collect();
        let mut retained = access.retained(|group| names.contains(group));
        let mut missing = BTreeSet::new();
        for name in retained.read.iter_mut().chain(&mut retained.write) {
            if !names.contains(name) {
                *name = deleted_group_name(name);
                missing.insert(name.clone());
            }
        }
        for (number, name) in missing.into_iter().enumerate() {
            let id = u128::try_from(self.groups.len() + number).unwrap_or_default();
            self.groups.push(Group {
                id: GroupId::new(uuid::Uuid::from_u128(u128::MAX - id)),
                organization,
                name,
                members: Vec::new(),
                created_at: now,
            });
        }
        *access = retained.normalized();
        self.name_groups(organization, None)
    }
}
