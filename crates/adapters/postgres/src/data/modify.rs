//! Upserts and updates.

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Nullable, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::Table,
    data::write::{MatchedStep, OnMatch, ResolvedColumns, RowImage, TableOutcome, TableStep},
    scalar::{DataType, Values},
};

use super::{
    context::WriteContext,
    failure::Failure,
    insert::insertion,
    matching::{Matches, match_rows},
    row_images::{rendered_row, row_image},
};
use crate::database::sql::{
    bind_values, gather, ident, key_values, primary_key, primary_key_type, sql_type, statement,
};

/// A step whose rows are updated or created.
pub(super) struct ModifiedStep {
    pub(super) outcome: TableOutcome,
    /// Keys of the rows that count as updated.
    pub(super) changed: Vec<String>,
    /// Values of the first of them.
    pub(super) stored: Vec<RowImage>,
}

/// Updates rows that match and creates the rest.
pub(super) async fn modify_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    on_match: OnMatch,
    mut columns: ResolvedColumns<'_>,
) -> Result<ModifiedStep, Failure> {
    let Matches { found, mut before } = match_rows(connection, context, step, &columns).await?;
    let assigned = step.assign_matches(found).map_err(Failure::Problems)?;
    columns.fill_own(&assigned.keys);
    create_rows(connection, context, step, &columns, &assigned).await?;
    let changed = update_rows(connection, context, step, on_match, &columns, &assigned).await?;
    let stored = changed.iter().filter_map(|row| {
        Some(RowImage {
            id: row.key.clone(),
            before: before.remove(&row.key)?,
            after: rendered_row(&step.table, row.stored.as_deref().unwrap_or_default()),
        })
    });
    let stored = stored.collect();
    let changed: Vec<String> = changed.into_iter().map(|row| row.key).collect();
    let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    let outcome = TableOutcome {
        table: step.table.name.clone(),
        created: count(assigned.created.len()),
        updated: count(changed.len()),
        ids: assigned.keys,
        ..TableOutcome::default()
    };
    Ok(ModifiedStep {
        outcome,
        changed,
        stored,
    })
}

/// Creates the rows that matched nothing.
async fn create_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    columns: &ResolvedColumns<'_>,
    assigned: &MatchedStep,
) -> Result<(), Failure> {
    let Some((own_key, key)) = step.table.primary_key() else {
        return Ok(());
    };
    if assigned.created.is_empty() {
        return Ok(());
    }
    let keys = assigned.keys_of(&assigned.created).cloned();
    let keys = key_values(keys, key.data_type);
    let gathered: Vec<(usize, Values)> = columns
        .iter()
        .filter(|(index, _)| *index != own_key)
        .map(|(index, values)| (index, gather(values, &assigned.created)))
        .chain(std::iter::once((own_key, keys)))
        .collect();
    let borrowed = gathered.iter().map(|(index, values)| (*index, values));
    insertion(context, &step.table, borrowed)
        .execute(connection)
        .await
        .map_err(|error| Failure::from(error).contended())?;
    Ok(())
}

#[derive(QueryableByName)]
struct ChangedRow {
    #[diesel(sql_type = Text)]
    key: String,
    /// The row's new values, if they are kept.
    #[diesel(sql_type = Nullable<Text>)]
    stored: Option<String>,
}

/// Sets the provided columns of matched rows; returns the rows that count as updated.
async fn update_rows(
    connection: &mut AsyncPgConnection,
    context: &WriteContext<'_>,
    step: &TableStep,
    on_match: OnMatch,
    columns: &ResolvedColumns<'_>,
    assigned: &MatchedStep,
) -> Result<Vec<ChangedRow>, Failure> {
    let rows = &assigned.matched;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let table = &step.table;
    let own_key_type = primary_key_type(table);
    let own_key = table.primary_key().map(|(index, _)| index);
    let mut update = UpdateStatement::new(table, own_key_type);
    for column in &step.columns {
        let index = column.column;
        if Some(index) == own_key || step.key_columns().contains(&index) {
            continue;
        }
        let Some(values) = columns.get(index) else {
            continue;
        };
        let provided: Vec<bool> = rows.iter().map(|row| column.is_provided(*row)).collect();
        if provided.iter().any(|given| *given) {
            let provided = Some(provided).filter(|provided| provided.contains(&false));
            update.set(index, gather(values, rows), provided, on_match);
        }
    }
    if update.assignments.is_empty() && on_match == OnMatch::FillMissing {
        return Ok(Vec::new());
    }
    // Overwriting nothing still counts as an update, which the row shows.
    let keys = key_values(assigned.keys_of(rows).cloned(), own_key_type);
    update.run(connection, context, keys, on_match).await
}

struct UpdateStatement<'t> {
    table: &'t Table,
    arrays: Vec<String>,
    aliases: Vec<String>,
    assignments: Vec<String>,
    fills: Vec<String>,
    values: Vec<Bound>,
}

/// An array parameter.
enum Bound {
    Values(Values),
    Provided(Vec<bool>),
}

impl<'t> UpdateStatement<'t> {
    fn new(table: &'t Table, key_type: DataType) -> Self {
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
        context: &WriteContext<'_>,
        keys: Values,
        on_match: OnMatch,
    ) -> Result<Vec<ChangedRow>, Failure> {
        let own_key = primary_key(self.table);
        let filter = match on_match {
            OnMatch::Overwrite => String::new(),
            OnMatch::FillMissing => format!(" AND ({})", self.fills.join(" OR ")),
        };
        let mut assignments = self.assignments;
        // Always later than before, even if servers' clocks differ: reverts recognize rows that
        // changed since they were created by it.
        assignments.push(format!(
            "updated_at = greatest(${}, t.updated_at + interval '1 microsecond')",
            self.arrays.len() + 1
        ));
        let mut query = statement(format!(
            "UPDATE {table} t SET {assignments} FROM unnest({arrays}) WITH ORDINALITY AS u({aliases}, place) \
             WHERE t.{own_key} = u.k{filter} RETURNING t.{own_key}::text AS key, {stored} AS stored",
            stored = row_image(self.table, "t", "u.place"),
            table = context.schemas.table(&self.table.name),
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
        let changed = query.bind::<Timestamptz, _>(context.now);
        Ok(changed.load(connection).await?)
    }
}
