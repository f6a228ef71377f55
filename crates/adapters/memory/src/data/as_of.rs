//! Tables as they stood at an earlier moment.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use time::OffsetDateTime;

use super::{
    history::{Change, Stored, points_id},
    tables::{Row, Series, Tables, cell},
};

/// The tables as they stood then; as they are for `None`.
pub(super) fn view(tables: &Tables, as_of: Option<OffsetDateTime>) -> Cow<'_, Tables> {
    let Some(at) = as_of else {
        return Cow::Borrowed(tables);
    };
    // The first later change of a row tells what it was.
    let mut later: BTreeMap<(&str, &str), &Change> = BTreeMap::new();
    for change in tables.changes.iter().filter(|change| change.at > at) {
        let first = later.entry((&change.table, &change.id)).or_insert(change);
        if (change.at, change.number) < (first.at, first.number) {
            *first = change;
        }
    }
    let mut view = tables.clone();
    for table in tables.catalog().tables() {
        let name = table.name.as_str();
        let changed = later.iter().filter(|((other, _), _)| *other == name);
        let befores = changed.filter_map(|(_, change)| change.before.as_ref());
        if table.is_raw() {
            let stands =
                |series: &&Series| !later.contains_key(&(name, points_id(series).as_str()));
            let current = tables.series_of(name).iter().filter(stands);
            let former = befores.filter_map(|stored| match stored {
                Stored::Series(series) => Some(series),
                Stored::Row(_) => None,
            });
            let series = current.chain(former).filter(|it| it.written_at <= at);
            view.series.insert(name.to_owned(), merged(series));
            continue;
        }
        let current = tables.rows_of(name).map(|(_, row)| row).filter(|row| {
            let key = table.primary_key().and_then(|key| cell(&row.cells, key));
            let key = key
                .cloned()
                .and_then(labdata_domain::scalar::Scalar::into_key);
            key.is_none_or(|key| !later.contains_key(&(name, key.to_string().as_str())))
        });
        let former = befores.filter_map(|stored| match stored {
            Stored::Row(row) => Some(row),
            Stored::Series(_) => None,
        });
        let rows = current.chain(former).filter(|row| row.created_at <= at);
        let rows: BTreeMap<_, Row> = rows
            .filter_map(|row| {
                let key = cell(&row.cells, table.primary_key()?)?;
                Some((key.clone().into_key()?, row.clone()))
            })
            .collect();
        view.rows.insert(name.to_owned(), rows);
    }
    Cow::Owned(view)
}

/// Points of one series together, in the order in which the series were written.
fn merged<'s>(series: impl Iterator<Item = &'s Series>) -> Vec<Series> {
    let mut by_id: BTreeMap<i64, Series> = BTreeMap::new();
    for part in series {
        let whole = by_id.entry(part.id).or_insert_with(|| Series {
            points: Vec::new(),
            ..*part
        });
        let places: BTreeSet<i64> = whole.points.iter().map(|(place, _)| *place).collect();
        let new = part
            .points
            .iter()
            .filter(|(place, _)| !places.contains(place));
        whole.points.extend(new.cloned());
        whole.points.sort_by_key(|(place, _)| *place);
    }
    by_id.into_values().collect()
}
