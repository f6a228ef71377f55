//! Operation of the platform in memory: health, figures, dependencies, periodic tasks, disk reserve.

pub(crate) mod dependencies;
pub(crate) mod disk_reserve;

use async_trait::async_trait;
use labdata_domain::{
    executions::{ExecutionState, Origin},
    instruments::DeviceStatus,
    models::VersionState,
};
use labdata_ports::{
    PortError,
    maintenance::{
        ConnectionCounts, PassClaim, PassResult, PeriodicTaskStore, StoreFigures, StoreHealth,
    },
};
use time::OffsetDateTime;

use crate::{memory::fake, notifications::rows::NotificationRow};

/// Schedule of one periodic task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskSchedule {
    due_at: OffsetDateTime,
    last_success_at: Option<OffsetDateTime>,
}

fake!(
    /// Periodic tasks in memory.
    pub struct InMemoryPeriodicTaskStore;
);

#[async_trait]
impl PeriodicTaskStore for InMemoryPeriodicTaskStore {
    async fn claim(
        &self,
        task: &str,
        now: OffsetDateTime,
        next_due_at: OffsetDateTime,
    ) -> Result<PassClaim, PortError> {
        let mut state = self.memory.lock();
        let last_success_at = match state.periodic_tasks.get(task) {
            Some(schedule) if schedule.due_at > now => {
                return Ok(PassClaim::NotDue {
                    due_at: schedule.due_at,
                    last_success_at: schedule.last_success_at,
                });
            }
            known => known.and_then(|schedule| schedule.last_success_at),
        };
        let schedule = TaskSchedule {
            due_at: next_due_at,
            last_success_at,
        };
        state.periodic_tasks.insert(task.to_owned(), schedule);
        Ok(PassClaim::Granted)
    }

    async fn record(&self, task: &str, result: &PassResult) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        if let Some(schedule) = state.periodic_tasks.get_mut(task) {
            match result {
                PassResult::Succeeded { at } => schedule.last_success_at = Some(*at),
                PassResult::Failed { due_at, .. } => schedule.due_at = *due_at,
            }
        }
        Ok(())
    }
}

fake!(
    /// Health of a store in memory, which always responds and has no connections.
    pub struct InMemoryStoreHealth;
);

#[async_trait]
impl StoreHealth for InMemoryStoreHealth {
    async fn probe(&self) -> Result<(), PortError> {
        Ok(())
    }

    fn connections(&self) -> ConnectionCounts {
        ConnectionCounts::default()
    }

    async fn figures(&self) -> Result<StoreFigures, PortError> {
        let state = self.memory.lock();
        let mut figures = StoreFigures::default();
        for execution in state.executions.iter().map(|owned| &owned.thing) {
            if !matches!(execution.origin, Origin::Platform(_)) {
                continue;
            }
            match execution.state {
                ExecutionState::Queued => {
                    figures.queued_runs += 1;
                    earlier(&mut figures.oldest_queued_run_at, execution.created_at);
                }
                ExecutionState::Running { .. } => figures.running_runs += 1,
                _ => {}
            }
        }
        for row in state.model_versions.iter().map(|owned| &owned.thing) {
            match row.version.state {
                VersionState::Pending => {
                    figures.pending_trainings += 1;
                    let requested_at = row.version.requested_at;
                    earlier(&mut figures.oldest_pending_training_at, requested_at);
                }
                VersionState::Training { .. } => figures.running_trainings += 1,
                _ => {}
            }
        }
        for device in state.devices.values().map(|row| &row.device) {
            let waiting = device.queued_files.map_or(0, u64::from);
            match device.announced {
                DeviceStatus::Online => figures.online_instruments += 1,
                DeviceStatus::Error => figures.failing_instruments += 1,
                DeviceStatus::Offline => {
                    figures.offline_instruments += 1;
                    continue;
                }
            }
            figures.queued_instrument_files += waiting;
        }
        for event in &state.events {
            earlier(&mut figures.oldest_event_at, event.created_at);
        }
        for notice in &state.notices {
            earlier(&mut figures.oldest_notice_at, notice.recorded_at);
        }
        for created_at in state
            .notifications
            .iter()
            .filter_map(NotificationRow::email_pending_since)
        {
            earlier(&mut figures.oldest_email_at, created_at);
        }
        figures.oldest_delivery_due_at = state.oldest_delivery_due_at();
        Ok(figures)
    }
}

/// Replaces the time by an earlier one.
fn earlier(oldest: &mut Option<OffsetDateTime>, at: OffsetDateTime) {
    *oldest = Some(oldest.map_or(at, |oldest| oldest.min(at)));
}
