//! Arguments of tools.

use labdata_domain::agent::{ToolInput, ToolOutput};
use labdata_ports::agent::ToolDefinition;
use labdata_request_body::{LocationStep, Property, ShapeProblem, object_of};
use serde_json::{Map, Value};

/// The schema of arguments: an object without further fields.
pub(super) fn schema_of(fields: Vec<Property>) -> Map<String, Value> {
    let schema = object_of(fields).with("additionalProperties", false);
    match schema.into() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The arguments of a call; otherwise its output, which says what is wrong.
pub(super) fn arguments<'i>(
    tool: &ToolDefinition,
    input: &'i ToolInput,
) -> Result<&'i Map<String, Value>, ToolOutput> {
    let arguments = input.object()?;
    let known = tool.schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    // A misspelled optional argument would otherwise have no effect and raise no error.
    let Some(unknown) = arguments.keys().find(|name| !is_known(name)) else {
        return Ok(arguments);
    };
    let unknown: String = unknown.chars().take(100).collect();
    Err(ToolOutput::error(format!(
        "{} has no argument \"{unknown}\"",
        tool.name
    )))
}

/// The output for arguments that do not fit: their problems, one line each.
pub(super) fn unfit(problems: &[ShapeProblem]) -> ToolOutput {
    let lines = problems.iter().map(|problem| {
        // The first step is the part of a request, which a tool does not have.
        let path = problem.loc.iter().skip(1).map(|step| match step {
            LocationStep::Name(name) => name.clone(),
            LocationStep::Index(index) => index.to_string(),
        });
        let path: Vec<String> = path.collect();
        format!("arguments.{}: {}", path.join("."), problem.msg)
    });
    let lines: Vec<String> = lines.collect();
    ToolOutput::error(format!("the arguments do not fit:\n{}", lines.join("\n")))
}
