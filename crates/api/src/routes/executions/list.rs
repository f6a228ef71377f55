//! `GET /api/v1/job-executions`

use labdata_application::executions::list_executions::list_executions;
use labdata_domain::{
    ids::JobId,
    page::{DEFAULT_LIMIT, PageRequest},
};
use labdata_ports::executions::ExecutionFilter;
use serde_json::Value;
use utoipa::IntoParams;

use super::ExecutionView;
use crate::http::{
    Answer, Call, Listing, NoBody, PageQuery, Read,
    shape::{
        Fields, Place, Shape,
        readers::{MaybeId, choice, id},
    },
};

const STATUSES: &[(&str, &str)] = &[
    ("queued", "queued"),
    ("running", "running"),
    ("completed", "completed"),
    ("failed", "failed"),
    ("cancelled", "cancelled"),
];

/// Which executions are wanted.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListExecutionsQuery {
    /// Only those of this job.
    #[param(value_type = Option<String>)]
    job_id: Option<MaybeId<JobId>>,
    /// Only those in this state: `queued`, `running`, `completed`, `failed` or `cancelled`.
    #[param(value_type = Option<String>)]
    status: Option<&'static str>,
    #[param(ignore)]
    page: PageRequest,
}

impl Shape for ListExecutionsQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let job_id = fields.nullable("job_id", id());
        let status = fields.nullable("status", choice(STATUSES));
        let page = PageQuery::from_fields(&mut fields, Some(DEFAULT_LIMIT));
        Some(Self {
            job_id: job_id?,
            status: status?,
            page: page?,
        })
    }
}

/// Lists executions, newest first
#[utoipa::path(
    get,
    path = "/api/v1/job-executions",
    operation_id = "list_job_executions",
    tag = "job-executions",
    params(ListExecutionsQuery, PageQuery),
    responses((status = 200, description = "The executions", body = Vec<ExecutionView>))
)]
pub async fn handle(
    call: Call<Read, NoBody, ListExecutionsQuery>,
) -> Answer<Listing<ExecutionView>> {
    let query = &call.query;
    let job = match query.job_id.map(MaybeId::known) {
        // No execution is of a job whose id cannot be one.
        Some(None) => return Ok(Listing::empty()),
        job => job.flatten(),
    };
    let filter = ExecutionFilter {
        job,
        status: query.status.map(str::to_owned),
    };
    let page = list_executions(call.ports(), &call.actor, &filter, query.page).await?;
    Ok(Listing::of(page, ExecutionView::from))
}
