//! Reads one series, column by column.

use labdata_domain::{
    data::read::{SERIES_LIMITS, SeriesColumns, SeriesPlan, TableColumn},
    people::{actor::Actor, scope::Scope},
    refusal::Resource,
    scalar::KeyValue,
};
use labdata_ports::data::ReadSeriesError;

use super::{MAX_PLANS, planned_anew};
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
/// `Invalid` for a table that is not raw, an ambiguous reference, and a series above
/// [`SERIES_LIMITS`].
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
            result: services
                .slots
                .enter(Work::Result, actor.organization)
                .await?,
            encoding: services
                .slots
                .enter(Work::Series, actor.organization)
                .await?,
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
    let read = services
        .data
        .read_series(actor.organization, &plan, SERIES_LIMITS)
        .await;
    match read {
        Ok(points) => Ok(Series {
            columns: plan.columns().map(|it| TableColumn::from(&**it)).collect(),
            parent: plan.parent,
            points,
        }),
        Err(ReadSeriesError::NoParent) => Err(Error::not_found(Resource::Parent)),
        Err(ReadSeriesError::TooLarge(refusal)) => Err(Error::refused(refusal)),
        Err(ReadSeriesError::Port(error)) => Err(error.into()),
    }
}
