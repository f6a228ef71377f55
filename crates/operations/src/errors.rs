//! Bodies of responses that refuse a request.

use labdata_domain::{data::write::Problem, refusal::ErrorCode};
use labdata_request_body::{Definitions, Output as _, Schema, ShapeProblem, output};

use crate::{Describe, body::JSON};

output! {
    /// An error that says what happened.
    #[derive(Clone, Debug)]
    pub struct ErrorBody as "Error" {
        /// Explanation for people; it may change.
        pub detail: String,
        /// Stable reason for programs.
        pub code: ErrorCode,
    }
}

impl ErrorBody {
    /// Creates the body of an error.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            code,
        }
    }
}

output! {
    /// The request does not have the shape that the operation reads.
    #[derive(Clone, Debug)]
    pub struct ShapeErrorBody as "ShapeError" {
        /// Every problem.
        pub detail: Vec<ShapeProblem>,
    }
}

output! {
    /// The platform failed; the log knows more under the request's id.
    #[derive(Clone, Debug)]
    pub struct InternalErrorBody as "InternalError" {
        /// Always `internal error`.
        #[example = "internal error"]
        pub detail: String,
        /// `internal`, or `outcome_unknown` where the connection to the database broke during the commit.
        pub code: ErrorCode,
        /// The id of the request, also in the header `X-Request-Id`.
        pub request_id: String,
    }
}

output! {
    /// One thing that is wrong with a data write.
    #[derive(Clone, Debug)]
    pub struct WriteDataProblem as "WriteDataProblem" from problem: Problem {
        /// Location, such as `tables[1].rows[0].sample`; null for the whole request.
        #[example = "tables[1].rows[0].sample"]
        path: Option<String> = problem.path,
        /// Stable reason for programs.
        code: ErrorCode = problem.code,
        /// Explanation, and what to do about it.
        #[example = "there is no sample with the id s9"]
        message: String = problem.message,
    }
}

output! {
    /// A data write's problems; nothing was written.
    #[derive(Clone, Debug)]
    pub struct WriteDataErrorBody as "WriteDataError" {
        /// At most 100, and one more that counts the rest.
        pub errors: Vec<WriteDataProblem>,
        /// Always `invalid_write`.
        pub code: ErrorCode,
    }
}

/// The body of a refused write: a [`WriteDataErrorBody`] or an [`ErrorBody`].
#[derive(Debug)]
pub enum WriteRefusal {}

impl Describe for WriteRefusal {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        let schema = definitions.define("WriteRefusal", |definitions| {
            let problems = WriteDataErrorBody::schema(definitions);
            let other = ErrorBody::schema(definitions);
            Schema::one_of([
                problems.described("Problems of rows and series."),
                other.described("Another reason."),
            ])
            .described(
                "A refused write: the problems of its rows and series, or why it cannot take place at \
                 all, such as an execution that is closed.",
            )
        });
        vec![(JSON, schema)]
    }
}
