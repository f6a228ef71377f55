//! Reads what a run wrote.

use bytes::Bytes;
use labdata_domain::{
    executions::Execution,
    ids::{ExecutionId, OrganizationId},
    people::{actor::Actor, scope::Scope},
    work::WorkId,
};

use crate::{Error, Services, subscription::Subscription};

/// The log of one execution, to be read chunk by chunk.
#[derive(Clone, Debug)]
pub struct LogReader {
    organization: OrganizationId,
    execution: ExecutionId,
    offset: u64,
}

/// Result of reading on in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextOfLog {
    /// This, which may hold a line of the platform's where something is left out.
    Chunk(Bytes),
    /// The execution still runs and has written nothing more.
    NothingYet,
    /// The execution has ended with this status, and its whole log has been read.
    End(&'static str),
}

/// Opens the log of an execution. That of a script which ran elsewhere is empty.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn open_log(
    ports: &Services,
    actor: &Actor,
    id: ExecutionId,
) -> Result<LogReader, Error> {
    actor.require(Scope::Read)?;
    ports.executions.get(actor.organization, id).await?;
    Ok(LogReader {
        organization: actor.organization,
        execution: id,
        offset: 0,
    })
}

impl LogReader {
    /// Subscribes to what follows: appends to the log, and the end of the run.
    #[must_use]
    pub fn follow(&self, ports: &Services) -> Subscription {
        Subscription::new(ports.work.follow(WorkId::Execution(self.execution)))
    }

    /// Offset of the next chunk.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads on.
    ///
    /// # Errors
    /// Errors of the ports.
    pub async fn next(&mut self, ports: &Services) -> Result<NextOfLog, Error> {
        // In this order: what is written before the end is there when the end is seen.
        let execution = ports
            .executions
            .get(self.organization, self.execution)
            .await?;
        let chunk = ports
            .work_logs
            .read(
                self.organization,
                WorkId::Execution(self.execution),
                self.offset,
            )
            .await?;
        if chunk.bytes.is_empty() {
            return Ok(nothing(&execution));
        }
        let read_to = std::mem::replace(&mut self.offset, chunk.end());
        Ok(NextOfLog::Chunk(chunk.text_from(read_to).into()))
    }
}

fn nothing(execution: &Execution) -> NextOfLog {
    if execution.state.has_ended() {
        NextOfLog::End(execution.state.as_str())
    } else {
        NextOfLog::NothingYet
    }
}
