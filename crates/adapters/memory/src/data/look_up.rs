//! Responses to a write's questions.

use std::sync::Arc;

use labdata_domain::{
    catalog::Table,
    conflict::Conflict,
    data::write::{LookupQuestion, LookupResults, Questions, RowMatch},
};
use labdata_ports::PortError;

use crate::data::tables::{Row, Tables, cell};

pub(super) fn look_up(tables: &Tables, questions: &Questions) -> Result<LookupResults, PortError> {
    let asked = questions.ids.iter().map(|question| &question.table);
    asked
        .chain(questions.lookups.iter().map(|question| &question.table))
        .try_for_each(|table| require(tables, table.table()))?;
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
                .map(|lookup| matching(tables, question, lookup))
                .collect()
        })
        .collect();
    Ok(LookupResults { ids, lookups })
}

/// Fails unless the table is still defined so.
pub(super) fn require(tables: &Tables, asked: &Arc<Table>) -> Result<(), PortError> {
    if tables.catalog().table(&asked.name) == Some(asked) {
        Ok(())
    } else {
        Err(PortError::Conflict(Conflict::TablesChanged))
    }
}

fn matching(tables: &Tables, question: &LookupQuestion, lookup: usize) -> RowMatch {
    let matches = |row: &Row| {
        question.columns.iter().all(|(column, wanted)| {
            let wanted = wanted.get(lookup);
            wanted.is_some() && cell(&row.cells, column) == wanted.as_ref()
        }) && question
            .null_columns
            .iter()
            .all(|column| cell(&row.cells, column).is_none())
    };
    tables.find(&question.table.name, matches, |key, _| key.clone())
}
