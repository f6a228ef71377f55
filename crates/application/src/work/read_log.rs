//! Reads what a run wrote.

use bytes::Bytes;
use labdata_domain::{
    executions::Execution,
    ids::{ExecutionId, OrganizationId},
    people::{actor::Actor, scope::Scope},
    work::{LogText, WorkId, deleted_line},
};

use crate::{
    Error, Services,
    slots::{Slot, Work},
    subscription::Subscription,
};

/// The log of one execution, to be read chunk by chunk.
#[derive(Debug)]
pub struct LogReader {
    organization: OrganizationId,
    execution: ExecutionId,
    text: LogText,
    /// The reader has said that the log was deleted.
    is_deleted: bool,
    /// Counts the log until it is read.
    _slot: Slot,
}

/// Result of reading on in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextOfLog {
    /// This text, which may hold a line of the platform's where something is left out.
    Chunk(Bytes),
    /// The execution still runs and has written nothing more.
    NothingYet,
    /// The execution has ended, and its whole log has been read.
    End {
        /// Its status.
        status: &'static str,
        /// The execution that retries it.
        retried_by: Option<ExecutionId>,
    },
}

/// Opens the log of an execution. That of a script which ran elsewhere is empty; one that was deleted for
/// its age is a line that says so.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Unavailable` if others take 10 s.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn open_log(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<LogReader, Error> {
    actor.require(Scope::Read)?;
    let slot = services.slots.enter(Work::Result, actor).await?;
    LogReader::open(services, actor, id, slot).await
}

/// Opens the log of an execution as [`open_log`] does, to read it while it grows. The subscription wakes
/// the reader at appends, and at the end of the run.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Unavailable` if the organization has too many
/// followers.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn follow_log(
    services: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<(LogReader, Subscription), Error> {
    actor.require(Scope::Read)?;
    let slot = services.slots.follow(actor)?;
    let reader = LogReader::open(services, actor, id, slot).await?;
    let news = services.work.follow(WorkId::Execution(id));
    Ok((reader, Subscription::new(news)))
}

impl LogReader {
    async fn open(
        services: &Services,
        actor: &Actor,
        execution: ExecutionId,
        slot: Slot,
    ) -> Result<Self, Error> {
        let organization = actor.organization;
        services.executions.get(organization, execution).await?;
        Ok(Self {
            organization,
            execution,
            text: LogText::default(),
            is_deleted: false,
            _slot: slot,
        })
    }

    /// Offset of the next chunk.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.text.offset()
    }

    /// Reads on.
    ///
    /// # Errors
    /// Errors of the ports.
    pub async fn next(&mut self, services: &Services) -> Result<NextOfLog, Error> {
        // In this order: what is written before the end is there when the end is seen.
        let execution = services
            .executions
            .get(self.organization, self.execution)
            .await?;
        let work = WorkId::Execution(self.execution);
        loop {
            let read = services
                .work_logs
                .read(self.organization, work, self.text.offset());
            let chunk = read.await?;
            if chunk.bytes.is_empty() {
                break;
            }
            let text = self.text.push(chunk);
            // A chunk may hold no more than a part of a character.
            if !text.is_empty() {
                return Ok(NextOfLog::Chunk(text.into()));
            }
        }
        if execution.state.has_ended() {
            if let Some(text) = self.text.finish() {
                return Ok(NextOfLog::Chunk(text.into()));
            }
            if let Some(line) = self.deletion(services).await? {
                return Ok(NextOfLog::Chunk(line));
            }
        }
        Ok(nothing(&execution))
    }

    /// The line in place of a log that was deleted, once.
    async fn deletion(&mut self, services: &Services) -> Result<Option<Bytes>, Error> {
        // A log that was read to its end was there.
        if self.is_deleted || self.text.offset() > 0 {
            return Ok(None);
        }
        let work = WorkId::Execution(self.execution);
        let deleted_at = services
            .work_logs
            .deleted_at(self.organization, work)
            .await?;
        self.is_deleted = deleted_at.is_some();
        Ok(deleted_at.map(|at| deleted_line(at).into()))
    }
}

fn nothing(execution: &Execution) -> NextOfLog {
    if execution.state.has_ended() {
        NextOfLog::End {
            status: execution.state.as_str(),
            retried_by: execution.retried_by(),
        }
    } else {
        NextOfLog::NothingYet
    }
}
