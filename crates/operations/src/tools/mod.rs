//! Tools of the agent and of assistants over MCP: operations, and what only models need.

mod arguments;
mod get_schema;
mod of_operation;
mod own;
mod parse_table;
mod predict;
mod query_data;
mod read_file;
mod read_series;
mod run_python;
mod write_data;

use std::sync::Arc;

use labdata_application::agent::tools::{Tool, ToolRegistry};

pub(crate) use self::of_operation::{FilledField, ToolFacts};
use self::{of_operation::OperationTool, own::Own};

/// All tools.
#[must_use]
pub fn all() -> ToolRegistry {
    let own: [Arc<dyn Tool>; 8] = [
        Arc::new(Own(get_schema::GetSchema)),
        Arc::new(Own(query_data::QueryDataTool)),
        Arc::new(Own(read_series::ReadSeriesTool)),
        Arc::new(Own(read_file::ReadFile)),
        Arc::new(Own(parse_table::ParseTableTool)),
        Arc::new(Own(predict::PredictTool)),
        Arc::new(run_python::RunPythonTool),
        Arc::new(Own(write_data::WriteDataTool)),
    ];
    let operations = crate::all().into_iter().filter_map(OperationTool::new);
    let operations = operations.map(|tool| {
        let tool: Arc<dyn Tool> = Arc::new(tool);
        tool
    });
    ToolRegistry::new(own.into_iter().chain(operations).collect())
}
