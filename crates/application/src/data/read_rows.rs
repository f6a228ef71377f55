//! Reads rows of a table.

use labdata_domain::{
    catalog::PlatformTable,
    data::as_of::PastTables,
    data::read::{Position, ReadMode, ReadPlan, ReadTarget, RowPage, RowSelection},
    people::{actor::Actor, scope::Scope},
    refusal::{ErrorCode, Refusal, Resource},
};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::{as_of::require_known, plans::planned_anew};
use crate::{
    Error, Services,
    catalog::visible::visible_catalog,
    models::visible_datasets::visible_tables,
    slots::{Held, Work},
};

/// Kind of table to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetType {
    /// A table of the organization.
    Table,
    /// A core table, or a readable table of the platform.
    CoreTable,
}

impl TargetType {
    /// Both types and their names in the API.
    pub const ALL: [(&'static str, Self); 2] =
        [("table", Self::Table), ("core-table", Self::CoreTable)];
}

/// The rows to read.
#[derive(Clone, Debug)]
pub struct ReadRows {
    /// The table's name.
    pub target_name: String,
    /// Its kind.
    pub target_type: TargetType,
    /// Filters that all rows must meet.
    pub filters: Map<String, Value>,
    /// Columns of the rows; all unless given.
    pub columns: Option<Vec<String>>,
    /// Order of the rows: names of columns, after `-` where the greatest value comes first.
    pub order_by: Vec<String>,
    /// Number of rows expected.
    pub mode: ReadMode,
    /// Maximum number of rows of a page.
    pub limit: Option<u32>,
    /// Start behind this row.
    pub after: Option<Position>,
    /// The rows as they stood then; as they are unless given.
    pub as_of: Option<OffsetDateTime>,
}

/// Reads a page of rows.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` if there is no such table, or
/// without a row in single mode; `Invalid` for wrong filters and columns, several rows
/// in single mode, and a moment at which the table is not known.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn read_rows(
    services: &Services,
    actor: &Actor,
    query: ReadRows,
) -> Result<Held<RowPage>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let value = read_planned(services, actor, query).await?;
    Ok(Held { value, slots })
}

async fn read_planned(
    services: &Services,
    actor: &Actor,
    query: ReadRows,
) -> Result<RowPage, Error> {
    planned_anew!(read_page(services, actor, query.clone()))
}

async fn read_page(services: &Services, actor: &Actor, query: ReadRows) -> Result<RowPage, Error> {
    let catalog = visible_catalog(services, actor).await?;
    let core = query.target_type == TargetType::CoreTable;
    let target = ReadTarget::find(&catalog, &query.target_name, core)
        .ok_or_else(|| Error::not_found(Resource::Table))?;
    let selection = RowSelection {
        filters: query.filters,
        columns: query.columns,
        order_by: query.order_by,
        after: query.after,
        limit: query.mode.row_limit(query.limit),
        as_of: query.as_of,
    };
    let mut plan = ReadPlan::new(target, &catalog, selection)
        .map_err(|problems| Refusal::invalid(ErrorCode::InvalidRead, problems.join("; ")))?;
    if plan.target == ReadTarget::Platform(PlatformTable::Dataset) {
        plan.visible_tables = visible_tables(services, actor).await?;
    }
    let past = plan.as_of.map(|at| {
        let now = services.clock.now();
        PastTables::of_read(&plan.target, &plan.conditions, at, now)
    });
    let past = past.transpose().map_err(Error::refused)?;
    let page = services.data.read(actor.organization, &plan).await?;
    // After the read: changes that were deleted while it ran would have left wrong values in it.
    require_known(services, actor.organization, past.as_ref()).await?;
    query.mode.check(page).map_err(Error::refused)
}
