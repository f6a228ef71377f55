//! Tools of the agent: use cases with the rights of the caller.

mod change_jobs;
mod context;
mod datasets;
mod effects;
mod files;
mod get_schema;
mod jobs;
mod models;
mod parse_table;
mod query_data;
mod read_series;
mod registry;
mod run_python;
mod send_notification;
mod tool;
mod trainings;
mod write_data;

pub use context::{RunWrites, ToolContext};
pub use registry::ToolRegistry;
pub use tool::{Tool, TypedTool};

use std::sync::Arc;

/// All tools that the platform has.
#[must_use]
pub fn all_tools() -> ToolRegistry {
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(get_schema::GetSchema),
        Arc::new(query_data::QueryDataTool),
        Arc::new(read_series::ReadSeriesTool),
        Arc::new(files::ListFiles),
        Arc::new(files::ReadFile),
        Arc::new(parse_table::ParseTableTool),
        Arc::new(jobs::ListJobs),
        Arc::new(jobs::GetJob),
        Arc::new(jobs::ListJobExecutions),
        Arc::new(models::ListModels),
        Arc::new(models::PredictTool),
        Arc::new(datasets::ListDatasets),
        Arc::new(run_python::RunPython),
        Arc::new(write_data::WriteDataTool),
        Arc::new(change_jobs::CreateJobTool),
        Arc::new(change_jobs::UpdateJobTool),
        Arc::new(change_jobs::RunJobTool),
        Arc::new(trainings::TrainModelTool),
        Arc::new(trainings::CancelTrainingTool),
        Arc::new(send_notification::SendNotification),
    ];
    ToolRegistry::new(tools)
}
