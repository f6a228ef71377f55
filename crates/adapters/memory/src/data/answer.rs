//! Answers to a write's questions.

use std::sync::Arc;

use labdata_domain::{
    catalog::Table,
    data::write::{Answers, LookupAnswer, LookupQuestion, Questions},
    scalar::KeyValue,
};
use labdata_ports::PortError;

use crate::data::tables::{Row, Tables, cell};

pub(super) fn answer(tables: &Tables, questions: &Questions) -> Result<Answers, PortError> {
    let asked = questions.ids.iter().map(|question| &question.table);
    asked
        .chain(questions.lookups.iter().map(|question| &question.table))
        .try_for_each(|table| require(tables, table))?;
    let ids = questions
        .ids
        .iter()
        .map(|question| {
            question
                .keys
                .iter()
                .map(|key| tables.row(&question.table.name, key).is_some())
                .collect()
        })
        .collect();
    let lookups = questions
        .lookups
        .iter()
        .map(|question| {
            (0..question.len)
                .map(|lookup| look_up(tables, question, lookup))
                .collect()
        })
        .collect();
    Ok(Answers { ids, lookups })
}

/// Refuses a question about a table that is not any more what it was when the question arose.
fn require(tables: &Tables, asked: &Arc<Table>) -> Result<(), PortError> {
    if tables.catalog().table(&asked.name) == Some(asked) {
        Ok(())
    } else {
        Err(PortError::Conflict(format!(
            "table \"{}\" has changed",
            asked.name
        )))
    }
}

fn look_up(tables: &Tables, question: &LookupQuestion, lookup: usize) -> LookupAnswer {
    let matches = |row: &Row| {
        question.columns.iter().all(|(column, wanted)| {
            let wanted = wanted.get(lookup);
            wanted.is_some() && cell(&row.cells, *column) == wanted.as_ref()
        }) && question
            .null_columns
            .iter()
            .all(|column| cell(&row.cells, *column).is_none())
    };
    let mut found: Vec<&KeyValue> = tables
        .rows_of(&question.table.name)
        .filter(|(_, row)| matches(row))
        .map(|(key, _)| key)
        .collect();
    match (found.pop(), found.is_empty()) {
        (None, _) => LookupAnswer::None,
        (Some(key), true) => LookupAnswer::One(key.clone()),
        (Some(_), false) => LookupAnswer::Several,
    }
}
