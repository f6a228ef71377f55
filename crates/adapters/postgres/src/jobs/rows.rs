//! Rows of jobs.

use diesel::prelude::*;
use labdata_domain::{
    ids::JobId,
    jobs::{Job, PublishStatus},
    triggers::Trigger,
};
use labdata_ports::PortError;
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{database::errors::corrupt, schema::job, triggers::rows::TriggerRow};

#[derive(Queryable, Selectable)]
#[diesel(table_name = job)]
pub(crate) struct JobOnlyRow {
    id: Uuid,
    name: String,
    archived: bool,
    description: Option<String>,
    created_at: OffsetDateTime,
    version_number: Option<i64>,
    revision: i64,
    parameter_definitions: Value,
    publish_status: String,
    published_version: Option<i64>,
}

/// A job with its trigger.
#[derive(Queryable, Selectable)]
#[diesel(table_name = job)]
pub(crate) struct JobRow {
    #[diesel(embed)]
    job: JobOnlyRow,
    #[diesel(embed)]
    trigger: Option<TriggerRow>,
}

impl TryFrom<JobRow> for Job {
    type Error = PortError;

    fn try_from(row: JobRow) -> Result<Self, PortError> {
        let trigger = row.trigger.map(Trigger::try_from).transpose()?;
        let row = row.job;
        let corrupt = |column| corrupt("job", column, row.id);
        let version_number = row.version_number.map(u32::try_from).transpose();
        let published_version = row.published_version.map(u32::try_from).transpose();
        let mut publish_status = PublishStatus::from_name(&row.publish_status)
            .ok_or_else(|| corrupt("publish_status"))?;
        // A server of an older release saves a version and does not know that it is a draft.
        if publish_status == PublishStatus::Published && row.published_version != row.version_number
        {
            publish_status = PublishStatus::Draft;
        }
        Ok(Self {
            id: JobId::new(row.id),
            version_number: version_number.map_err(|_| corrupt("version_number"))?,
            publish_status,
            published_version: published_version.map_err(|_| corrupt("published_version"))?,
            parameters: serde_json::from_value(row.parameter_definitions)
                .map_err(|_| corrupt("parameter_definitions"))?,
            trigger,
            revision: u64::try_from(row.revision).map_err(|_| corrupt("revision"))?,
            name: row.name,
            archived: row.archived,
            description: row.description,
            created_at: row.created_at,
        })
    }
}
