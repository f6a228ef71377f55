//! What is wrong with a data write, and where.

/// The most problems that are reported one by one (specification, "Limits").
pub const MAX_PROBLEMS: usize = 100;

/// One problem of a data write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, such as `tables[1].rows[0].sample`; `None` when it concerns the whole request.
    pub path: Option<String>,
    /// What, and what to do about it.
    pub message: String,
}

impl Problem {
    /// A problem at a place.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: Some(path.into()),
            message: message.into(),
        }
    }

    /// A problem of the whole request.
    pub fn of_the_request(message: impl Into<String>) -> Self {
        Self {
            path: None,
            message: message.into(),
        }
    }
}

impl Problem {
    /// The first 100 problems of a list in request order; a last one counts those left out.
    #[must_use]
    pub fn first_of(mut problems: Vec<Self>) -> Vec<Self> {
        let left_out = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        if left_out > 0 {
            problems.push(Self::of_the_request(format!(
                "and {left_out} more problems"
            )));
        }
        problems
    }
}
