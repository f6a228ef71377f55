//! Arguments of tools.

use labdata_domain::agent::{ToolInput, ToolOutput};
use labdata_ports::agent::ToolDefinition;
use labdata_request_body::{LocationStep, Property, ShapeProblem, object_of};
use serde_json::{Map, Value};

/// The schema of arguments: an object without further fields.
pub(super) fn schema_of(fields: Vec<Property>) -> Map<String, Value> {
    let schema = object_of(fields).with("additionalProperties", false);
    match schema.into() {
        Value::Object(mut schema) => {
            remove_unions(&mut schema);
            schema
        }
        _ => Map::new(),
    }
}

/// Leaves one type or none to each part of a schema. Assistants and providers of models refuse lists of
/// types and alternatives, of which null is the most frequent; the readers of arguments accept null all the same.
fn remove_unions(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        let only = match types.as_mut_slice() {
            [only] => Some(only.take()),
            _ => None,
        };
        // Without a type, any value is allowed; the description says which make sense.
        match only {
            Some(only) => schema.insert("type".to_owned(), only),
            None => schema.remove("type"),
        };
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|one| !one.is_null());
    }
    for alternatives in ["oneOf", "anyOf"] {
        let Some(Value::Array(mut choices)) = schema.remove(alternatives) else {
            continue;
        };
        choices.retain(|choice| choice.get("type") != Some(&"null".into()));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            schema.append(only);
            return remove_unions(schema);
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    for part in ["items", "additionalProperties"] {
        if let Some(Value::Object(part)) = schema.get_mut(part) {
            remove_unions(part);
        }
    }
    // Below `properties` stand names, not keywords.
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            remove_unions(property);
        }
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

#[cfg(test)]
mod tests {
    use labdata_domain::people::{actor::Actor, rights::Rights, scope::Scopes};
    use serde_json::json;

    use super::*;

    fn without_unions(schema: &Value) -> Value {
        let mut schema = schema.as_object().unwrap().clone();
        remove_unions(&mut schema);
        schema.into()
    }

    #[test]
    fn one_type_or_none_is_left_of_a_union() {
        for (schema, expected) in [
            (
                json!({"type": ["string", "null"]}),
                json!({"type": "string"}),
            ),
            (json!({"type": ["string", "integer"]}), json!({})),
            (
                json!({"type": ["string", "null"], "enum": ["a", null], "default": null}),
                json!({"type": "string", "enum": ["a"]}),
            ),
            (
                json!({"oneOf": [{"type": ["object", "null"]}, {"type": "null"}], "description": "d"}),
                json!({"type": "object", "description": "d"}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "d"}),
                json!({"description": "d"}),
            ),
            (
                json!({"properties": {"type": {"type": ["array", "null"], "items": {"type": ["string", "null"]}}}}),
                json!({"properties": {"type": {"type": "array", "items": {"type": "string"}}}}),
            ),
        ] {
            assert_eq!(without_unions(&schema), expected, "{schema}");
        }
    }

    /// Every part of the schema that has types, with its path.
    fn unions(schema: &Value, path: &str, found: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = format!("{path}.{name}");
                    let is_keyword = !path.ends_with(&format!("properties.{name}"));
                    let is_union = match name.as_str() {
                        "type" => value.is_array(),
                        "oneOf" | "anyOf" | "allOf" => true,
                        _ => false,
                    };
                    if is_keyword && is_union {
                        found.push(path.clone());
                    }
                    unions(value, &path, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|it| unions(it, path, found)),
            _ => {}
        }
    }

    #[test]
    fn no_tool_has_a_union_of_types_in_its_schema() {
        let mut found = Vec::new();
        let id = "0191d5a4-0000-7000-8000-000000000000";
        let actor = Actor {
            organization: id.parse().unwrap(),
            user: id.parse().unwrap(),
            api_key: id.parse().unwrap(),
            scopes: Scopes::all(),
            rights: Rights::admin(),
            execution: None,
        };
        for tool in crate::tools::all().definitions(&actor).iter() {
            let schema = serde_json::to_value(&tool.schema).unwrap();
            unions(&schema, &tool.name, &mut found);
        }
        assert_eq!(found, Vec::<String>::new());
    }
}
