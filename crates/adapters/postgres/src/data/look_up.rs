//! Responses to a write's questions.

use std::{borrow::Cow, collections::HashSet};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    data::write::{IdQuestion, LookupQuestion, LookupResults, Questions, RowMatch},
    ids::OrganizationId,
    scalar::{KeyValue, Values},
};
use labdata_ports::PortError;

use super::matching::unknown_row;
use crate::database::{
    errors::table_error,
    names::{TableNames, Unnested, column_name},
    sql::{Schemas, bind_values, statement},
};

/// One row per question, in their order.
#[derive(QueryableByName)]
struct FoundRow {
    /// The question's index.
    #[diesel(sql_type = BigInt)]
    question: i64,
    /// Found keys.
    #[diesel(sql_type = Array<Text>)]
    keys: Vec<String>,
    /// For lookups: the index, from 1, of the lookup that found the key at the same position.
    #[diesel(sql_type = Nullable<Array<BigInt>>)]
    places: Option<Vec<i64>>,
}

pub(crate) async fn look_up(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    questions: &Questions,
) -> Result<LookupResults, PortError> {
    if questions.is_empty() {
        return Ok(LookupResults::default());
    }
    let schemas = Schemas::of(organization);
    let ids: Vec<AskedIds<'_>> = questions
        .ids
        .iter()
        .map(|question| AskedIds::of(question, &schemas))
        .collect();
    let mut parameters = ids.len();
    let lookups: Vec<AskedLookup<'_>> = questions
        .lookups
        .iter()
        .map(|question| {
            let asked = AskedLookup::of(question, &schemas, parameters);
            parameters += question.columns.len();
            asked
        })
        .collect();
    let mut query = statement(combined(&ids, &lookups));
    for asked in &ids {
        query = bind_values(query, &asked.keys);
    }
    for asked in &lookups {
        query = asked.wanted.bind(query);
    }
    let mut found: Vec<FoundRow> = query.load(connection).await.map_err(table_error)?;
    // UNION ALL promises no order.
    found.sort_by_key(|found| found.question);
    let mut found = (0..).zip(found);
    let mut next = || {
        let found = found
            .next()
            .filter(|(index, found)| found.question == *index);
        let (_, found) =
            found.ok_or_else(|| PortError::Internal("a lookup has no result".to_owned()))?;
        Ok::<_, PortError>(found)
    };
    Ok(LookupResults {
        ids: ids
            .iter()
            .map(|asked| Ok(asked.read(next()?)))
            .collect::<Result<_, PortError>>()?,
        lookups: lookups
            .iter()
            .map(|asked| asked.read(next()?))
            .collect::<Result<_, _>>()?,
    })
}

/// One statement for all questions, so that they take one round trip and see one snapshot.
fn combined(ids: &[AskedIds<'_>], lookups: &[AskedLookup<'_>]) -> String {
    let ids = ids.iter().zip(1..);
    let ids = ids.map(|(asked, parameter)| asked.text(parameter));
    let texts = ids.chain(lookups.iter().map(|asked| asked.text.clone()));
    let parts = texts.enumerate().map(|(index, text)| {
        format!("SELECT {index}::bigint AS question, found.* FROM ({text}) found")
    });
    parts.collect::<Vec<_>>().join(" UNION ALL ")
}

/// A question whether rows exist.
struct AskedIds<'q> {
    question: &'q IdQuestion,
    names: TableNames<'q>,
    keys: Values,
}

impl<'q> AskedIds<'q> {
    fn of(question: &'q IdQuestion, schemas: &Schemas) -> Self {
        let names = schemas.names(&question.table);
        let keys = names.key_values(&question.keys);
        Self {
            question,
            names,
            keys,
        }
    }

    fn text(&self, parameter: usize) -> String {
        format!(
            "SELECT ARRAY(SELECT t.{key}::text FROM {table} t WHERE t.{key} = ANY(${parameter}::{key_type}[])) AS keys, \
             NULL::bigint[] AS places",
            key = self.names.key,
            table = self.names.name,
            key_type = self.names.key_type,
        )
    }

    fn read(&self, found: FoundRow) -> Vec<bool> {
        let keys = found.keys.into_iter();
        let keys: HashSet<KeyValue> = keys.map(|key| self.names.read_key(key)).collect();
        let asked = self.question.keys.iter();
        asked.map(|key| keys.contains(key)).collect()
    }
}

/// A question which rows have some values.
struct AskedLookup<'q> {
    question: &'q LookupQuestion,
    names: TableNames<'q>,
    wanted: Unnested<'q>,
    text: String,
}

impl<'q> AskedLookup<'q> {
    fn of(question: &'q LookupQuestion, schemas: &Schemas, parameters: usize) -> Self {
        let names = schemas.names(&question.table);
        let mut wanted = Unnested::after(parameters);
        let mut conditions: Vec<String> = question
            .columns
            .iter()
            .map(|(column, values)| {
                let value = wanted.add_values(column, Cow::Borrowed(values));
                format!("t.{} = l.{value}", column_name(column))
            })
            .collect();
        let nulls = question.null_columns.iter();
        conditions.extend(nulls.map(|column| format!("t.{} IS NULL", column_name(column))));
        // Without a value there is no array, whose length would say how many lookups there are.
        let lookups = if question.columns.is_empty() {
            format!("generate_series(1, {}) AS l(place)", question.len)
        } else {
            let (arrays, columns) = (wanted.call(), wanted.columns());
            format!("{arrays} WITH ORDINALITY AS l({columns}, place)")
        };
        // A second row tells that there are several, so no more are read.
        let text = format!(
            "SELECT coalesce(array_agg(f.key), '{{}}') AS keys, \
             coalesce(array_agg(l.place::bigint), '{{}}') AS places FROM {lookups} \
             CROSS JOIN LATERAL (SELECT t.{key}::text AS key FROM {table} t WHERE {conditions} LIMIT 2) f",
            key = names.key,
            table = names.name,
            conditions = conditions.join(" AND "),
        );
        Self {
            question,
            names,
            wanted,
            text,
        }
    }

    fn read(&self, found: FoundRow) -> Result<Vec<RowMatch>, PortError> {
        let mut results = vec![RowMatch::None; self.question.len];
        let places = found.places.unwrap_or_default();
        if places.len() != found.keys.len() {
            return Err(unknown_row());
        }
        for (place, key) in places.into_iter().zip(found.keys) {
            let lookup = usize::try_from(place - 1).ok();
            let result = lookup.and_then(|lookup| results.get_mut(lookup));
            result
                .ok_or_else(unknown_row)?
                .add(self.names.read_key(key));
        }
        Ok(results)
    }
}
