//! Executions in memory.

use async_trait::async_trait;
use labdata_domain::{
    execution::{Execution, ExecutionState, FinalStatus},
    ids::{ExecutionId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{
    PortError,
    executions::{CloseExecutionError, ExecutionFilter, ExecutionRepository},
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
        _started_by: UserId,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.job(organization, execution.job_id)?;
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
        execution.state = execution.state.clone().close(status, now)?;
        Ok(execution.clone())
    }

    async fn fail_overdue(&self, now: OffsetDateTime, limit: u32) -> Result<u64, PortError> {
        let mut failed = 0;
        for owned in &mut self.memory.lock().executions {
            let execution = &mut owned.thing;
            let running = matches!(execution.state, ExecutionState::Running { .. });
            if failed < u64::from(limit) && running && !execution.state.is_open(now) {
                execution.state = execution.state.clone().expire(now);
                failed += 1;
            }
        }
        Ok(failed)
    }
}
