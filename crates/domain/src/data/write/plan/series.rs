//! Planning the series of a request.

use super::steps::{LateKey, RowKey, SeriesStep, StepColumn, TableStep};
use crate::{
    data::write::{
        address::RowAddress,
        check::{CheckedSeries, CheckedSeriesColumn, Content},
        parents::SeriesParents,
        problem::Reason,
        problem_list::{PointAddress, ProblemList},
        reference::{Answered, Reference},
    },
    scalar::{KeyValue, Values},
};

/// Resolves parents and references, and reports a second series for one parent.
pub(super) fn plan(
    checked: Vec<CheckedSeries>,
    answered: Answered<'_>,
    steps: &[Option<TableStep>],
    problems: &mut ProblemList,
) -> Vec<SeriesStep> {
    let mut planner = SeriesPlanner {
        answered,
        steps,
        problems,
    };
    let series_steps: Vec<SeriesStep> = checked
        .into_iter()
        .filter_map(|series| planner.plan(series))
        .collect();
    // Late parents are compared by the rows that they wait for here, and by their keys once these
    // are known: two rows of an upsert may match one stored row.
    let mut parents = SeriesParents::default();
    for step in &series_steps {
        if let Err(message) = parents.add(step, step.parent.clone()) {
            problems.at_series(step.index, "parent", || message);
        }
    }
    series_steps
}

struct SeriesPlanner<'a> {
    answered: Answered<'a>,
    steps: &'a [Option<TableStep>],
    problems: &'a mut ProblemList,
}

impl SeriesPlanner<'_> {
    fn resolve(&self, reference: &Reference) -> Result<Option<RowKey>, Reason> {
        self.answered
            .resolve(reference, |address| self.known_key(address))
    }

    fn known_key(&self, address: RowAddress) -> Option<KeyValue> {
        let step = self.steps.get(address.table)?.as_ref()?;
        step.inserted_keys()?.key(address.row)
    }

    fn plan(&mut self, checked: CheckedSeries) -> Option<SeriesStep> {
        let CheckedSeries {
            index,
            owner,
            parent,
            order,
            points,
            columns,
        } = checked;
        let parent = match self.resolve(&parent) {
            // `None` was reported when it was read.
            Ok(parent) => parent?,
            Err(message) => {
                self.problems.at_series(index, "parent", || message);
                return None;
            }
        };
        let columns = columns
            .into_iter()
            .map(|checked| self.plan_column(index, checked))
            .collect();
        Some(SeriesStep {
            index,
            owner,
            parent,
            order,
            points,
            columns,
        })
    }

    fn plan_column(&mut self, series: usize, checked: CheckedSeriesColumn) -> StepColumn {
        let CheckedSeriesColumn {
            column,
            input,
            content,
        } = checked;
        let mut planned = StepColumn {
            values: Values::with_capacity(column.data_type, 0).into(),
            column,
            provided: None,
            late: Vec::new(),
        };
        match content {
            Content::Values(values) => planned.values = values,
            Content::References(references) => {
                let first = PointAddress {
                    series,
                    input,
                    point: 0,
                };
                self.plan_references(&mut planned, first, &references);
            }
        }
        planned
    }

    fn plan_references(
        &mut self,
        planned: &mut StepColumn,
        first: PointAddress,
        references: &[Reference],
    ) {
        let mut values = Values::with_capacity(planned.column.data_type, references.len());
        for (point, reference) in references.iter().enumerate() {
            match self.resolve(reference) {
                Ok(Some(RowKey::Known(key))) => values.push(key.into()),
                // Null takes the place of a key that is known only when its row is written.
                Ok(Some(RowKey::Late(address))) => {
                    values.push_null();
                    planned.late.push(LateKey {
                        index: point,
                        address,
                    });
                }
                Ok(None) => values.push_null(),
                Err(message) => {
                    values.push_null();
                    let address = PointAddress { point, ..first };
                    self.problems
                        .at_point(address, &planned.column.name, || message);
                }
            }
        }
        planned.values = values.into();
    }
}
