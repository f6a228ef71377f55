//! Records an action in the audit log.

use std::sync::Arc;

use labdata_domain::{
    audit::{AuditAction, AuditTarget, NewAuditEntry},
    ids::AuditEntryId,
    people::actor::Actor,
};
use labdata_ports::PortError;
use serde_json::{Map, Value};

use crate::{Error, Services, idempotency::unit_of_work::UnitOfWork};

/// Record of an action.
pub(crate) struct Record {
    action: AuditAction,
    target: AuditTarget,
    details: Map<String, Value>,
}

impl Record {
    /// The record of an action.
    pub(crate) fn of(action: AuditAction, target: AuditTarget) -> Self {
        Self {
            action,
            target,
            details: Map::new(),
        }
    }

    /// Adds what else there is to know.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The entry of what that caller did; of the operator for `None`.
    pub(crate) fn entry(self, services: &Services, actor: Option<&Actor>) -> NewAuditEntry {
        let caller = actor.filter(|actor| !actor.is_operator());
        NewAuditEntry {
            id: AuditEntryId::new(services.ids.next_id()),
            at: services.clock.now(),
            action: self.action,
            user: caller.map(|actor| actor.user),
            api_key: caller.map(|actor| actor.api_key),
            target: self.target,
            details: self.details,
        }
    }
}

/// Records what the actor did, in the unit of work that the services belong to.
pub(crate) async fn record(
    services: &Services,
    actor: &Actor,
    record: Record,
) -> Result<(), PortError> {
    let entry = record.entry(services, Some(actor));
    services.audit.append(actor.organization, entry).await
}

/// Makes a change and its entry in the audit log one transaction. `change` gets the services of that, and
/// returns its result and what is recorded; `None` where nothing was changed.
pub(crate) async fn audited<T, F>(
    services: &Services,
    actor: &Actor,
    change: impl FnOnce(Arc<Services>) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<(T, Option<Record>), Error>>,
{
    let unit = UnitOfWork::begin(services, actor.organization).await?;
    let within = Arc::clone(unit.services());
    let outcome = async {
        let (value, done) = change(Arc::clone(&within)).await?;
        // Last: until the end of the transaction no other entry of the organization is appended.
        if let Some(done) = done {
            record(&within, actor, done).await?;
        }
        Ok(value)
    };
    let outcome = outcome.await;
    unit.conclude(outcome).await
}
