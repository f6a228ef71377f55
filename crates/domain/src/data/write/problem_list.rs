//! Problems as they are found, kept in request order and bounded.

use std::collections::BTreeMap;

use super::{MAX_PROBLEMS, Problem};

/// Where in the request a problem is, for ordering: part, table or series, row or point, column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    part: u8,
    index: usize,
    row: usize,
    column: usize,
}

impl Place {
    /// The request as a whole.
    pub(super) const REQUEST: Self = Self {
        part: 0,
        index: 0,
        row: 0,
        column: 0,
    };

    /// A table write itself.
    pub(super) const fn table(index: usize) -> Self {
        Self {
            part: 1,
            index,
            row: 0,
            column: 0,
        }
    }

    /// A cell of a table write; column 0 is the row itself.
    pub(super) const fn cell(index: usize, row: usize, column: usize) -> Self {
        Self {
            part: 1,
            index,
            row: row + 1,
            column,
        }
    }

    /// A series itself.
    pub(super) const fn series(index: usize) -> Self {
        Self {
            part: 2,
            index,
            row: 0,
            column: 0,
        }
    }

    /// A point of a column of a series.
    pub(super) const fn point(index: usize, column: usize, point: usize) -> Self {
        Self {
            part: 2,
            index,
            row: column + 1,
            column: point,
        }
    }
}

/// The first problems in request order; the rest is only counted, so that a request of nothing
/// but problems costs no more memory than one with a few.
#[derive(Clone, Debug, Default)]
pub(super) struct ProblemList {
    first: BTreeMap<(Place, usize), Problem>,
    count: usize,
}

impl ProblemList {
    /// Adds a problem; it is put into words only when it is among the first.
    pub(super) fn add(&mut self, place: Place, problem: impl FnOnce() -> Problem) {
        self.count += 1;
        let key = (place, self.count);
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
        self.first.insert(key, problem());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The problems in request order; past 100, a last one counts those left out.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        let left_out = self.count - self.first.len();
        let mut problems: Vec<Problem> = self.first.into_values().collect();
        if left_out > 0 {
            problems.push(Problem::of_the_request(format!(
                "and {left_out} more problems"
            )));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_one_hundred_a_last_problem_counts_the_rest() {
        let mut list = ProblemList::default();
        for row in (0..250).rev() {
            list.add(Place::cell(0, row, 0), || {
                Problem::at(format!("{row}"), "x")
            });
        }
        let problems = list.into_problems();
        assert_eq!(problems.len(), 101);
        assert_eq!(problems[0].path.as_deref(), Some("0"));
        assert_eq!(problems[99].path.as_deref(), Some("99"));
        assert_eq!(
            problems[100],
            Problem::of_the_request("and 150 more problems")
        );
    }
}
