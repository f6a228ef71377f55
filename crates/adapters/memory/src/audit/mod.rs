//! The audit log in memory.

use async_trait::async_trait;
use labdata_domain::{
    audit::{AuditEntry, AuditFilter, ChainEnd, NewAuditEntry},
    ids::OrganizationId,
    page::{Cursor, Page, PageRequest},
    people::author::{NamedKey, NamedUser},
};
use labdata_ports::{PortError, audit::AuditLog};
use time::OffsetDateTime;

use crate::memory::{Owned, State, fake};

fake!(
    /// The audit log in memory.
    pub struct InMemoryAuditLog;
);

impl State {
    /// The entries of the organization, oldest first.
    fn audit_entries(
        &self,
        organization: OrganizationId,
    ) -> impl DoubleEndedIterator<Item = &AuditEntry> {
        let entries = self.audit_log.iter();
        entries
            .filter(move |entry| entry.organization == organization)
            .map(|entry| &entry.thing)
    }
}

#[async_trait]
impl AuditLog for InMemoryAuditLog {
    async fn append(
        &self,
        organization: OrganizationId,
        entry: NewAuditEntry,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.require_organization(organization)?;
        let mut users = state.users.iter();
        let user = users
            .find(|user| user.organization == organization && Some(user.id) == entry.user)
            .map(NamedUser::of);
        let mut keys = state.api_keys.iter();
        let api_key = keys
            .find(|key| key.organization == organization && Some(key.id) == entry.api_key)
            .map(NamedKey::of);
        let previous = state.audit_entries(organization).next_back();
        let previous = previous.map(AuditEntry::chain_end);
        let thing = entry.chained(previous.as_ref(), user, api_key);
        state.audit_log.push(Owned {
            organization,
            thing,
        });
        Ok(())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditEntry>, PortError> {
        let state = self.memory.lock();
        let matching = state.audit_entries(organization).rev();
        let matching = matching
            .filter(|entry| filter.matches(entry))
            .filter(|entry| page.after.is_none_or(|place| entry.at < place.at));
        Ok(Page::from_overfetched(
            matching.cloned().collect(),
            page.limit,
            |entry| Cursor {
                at: entry.at,
                id: entry.id.as_uuid(),
            },
        ))
    }

    async fn list_after(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        after: Option<OffsetDateTime>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, PortError> {
        let state = self.memory.lock();
        let matching = state
            .audit_entries(organization)
            .filter(|entry| filter.matches(entry) && after.is_none_or(|after| entry.at > after));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(matching.take(limit).cloned().collect())
    }

    async fn end(&self, organization: OrganizationId) -> Result<Option<ChainEnd>, PortError> {
        let state = self.memory.lock();
        let last = state.audit_entries(organization).next_back();
        Ok(last.map(AuditEntry::chain_end))
    }
}
