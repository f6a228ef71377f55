//! Applying a write to the tables, step by step.

use std::collections::{BTreeMap, BTreeSet};

use labdata_domain::{
    data::write::{
        Action, OnMatch, Order, Problem, RowAddress, RowKey, SeriesOutcome, SeriesStep,
        TableOutcome, TableStep, WriteOutcome, WritePlan,
    },
    ids::ExecutionId,
    scalar::{KeyValue, Scalar, Values},
};
use time::OffsetDateTime;

use super::read::render_row;
use crate::data::tables::{Cells, Effect, LedgerEntry, Row, Series, Tables, cell, key_of};

/// Applies a whole plan; on problems the tables are left in any state, to be thrown away.
pub(super) fn apply(
    tables: &mut Tables,
    plan: &WritePlan,
    execution: ExecutionId,
    now: OffsetDateTime,
) -> Result<WriteOutcome, Vec<Problem>> {
    let mut writing = Writing {
        tables,
        execution,
        now,
        return_rows: plan.return_rows,
        ids: Vec::new(),
        parents: BTreeSet::new(),
    };
    let mut outcome = WriteOutcome::default();
    for (index, step) in plan.tables.iter().enumerate() {
        let mut result = writing.table_step(index, step)?;
        if plan.return_rows && !matches!(step.action, Action::Delete { .. }) {
            let row = |key| {
                writing
                    .tables
                    .row(&step.table.name, key)
                    .map(|row| render_row(&step.table, row))
            };
            result.rows = Some(result.ids.iter().filter_map(row).collect());
        }
        outcome.tables.push(result);
    }
    for (index, step) in plan.series.iter().enumerate() {
        outcome.series.push(writing.series_step(index, step)?);
    }
    for (label, address) in &plan.labels {
        if let Some(key) = writing.key_at(*address) {
            outcome.refs.insert(label.clone(), key.to_string());
        }
    }
    Ok(outcome)
}

struct Writing<'t> {
    tables: &'t mut Tables,
    execution: ExecutionId,
    now: OffsetDateTime,
    return_rows: bool,
    /// The key of every row of the steps so far.
    ids: Vec<Vec<Option<KeyValue>>>,
    /// Whose series were written: the raw table, its reference, the parent.
    parents: BTreeSet<(String, usize, KeyValue)>,
}

impl Writing<'_> {
    fn key_at(&self, address: RowAddress) -> Option<KeyValue> {
        self.ids.get(address.table)?.get(address.row)?.clone()
    }

    fn table_step(&mut self, index: usize, step: &TableStep) -> Result<TableOutcome, Vec<Problem>> {
        let matched = self.match_rows(index, step)?;
        let new_keys = match step.action {
            Action::Insert => step
                .table
                .primary_key()
                .and_then(|(key, _)| step.column(key))
                .map(|key| &key.values),
            _ => step.new_keys.as_ref(),
        };
        let ids = matched
            .iter()
            .enumerate()
            .map(|(row, matched)| matched.clone().or_else(|| key_of(&new_keys?.get(row)?)))
            .collect();
        self.ids.push(ids);
        let mut outcome = TableOutcome {
            table: step.table.name.clone(),
            ..TableOutcome::default()
        };
        match &step.action {
            Action::Insert => self.create(index, step, &matched, &mut outcome)?,
            Action::Upsert { key, on_match } => {
                self.update(index, step, &matched, key, *on_match, &mut outcome)?;
                self.create(index, step, &matched, &mut outcome)?;
            }
            Action::Update { key, on_match } => {
                self.update(index, step, &matched, key, *on_match, &mut outcome)?;
            }
            Action::Delete { cascade, .. } => {
                self.delete(index, step, &matched, *cascade, &mut outcome)?;
            }
        }
        let broken = self.tables.broken_values();
        if !broken.is_empty() {
            return Err(broken.into_iter().map(Problem::of_the_request).collect());
        }
        outcome.ids = self
            .ids
            .last()
            .into_iter()
            .flatten()
            .flatten()
            .cloned()
            .collect();
        Ok(outcome)
    }

    /// The key of the row that each row of the step matches.
    fn match_rows(
        &self,
        index: usize,
        step: &TableStep,
    ) -> Result<Vec<Option<KeyValue>>, Vec<Problem>> {
        let (key, must_match) = match &step.action {
            Action::Insert => return Ok(vec![None; step.len]),
            Action::Upsert { key, .. } => (key, false),
            Action::Update { key, .. } | Action::Delete { key, .. } => (key, true),
        };
        let table = &step.table.name;
        let mut matched: Vec<Option<KeyValue>> = Vec::with_capacity(step.len);
        let mut problems = Vec::new();
        for row in 0..step.len {
            let wanted: Cells = key
                .iter()
                .map(|column| self.value(step, *column, row))
                .collect();
            let mut found = self.tables.rows_of(table).filter(|(_, stored)| {
                key.iter().zip(&wanted).all(|(column, wanted)| {
                    wanted.is_some() && cell(&stored.cells, *column) == wanted.as_ref()
                })
            });
            let (first, second) = (found.next(), found.next());
            let first = first.map(|(key, _)| key.clone());
            let problem = if second.is_some() {
                Some(format!("the key matches several rows of \"{table}\""))
            } else if first.is_some() && matched.contains(&first) {
                Some(format!(
                    "matches the same row of \"{table}\" as another row of this table write"
                ))
            } else if first.is_none() && must_match {
                Some(format!("the key matches no row of \"{table}\""))
            } else {
                None
            };
            problems.extend(
                problem.map(|text| Problem::at(format!("tables[{index}].rows[{row}]"), text)),
            );
            matched.push(first.filter(|_| second.is_none()));
        }
        if problems.is_empty() {
            Ok(matched)
        } else {
            Err(problems)
        }
    }

    /// What a row of the step gives for a column, or the default in its place.
    fn value(&self, step: &TableStep, column: usize, row: usize) -> Option<Scalar> {
        let column = step.column(column)?;
        self.late(&column.late, row)
            .or_else(|| column.values.get(row))
    }

    /// The key of the earlier row that a value refers to, if it does.
    fn late(&self, late: &[(usize, RowAddress)], row: usize) -> Option<Scalar> {
        let (_, address) = late.iter().find(|(at, _)| *at == row)?;
        self.key_at(*address).map(Scalar::from)
    }

    fn create(
        &mut self,
        index: usize,
        step: &TableStep,
        matched: &[Option<KeyValue>],
        outcome: &mut TableOutcome,
    ) -> Result<(), Vec<Problem>> {
        let table = &step.table;
        let own_key = table.primary_key().map(|(index, _)| index);
        let mut created = Vec::new();
        let mut problems = Vec::new();
        for row in matched
            .iter()
            .enumerate()
            .filter(|(_, matched)| matched.is_none())
            .map(|(row, _)| row)
        {
            let key = self.key_at(RowAddress { table: index, row });
            let missing = match step.action {
                Action::Insert => Vec::new(),
                _ => step.missing_to_create(row),
            };
            let (Some(key), true) = (key, missing.is_empty()) else {
                let path = format!("tables[{index}].rows[{row}]");
                problems.push(Problem::at(
                    path,
                    format!("cannot be created: the required columns {missing:?} are missing"),
                ));
                continue;
            };
            let cells = (0..table.columns.len())
                .map(|column| {
                    if Some(column) == own_key {
                        Some(key.clone().into())
                    } else {
                        self.value(step, column, row)
                    }
                })
                .collect();
            let new = Row {
                cells,
                created_at: self.now,
                updated_at: self.now,
                created_by: self.execution,
                changed_by: BTreeSet::new(),
            };
            let rows = self.tables.rows.entry(table.name.clone()).or_default();
            if rows.insert(key.clone(), new).is_some() {
                return Err(vec![Problem::of_the_request(format!(
                    "\"{0}\": a value that must be unique occurs twice (constraint \"{0}_pkey\"): {key}",
                    table.name
                ))]);
            }
            created.push(key);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        outcome.created = count(created.len());
        self.note(step, Effect::Created(created));
        Ok(())
    }

    fn update(
        &mut self,
        index: usize,
        step: &TableStep,
        matched: &[Option<KeyValue>],
        key: &[usize],
        on_match: OnMatch,
        outcome: &mut TableOutcome,
    ) -> Result<(), Vec<Problem>> {
        let own_key = step.table.primary_key().map(|(index, _)| index);
        let mut updated = 0;
        let mut problems = Vec::new();
        for (row, matched) in matched.iter().enumerate() {
            let Some(matched) = matched else { continue };
            let mut given: Vec<(usize, Option<Scalar>)> = Vec::new();
            for column in &step.columns {
                let provided = column
                    .provided
                    .as_ref()
                    .is_none_or(|provided| provided.get(row) == Some(&true));
                let value = self.value(step, column.column, row);
                if Some(column.column) == own_key {
                    if provided
                        && value
                            .as_ref()
                            .and_then(key_of)
                            .is_some_and(|given| given != *matched)
                    {
                        let text = format!(
                            "the row that matches has the key \"{matched}\", which cannot be changed"
                        );
                        let name = step.table.primary_key().map_or("id", |(_, key)| &key.name);
                        problems.push(Problem::at(
                            format!("tables[{index}].rows[{row}].{name}"),
                            text,
                        ));
                    }
                } else if provided && !key.contains(&column.column) {
                    given.push((column.column, value));
                }
            }
            let stored = self
                .tables
                .rows
                .get_mut(&step.table.name)
                .and_then(|rows| rows.get_mut(matched));
            let Some(stored) = stored else { continue };
            let mut changes = on_match == OnMatch::Overwrite;
            for (column, value) in given {
                let Some(slot) = stored.cells.get_mut(column) else {
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
                stored.changed_by.insert(self.execution);
                updated += 1;
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        outcome.updated = count(updated);
        self.note(step, Effect::Updated(updated));
        Ok(())
    }

    fn delete(
        &mut self,
        index: usize,
        step: &TableStep,
        matched: &[Option<KeyValue>],
        cascade: bool,
        outcome: &mut TableOutcome,
    ) -> Result<(), Vec<Problem>> {
        let asked: BTreeSet<(String, KeyValue)> = matched
            .iter()
            .flatten()
            .map(|key| (step.table.name.clone(), key.clone()))
            .collect();
        if !cascade {
            self.refuse_referenced(index, step, matched, &asked)?;
        }
        let mut doomed = asked.clone();
        let mut found = cascade;
        while found {
            let more = self.tables.referrers(&doomed);
            found = !more.is_empty();
            doomed.extend(more);
        }
        // A deleted row is answered as it was.
        outcome.rows = self.return_rows.then(|| {
            let rows = matched.iter().flatten();
            rows.filter_map(|key| self.tables.row(&step.table.name, key))
                .map(|row| render_row(&step.table, row))
                .collect()
        });
        let mut others: BTreeMap<String, u64> = BTreeMap::new();
        for (table, _) in doomed.difference(&asked) {
            *others.entry(table.clone()).or_default() += 1;
        }
        for (table, points) in self.tables.delete(&doomed) {
            others.insert(table, count(points.len()));
        }
        outcome.deleted = count(asked.len());
        outcome.cascade_deleted = Some(others);
        self.note(step, Effect::Deleted(doomed.len()));
        Ok(())
    }

    /// Without cascade, rows that stay must not reference rows that go.
    fn refuse_referenced(
        &self,
        index: usize,
        step: &TableStep,
        matched: &[Option<KeyValue>],
        asked: &BTreeSet<(String, KeyValue)>,
    ) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        for (row, key) in matched.iter().enumerate() {
            let Some(key) = key else { continue };
            let this = BTreeSet::from([(step.table.name.clone(), key.clone())]);
            let staying = self.tables.referrers(&this);
            if let Some((table, _)) = staying.difference(asked).next() {
                problems.push(Problem::at(
                    format!("tables[{index}].rows[{row}]"),
                    format!(
                        "rows of \"{table}\" reference \"{key}\"; delete them first, or set cascade"
                    ),
                ));
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    fn note(&mut self, step: &TableStep, effect: Effect) {
        let nothing = matches!(effect, Effect::Updated(0) | Effect::Deleted(0));
        if !nothing {
            let table = step.table.name.clone();
            self.tables.ledger.push(LedgerEntry {
                execution: self.execution,
                table,
                effect,
            });
        }
    }

    fn series_step(
        &mut self,
        index: usize,
        step: &SeriesStep,
    ) -> Result<SeriesOutcome, Vec<Problem>> {
        let parent = match &step.parent {
            RowKey::Known(key) => Some(key.clone()),
            RowKey::Late(address) => self.key_at(*address),
        };
        let Some(parent) = parent else {
            return Err(vec![Problem::at(
                format!("series[{index}].parent"),
                "the parent row does not exist",
            )]);
        };
        let written = (step.table.name.clone(), step.parent_column, parent.clone());
        if !self.parents.insert(written) {
            return Err(vec![Problem::at(
                format!("series[{index}].parent"),
                "an earlier series of this request has the same parent",
            )]);
        }
        let points = self.points(step, &parent);
        let id = self.tables.next_id();
        let stored = self
            .tables
            .series
            .entry(step.table.name.clone())
            .or_default();
        let mut replaced = 0;
        for series in stored.iter_mut() {
            let before = series.points.len();
            let is_parents = |cells: &Cells| {
                cell(cells, step.parent_column).and_then(key_of).as_ref() == Some(&parent)
            };
            series.points.retain(|(_, cells)| !is_parents(cells));
            replaced += before - series.points.len();
        }
        stored.push(Series {
            id,
            execution: self.execution,
            points,
        });
        Ok(SeriesOutcome {
            table: step.table.name.clone(),
            parent,
            points_written: count(step.points),
            points_replaced: count(replaced),
        })
    }

    fn points(&self, step: &SeriesStep, parent: &KeyValue) -> Vec<(i64, Cells)> {
        let order_column = step.table.order_column().map(|(index, _)| index);
        let given = |values: &Values, late: &[(usize, RowAddress)], point| {
            self.late(late, point).or_else(|| values.get(point))
        };
        let cells = |(position, point): (i64, usize)| {
            let place = match &step.order {
                Order::Positions => Some(position),
                Order::Given(places) => places.get(point).copied(),
            };
            let cells = (0..step.table.columns.len())
                .map(|index| {
                    if index == step.parent_column {
                        Some(parent.clone().into())
                    } else if Some(index) == order_column {
                        place.map(Scalar::Integer)
                    } else {
                        let column = step.columns.iter().find(|column| column.column == index)?;
                        given(&column.values, &column.late, point)
                    }
                })
                .collect();
            (position + 1, cells)
        };
        (0..).zip(0..step.points).map(cells).collect()
    }
}

/// A length as it is counted in answers.
pub(super) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
