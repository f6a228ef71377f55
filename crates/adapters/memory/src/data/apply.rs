//! Applying a write to the tables, step by step.

use std::collections::BTreeMap;

use labdata_domain::{
    catalog::{Table, ViolatedKey, Violation},
    data::{
        read::RowJson,
        write::{
            Action, KEPT_ROWS, LedgerEntry, OnMatch, Order, Problem, ResolvedColumn,
            ResolvedColumns, RowImage, RowKeys, RowMatch, SeriesOutcome, SeriesStep, TableOutcome,
            TableStep, WriteOutcome, WritePlan,
        },
    },
    ids::ExecutionId,
    scalar::{KeyValue, Scalar},
};
use time::OffsetDateTime;

use super::{
    read::render_row,
    tables::{Cells, RecordedEntry, Row, Series, Tables, cell},
};

/// Applies a whole plan; on problems the tables are left in any state, to be thrown away.
pub(super) fn apply(
    tables: &mut Tables,
    plan: &WritePlan,
    execution: ExecutionId,
    now: OffsetDateTime,
) -> Result<WriteOutcome, Vec<Problem>> {
    let mut context = WriteContext {
        tables,
        execution,
        now,
        return_rows: plan.return_rows,
    };
    let mut outcome = WriteOutcome::default();
    for step in &plan.tables {
        let applied = context.apply_step(step, &outcome.tables)?;
        outcome.tables.push(applied);
    }
    let parents = plan.series_parents(&outcome.tables)?;
    for (step, parent) in plan.series.iter().zip(parents) {
        let written = context.replace_series(step, parent, &outcome.tables);
        outcome.series.push(written);
    }
    context.record(LedgerEntry::of_series(&outcome.series));
    outcome.set_refs(plan);
    Ok(outcome)
}

struct WriteContext<'t> {
    tables: &'t mut Tables,
    execution: ExecutionId,
    now: OffsetDateTime,
    return_rows: bool,
}

impl WriteContext<'_> {
    fn apply_step(
        &mut self,
        step: &TableStep,
        done: &[TableOutcome],
    ) -> Result<TableOutcome, Vec<Problem>> {
        let columns = ResolvedColumns::new(step, done);
        let name = &step.table.name;
        let mut outcome = match step.action {
            Action::Insert => {
                let outcome = TableOutcome::inserted(step);
                let rows: Vec<usize> = (0..step.len).collect();
                self.create(step, &columns, &rows, &outcome.ids)?;
                outcome
            }
            Action::Upsert { on_match, .. } | Action::Update { on_match, .. } => {
                self.modify(step, columns, on_match)?
            }
            Action::Delete { .. } => return self.delete(step, &columns),
        };
        if let Some(violation) = self.tables.violation() {
            return Err(vec![violation.into()]);
        }
        self.record([LedgerEntry::created(name, outcome.created)]);
        outcome.rows = self.rows(step, &outcome.ids);
        Ok(outcome)
    }

    /// Rows by their keys, if they were asked for.
    fn rows(&self, step: &TableStep, keys: &[KeyValue]) -> Option<Vec<RowJson>> {
        let rows = keys.iter();
        let rows = rows.filter_map(|key| self.tables.row(&step.table.name, key));
        self.return_rows
            .then(|| rows.map(|row| render_row(&step.table, row)).collect())
    }

    /// A stored row, if it is short enough to be kept.
    fn short(&self, table: &Table, key: &KeyValue) -> Option<RowJson> {
        let row = self.tables.row(&table.name, key)?;
        RowImage::short(render_row(table, row))
    }

    fn record(&mut self, entries: impl IntoIterator<Item = LedgerEntry>) {
        let execution = self.execution;
        let recorded = entries.into_iter().map(|entry| RecordedEntry {
            execution,
            entry,
            is_reverted: false,
        });
        self.tables.ledger.extend(recorded);
    }

    /// The stored rows that each row of the step matches.
    fn find(&self, step: &TableStep, columns: &ResolvedColumns<'_>) -> Vec<RowMatch> {
        let key = step.key_columns();
        let wanted = |row: usize| -> Cells {
            let values = key.iter().map(|column| columns.get(*column)?.get(row));
            values.collect()
        };
        (0..step.len)
            .map(|row| {
                let wanted = wanted(row);
                self.tables.find(&step.table.name, |stored| {
                    key.iter().zip(&wanted).all(|(column, wanted)| {
                        wanted.is_some() && cell(&stored.cells, *column) == wanted.as_ref()
                    })
                })
            })
            .collect()
    }

    fn create(
        &mut self,
        step: &TableStep,
        columns: &ResolvedColumns<'_>,
        rows: &[usize],
        keys: &[KeyValue],
    ) -> Result<(), Vec<Problem>> {
        let table = &step.table;
        for row in rows {
            let Some(key) = keys.get(*row) else { continue };
            let cells = table.columns.iter().enumerate().map(|(index, column)| {
                if column.is_primary_key {
                    Some(key.clone().into())
                } else {
                    columns.get(index)?.get(*row)
                }
            });
            let new = Row {
                cells: cells.collect(),
                created_at: self.now,
                updated_at: self.now,
                created_by: self.execution,
            };
            let stored = self.tables.rows.entry(table.name.clone()).or_default();
            if stored.insert(key.clone(), new).is_some() {
                let own_key = table.primary_key().map(|(_, column)| column.name.clone());
                let violation = Violation::Repeated(ViolatedKey {
                    table: table.name.clone(),
                    constraint: format!("{}_pkey", table.name),
                    columns: own_key.unwrap_or_default(),
                    values: key.to_string(),
                });
                return Err(vec![violation.into()]);
            }
        }
        Ok(())
    }

    /// Updates rows that match and creates the rest.
    fn modify(
        &mut self,
        step: &TableStep,
        mut columns: ResolvedColumns<'_>,
        on_match: OnMatch,
    ) -> Result<TableOutcome, Vec<Problem>> {
        let assigned = step.assign_matches(self.find(step, &columns))?;
        columns.fill_own(&assigned.keys);
        let (mut changed, mut stored) = (Vec::new(), Vec::new());
        for row in &assigned.matched {
            let Some(key) = assigned.keys.get(*row) else {
                continue;
            };
            let before = self.short(&step.table, key);
            if self.update(step, &columns, on_match, *row, key) {
                changed.push(key.to_string());
                if is_stored(*row) {
                    stored.push(RowImage {
                        id: key.to_string(),
                        before,
                        after: self.short(&step.table, key),
                    });
                }
            }
        }
        self.create(step, &columns, &assigned.created, &assigned.keys)?;
        let entry = LedgerEntry::updated(&step.table.name, changed, stored);
        let outcome = TableOutcome {
            table: step.table.name.clone(),
            created: count(assigned.created.len()),
            updated: entry.count,
            ids: assigned.keys,
            ..TableOutcome::default()
        };
        self.record([entry]);
        Ok(outcome)
    }

    /// Updates the stored row of that key; returns whether it counts as updated.
    fn update(
        &mut self,
        step: &TableStep,
        columns: &ResolvedColumns<'_>,
        on_match: OnMatch,
        row: usize,
        key: &KeyValue,
    ) -> bool {
        let rows = self.tables.rows.get_mut(&step.table.name);
        let Some(stored) = rows.and_then(|rows| rows.get_mut(key)) else {
            return false;
        };
        let mut changes = on_match == OnMatch::Overwrite;
        for given in step.columns.iter().filter(|given| {
            let is_own_key = step.table.primary_key().map(|(index, _)| index) == Some(given.column);
            given.is_provided(row) && !is_own_key && !step.key_columns().contains(&given.column)
        }) {
            let value = columns.get(given.column).and_then(|values| values.get(row));
            let Some(slot) = stored.cells.get_mut(given.column) else {
                continue;
            };
            match on_match {
                OnMatch::Overwrite => *slot = value,
                OnMatch::FillMissing if slot.is_none() && value.is_some() => {
                    *slot = value;
                    changes = true;
                }
                OnMatch::FillMissing => {}
            }
        }
        if changes {
            stored.updated_at = self.now;
        }
        changes
    }

    fn delete(
        &mut self,
        step: &TableStep,
        columns: &ResolvedColumns<'_>,
    ) -> Result<TableOutcome, Vec<Problem>> {
        let keys = step.assign_matches(self.find(step, columns))?.keys;
        let own = keys.iter().cloned().collect();
        let mut rows = RowKeys::from([(step.table.name.clone(), own)]);
        if step.cascades() {
            loop {
                let referencing = self.tables.references_to(&rows);
                if referencing.is_empty() {
                    break;
                }
                for reference in referencing {
                    rows.entry(reference.table)
                        .or_default()
                        .insert(reference.key);
                }
            }
        } else {
            step.check_references(&keys, self.tables.references_to(&rows))?;
        }
        // Deleted rows are returned with their last values.
        let returned = self.rows(step, &keys);
        let catalog = self.tables.catalog();
        let stored = rows.iter().filter_map(|(name, keys)| {
            let table = catalog.table(name)?;
            let keys = keys
                .iter()
                .enumerate()
                .filter(|(place, _)| is_stored(*place));
            let stored = keys.map(|(_, key)| RowImage {
                id: key.to_string(),
                before: self.short(table, key),
                after: None,
            });
            Some((name.clone(), stored.collect()))
        });
        let stored: BTreeMap<String, Vec<RowImage>> = stored.collect();
        let series = self.tables.delete(&rows, self.execution);
        self.record(LedgerEntry::deleted(&rows, &series, stored));
        Ok(TableOutcome {
            rows: returned,
            ..TableOutcome::deleted(step, keys, &rows, &series)
        })
    }

    fn replace_series(
        &mut self,
        step: &SeriesStep,
        parent: KeyValue,
        done: &[TableOutcome],
    ) -> SeriesOutcome {
        let points = points(step, &parent, done);
        let id = self.tables.next_id();
        let name = step.table.name.clone();
        let stored = self.tables.series.entry(name.clone()).or_default();
        let owner = Some(Scalar::from(parent.clone()));
        let mut replaced = 0;
        for series in stored.iter_mut() {
            let before = series.points.len();
            series
                .points
                .retain(|(_, cells)| cells.get(step.parent_column) != Some(&owner));
            replaced += before - series.points.len();
        }
        stored.push(Series {
            id,
            execution: self.execution,
            points,
        });
        SeriesOutcome {
            table: name,
            parent,
            points_written: count(step.points),
            points_replaced: count(replaced),
        }
    }
}

fn points(step: &SeriesStep, parent: &KeyValue, done: &[TableOutcome]) -> Vec<(i64, Cells)> {
    let order_column = step.table.order_column().map(|(index, _)| index);
    let columns: Vec<ResolvedColumn<'_>> = step
        .columns
        .iter()
        .map(|column| column.resolve(done))
        .collect();
    let cells = |(position, point): (i64, usize)| {
        let place = match &step.order {
            Order::Positions => Some(position),
            Order::Given(places) => places.get(point).copied(),
        };
        let cells = (0..step.table.columns.len()).map(|index| {
            if index == step.parent_column {
                Some(parent.clone().into())
            } else if Some(index) == order_column {
                place.map(Scalar::Integer)
            } else {
                let column = columns.iter().find(|column| column.column == index)?;
                column.values.get(point)
            }
        });
        (position + 1, cells.collect())
    };
    (0..).zip(0..step.points).map(cells).collect()
}

/// Returns true for a row whose values are kept.
fn is_stored(place: usize) -> bool {
    count(place) < u64::from(KEPT_ROWS)
}

/// A length as answers count it.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
