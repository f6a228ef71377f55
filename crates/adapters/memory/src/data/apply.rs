//! Applying a write to the tables, step by step.

use std::collections::BTreeMap;

use labdata_domain::{
    catalog::{KeyedTable, Table, ViolatedKey, Violation},
    data::{
        history::ChangeAction,
        read::RowJson,
        write::{
            Action, KEPT_ROWS, LedgerEntry, MatchedRow, OnMatch, Order, OutOfReach, Problem,
            ResolvedColumn, ResolvedColumns, ReturnBudget, RowImage, RowKeys, RowMatch,
            SeriesOutcome, SeriesStep, TableOutcome, TableStep, WriteOutcome, WritePlan,
        },
    },
    ids::ExecutionId,
    people::rights::Rights,
    scalar::{KeyValue, Scalar},
};
use labdata_ports::data::WriteError;
use time::{Duration, OffsetDateTime};

use super::{
    history::{Author, Change, Stored, points_id},
    moment::Moment,
    read::render_row,
    tables::{Cells, RecordedEntry, Row, Series, Tables, cell},
};

/// Result of a plan without problems.
pub(super) enum Applied {
    Whole(WriteOutcome),
    /// Something that it replaces is of a later moment than what it had stored: it starts again with this moment.
    Late(OffsetDateTime),
}

/// Applies a whole plan; on problems, and when late, the tables are left in any state, to be thrown away.
pub(super) fn apply(
    tables: &mut Tables,
    plan: &WritePlan,
    execution: ExecutionId,
    rights: &Rights,
    now: OffsetDateTime,
) -> Result<Applied, WriteError> {
    let mut context = WriteContext {
        tables,
        execution,
        rights,
        moment: Moment::starting(now),
        returned: plan.return_rows.then(ReturnBudget::default),
        restores: plan.restores,
    };
    let mut outcome = WriteOutcome::default();
    for step in &plan.tables {
        let applied = context.apply_step(step, &outcome.tables)?;
        outcome.tables.push(applied);
    }
    let parents = plan.series_parents(&outcome.tables)?;
    for (step, parent) in plan.series.iter().zip(parents) {
        let written = context.replace_series(step, parent, &outcome.tables)?;
        outcome.series.push(written);
    }
    context.record(LedgerEntry::of_series(&outcome.series));
    outcome.set_refs(plan);
    Ok(match context.moment.late {
        Some(moment) => Applied::Late(moment),
        None => Applied::Whole(outcome),
    })
}

struct WriteContext<'t> {
    tables: &'t mut Tables,
    execution: ExecutionId,
    rights: &'t Rights,
    moment: Moment,
    /// Present if the written rows are returned.
    returned: Option<ReturnBudget>,
    /// Changes are recorded as restored.
    restores: bool,
}

impl WriteContext<'_> {
    fn apply_step(
        &mut self,
        step: &TableStep,
        done: &[TableOutcome],
    ) -> Result<TableOutcome, WriteError> {
        let columns = ResolvedColumns::new(step, done)?;
        let name = &step.table.name;
        let mut outcome = match &step.action {
            Action::Insert { keys, .. } => {
                let outcome = TableOutcome::inserted(step, keys);
                let rows = outcome.ids.iter().enumerate();
                self.create(&step.table, &columns, rows)?;
                outcome
            }
            Action::Upsert { on_match, .. } | Action::Update { on_match } => {
                self.modify(step, columns, *on_match)?
            }
            Action::Delete { .. } => return self.delete(step, &columns),
        };
        self.moment.note_stored();
        if let Some(violation) = self.tables.violation() {
            return Err(vec![violation.into()].into());
        }
        self.record([LedgerEntry::created(name, outcome.created)]);
        outcome.rows = self.rows(step, &outcome.ids)?;
        Ok(outcome)
    }

    /// Execution and time under which changes are recorded.
    const fn author(&self) -> Author {
        Author {
            execution: Some(self.execution),
            is_undo: false,
            now: self.moment.now,
        }
    }

    /// Rows by their keys, if they were asked for.
    fn rows(
        &mut self,
        step: &TableStep,
        keys: &[KeyValue],
    ) -> Result<Option<Vec<RowJson>>, Vec<Problem>> {
        let Some(budget) = &mut self.returned else {
            return Ok(None);
        };
        let rows = keys.iter();
        let rows = rows.filter_map(|key| self.tables.row(&step.table.name, key));
        rows.map(|row| {
            let row = render_row(&step.table, row);
            budget.take(Some(row.as_str().len()))?;
            Ok(row)
        })
        .collect::<Result<_, _>>()
        .map(Some)
    }

    /// A stored row, if it is short enough to be retained.
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
            trash: None,
        });
        self.tables.ledger.extend(recorded);
    }

    /// The stored rows that each row of the step matches.
    fn find(&self, step: &TableStep, columns: &ResolvedColumns<'_>) -> Vec<RowMatch<MatchedRow>> {
        let find = |row: usize| {
            let matches = |stored: &Row| {
                columns.key.iter().all(|wanted| {
                    let value = wanted.values.get(row);
                    value.is_some() && cell(&stored.cells, wanted.column()) == value.as_ref()
                })
            };
            let known = |key: &KeyValue, stored: &Row| MatchedRow {
                key: key.clone(),
                updated_at: stored.updated_at,
            };
            self.tables.find(&step.table.name, matches, known)
        };
        (0..step.len).map(find).collect()
    }

    fn create<'k>(
        &mut self,
        table: &KeyedTable,
        columns: &ResolvedColumns<'_>,
        rows: impl Iterator<Item = (usize, &'k KeyValue)>,
    ) -> Result<(), Vec<Problem>> {
        let rows: Vec<_> = rows.collect();
        let keys = rows.iter().map(|(_, key)| *key);
        self.moment
            .later_than(self.tables.latest_deletion(table, keys));
        if !rows.is_empty() {
            self.moment.note_stored();
        }
        let now = self.moment.now;
        for (row, key) in rows {
            let mut cells = cells_at(columns.iter(), row);
            let key_name = table.key().sql_name().into_owned();
            cells.insert(key_name, key.clone().into());
            let new = Row {
                cells,
                created_at: now,
                updated_at: now,
                created_by: self.execution,
                updated_by: self.execution,
            };
            let stored = self.tables.rows.entry(table.name.clone()).or_default();
            if stored.insert(key.clone(), new).is_some() {
                let violation = Violation::Repeated(ViolatedKey {
                    table: table.name.clone(),
                    constraint: format!("{}_pkey", table.name),
                    columns: table.key().name.clone(),
                    values: key.to_string(),
                });
                return Err(vec![violation.into()]);
            }
            if self.restores {
                let place = (table.name.as_str(), key.to_string());
                let change = Change::new(place, ChangeAction::Restored, self.author(), None);
                self.tables.record_change(change);
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
        columns.fill_own(&assigned.keys)?;
        let latest = self
            .tables
            .latest_of_rows(&step.table.name, assigned.matched.keys());
        self.moment.later_than(latest);
        if on_match == OnMatch::Overwrite && latest.is_some() {
            self.moment.note_stored();
        }
        let (mut changed, mut stored) = (Vec::new(), Vec::new());
        for (row, key) in assigned.matched.iter() {
            let before = self.short(&step.table, key);
            if self.update(step, &columns, on_match, row, key) {
                changed.push(key.to_string());
                if is_stored(row) {
                    stored.push(RowImage {
                        id: key.to_string(),
                        before,
                        after: self.short(&step.table, key),
                    });
                }
            }
        }
        let created = assigned.created.iter();
        self.create(&step.table, &columns, created)?;
        let entry = LedgerEntry::updated(&step.table.name, changed, stored);
        let outcome = TableOutcome {
            table: step.table.name.clone(),
            created: count(assigned.created.rows().len()),
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
        let before = stored.clone();
        let mut changes = on_match == OnMatch::Overwrite;
        let given = columns
            .columns
            .iter()
            .filter(|given| given.is_provided(row) && given.column() != step.table.key());
        for given in given {
            let name = given.column().sql_name();
            let is_stored = stored.cells.contains_key(&*name);
            match (on_match, given.values.get(row)) {
                (OnMatch::FillMissing, Some(value)) if !is_stored => {
                    stored.cells.insert(name.into_owned(), value);
                    changes = true;
                }
                (OnMatch::FillMissing, _) => {}
                (OnMatch::Overwrite, Some(value)) => {
                    stored.cells.insert(name.into_owned(), value);
                }
                (OnMatch::Overwrite, None) => {
                    stored.cells.remove(&*name);
                }
            }
        }
        if changes {
            // Always later than before, so that each change can be told from the one before it.
            let next = stored.updated_at + Duration::microseconds(1);
            stored.updated_at = self.moment.now.max(next);
            stored.updated_by = self.execution;
            let place = (step.table.name.as_str(), key.to_string());
            let before = Some(Stored::Row(before));
            let action = if self.restores {
                ChangeAction::Restored
            } else {
                ChangeAction::Updated
            };
            let change = Change::new(place, action, self.author(), before);
            self.tables.record_change(change);
        }
        changes
    }

    fn delete(
        &mut self,
        step: &TableStep,
        columns: &ResolvedColumns<'_>,
    ) -> Result<TableOutcome, WriteError> {
        let keys = step.assign_matches(self.find(step, columns))?.keys;
        let own = keys.iter().cloned().collect();
        let mut rows = RowKeys::from([(step.table.clone(), own)]);
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
            let references = self.tables.references_to(&rows);
            let tables = references.iter().map(|reference| &*reference.table);
            OutOfReach::check(self.rights, tables)?;
            step.check_references(&keys, references)?;
        }
        // Deleted rows are returned with their last values.
        let returned = self.rows(step, &keys)?;
        let stored = rows.iter().map(|(table, keys)| {
            let keys = keys
                .iter()
                .enumerate()
                .filter(|(place, _)| is_stored(*place));
            let stored = keys.map(|(_, key)| RowImage {
                id: key.to_string(),
                before: self.short(table, key),
                after: None,
            });
            (table.name.clone(), stored.collect())
        });
        let stored: BTreeMap<String, Vec<RowImage>> = stored.collect();
        self.moment.later_than(self.tables.latest_of(&rows));
        let series = self.tables.delete(&rows, self.execution, self.author());
        self.moment.note_stored();
        OutOfReach::check_deleted(self.rights, &self.tables.catalog(), &rows, &series)?;
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
    ) -> Result<SeriesOutcome, Vec<Problem>> {
        let points = points(step, &parent, done)?;
        let parents = [&parent];
        let latest = self.tables.latest_of_rows(&step.owner.parent.name, parents);
        self.moment.not_before(latest);
        let id = self.tables.next_id();
        let name = step.owner.table.name.clone();
        let stored = self.tables.series.entry(name.clone()).or_default();
        let owner = Scalar::from(parent.clone());
        let (mut replaced, mut removed) = (0, Vec::new());
        for series in stored.iter_mut() {
            let points = series.remove(|cells| cell(cells, &step.owner.column) == Some(&owner));
            replaced += points.as_ref().map_or(0, |points| points.points.len());
            removed.extend(points);
        }
        let latest = removed.iter().map(|series| series.written_at).max();
        self.moment.later_than(latest);
        self.moment.note_stored();
        stored.push(Series {
            id,
            execution: self.execution,
            written_at: self.moment.now,
            points,
        });
        for series in removed {
            let place = (name.as_str(), points_id(&series));
            let before = Some(Stored::Series(series));
            let change = Change::new(place, ChangeAction::Deleted, self.author(), before);
            let owner = Some(step.owner.column.sql_name().into_owned());
            self.tables.record_change(Change { owner, ..change });
        }
        Ok(SeriesOutcome {
            table: name,
            parent,
            points_written: count(step.points),
            points_replaced: count(replaced),
        })
    }
}

fn points(
    step: &SeriesStep,
    parent: &KeyValue,
    done: &[TableOutcome],
) -> Result<Vec<(i64, Cells)>, Vec<Problem>> {
    let columns: Vec<ResolvedColumn<'_>> = step
        .columns
        .iter()
        .map(|column| column.resolve(done))
        .collect::<Result<_, _>>()?;
    let cells = |(position, point): (i64, usize)| {
        let mut cells = cells_at(columns.iter(), point);
        let owner = step.owner.column.sql_name().into_owned();
        cells.insert(owner, parent.clone().into());
        if let Some(order) = step.owner.table.order_column() {
            let place = match &step.order {
                Order::Positions => Some(position),
                Order::Given(places) => places.get(point).copied(),
            };
            cells.extend(place.map(|place| (order.name.clone(), Scalar::Integer(place))));
        }
        (position + 1, cells)
    };
    Ok((0..).zip(0..step.points).map(cells).collect())
}

/// The values of a row or point.
fn cells_at<'c>(columns: impl Iterator<Item = &'c ResolvedColumn<'c>>, row: usize) -> Cells {
    columns
        .filter_map(|column| {
            let name = column.column().sql_name().into_owned();
            Some((name, column.values.get(row)?))
        })
        .collect()
}

/// Returns true for a row whose values are stored.
fn is_stored(place: usize) -> bool {
    count(place) < u64::from(KEPT_ROWS)
}

/// A length as responses count it.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
