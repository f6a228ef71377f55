//! The built-in job that reads files.

use labdata_domain::{
    catalog::{Catalog, INSTRUMENT_CURVE, INSTRUMENT_MEASUREMENT, Origin},
    ids::{JobId, TriggerId},
    instruments::{READ_JOB_DESCRIPTION, READ_JOB_NAME, ReadJobNameIsTaken, TableIsTaken},
    jobs::{Job, JobName, ParameterDefinition, PublishStatus, ScriptVersion, Widget},
    page::PageRequest,
    people::actor::Actor,
    triggers::{Category, INSTRUMENT_HAS_READER, Trigger},
};
use labdata_ports::{PortError, jobs::JobFilter};
use serde_json::{Map, Value};

use crate::{Error, Services};

/// The job's script. It asks the platform to read the file, and writes what that finds.
const SCRIPT: &str = include_str!("read_instrument_file.py");

/// Name of the parameter that chooses the reader.
pub(super) const READER_PARAMETER: &str = "reader";

/// Checks that the tables to which readers write are the platform's.
pub(super) fn check_tables(catalog: &Catalog) -> Result<(), Error> {
    for name in [INSTRUMENT_MEASUREMENT, INSTRUMENT_CURVE] {
        let table = catalog.table(name);
        if table.is_some_and(|table| table.origin == Origin::Organization) {
            return Err(Error::refused(TableIsTaken(name.to_owned())));
        }
    }
    Ok(())
}

/// Returns the organization's job that reads files, and creates it when it is missing. Its author is the
/// caller. If it is there, changed or not, it stays as it is.
///
/// # Errors
/// `Invalid` when another job bears its name.
pub(super) async fn ensure_reader_job(services: &Services, actor: &Actor) -> Result<JobId, Error> {
    if let Some(job) = existing(services, actor).await? {
        return Ok(job);
    }
    let now = services.clock.now();
    let named = Job::new(JobId::new(services.ids.next_id()), JobName::reader(), now);
    let script = ScriptVersion {
        number: named.next_version(),
        code: SCRIPT.to_owned(),
        created_at: now,
        created_by: actor.user,
    };
    let conditions = Map::from_iter([(INSTRUMENT_HAS_READER.to_owned(), Value::from(true))]);
    let mut job = Job {
        description: Some(READ_JOB_DESCRIPTION.to_owned()),
        version_number: Some(script.number),
        parameters: vec![reader_parameter()],
        trigger: Some(Trigger {
            id: TriggerId::new(services.ids.next_id()),
            category: Category::FileUploaded,
            instrument: None,
            conditions,
            set_by: actor.user,
            armed_at: now,
        }),
        ..named
    };
    // It is the platform's own script: the laboratory neither wrote nor reviews it.
    job.set_publish_status(PublishStatus::Published)
        .map_err(Error::refused)?;
    match services.jobs.add(actor.organization, &job, &script).await {
        Ok(()) => Ok(job.id),
        // Another request was first.
        Err(PortError::Conflict(conflict)) => match existing(services, actor).await? {
            Some(job) => Ok(job),
            None => Err(Error::refused(conflict)),
        },
        Err(error) => Err(error.into()),
    }
}

/// Part of the first version of the job's script in every release, by which it is known.
const SCRIPT_MARK: &str = "/files/{file_id}/read";

/// Checks that no other job bears the name of the job that reads files: before names were reserved, any could.
pub(super) async fn check_reader_job(services: &Services, actor: &Actor) -> Result<(), Error> {
    existing(services, actor).await.map(drop)
}

async fn existing(services: &Services, actor: &Actor) -> Result<Option<JobId>, Error> {
    let filter = JobFilter {
        name: Some(READ_JOB_NAME.to_owned()),
        include_archived: true,
    };
    let all = PageRequest {
        limit: None,
        after: None,
    };
    let found = services.jobs.list(actor.organization, &filter, all).await?;
    let Some(job) = found.items.first() else {
        return Ok(None);
    };
    if job.version_number.is_some() {
        // People may change the script later, but never its first version.
        let first = services.jobs.version(actor.organization, job.id, 1).await?;
        if first.code.contains(SCRIPT_MARK) {
            return Ok(Some(job.id));
        }
    }
    Err(Error::refused(ReadJobNameIsTaken))
}

fn reader_parameter() -> ParameterDefinition {
    ParameterDefinition {
        widget_type: Widget::Text,
        parameter_name: READER_PARAMETER.to_owned(),
        label: Some("Reader; the instrument's unless given".to_owned()),
        model_source: None,
        min: None,
        max: None,
        step: None,
        file_id: None,
        file_id_parameter: None,
        required: false,
        default: None,
    }
}
