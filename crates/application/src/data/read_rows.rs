//! Reads rows of a table.

use labdata_domain::{
    data::read::{Position, ReadPlan, ReadTarget, RowPage},
    keys::{actor::Actor, scope::Scope},
    page::DEFAULT_LIMIT,
};
use serde_json::{Map, Value};

use crate::{Error, Ports};

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

/// Number of rows expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// Exactly one.
    Single,
    /// Any number, a page at a time.
    #[default]
    Multiple,
}

impl ReadMode {
    /// Both modes and their names in the API.
    pub const ALL: [(&'static str, Self); 2] =
        [("single", Self::Single), ("multiple", Self::Multiple)];
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
    /// Number of rows expected.
    pub mode: ReadMode,
    /// Maximum number of rows of a page.
    pub limit: Option<u32>,
    /// Start behind this row.
    pub after: Option<Position>,
}

/// Reads a page of rows.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope; [`Error::NotFound`] without such a table, or
/// without a row in single mode; [`Error::Invalid`] for wrong filters, or several rows in single
/// mode.
pub async fn read_rows(ports: &Ports, actor: &Actor, query: ReadRows) -> Result<RowPage, Error> {
    actor.require(Scope::Read)?;
    let catalog = ports.catalog.snapshot(actor.organization).await?;
    let core = query.target_type == TargetType::CoreTable;
    let target =
        ReadTarget::find(&catalog, &query.target_name, core).ok_or(Error::NotFound("table"))?;
    let limit = match query.mode {
        ReadMode::Single => 2,
        ReadMode::Multiple => query.limit.unwrap_or(DEFAULT_LIMIT),
    };
    let plan = ReadPlan::new(target, &catalog, &query.filters, query.after, limit)
        .map_err(|problems| Error::Invalid(problems.join("; ")))?;
    let mut page = ports.data.read(actor.organization, &plan).await?;
    if query.mode == ReadMode::Single {
        page.next = None;
        match page.rows.len() {
            0 => return Err(Error::NotFound("row")),
            1 => {}
            _ => {
                return Err(Error::Invalid(
                    "several rows match; a single read needs exactly one".to_owned(),
                ));
            }
        }
    }
    Ok(page)
}
