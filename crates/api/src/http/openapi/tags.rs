//! Areas of the API.

use utoipa::openapi::tag::{Tag, TagBuilder};

/// The tags of operations and their descriptions, in the order of the document.
const TAGS: [(&str, &str); 16] = [
    (
        "files",
        "Files of instruments and of jobs: upload, list, read.",
    ),
    ("instruments", "Instruments that files come from."),
    (
        "tables",
        "Tables of the organization: define, change, import, export.",
    ),
    ("data", "Transactional writes of rows and series."),
    ("tools", "Reading: schema, rows, series, SQL."),
    (
        "jobs",
        "Python scripts on the platform, and what starts them.",
    ),
    (
        "job-executions",
        "Runs of jobs, and scripts that run elsewhere: logs, changes, revert.",
    ),
    (
        "datasets",
        "Immutable snapshots of data to train models with.",
    ),
    ("ml-models", "Training of models, and predictions."),
    ("agent", "The data-analysis agent, and its tools over MCP."),
    (
        "notifications",
        "Messages to the caller's inbox and e-mail.",
    ),
    ("events", "Stream of what happens in the organization."),
    ("session", "People who sign in with a browser."),
    ("users", "Users of the organization, and the caller."),
    ("api-keys", "API keys of the organization."),
    ("operations", "Health, metrics and this document."),
];

/// Returns the tags for the document.
pub(super) fn all() -> Vec<Tag> {
    let tag = |(name, description): (&str, &str)| {
        TagBuilder::new()
            .name(name)
            .description(Some(description))
            .build()
    };
    TAGS.into_iter().map(tag).collect()
}
