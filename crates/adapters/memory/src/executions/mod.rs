//! Executions in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use labdata_domain::{
    executions::{Execution, ExecutionState, FinalStatus},
    ids::{ExecutionId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
    triggers::event::EventKind,
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionFilter, ExecutionRepository, OverdueExecution},
};
use time::OffsetDateTime;

use crate::{
    Memory,
    memory::{Owned, owned},
    paging::page,
};

/// Executions in memory.
#[derive(Clone, Debug)]
pub struct InMemoryExecutionRepository {
    memory: Memory,
}

impl InMemoryExecutionRepository {
    /// The repository over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

#[async_trait]
impl ExecutionRepository for InMemoryExecutionRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: UserId,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.job(organization, execution.job_id)?;
        state.started_by.insert(execution.id, started_by);
        state.executions.push(Owned {
            organization,
            thing: execution.clone(),
        });
        Ok(())
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<Execution, PortError> {
        self.memory.lock().execution_mut(organization, id).cloned()
    }

    async fn list(
        &self,
        organization: OrganizationId,
        filter: &ExecutionFilter,
        request: PageRequest,
    ) -> Result<Page<Execution>, PortError> {
        let state = self.memory.lock();
        let executions = owned(&state.executions, organization)
            .filter(|execution| filter.job.is_none_or(|job| execution.job_id == job))
            .filter(|execution| {
                filter
                    .status
                    .as_ref()
                    .is_none_or(|status| execution.state.as_str() == status)
            })
            .cloned();
        Ok(page(executions, request, |execution| Cursor {
            at: execution.created_at,
            id: execution.id.as_uuid(),
        }))
    }

    async fn close(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        status: FinalStatus,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        let mut state = self.memory.lock();
        let execution = state.execution_mut(organization, id)?;
        let closed = execution.clone().close(status, now)?;
        let ends_now = *execution != closed;
        *execution = closed.clone();
        if ends_now {
            state.record_event(organization, EventKind::JobCompleted(id), now);
        }
        Ok(closed)
    }

    async fn fail_overdue(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueExecution>, PortError> {
        let mut guard = self.memory.lock();
        let state = &mut *guard;
        let overdue = state.executions.iter_mut().filter(|owned| {
            matches!(owned.thing.state, ExecutionState::Running { .. })
                && owned.thing.origin.run().is_none()
                && !owned.thing.state.is_open(now)
        });
        let mut failed = Vec::new();
        for owned in overdue.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            let execution = &mut owned.thing;
            execution.state = execution.state.clone().expire(now);
            failed.push(OverdueExecution {
                organization: owned.organization,
                execution: execution.clone(),
                started_by: starter(&state.started_by, execution.id)?,
            });
        }
        for overdue in &failed {
            let ended = EventKind::JobCompleted(overdue.execution.id);
            state.record_event(overdue.organization, ended, now);
        }
        Ok(failed)
    }

    async fn started_by(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<UserId, PortError> {
        let mut state = self.memory.lock();
        state.execution_mut(organization, id)?;
        starter(&state.started_by, id)
    }
}

pub(crate) fn starter(
    started_by: &BTreeMap<ExecutionId, UserId>,
    id: ExecutionId,
) -> Result<UserId, PortError> {
    let starter = started_by.get(&id).copied();
    starter.ok_or_else(|| PortError::Corrupt(format!("nobody started {id}")))
}
