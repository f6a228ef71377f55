//! Reads one series, column by column.

use labdata_domain::{
    data::read::{SERIES_LIMITS, SeriesColumns, SeriesPlan, SeriesSelection, TableColumn},
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
    scalar::KeyValue,
};
use labdata_ports::data::ReadSeriesError;
use serde_json::Value;
use time::OffsetDateTime;

use super::{
    plans::planned_anew,
    read_many_series::{collect, plan as plan_many},
};
use crate::{
    Error, Services,
    catalog::visible::visible_catalog,
    slots::{Held, Slot, Work},
};

/// The series to read.
#[derive(Clone, Debug)]
pub struct ReadSeries {
    /// The raw table.
    pub table: String,
    /// The reference whose row is the parent, where there are several.
    pub parent_column: Option<String>,
    /// The parent's primary key, as a text.
    pub parent: String,
    /// The series as it stood then; as it is unless given.
    pub as_of: Option<OffsetDateTime>,
}

/// A series and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The parent's primary key.
    pub parent: KeyValue,
    /// The points.
    pub points: SeriesColumns,
    /// The columns of the points, with label and unit; empty in a read of many series.
    pub columns: Vec<TableColumn>,
}

/// Reads all points of a parent. It reads arrays as they are stored, never the rows of the view.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` for an unknown table or parent;
/// `Invalid` for a table that is not raw, an ambiguous reference, a series above
/// [`SERIES_LIMITS`], and a moment at which the tables are not known.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn read_series(
    services: &Services,
    actor: &Actor,
    query: ReadSeries,
) -> Result<Held<Series, SeriesSlots>, Error> {
    actor.require(Scope::Read)?;
    let slots = SeriesSlots::enter(services, actor).await?;
    let value = read_planned(services, actor, query).await?;
    Ok(Held { value, slots })
}

/// Slots of series in memory.
#[derive(Debug)]
pub struct SeriesSlots {
    /// Held until the last byte is sent.
    pub result: Slot,
    /// Held until the series are encoded.
    pub encoding: Slot,
}

impl SeriesSlots {
    pub(super) async fn enter(services: &Services, actor: &Actor) -> Result<Self, Error> {
        Ok(Self {
            result: services.slots.enter(Work::Result, actor).await?,
            encoding: services.slots.enter(Work::Series, actor).await?,
        })
    }
}

async fn read_planned(
    services: &Services,
    actor: &Actor,
    query: ReadSeries,
) -> Result<Series, Error> {
    planned_anew!(read_points(services, actor, &query))
}

async fn read_points(
    services: &Services,
    actor: &Actor,
    query: &ReadSeries,
) -> Result<Series, Error> {
    let catalog = visible_catalog(services, actor).await?;
    let (table, column) = (query.table.as_str(), query.parent_column.as_deref());
    let plan = SeriesPlan::new(&catalog, table, column, &query.parent).map_err(Error::refused)?;
    let table_columns = || plan.columns().map(|it| TableColumn::from(&**it)).collect();
    if let Some(at) = query.as_of {
        let columns = table_columns();
        let past = past_series(services, actor, query, at).await?;
        return Ok(Series { columns, ..past });
    }
    let read = services
        .data
        .read_series(actor.organization, &plan, SERIES_LIMITS)
        .await;
    match read {
        // Whether a row of a hidden table exists shows only by its points.
        Ok(points) if plan.owner.is_parent_hidden && points.points == 0 => {
            Err(Error::not_found(Resource::Parent))
        }
        Ok(points) => Ok(Series {
            columns: table_columns(),
            parent: plan.parent,
            points,
        }),
        Err(ReadSeriesError::NoParent) => Err(Error::not_found(Resource::Parent)),
        Err(ReadSeriesError::TooLarge(refusal)) => Err(Error::refused(refusal)),
        Err(ReadSeriesError::Port(error)) => Err(error.into()),
    }
}

/// The series of one parent as it stood, which is read as one of many.
async fn past_series(
    services: &Services,
    actor: &Actor,
    query: &ReadSeries,
    at: OffsetDateTime,
) -> Result<Series, Error> {
    let selection = SeriesSelection {
        table: query.table.clone(),
        parent_column: query.parent_column.clone(),
        parents: Some(vec![Value::from(query.parent.as_str())]),
        as_of: Some(at),
        ..SeriesSelection::default()
    };
    let plan = plan_many(services, actor, selection).await?;
    let found = collect(services, actor.organization, &plan, SERIES_LIMITS).await?;
    let series = found.into_iter().next();
    series.ok_or_else(|| Error::not_found(Resource::Parent))
}
