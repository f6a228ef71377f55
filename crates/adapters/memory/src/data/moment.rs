//! The one moment of all that a write or a revert changes.

use labdata_domain::{
    catalog::KeyedTable,
    data::{history::ChangeAction, restore::Touched, write::RowKeys},
    ids::ExecutionId,
    scalar::KeyValue,
};
use time::{Duration, OffsetDateTime};

use super::{
    history::points_id,
    tables::{Tables, cell},
};

/// The moment of a write, which is later than that of everything that it replaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: OffsetDateTime,
    /// The moment of the last thing that the write has stored.
    stored: Option<OffsetDateTime>,
    /// The moment to start again with, if something was stored under an earlier one.
    pub(super) late: Option<OffsetDateTime>,
}

impl Moment {
    pub(super) const fn starting(now: OffsetDateTime) -> Self {
        Self {
            now,
            stored: None,
            late: None,
        }
    }

    /// Makes it later than that of something that is changed.
    pub(super) fn later_than(&mut self, latest: Option<OffsetDateTime>) {
        self.advance(latest, latest.map(after));
    }

    /// Makes it not earlier than that of something that stays.
    pub(super) fn not_before(&mut self, latest: Option<OffsetDateTime>) {
        self.advance(latest, latest);
    }

    fn advance(&mut self, latest: Option<OffsetDateTime>, moment: Option<OffsetDateTime>) {
        let Some(moment) = moment.filter(|moment| *moment > self.now) else {
            return;
        };
        // What the write itself has stored may be changed again, a moment later.
        if self.stored.is_some() && latest > self.stored {
            self.late = self.late.max(Some(moment));
        } else {
            self.now = moment;
        }
    }

    /// Notes that the write has stored something.
    pub(super) const fn note_stored(&mut self) {
        self.stored = Some(self.now);
    }
}

/// The first moment after another one.
pub(super) fn after(moment: OffsetDateTime) -> OffsetDateTime {
    moment.saturating_add(Duration::MICROSECOND)
}

impl Tables {
    /// The moment of the last change of these rows.
    pub(super) fn latest_of_rows<'k>(
        &self,
        table: &str,
        keys: impl IntoIterator<Item = &'k KeyValue>,
    ) -> Option<OffsetDateTime> {
        let rows = keys.into_iter().filter_map(|key| self.row(table, key));
        rows.map(|row| row.updated_at).max()
    }

    /// The moment of the last change of these rows and of their series.
    pub(super) fn latest_of(&self, rows: &RowKeys) -> Option<OffsetDateTime> {
        let catalog = self.catalog();
        let series = rows.iter().flat_map(|(table, keys)| {
            catalog
                .referencing(&table.name)
                .filter_map(move |(raw, column)| {
                    let owned = self.series_of(&raw.name).iter().filter(|series| {
                        series.points.iter().any(|(_, cells)| {
                            let key = cell(cells, column).cloned();
                            key.and_then(labdata_domain::scalar::Scalar::into_key)
                                .is_some_and(|key| keys.contains(&key))
                        })
                    });
                    owned.map(|series| series.written_at).max()
                })
        });
        let own = rows.iter();
        let own = own.filter_map(|(table, keys)| self.latest_of_rows(&table.name, keys));
        own.chain(series).max()
    }

    /// The moment of a revert, which is later than all that it undoes.
    pub(super) fn moment_after(
        &self,
        now: OffsetDateTime,
        execution: ExecutionId,
        touched: &[Touched],
    ) -> OffsetDateTime {
        let is_touched = |table: &str, id: &str| {
            let mut touched = touched.iter();
            touched.any(|row| row.table.name == table && row.id == id)
        };
        let rows = self.rows.iter().flat_map(|(table, rows)| {
            let rows = rows.iter();
            let rows = rows.filter(move |(key, _)| is_touched(table, &key.to_string()));
            rows.map(|(_, row)| row.updated_at)
        });
        let series = self.series.iter().flat_map(|(table, series)| {
            let series = series.iter();
            let series = series.filter(move |series| is_touched(table, &points_id(series)));
            series.map(|series| series.written_at)
        });
        let changes = self.changes.iter();
        let changes = changes.filter(|it| it.author.execution == Some(execution) && !it.is_undone);
        let latest = rows.chain(series).chain(changes.map(|change| change.at));
        latest.max().map_or(now, |latest| now.max(after(latest)))
    }

    /// The moment of the last recorded deletion of rows with these keys.
    pub(super) fn latest_deletion<'k>(
        &self,
        table: &KeyedTable,
        keys: impl IntoIterator<Item = &'k KeyValue>,
    ) -> Option<OffsetDateTime> {
        let ids: Vec<String> = keys.into_iter().map(ToString::to_string).collect();
        let deleted = self.changes.iter().filter(|change| {
            change.action == ChangeAction::Deleted
                && change.table == table.name
                && ids.contains(&change.id)
        });
        deleted.map(|change| change.at).max()
    }
}
