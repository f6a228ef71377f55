//! Executions in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use labdata_domain::{
    events::LoggedEventKind,
    executions::{
        AgentEnd, Execution, FinalStatus,
        started_by::{StartedBy, Starter},
    },
    ids::{ExecutionId, OrganizationId},
    page::{Cursor, Page, PageRequest},
    people::author::Author,
    work::NewRun,
};
use labdata_ports::{
    PortError,
    executions::{
        CancelExecutionError, CloseExecutionError, ExecutionFilter, ExecutionRepository,
        OverdueExecution,
    },
};
use time::OffsetDateTime;

use crate::{
    memory::{fake, owned},
    paging::page,
};

fake!(
    /// Executions in memory.
    pub struct InMemoryExecutionRepository;
);

#[async_trait]
impl ExecutionRepository for InMemoryExecutionRepository {
    async fn add(
        &self,
        organization: OrganizationId,
        execution: &Execution,
        started_by: StartedBy,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        state.job(organization, execution.job_id)?;
        state.add_execution(organization, execution, started_by);
        if let Some(at) = execution.started_at {
            let started = LoggedEventKind::ExecutionStarted(execution.id);
            state.log_event(organization, at, started);
        }
        Ok(())
    }

    async fn queue(
        &self,
        organization: OrganizationId,
        run: &NewRun,
    ) -> Result<Execution, PortError> {
        self.memory.lock().queue_run(organization, run)
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
    ) -> Result<Execution, PortError> {
        self.memory.lock().execution_mut(organization, id).cloned()
    }

    async fn starters(
        &self,
        organization: OrganizationId,
        ids: &[ExecutionId],
    ) -> Result<BTreeMap<ExecutionId, Starter>, PortError> {
        let state = self.memory.lock();
        let executions = owned(&state.executions, organization);
        let asked = executions.filter(|execution| ids.contains(&execution.id));
        let named = asked.filter_map(|execution| {
            let started_by = state.started_by.get(&execution.id)?;
            let mut users = state.users.iter();
            let user = users.find(|user| user.id == started_by.user)?;
            let mut keys = state.api_keys.iter();
            let api_key = keys.find(|key| Some(key.id) == started_by.api_key);
            let starter = Starter {
                author: Author::of(user, api_key),
                trigger: started_by.trigger,
                script_author: state.script_author(execution),
            };
            Some((execution.id, starter))
        });
        Ok(named.collect())
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
            .filter(|execution| {
                let run = execution.origin.run();
                filter.trigger_file.is_none()
                    || run.is_some_and(|run| run.trigger_file == filter.trigger_file)
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
        let execution = state.execution_mut(organization, id)?.clone();
        let closed = execution.clone().close(status, now)?;
        if execution != closed {
            state.store_end(organization, &closed, now)?;
        }
        Ok(closed)
    }

    async fn end_agent(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        end: &AgentEnd,
        now: OffsetDateTime,
    ) -> Result<Execution, CloseExecutionError> {
        let mut state = self.memory.lock();
        let execution = state.execution_mut(organization, id)?.clone();
        let ended = execution.clone().end_agent(end, now)?;
        if execution != ended {
            state.store_end(organization, &ended, now)?;
        }
        Ok(ended)
    }

    async fn cancel(
        &self,
        organization: OrganizationId,
        id: ExecutionId,
        now: OffsetDateTime,
    ) -> Result<Execution, CancelExecutionError> {
        let mut state = self.memory.lock();
        let execution = state.execution_mut(organization, id)?.clone();
        let cancelled = execution.cancel(now)?;
        state.store_end(organization, &cancelled, now)?;
        Ok(cancelled)
    }

    async fn fail_overdue(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<OverdueExecution>, PortError> {
        let mut state = self.memory.lock();
        let overdue: Vec<(OrganizationId, Execution)> = state
            .executions
            .iter()
            .filter_map(|owned| Some((owned.organization, owned.thing.clone().expire(now)?)))
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect();
        let mut failed = Vec::new();
        for (organization, execution) in overdue {
            state.store_end(organization, &execution, now)?;
            failed.push(OverdueExecution {
                organization,
                execution,
            });
        }
        Ok(failed)
    }
}
