//! `GET /api/v1/job-executions/{execution_id}/logs`

use labdata_domain::ids::ExecutionId;
use labdata_request_body::{
    Definitions, Output, Schema, fields::or, output, readers::boolean, shape,
};

use crate::{
    About, Describe, Method, NoBody, Operation, Read, Tag,
    executions::{ExecutionPath, JobExecutionStatus},
};

shape! {
    /// Options of reading a log.
    #[derive(Clone, Copy, Debug)]
    pub struct LogsQuery {
        /// Streams new output until the execution ends.
        pub follow: bool = or(false, boolean()),
    }
}

output! {
    /// The data of a server-sent event of a log.
    #[derive(Debug)]
    pub enum LogEventView as "JobExecutionLogEvent" {
        /// More output: the event `log`.
        Log(LogTextView),
        /// The end of the execution: the event `end`.
        End(LogEndView),
    }
}

output! {
    /// More output.
    #[derive(Debug)]
    pub struct LogTextView {
        /// The output.
        pub text: String,
    }
}

output! {
    /// The end of an execution.
    #[derive(Debug)]
    pub struct LogEndView {
        /// State of the execution.
        pub status: JobExecutionStatus,
        /// The execution that retries it, whose log is separate.
        #[optional]
        pub retried_by: Option<ExecutionId>,
    }
}

/// A log: as text, or as events.
#[derive(Debug)]
pub enum Log {}

impl Describe for Log {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        let events = LogEventView::schema(definitions);
        vec![
            ("text/plain", Schema::of("string")),
            ("text/event-stream", events),
        ]
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_job_execution_logs",
        method: Method::Get,
        path: "/api/v1/job-executions/{execution_id}/logs",
        tag: Tag::JobExecutions,
        summary: "Reads what a run wrote",
        description: "Standard output and standard error, as they came. The first and the last 5 MiB are \
            stored; a line says what is left out between. The log of a script that ran elsewhere is \
            empty.\n\nWith `Accept: text/event-stream`: events `log` with `{\"text\": \"…\"}`, and at last \
            `end` with `{\"status\": \"…\"}` of the execution, and `retried_by` if another one retries it. At \
            most 32 logs, trainings and event streams of an organization are followed at a time.",
        returns: "The log, or its events",
        refusals: &[(503, "Too many logs of the organization are followed or sent")],
    }
    .served_by_hand::<Read, NoBody, LogsQuery, ExecutionPath, Log>()
}
