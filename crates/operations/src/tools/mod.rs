//! Tools of the agent and of assistants over MCP: operations, and what only models need.

mod arguments;
mod facts;
pub(crate) mod get_schema;
mod of_operation;
mod own;
pub(crate) mod parse_table;
pub(crate) mod read_file;
pub(crate) mod read_series;
mod run_python;
mod write_data;

use std::sync::Arc;

use labdata_application::agent::tools::{Tool, ToolRegistry};

pub(crate) use self::facts::{FilledField, ScriptUse, ToolFacts};
use self::{of_operation::OperationTool, own::Own};

/// All tools.
#[must_use]
pub fn all() -> ToolRegistry {
    let own: [Arc<dyn Tool>; 2] = [
        Arc::new(Own::new(run_python::RunPythonTool)),
        Arc::new(Own::new(write_data::WriteDataTool)),
    ];
    let operations = crate::all().into_iter().filter_map(OperationTool::new);
    let operations = operations.map(|tool| {
        let tool: Arc<dyn Tool> = Arc::new(tool);
        tool
    });
    ToolRegistry::new(own.into_iter().chain(operations).collect())
}
