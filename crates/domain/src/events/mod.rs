//! The event log: changes of an organization's records, which clients follow.

mod position;

use time::{Duration, OffsetDateTime};

pub use position::{EventPosition, InvalidEventPosition};

use crate::{
    executions::{Execution, ExecutionState, Origin},
    ids::{ExecutionId, FileId, InstrumentId, ModelId, NotificationId},
    instruments::DeviceStatus,
    models::{ModelVersion, VersionState},
};

/// Time for which events are stored.
pub const EVENT_RETENTION: Duration = Duration::HOUR;

/// An event in the log. It is recorded in the transaction of its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its position in the log, which is its id.
    pub position: EventPosition,
    /// When it happened.
    pub at: OffsetDateTime,
    /// Its type and subject.
    pub kind: LoggedEventKind,
    /// True if its table was dropped since, or if it announces the former name of one that was renamed. Another table may
    /// bear the name by now.
    pub is_of_dropped_table: bool,
}

/// Type and subject of an event in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedEventKind {
    /// The bytes of a file were confirmed.
    FileConfirmed(FileId),
    /// A confirmed file was deleted.
    FileDeleted(FileId),
    /// An execution began to run; a run whose worker shut down begins once more.
    ExecutionStarted(ExecutionId),
    /// An execution completed.
    ExecutionCompleted(ExecutionId),
    /// An execution failed.
    ExecutionFailed(ExecutionId),
    /// An execution lost its worker, and another one retries it. It has failed.
    ExecutionRetried(ExecutionId),
    /// An execution was cancelled.
    ExecutionCancelled(ExecutionId),
    /// The writes of an execution were reverted.
    ExecutionReverted(ExecutionId),
    /// Rows or points of a table were written or deleted.
    DataWritten {
        /// The execution that they were written under.
        execution: ExecutionId,
        /// The table.
        table: String,
    },
    /// A table was defined, changed or deleted.
    TableChanged(String),
    /// A version of a model is ready.
    ModelReady {
        /// The model.
        model: ModelId,
        /// The number of the version.
        version_number: u32,
    },
    /// The training of a version failed.
    ModelFailed {
        /// The model.
        model: ModelId,
        /// The number of the version.
        version_number: u32,
    },
    /// A notification was delivered. Only its recipient may see the event.
    NotificationCreated(NotificationId),
    /// The device of an instrument reports that all is well, after it did not.
    InstrumentOnline(InstrumentId),
    /// The device of an instrument has stopped reporting.
    InstrumentOffline(InstrumentId),
    /// The device of an instrument reports that something is wrong.
    InstrumentError(InstrumentId),
}

/// The records that an event refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventReferences {
    /// The file.
    pub file: Option<FileId>,
    /// The execution.
    pub execution: Option<ExecutionId>,
    /// The name of the table.
    pub table: Option<String>,
    /// The model.
    pub model: Option<ModelId>,
    /// The number of the model's version.
    pub version_number: Option<u32>,
    /// The notification.
    pub notification: Option<NotificationId>,
    /// The instrument.
    pub instrument: Option<InstrumentId>,
}

impl LoggedEventKind {
    /// Name of the type of [`Self::ExecutionStarted`].
    pub const EXECUTION_STARTED: &'static str = "job_execution.started";
    /// Name of the type of [`Self::DataWritten`].
    pub const DATA_WRITTEN: &'static str = "data.written";
    /// Name of the type of [`Self::NotificationCreated`].
    pub const NOTIFICATION_CREATED: &'static str = "notification.created";

    /// The names of all types.
    pub const TYPES: [&'static str; 16] = [
        "file.confirmed",
        "file.deleted",
        Self::EXECUTION_STARTED,
        "job_execution.completed",
        "job_execution.failed",
        "job_execution.retried",
        "job_execution.cancelled",
        "job_execution.reverted",
        Self::DATA_WRITTEN,
        "table.changed",
        "model.ready",
        "model.failed",
        Self::NOTIFICATION_CREATED,
        "instrument.online",
        "instrument.offline",
        "instrument.error",
    ];

    /// The name of the table that the event concerns.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        match self {
            Self::DataWritten { table, .. } | Self::TableChanged(table) => Some(table),
            _ => None,
        }
    }

    /// Returns true for an event of a person's inbox, which callers without personal records are not sent.
    #[must_use]
    pub const fn is_personal(&self) -> bool {
        matches!(self, Self::NotificationCreated(_))
    }

    /// The event of a device's new status.
    #[must_use]
    pub const fn of_device(instrument: InstrumentId, status: DeviceStatus) -> Self {
        match status {
            DeviceStatus::Online => Self::InstrumentOnline(instrument),
            DeviceStatus::Offline => Self::InstrumentOffline(instrument),
            DeviceStatus::Error => Self::InstrumentError(instrument),
        }
    }

    /// The event of an execution that ended; `None` if it has not, or if a data write created it:
    /// then [`Self::DataWritten`] is its only event.
    #[must_use]
    pub fn of_end(execution: &Execution) -> Option<Self> {
        if execution.origin == Origin::DataWrite {
            return None;
        }
        let id = execution.id;
        match execution.state {
            ExecutionState::Queued | ExecutionState::Running { .. } => None,
            ExecutionState::Completed { .. } => Some(Self::ExecutionCompleted(id)),
            // Another type: who waits for failures waits for the retry, too.
            ExecutionState::Failed { .. } if execution.retried_by().is_some() => {
                Some(Self::ExecutionRetried(id))
            }
            ExecutionState::Failed { .. } => Some(Self::ExecutionFailed(id)),
            ExecutionState::Cancelled { .. } => Some(Self::ExecutionCancelled(id)),
        }
    }

    /// The event of a version whose training ended; `None` if it has not, or was cancelled.
    #[must_use]
    pub fn of_training(version: &ModelVersion) -> Option<Self> {
        let (model, version_number) = (version.model, version.number);
        match version.state {
            VersionState::Ready { .. } => Some(Self::ModelReady {
                model,
                version_number,
            }),
            VersionState::Failed { .. } => Some(Self::ModelFailed {
                model,
                version_number,
            }),
            _ => None,
        }
    }

    /// The name of its type.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::FileConfirmed(_) => "file.confirmed",
            Self::FileDeleted(_) => "file.deleted",
            Self::ExecutionStarted(_) => Self::EXECUTION_STARTED,
            Self::ExecutionCompleted(_) => "job_execution.completed",
            Self::ExecutionFailed(_) => "job_execution.failed",
            Self::ExecutionRetried(_) => "job_execution.retried",
            Self::ExecutionCancelled(_) => "job_execution.cancelled",
            Self::ExecutionReverted(_) => "job_execution.reverted",
            Self::DataWritten { .. } => Self::DATA_WRITTEN,
            Self::TableChanged(_) => "table.changed",
            Self::ModelReady { .. } => "model.ready",
            Self::ModelFailed { .. } => "model.failed",
            Self::NotificationCreated(_) => Self::NOTIFICATION_CREATED,
            Self::InstrumentOnline(_) => "instrument.online",
            Self::InstrumentOffline(_) => "instrument.offline",
            Self::InstrumentError(_) => "instrument.error",
        }
    }

    /// The records that it refers to.
    #[must_use]
    pub fn references(&self) -> EventReferences {
        let mut references = EventReferences::default();
        match self {
            Self::FileConfirmed(file) | Self::FileDeleted(file) => references.file = Some(*file),
            Self::ExecutionStarted(execution)
            | Self::ExecutionCompleted(execution)
            | Self::ExecutionFailed(execution)
            | Self::ExecutionRetried(execution)
            | Self::ExecutionCancelled(execution)
            | Self::ExecutionReverted(execution) => references.execution = Some(*execution),
            Self::DataWritten { execution, table } => {
                references.execution = Some(*execution);
                references.table = Some(table.clone());
            }
            Self::TableChanged(table) => references.table = Some(table.clone()),
            Self::ModelReady {
                model,
                version_number,
            }
            | Self::ModelFailed {
                model,
                version_number,
            } => {
                references.model = Some(*model);
                references.version_number = Some(*version_number);
            }
            Self::NotificationCreated(notification) => {
                references.notification = Some(*notification);
            }
            Self::InstrumentOnline(instrument)
            | Self::InstrumentOffline(instrument)
            | Self::InstrumentError(instrument) => references.instrument = Some(*instrument),
        }
        references
    }

    /// Reads back [`Self::as_str`] and [`Self::references`]; `None` if they do not belong together.
    #[must_use]
    pub fn read(name: &str, references: EventReferences) -> Option<Self> {
        let EventReferences {
            file,
            execution,
            table,
            model,
            version_number,
            notification,
            instrument,
        } = references;
        Some(match name {
            "file.confirmed" => Self::FileConfirmed(file?),
            "file.deleted" => Self::FileDeleted(file?),
            "job_execution.started" => Self::ExecutionStarted(execution?),
            "job_execution.completed" => Self::ExecutionCompleted(execution?),
            "job_execution.failed" => Self::ExecutionFailed(execution?),
            "job_execution.retried" => Self::ExecutionRetried(execution?),
            "job_execution.cancelled" => Self::ExecutionCancelled(execution?),
            "job_execution.reverted" => Self::ExecutionReverted(execution?),
            "data.written" => Self::DataWritten {
                execution: execution?,
                table: table?,
            },
            "table.changed" => Self::TableChanged(table?),
            "model.ready" => Self::ModelReady {
                model: model?,
                version_number: version_number?,
            },
            "model.failed" => Self::ModelFailed {
                model: model?,
                version_number: version_number?,
            },
            "notification.created" => Self::NotificationCreated(notification?),
            "instrument.online" => Self::InstrumentOnline(instrument?),
            "instrument.offline" => Self::InstrumentOffline(instrument?),
            "instrument.error" => Self::InstrumentError(instrument?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn every_type_reads_back_with_its_references() {
        let references = EventReferences {
            file: Some(FileId::new(Uuid::from_u128(1))),
            execution: Some(ExecutionId::new(Uuid::from_u128(2))),
            table: Some("growth curve".to_owned()),
            model: Some(ModelId::new(Uuid::from_u128(3))),
            version_number: Some(4),
            notification: Some(NotificationId::new(Uuid::from_u128(5))),
            instrument: Some(InstrumentId::new(Uuid::from_u128(6))),
        };
        for name in LoggedEventKind::TYPES {
            let kind = LoggedEventKind::read(name, references.clone()).unwrap();
            assert_eq!(kind.as_str(), name);
            let again = LoggedEventKind::read(name, kind.references());
            assert_eq!(again, Some(kind));
            assert_eq!(
                LoggedEventKind::read(name, EventReferences::default()),
                None
            );
        }
        assert_eq!(LoggedEventKind::read("file.moved", references), None);
    }
}
