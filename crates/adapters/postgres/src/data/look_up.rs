//! Answers to a write's questions.

use std::collections::HashSet;

use diesel::{
    QueryableByName,
    result::Error as DieselError,
    sql_types::{Array, BigInt, Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    data::write::{IdQuestion, LookupQuestion, LookupResults, Questions, RowMatch},
    ids::OrganizationId,
    scalar::{KeyValue, Values},
};

use crate::database::sql::{
    Schemas, bind_values, ident, key_from_text, key_values, primary_key, primary_key_type,
    sql_type, statement,
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
) -> Result<LookupResults, DieselError> {
    if questions.is_empty() {
        return Ok(LookupResults::default());
    }
    let schemas = Schemas::of(organization);
    let mut parts = Vec::new();
    let mut parameter = 0;
    let asked: Vec<Values> = questions
        .ids
        .iter()
        .map(|question| {
            key_values(
                question.keys.iter().cloned(),
                primary_key_type(&question.table),
            )
        })
        .collect();
    for question in &questions.ids {
        parameter += 1;
        parts.push(ids_query(&schemas, question, parts.len(), parameter));
    }
    for question in &questions.lookups {
        parts.push(lookup_query(&schemas, question, parts.len(), parameter));
        parameter += question.columns.len();
    }
    let mut query = statement(parts.join(" UNION ALL "));
    for values in &asked {
        query = bind_values(query, values);
    }
    for (_, values) in questions
        .lookups
        .iter()
        .flat_map(|question| &question.columns)
    {
        query = bind_values(query, values);
    }
    let mut found: Vec<FoundRow> = query.load(connection).await?;
    found.sort_by_key(|found| found.question);
    let mut found = found.into_iter();
    let ids = questions
        .ids
        .iter()
        .map(|question| read_ids(question, found.next()))
        .collect();
    let lookups = questions
        .lookups
        .iter()
        .map(|question| read_lookups(question, found.next()))
        .collect();
    Ok(LookupResults { ids, lookups })
}

fn ids_query(schemas: &Schemas, question: &IdQuestion, index: usize, parameter: usize) -> String {
    let key = primary_key(&question.table);
    format!(
        "SELECT {index}::bigint AS question, ARRAY(SELECT t.{key}::text FROM {table} t WHERE t.{key} = ANY(${parameter}::{data_type}[])) AS keys, \
         NULL::bigint[] AS places",
        table = schemas.table(&question.table.name),
        data_type = sql_type(primary_key_type(&question.table)),
    )
}

/// Finds at most two rows for each lookup: a second one tells that there are several.
fn lookup_query(
    schemas: &Schemas,
    question: &LookupQuestion,
    index: usize,
    bound: usize,
) -> String {
    let table = &question.table;
    let mut conditions = Vec::new();
    let mut arrays = Vec::new();
    let mut names = Vec::new();
    for (offset, (column, _)) in question.columns.iter().enumerate() {
        let Some(column) = table.columns.get(*column) else {
            continue;
        };
        arrays.push(format!(
            "${}::{}[]",
            bound + offset + 1,
            sql_type(column.data_type)
        ));
        names.push(format!("v{offset}"));
        conditions.push(format!("t.{} = l.v{offset}", ident(&column.sql_name())));
    }
    for column in question
        .null_columns
        .iter()
        .filter_map(|column| table.columns.get(*column))
    {
        conditions.push(format!("t.{} IS NULL", ident(&column.sql_name())));
    }
    let lookups = if arrays.is_empty() {
        format!("generate_series(1, {}) AS l(place)", question.len)
    } else {
        format!(
            "unnest({}) WITH ORDINALITY AS l({}, place)",
            arrays.join(", "),
            names.join(", ")
        )
    };
    format!(
        "SELECT {index}::bigint AS question, coalesce(array_agg(f.key), '{{}}') AS keys, \
         coalesce(array_agg(l.place::bigint), '{{}}') AS places FROM {lookups} \
         CROSS JOIN LATERAL (SELECT t.{key}::text AS key FROM {table} t WHERE {conditions} LIMIT 2) f",
        key = primary_key(table),
        table = schemas.table(&table.name),
        conditions = conditions.join(" AND "),
    )
}

fn read_ids(question: &IdQuestion, found: Option<FoundRow>) -> Vec<bool> {
    let data_type = primary_key_type(&question.table);
    let keys: HashSet<KeyValue> = found
        .into_iter()
        .flat_map(|found| found.keys)
        .map(|key| key_from_text(key, data_type))
        .collect();
    question.keys.iter().map(|key| keys.contains(key)).collect()
}

fn read_lookups(question: &LookupQuestion, found: Option<FoundRow>) -> Vec<RowMatch> {
    let data_type = primary_key_type(&question.table);
    let mut results = vec![RowMatch::None; question.len];
    if let Some(found) = found {
        let places = found.places.unwrap_or_default();
        for (place, key) in places.into_iter().zip(found.keys) {
            let index = usize::try_from(place - 1).unwrap_or(usize::MAX);
            if let Some(response) = results.get_mut(index) {
                response.add(key_from_text(key, data_type));
            }
        }
    }
    results
}
