//! Writes data under the execution of a run.

use labdata_domain::{
    data::write::{WriteOutcome, WriteRequest},
    people::actor::Actor,
};

use super::tools::RunWrites;
use crate::{
    Error, Services,
    data::write_data::{WriteData, write_data},
};

/// Writes rows and series under the execution of a run.
///
/// # Errors
/// Those of [`write_data`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn write_in_run(
    services: &Services,
    actor: &Actor,
    writes: &RunWrites,
    request: WriteRequest,
) -> Result<WriteOutcome, Error> {
    let is_dry_run = request.dry_run;
    let request = WriteRequest {
        dry_run: true,
        ..request
    };
    // A dry run under no execution: a write with problems opens none.
    let tried = WriteData {
        request: request.clone(),
        ..WriteData::default()
    };
    let outcome = write_data(services, actor, tried).await?.value;
    if is_dry_run {
        return Ok(outcome);
    }
    let execution = writes.execution(services, actor).await?;
    let command = WriteData {
        request: WriteRequest {
            dry_run: false,
            ..request
        },
        job_execution_id: Some(execution.to_string()),
        job_name: None,
        max_rows: None,
    };
    Ok(write_data(services, actor, command).await?.value)
}
