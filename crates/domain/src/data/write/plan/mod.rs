//! The second step of a data write: resolves references and makes typed columns that an adapter
//! applies set by set.

mod locate;
mod long_texts;
mod series;
mod steps;
mod table;

use uuid::Uuid;

use super::{LookupResults, Problem, check::Checked, reference::Answered};

pub use steps::{Action, LateKey, Order, RowKey, SeriesStep, StepColumn, TableStep, WritePlan};

impl Checked {
    /// Plans the write with the responses to its questions. `new_id` makes the keys of rows that
    /// give none.
    ///
    /// # Errors
    /// Every problem of the request, in its order; past 100 of them a last one counts the rest.
    pub fn plan(
        self,
        results: &LookupResults,
        new_id: &mut dyn FnMut() -> Uuid,
    ) -> Result<WritePlan, Vec<Problem>> {
        let Self {
            version,
            tables: checked_tables,
            series,
            questions,
            labels,
            mut problems,
            dry_run,
            return_rows,
            restores,
        } = self;
        let answered = Answered {
            questions: &questions,
            results,
        };
        let mut steps: Vec<Option<TableStep>> = Vec::with_capacity(checked_tables.len());
        for checked in checked_tables {
            let step = checked
                .map(|checked| table::plan(checked, answered, &steps, new_id, &mut problems));
            // Also without a step: the address of a row counts the request's table writes.
            steps.push(step);
        }
        let series = series::plan(series, answered, &steps, &mut problems);
        // Only here: tables and series are planned in spite of problems, so that one response lists them all.
        if !problems.is_empty() {
            return Err(problems.into_problems());
        }
        Ok(WritePlan {
            version,
            // Without problems every table write has its step.
            tables: steps.into_iter().flatten().collect(),
            series,
            labels,
            dry_run,
            return_rows,
            restores,
        })
    }
}
