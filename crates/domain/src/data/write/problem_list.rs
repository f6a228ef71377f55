//! The first problems of a request, in request order.

use std::collections::BTreeMap;

use super::{
    address::{RowAddress, RowNames},
    problem::{MAX_PROBLEMS, Problem, Reason},
};

/// Position of a problem in the request. Positions sort in request order; a whole sorts before its
/// parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    Request,
    Table {
        table: usize,
        row: Option<usize>,
        column: Option<usize>,
    },
    Series {
        series: usize,
        column: Option<usize>,
        point: Option<usize>,
    },
}

impl Position {
    const fn row(address: RowAddress, column: Option<usize>) -> Self {
        Self::Table {
            table: address.table,
            row: Some(address.row),
            column,
        }
    }
}

/// A point of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointAddress {
    /// Index of the series in the request.
    pub(super) series: usize,
    /// Position of the column among the series' columns; `None` for a default.
    pub(super) input: Option<usize>,
    /// Index of the point.
    pub(super) point: usize,
}

/// The first problems in request order. Further problems are only counted, so a request that
/// consists of problems needs no more memory than one with a few.
#[derive(Clone, Debug, Default)]
pub(super) struct ProblemList {
    names: RowNames,
    first: BTreeMap<(Position, usize), Problem>,
    count: usize,
}

impl ProblemList {
    /// An empty list that names rows in this way.
    pub(super) fn new(names: RowNames) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    /// Names of rows.
    pub(super) const fn names(&self) -> &RowNames {
        &self.names
    }

    /// Adds a problem of the whole request.
    pub(super) fn of_the_request(&mut self, reason: impl FnOnce() -> Reason) {
        self.add(Position::Request, |_| Problem::of_the_request(reason()));
    }

    /// Adds a problem of a part of a table write, such as `key[0]`.
    pub(super) fn at_table(&mut self, table: usize, part: &str, reason: impl FnOnce() -> Reason) {
        let position = Position::Table {
            table,
            row: None,
            column: None,
        };
        self.add(position, |names| {
            Problem::at(names.part(table, part), reason())
        });
    }

    /// Adds a problem of a row.
    pub(super) fn at_row(&mut self, row: RowAddress, reason: impl FnOnce() -> Reason) {
        self.add(Position::row(row, None), |names| {
            Problem::at(names.path(row), reason())
        });
    }

    /// Adds a problem of a cell. `input` is the position of its column among the row's columns;
    /// `None` sorts it before them.
    pub(super) fn at_cell(
        &mut self,
        row: RowAddress,
        input: Option<usize>,
        column: &str,
        reason: impl FnOnce() -> Reason,
    ) {
        self.add(Position::row(row, input), |names| {
            Problem::at(format!("{}.{column}", names.path(row)), reason())
        });
    }

    /// Adds a problem of a part of a series, such as `parent`.
    pub(super) fn at_series(&mut self, series: usize, part: &str, reason: impl FnOnce() -> Reason) {
        let position = Position::Series {
            series,
            column: None,
            point: None,
        };
        self.add(position, |_| {
            Problem::at(format!("series[{series}].{part}"), reason())
        });
    }

    /// Adds a problem of a point's value.
    pub(super) fn at_point(
        &mut self,
        address: PointAddress,
        column: &str,
        reason: impl FnOnce() -> Reason,
    ) {
        let PointAddress {
            series,
            input,
            point,
        } = address;
        let position = Position::Series {
            series,
            column: input,
            point: Some(point),
        };
        self.add(position, |_| {
            Problem::at(
                format!("series[{series}].columns.{column}[{point}]"),
                reason(),
            )
        });
    }

    /// Adds a problem; its text is made only if it is among the first.
    fn add(&mut self, position: Position, problem: impl FnOnce(&RowNames) -> Problem) {
        self.count += 1;
        let key = (position, self.count);
        // Checks run column by column, but the first problems by position are the ones to report.
        if self.first.len() >= MAX_PROBLEMS {
            if self
                .first
                .last_key_value()
                .is_some_and(|(last, _)| *last <= key)
            {
                return;
            }
            self.first.pop_last();
        }
        // Formatted only now: most problems of a large request are counted and never reported.
        let problem = problem(&self.names);
        self.first.insert(key, problem);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The problems in request order; past 100, a last one counts the rest.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        let rest = Problem::rest(self.count - self.first.len());
        self.first.into_values().chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_one_hundred_a_last_problem_counts_the_rest() {
        let mut list = ProblemList::default();
        for row in (0..250).rev() {
            list.at_row(RowAddress { table: 0, row }, || Reason::from("x"));
        }
        let problems = list.into_problems();
        assert_eq!(problems.len(), 101);
        assert_eq!(problems[0].path.as_deref(), Some("tables[0].rows[0]"));
        assert_eq!(problems[99].path.as_deref(), Some("tables[0].rows[99]"));
        assert_eq!(problems[100], Problem::rest(150).unwrap());
    }

    #[test]
    fn a_whole_comes_before_its_parts_and_a_table_before_the_next() {
        let mut list = ProblemList::default();
        let message = || Reason::from("x");
        let row = |table, row| RowAddress { table, row };
        let point = |input, point| PointAddress {
            series: 0,
            input: Some(input),
            point,
        };
        list.at_point(point(1, 0), "b", message);
        list.at_point(point(0, 7), "a", message);
        list.at_series(0, "parent", message);
        list.at_table(1, "key[0]", message);
        list.at_cell(row(0, 1), Some(0), "name", message);
        list.at_row(row(0, 1), message);
        list.at_cell(row(0, 0), Some(3), "value", message);
        list.of_the_request(message);
        let paths: Vec<Option<String>> = list
            .into_problems()
            .into_iter()
            .map(|problem| problem.path)
            .collect();
        let expected = [
            "tables[0].rows[0].value",
            "tables[0].rows[1]",
            "tables[0].rows[1].name",
            "tables[1].key[0]",
            "series[0].parent",
            "series[0].columns.a[7]",
            "series[0].columns.b[0]",
        ];
        let expected = expected.map(|path| Some(path.to_owned()));
        assert_eq!(paths[0], None);
        assert_eq!(paths[1..], expected);
    }
}
