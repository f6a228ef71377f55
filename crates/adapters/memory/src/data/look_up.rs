//! Responses to a write's questions.

use std::sync::Arc;

use labdata_domain::{
    catalog::{HIDDEN_TABLE, Table},
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

/// Fails unless the table is still defined so. A caller's view of it may hide the names of tables that it references.
pub(super) fn require(tables: &Tables, asked: &Arc<Table>) -> Result<(), PortError> {
    let catalog = tables.catalog();
    let is_current = catalog.table(&asked.name).is_some_and(|known| {
        let mut known = Table::clone(known);
        known.columns.update(|column| {
            let asked = asked.column(&column.name);
            let asked = asked.and_then(|asked| asked.references.as_deref());
            if column.references.is_some() && asked == Some(HIDDEN_TABLE) {
                column.references = Some(HIDDEN_TABLE.to_owned());
            }
        });
        known == **asked
    });
    if is_current {
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
