//! Limit of the rows that a write returns.

use super::problem::{Problem, Reason};
use crate::refusal::ErrorCode;

/// Maximum size in bytes of the rows that a write returns, over all its table writes, rendered.
pub const MAX_RETURNED_BYTES: usize = 16 << 20;

/// Bytes that the rows of a write may still take. The same row may be named by many table writes, so the
/// size of the request does not bound them.
#[derive(Debug)]
pub struct ReturnBudget {
    left: usize,
}

impl Default for ReturnBudget {
    fn default() -> Self {
        Self {
            left: MAX_RETURNED_BYTES,
        }
    }
}

impl ReturnBudget {
    /// Size in bytes of the longest row that still fits.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Counts a row; `None` as its size is one that is longer than any that fits.
    ///
    /// # Errors
    /// A problem of the whole request if the row does not fit.
    pub fn take(&mut self, bytes: Option<usize>) -> Result<(), Vec<Problem>> {
        match bytes.and_then(|bytes| self.left.checked_sub(bytes)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(vec![Problem::of_the_request(Reason::new(
                ErrorCode::ResultTooLarge,
                format!(
                    "the written rows have more than {} MiB, so nothing was written: leave out return_rows, \
                     or write fewer rows per request",
                    MAX_RETURNED_BYTES >> 20
                ),
            ))]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_to_the_byte_and_one_more_is_a_problem_of_the_request() {
        let mut budget = ReturnBudget::default();
        assert!(budget.take(None).is_err());
        budget.take(Some(MAX_RETURNED_BYTES - 1)).unwrap();
        assert_eq!(budget.left(), 1);
        let problems = budget.take(Some(2)).unwrap_err();
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        assert_eq!(
            (&problem.path, problem.code),
            (&None, ErrorCode::ResultTooLarge)
        );
        budget.take(Some(1)).unwrap();
    }
}
