//! `GET /api/v1/jobs`

use labdata_application::jobs::list_jobs::list_jobs;
use labdata_domain::page::PageRequest;
use labdata_ports::jobs::JobFilter;
use serde_json::Value;
use utoipa::IntoParams;

use super::JobView;
use crate::http::{
    Answer, Call, Listing, NoBody, PageQuery, Read,
    shape::{
        Fields, Place, Shape,
        readers::{boolean, text},
    },
};

/// Which jobs are wanted.
#[derive(Clone, Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListJobsQuery {
    /// Only the job of exactly this name.
    name: Option<String>,
    /// Archived jobs as well as active ones.
    #[param(value_type = Option<bool>)]
    archived: bool,
    #[param(ignore)]
    page: PageRequest,
}

impl Shape for ListJobsQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let name = fields.nullable("name", text(..));
        let archived = fields.or("archived", false, boolean());
        let page = PageQuery::from_fields(&mut fields, None);
        Some(Self {
            name: name?,
            archived: archived?,
            page: page?,
        })
    }
}

/// Lists jobs, newest first
///
/// All that match, unless `limit` is given.
#[utoipa::path(
    get,
    path = "/api/v1/jobs",
    operation_id = "list_jobs",
    tag = "jobs",
    params(ListJobsQuery, PageQuery),
    responses((status = 200, description = "The jobs", body = Vec<JobView>))
)]
pub async fn handle(call: Call<Read, NoBody, ListJobsQuery>) -> Answer<Listing<JobView>> {
    let filter = JobFilter {
        name: call.query.name.clone(),
        include_archived: call.query.archived,
    };
    let page = list_jobs(call.ports(), &call.actor, &filter, call.query.page).await?;
    Ok(Listing::of(page, Into::into))
}
