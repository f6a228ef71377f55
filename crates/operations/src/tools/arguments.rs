//! Arguments of tools.

use labdata_domain::agent::ToolOutput;
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

/// Refuses an argument that the schema does not have: a misspelled optional one would otherwise have no
/// effect and raise no error.
pub(super) fn refuse_unknown(
    tool: &str,
    schema: &Map<String, Value>,
    arguments: &Map<String, Value>,
) -> Result<(), ToolOutput> {
    let known = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    let Some(unknown) = arguments.keys().find(|name| !is_known(name)) else {
        return Ok(());
    };
    let unknown: String = unknown.chars().take(100).collect();
    Err(ToolOutput::error(format!(
        "{tool} has no argument \"{unknown}\""
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
