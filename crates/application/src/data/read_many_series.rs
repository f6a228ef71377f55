//! Reads the series of many rows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use labdata_domain::{
    data::as_of::PastTables,
    data::read::{
        ManySeriesPlan, ManySeriesTooLarge, SERIES_LIMITS, SeriesColumns, SeriesLimits,
        SeriesSelection, TableColumn, TablePart,
    },
    ids::OrganizationId,
    people::{actor::Actor, scope::Scope},
    scalar::{DataType, Values},
};
use labdata_ports::data::{
    parts::{PartSink, StreamError},
    query::SinkClosed,
};

use super::{
    as_of::require_known,
    export_table::{StreamSlots, failure, in_time},
    plans::planned_anew,
    read_series::{Series, SeriesSlots},
};
use crate::{Error, Services, catalog::visible::visible_catalog, slots::Held};

/// Series that can be read as one table.
#[derive(Debug)]
pub struct ManySeries {
    organization: OrganizationId,
    plan: ManySeriesPlan,
    slots: StreamSlots,
}

/// Prepares to send the series of many rows while they are read.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` for an unknown table;
/// `NotFound` for a parent that is no key; `Invalid` for a table that is not raw,
/// an ambiguous reference, unknown columns, wrong filters, and a moment at which the tables are not known.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn stream_many_series(
    services: &Services,
    actor: &Actor,
    selection: SeriesSelection,
) -> Result<ManySeries, Error> {
    actor.require(Scope::Read)?;
    let slots = StreamSlots::enter(services, actor).await?;
    Ok(ManySeries {
        organization: actor.organization,
        plan: plan(services, actor, selection).await?,
        slots,
    })
}

/// Reads the series of many rows into memory, in the order of the parents.
///
/// # Errors
/// As [`stream_many_series`]; `NotFound` for a parent that does not exist;
/// `Invalid` for more than [`SERIES_LIMITS`]; those of the store.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn read_many_series(
    services: &Services,
    actor: &Actor,
    selection: SeriesSelection,
) -> Result<Held<Vec<Series>, SeriesSlots>, Error> {
    actor.require(Scope::Read)?;
    let slots = SeriesSlots::enter(services, actor).await?;
    let value = read_planned(services, actor, &selection).await?;
    Ok(Held { value, slots })
}

async fn read_planned(
    services: &Services,
    actor: &Actor,
    selection: &SeriesSelection,
) -> Result<Vec<Series>, Error> {
    planned_anew!(read_once(services, actor, selection.clone()))
}

async fn read_once(
    services: &Services,
    actor: &Actor,
    selection: SeriesSelection,
) -> Result<Vec<Series>, Error> {
    let plan = plan(services, actor, selection).await?;
    collect(services, actor.organization, &plan, SERIES_LIMITS).await
}

pub(super) async fn plan(
    services: &Services,
    actor: &Actor,
    selection: SeriesSelection,
) -> Result<ManySeriesPlan, Error> {
    let catalog = visible_catalog(services, actor).await?;
    let plan = ManySeriesPlan::new(&catalog, selection).map_err(Error::refused)?;
    let past = plan.as_of.map(|at| {
        let tables = plan.tables();
        PastTables::of(&tables, plan.conditions(), at, services.clock.now())
    });
    let past = past.transpose().map_err(Error::refused)?;
    require_known(services, actor.organization, past.as_ref()).await?;
    Ok(plan)
}

impl ManySeries {
    /// The columns of all series as one table: the parent's key first.
    #[must_use]
    pub fn columns(&self) -> Vec<TableColumn> {
        self.plan.table_columns()
    }

    /// Reads all series as one table, in the order of the parents.
    ///
    /// # Errors
    /// `NotFound` for a parent that does not exist; [`Error::Internal`] if the sink takes no
    /// more; `Conflict` if the tables have changed since the preparation, before anything was sent; `Unavailable` after [`Services::export_time`]; those of the store.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn send(self, services: &Services, sink: Box<dyn PartSink>) -> Result<(), Error> {
        let sink = Box::new(AsTable {
            parent_type: self.plan.owner.column.data_type,
            sink,
        });
        let reading = services
            .data
            .stream_series(self.organization, &self.plan, sink);
        let sent = in_time(services.export_time, reading).await;
        // The slots last until the last part is sent.
        drop(self.slots);
        sent
    }
}

pub(super) async fn collect(
    services: &Services,
    organization: OrganizationId,
    plan: &ManySeriesPlan,
    limits: SeriesLimits,
) -> Result<Vec<Series>, Error> {
    let columns = plan.columns.iter();
    let names: Vec<String> = columns.map(|column| column.name.clone()).collect();
    let collected = Arc::new(Mutex::new(Collected::default()));
    let sink = Box::new(Collector {
        names,
        limits,
        collected: Arc::clone(&collected),
    });
    let sent = services.data.stream_series(organization, plan, sink).await;
    let mut collected = lock(&collected);
    match sent {
        Ok(()) => Ok(std::mem::take(&mut collected.series)),
        // The collector closed the sink itself to stop the query.
        Err(StreamError::Closed(_)) if collected.is_too_large => {
            Err(Error::refused(ManySeriesTooLarge(limits)))
        }
        Err(error) => Err(failure(error)),
    }
}

/// Puts the parent's key before the columns of its series.
struct AsTable {
    parent_type: DataType,
    sink: Box<dyn PartSink>,
}

#[async_trait]
impl PartSink for AsTable {
    async fn part(&mut self, mut part: TablePart) -> Result<(), SinkClosed> {
        // A row without points has no line in a table.
        if part.rows == 0 {
            return Ok(());
        }
        let parent = match part.parent.take() {
            Some(parent) => Values::repeat(self.parent_type, &parent.into(), part.rows),
            None => Values::nulls_of(self.parent_type, part.rows),
        };
        part.columns.insert(0, parent);
        self.sink.part(part).await
    }

    async fn end(&mut self) -> Result<(), SinkClosed> {
        self.sink.end().await
    }
}

/// Series that were read so far.
#[derive(Default)]
struct Collected {
    series: Vec<Series>,
    values: usize,
    bytes: usize,
    is_too_large: bool,
}

struct Collector {
    names: Vec<String>,
    limits: SeriesLimits,
    collected: Arc<Mutex<Collected>>,
}

fn lock(collected: &Mutex<Collected>) -> MutexGuard<'_, Collected> {
    collected.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collected {
    fn add(&mut self, names: &[String], part: TablePart) -> bool {
        let Some(parent) = part.parent else {
            return false;
        };
        // The parts of a row follow each other.
        let begun = self.series.last_mut();
        if let Some(series) = begun.filter(|series| series.parent == parent) {
            series.points.points += part.rows;
            let columns = series.points.columns.iter_mut().zip(part.columns);
            columns.fold(true, |fits, ((_, values), more)| {
                // In this order: `fits &&` would leave out the other columns.
                values.append(more) && fits
            })
        } else {
            let columns = names.iter().cloned().zip(part.columns).collect();
            let points = SeriesColumns {
                columns,
                points: part.rows,
            };
            self.series.push(Series {
                parent,
                points,
                columns: Vec::new(),
            });
            true
        }
    }
}

#[async_trait]
impl PartSink for Collector {
    async fn part(&mut self, part: TablePart) -> Result<(), SinkClosed> {
        let mut collected = lock(&self.collected);
        // A row without points takes room as well.
        let values = part.rows.saturating_mul(self.names.len()).max(1);
        collected.values = collected.values.saturating_add(values);
        collected.bytes = collected.bytes.saturating_add(part.bytes);
        let SeriesLimits { values, bytes } = self.limits;
        if collected.values > values || collected.bytes > bytes {
            collected.is_too_large = true;
            return Err(SinkClosed);
        }
        if collected.add(&self.names, part) {
            Ok(())
        } else {
            Err(SinkClosed)
        }
    }

    async fn end(&mut self) -> Result<(), SinkClosed> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use labdata_domain::scalar::KeyValue;

    use super::*;

    fn part(parent: i64, rows: usize, bytes: usize) -> TablePart {
        TablePart {
            parent: Some(KeyValue::Integer(parent)),
            columns: vec![Values::Float(vec![Some(0.5); rows]); 2],
            rows,
            bytes,
        }
    }

    /// The number of series, or `None` where they are too large.
    async fn collected(parts: &[(i64, usize, usize)]) -> Option<Vec<usize>> {
        let collected = Arc::<Mutex<Collected>>::default();
        let mut sink = Collector {
            names: vec!["t".to_owned(), "od".to_owned()],
            limits: SeriesLimits {
                values: 8,
                bytes: 100,
            },
            collected: Arc::clone(&collected),
        };
        for (parent, rows, bytes) in parts {
            if sink.part(part(*parent, *rows, *bytes)).await.is_err() {
                assert!(lock(&collected).is_too_large);
                return None;
            }
        }
        let series = std::mem::take(&mut lock(&collected).series);
        Some(series.iter().map(|series| series.points.points).collect())
    }

    #[tokio::test]
    async fn parts_of_a_row_are_one_series() {
        let series = collected(&[(1, 2, 0), (1, 1, 0), (2, 0, 0), (3, 0, 0)]).await;
        assert_eq!(series, Some(vec![3, 0, 0]));
    }

    #[tokio::test]
    async fn series_are_limited_together() {
        assert_eq!(collected(&[(1, 2, 0), (2, 2, 100)]).await, Some(vec![2, 2]));
        assert_eq!(collected(&[(1, 2, 0), (2, 3, 0)]).await, None);
        assert_eq!(collected(&[(1, 1, 50), (2, 1, 51)]).await, None);
        // Rows without points count as well.
        let empty: Vec<_> = (0..9).map(|parent| (parent, 0, 0)).collect();
        assert_eq!(collected(&empty).await, None);
    }
}
