//! Queues a reading of a file.

use labdata_domain::{
    executions::Execution,
    ids::FileId,
    instruments::{NoReader, check_reader},
    people::{actor::Actor, scope::Scope},
};
use serde_json::{Map, Value};

use super::reader_job::{READER_PARAMETER, check_tables, ensure_reader_job};
use crate::{
    Error, Services,
    work::run_job::{RunJob, run_job},
};

/// Queues a run of the built-in job that reads the file, with the reader or that of the file's instrument.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound`; `Invalid` for an unknown reader, where neither the request
/// nor the instrument names one, where the organization has its own table by the name of one to which
/// readers write, and while the file awaits its bytes.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn request_reading(
    services: &Services,
    actor: &Actor,
    file: FileId,
    reader: Option<String>,
) -> Result<Execution, Error> {
    actor.require(Scope::Write)?;
    let record = services.files.get(actor.organization, file).await?;
    let reader = reader.filter(|name| !name.is_empty());
    let mut parameters = Map::new();
    if let Some(reader) = reader {
        check_reader(&reader).map_err(Error::refused)?;
        parameters.insert(READER_PARAMETER.to_owned(), Value::String(reader));
    } else {
        let instrument = match record.attribution.instrument() {
            Some(id) => {
                services
                    .instruments
                    .get(actor.organization, id)
                    .await?
                    .reader
            }
            None => None,
        };
        instrument.ok_or_else(|| Error::refused(NoReader))?;
    }
    // Now rather than in the run, which would read the file and then fail to write.
    check_tables(&*services.catalog.snapshot(actor.organization).await?)?;
    let job = ensure_reader_job(services, actor).await?;
    let command = RunJob {
        parameters,
        file: Some(file.to_string()),
    };
    run_job(services, actor, job, command).await
}
