//! Upserts and updates: rows are matched as they stand at that moment, all of a step at once.

use std::{borrow::Cow, collections::HashMap};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::Table,
    data::write::{OnMatch, Problem, TableOutcome, TableStep},
    scalar::{KeyValue, Values},
};

use super::{apply::Writing, failure::Failure, insert::insertion};
use crate::database::sql::{
    bind_values, gather, ident, key_from_text, key_values, primary_key, primary_key_type, sql_type,
    statement,
};

/// How often an upsert that could not create its rows is matched anew before its problem is told.
const MATCH_ATTEMPTS: u32 = 3;

/// A step's columns with every late reference filled in.
pub(super) type Resolved<'p> = Vec<(usize, Cow<'p, Values>)>;

#[derive(QueryableByName)]
struct Matched {
    #[diesel(sql_type = BigInt)]
    place: i64,
    #[diesel(sql_type = Text)]
    key: String,
}

/// For each input row the key of the row that it matches, locked against other writers; `None`
/// where it matches none.
///
/// # Errors
/// A problem at every row that matches several rows, or one that an earlier input row matches
/// too, or, if every row must match, none.
pub(super) async fn match_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    step: (usize, &TableStep),
    key: &[usize],
    columns: &Resolved<'_>,
    must_match: bool,
) -> Result<Vec<Option<KeyValue>>, Failure> {
    let (_, plan) = step;
    let table = &plan.table;
    let mut arrays = Vec::new();
    let mut aliases = Vec::new();
    let mut conditions = Vec::new();
    let mut bound = Vec::new();
    for (position, index) in key.iter().enumerate() {
        let (Some(column), Some((_, values))) = (
            table.columns.get(*index),
            columns.iter().find(|(given, _)| given == index),
        ) else {
            continue;
        };
        arrays.push(format!(
            "${}::{}[]",
            position + 1,
            sql_type(column.data_type)
        ));
        aliases.push(format!("k{position}"));
        conditions.push(format!("t.{} = u.k{position}", ident(&column.sql_name())));
        bound.push(values);
    }
    let own_key = primary_key(table);
    // Locks are taken in the order of keys, so that writers of the same rows rarely deadlock.
    let mut query = statement(format!(
        "SELECT u.place, t.{own_key}::text AS key FROM unnest({}) WITH ORDINALITY AS u({}, place) \
         JOIN {} t ON {} ORDER BY t.{own_key} FOR UPDATE OF t",
        arrays.join(", "),
        aliases.join(", "),
        writing.schemas.table(&table.name),
        conditions.join(" AND "),
    ));
    for values in bound {
        query = bind_values(query, values);
    }
    let mut found: Vec<Matched> = query.load(connection).await?;
    found.sort_by_key(|found| found.place);
    assign_matches(step, found, must_match)
}

/// Gives every input row the row that it matches. `found` is in the order of the input.
fn assign_matches(
    (step_index, step): (usize, &TableStep),
    found: Vec<Matched>,
    must_match: bool,
) -> Result<Vec<Option<KeyValue>>, Failure> {
    let table = &step.table;
    let data_type = primary_key_type(table);
    let mut matched: Vec<Option<KeyValue>> = vec![None; step.len];
    let mut owner: HashMap<KeyValue, usize> = HashMap::with_capacity(found.len());
    let mut problems = Vec::new();
    let mut found = found.into_iter().peekable();
    for (row, slot) in matched.iter_mut().enumerate() {
        let place = i64::try_from(row).unwrap_or(i64::MAX).saturating_add(1);
        let is_own = |next: &Matched| next.place == place;
        let first = found.next_if(is_own);
        let several = found.next_if(is_own).is_some();
        while found.next_if(is_own).is_some() {}
        let mut refuse = |message: String| {
            let path = format!("tables[{step_index}].rows[{row}]");
            problems.push((row, Problem::at(path, message)));
        };
        if several {
            refuse(format!(
                "the key matches several rows of \"{}\"",
                table.name
            ));
        } else if let Some(first) = first {
            let key = key_from_text(first.key, data_type);
            if let Some(other) = owner.insert(key.clone(), row) {
                refuse(format!(
                    "matches the same row of \"{}\" as rows[{other}]",
                    table.name
                ));
            }
            *slot = Some(key);
        } else if must_match {
            refuse(format!("the key matches no row of \"{}\"", table.name));
        }
    }
    finish(problems)?;
    Ok(matched)
}

fn finish(mut problems: Vec<(usize, Problem)>) -> Result<(), Failure> {
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort_by_key(|(row, _)| *row);
    Err(Failure::Problems(Problem::first_of(
        problems.into_iter().map(|(_, problem)| problem).collect(),
    )))
}

/// Updates matched rows, creates the others where that is asked for.
pub(super) async fn modify_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    step: (usize, &TableStep),
    key: &[usize],
    on_match: OnMatch,
    mut columns: Resolved<'_>,
) -> Result<(TableOutcome, Vec<String>), Failure> {
    let (step_index, plan) = step;
    let table = &plan.table;
    let matched = match_rows(
        connection,
        writing,
        step,
        key,
        &columns,
        plan.new_keys.is_none(),
    )
    .await?;
    refuse_new_primary_keys(step, &matched, &columns)?;
    let create: Vec<usize> = matched
        .iter()
        .enumerate()
        .filter(|(_, key)| key.is_none())
        .map(|(row, _)| row)
        .collect();
    let update: Vec<usize> = matched
        .iter()
        .enumerate()
        .filter(|(_, key)| key.is_some())
        .map(|(row, _)| row)
        .collect();
    let mut ids = matched.clone();
    let new_keys = plan.new_keys.as_ref().filter(|_| !create.is_empty());
    let new_keys = new_keys.map(|keys| gather(keys, &create));
    if let Some(keys) = &new_keys {
        refuse_incomplete(step_index, plan, &create)?;
        for (position, row) in create.iter().enumerate() {
            if let Some(slot) = ids.get_mut(*row) {
                *slot = keys.get(position).and_then(key_of);
            }
        }
    }
    fill_own(step, &ids, &mut columns);
    if let Some(keys) = new_keys {
        let own_key = table.primary_key().map_or(0, |(index, _)| index);
        let gathered: Vec<(usize, Values)> = columns
            .iter()
            .filter(|(index, _)| *index != own_key)
            .map(|(index, values)| (*index, gather(values, &create)))
            .chain(std::iter::once((own_key, keys)))
            .collect();
        let borrowed = gathered.iter().map(|(index, values)| (*index, values));
        insertion(writing, table, borrowed)
            .execute(connection)
            .await
            .map_err(|error| match Failure::from(error) {
                // Another writer may have created the row since it was matched: match again.
                Failure::Problems(problems) if writing.attempt < MATCH_ATTEMPTS => {
                    Failure::Clash(format!("{problems:?}"))
                }
                other => other,
            })?;
    }
    let changed = update_rows(
        connection,
        writing,
        plan,
        key,
        on_match,
        &columns,
        (&update, &ids),
    )
    .await?;
    let outcome = TableOutcome {
        table: table.name.clone(),
        created: u64::try_from(create.len()).unwrap_or(u64::MAX),
        updated: u64::try_from(changed.len()).unwrap_or(u64::MAX),
        ids: ids.into_iter().flatten().collect(),
        ..TableOutcome::default()
    };
    Ok((outcome, changed))
}

/// Fills in the keys of rows of the step itself that other rows of it reference.
fn fill_own(
    (step_index, step): (usize, &TableStep),
    ids: &[Option<KeyValue>],
    columns: &mut Resolved<'_>,
) {
    for (index, values) in columns {
        let late = step.column(*index).map(|column| column.late.as_slice());
        for (row, address) in late.unwrap_or_default() {
            if address.table == step_index
                && let Some(Some(key)) = ids.get(address.row)
            {
                values.to_mut().set_key(*row, key.clone());
            }
        }
    }
}

fn key_of(scalar: labdata_domain::scalar::Scalar) -> Option<KeyValue> {
    use labdata_domain::scalar::Scalar;
    match scalar {
        Scalar::Text(text) => Some(KeyValue::Text(text)),
        Scalar::Integer(number) => Some(KeyValue::Integer(number)),
        Scalar::Uuid(id) => Some(KeyValue::Uuid(id)),
        _ => None,
    }
}

/// A row that matches by another key may repeat its primary key, but not change it.
fn refuse_new_primary_keys(
    step: (usize, &TableStep),
    matched: &[Option<KeyValue>],
    columns: &Resolved<'_>,
) -> Result<(), Failure> {
    let (step_index, step) = step;
    let Some((own_key, column)) = step.table.primary_key() else {
        return Ok(());
    };
    let Some((_, given)) = columns.iter().find(|(index, _)| *index == own_key) else {
        return Ok(());
    };
    let problems = matched
        .iter()
        .enumerate()
        .filter_map(|(row, key)| {
            let (key, given) = (key.as_ref()?, given.get(row).and_then(key_of)?);
            (*key != given).then(|| {
                let message =
                    format!("the row that matches has the key \"{key}\", which cannot be changed");
                (
                    row,
                    Problem::at(
                        format!("tables[{step_index}].rows[{row}].{}", column.name),
                        message,
                    ),
                )
            })
        })
        .collect();
    finish(problems)
}

fn refuse_incomplete(step_index: usize, step: &TableStep, create: &[usize]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for row in create {
        for name in step.missing_to_create(*row) {
            problems.push((
                *row,
                Problem::at(
                    format!("tables[{step_index}].rows[{row}]"),
                    format!("matches no row, and cannot be created: the required column \"{name}\" is missing"),
                ),
            ));
        }
    }
    finish(problems)
}

#[derive(QueryableByName)]
struct Changed {
    #[diesel(sql_type = Text)]
    key: String,
}

/// Sets the provided columns of matched rows; returns the keys of rows that count as updated.
async fn update_rows(
    connection: &mut AsyncPgConnection,
    writing: &Writing<'_>,
    step: &TableStep,
    key: &[usize],
    on_match: OnMatch,
    columns: &Resolved<'_>,
    rows: (&[usize], &[Option<KeyValue>]),
) -> Result<Vec<String>, Failure> {
    let (update, ids) = rows;
    if update.is_empty() {
        return Ok(Vec::new());
    }
    let table = &step.table;
    let own_key_type = primary_key_type(table);
    let keys = key_values(
        update
            .iter()
            .filter_map(|row| ids.get(*row).cloned().flatten()),
        own_key_type,
    );
    let own_key = table.primary_key().map(|(index, _)| index);
    let mut update_plan = UpdatePlan::new(table, own_key_type);
    for (index, values) in columns {
        if Some(*index) == own_key || key.contains(index) {
            continue;
        }
        let provided = step
            .column(*index)
            .and_then(|column| column.provided.as_ref());
        let picked = provided.map(|provided| {
            update
                .iter()
                .map(|row| provided.get(*row).copied().unwrap_or(false))
                .collect::<Vec<bool>>()
        });
        if picked
            .as_ref()
            .is_some_and(|picked| picked.iter().all(|given| !given))
        {
            continue;
        }
        let picked = picked.filter(|picked| picked.iter().any(|given| !given));
        update_plan.set(*index, gather(values, update), picked, on_match);
    }
    if update_plan.assignments.is_empty() && on_match == OnMatch::FillMissing {
        return Ok(Vec::new());
    }
    // Overwriting nothing still counts as an update, and says so on the row.
    update_plan.run(connection, writing, keys, on_match).await
}

struct UpdatePlan<'t> {
    table: &'t Table,
    arrays: Vec<String>,
    aliases: Vec<String>,
    assignments: Vec<String>,
    fills: Vec<String>,
    values: Vec<Bound>,
}

enum Bound {
    Values(Values),
    Provided(Vec<bool>),
}

impl<'t> UpdatePlan<'t> {
    fn new(table: &'t Table, key_type: labdata_domain::scalar::DataType) -> Self {
        Self {
            table,
            arrays: vec![format!("$1::{}[]", sql_type(key_type))],
            aliases: vec!["k".to_owned()],
            assignments: Vec::new(),
            fills: Vec::new(),
            values: Vec::new(),
        }
    }

    fn array(&mut self, data_type: &str, alias: &str) {
        self.arrays
            .push(format!("${}::{data_type}[]", self.arrays.len() + 1));
        self.aliases.push(alias.to_owned());
    }

    fn set(
        &mut self,
        index: usize,
        values: Values,
        provided: Option<Vec<bool>>,
        on_match: OnMatch,
    ) {
        let Some(column) = self.table.columns.get(index) else {
            return;
        };
        let name = ident(&column.sql_name());
        let (value, given) = (format!("c{index}"), format!("p{index}"));
        self.array(sql_type(column.data_type), &value);
        self.values.push(Bound::Values(values));
        let condition = if let Some(provided) = provided {
            self.array("boolean", &given);
            self.values.push(Bound::Provided(provided));
            Some(format!("u.{given}"))
        } else {
            None
        };
        let wanted = match on_match {
            OnMatch::Overwrite => format!("u.{value}"),
            OnMatch::FillMissing => format!("coalesce(t.{name}, u.{value})"),
        };
        self.assignments.push(match &condition {
            None => format!("{name} = {wanted}"),
            Some(condition) => {
                format!("{name} = CASE WHEN {condition} THEN {wanted} ELSE t.{name} END")
            }
        });
        let given = condition
            .map(|condition| format!(" AND {condition}"))
            .unwrap_or_default();
        self.fills.push(format!(
            "(t.{name} IS NULL AND u.{value} IS NOT NULL{given})"
        ));
    }

    async fn run(
        self,
        connection: &mut AsyncPgConnection,
        writing: &Writing<'_>,
        keys: Values,
        on_match: OnMatch,
    ) -> Result<Vec<String>, Failure> {
        let own_key = primary_key(self.table);
        let filter = match on_match {
            OnMatch::Overwrite => String::new(),
            OnMatch::FillMissing => format!(" AND ({})", self.fills.join(" OR ")),
        };
        let mut assignments = self.assignments;
        // Always later than before, whatever the servers' clocks: reverts tell by it which rows
        // were changed since they were created.
        assignments.push(format!(
            "updated_at = greatest(${}, t.updated_at + interval '1 microsecond')",
            self.arrays.len() + 1
        ));
        let mut query = statement(format!(
            "UPDATE {table} t SET {assignments} FROM unnest({arrays}) AS u({aliases}) \
             WHERE t.{own_key} = u.k{filter} RETURNING t.{own_key}::text AS key",
            table = writing.schemas.table(&self.table.name),
            assignments = assignments.join(", "),
            arrays = self.arrays.join(", "),
            aliases = self.aliases.join(", "),
        ));
        query = bind_values(query, &keys);
        for bound in &self.values {
            query = match bound {
                Bound::Values(values) => bind_values(query, values),
                Bound::Provided(provided) => query.bind::<Array<Bool>, _>(provided),
            };
        }
        let changed: Vec<Changed> = query
            .bind::<Timestamptz, _>(writing.now)
            .load(connection)
            .await?;
        Ok(changed.into_iter().map(|row| row.key).collect())
    }
}
