//! Requests about records: the examples of the document, with ids in them.

use labdata_operations::Operation;
use serde_json::{Value, json};

use super::{Records, UNKNOWN};
use crate::{mcp::lab::ask, server::Client};

/// The operation's path, with these records in it.
pub(in crate::people) fn path_of(operation: &Operation, records: &Records) -> String {
    let parts = operation.about.path.split('/').map(|part| {
        let name = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'));
        name.map_or(part, |name| {
            records.get(name).map_or(UNKNOWN, String::as_str)
        })
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Puts these records where a body names others.
pub(in crate::people) fn naming(value: &Value, records: &Records) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                // A job's or a table's own name is no reference.
                let record = records
                    .get(name.as_str())
                    .filter(|_| name != "name" && name != "id");
                let value = match (record, value) {
                    (Some(record), Value::String(_)) => record.as_str().into(),
                    _ => naming(value, records),
                };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(values) => values.iter().map(|value| naming(value, records)).collect(),
        other => other.clone(),
    }
}

/// The example of the operation's JSON body.
pub(in crate::people) fn example(document: &Value, name: &str) -> Option<Value> {
    let paths = document["paths"].as_object()?.values();
    let mut operations = paths
        .filter_map(Value::as_object)
        .flat_map(|path| path.values());
    let operation = operations.find(|it| it["operationId"] == name)?;
    let content = &operation["requestBody"]["content"]["application/json"];
    (!content.is_null()).then(|| content["example"].clone())
}

/// Arguments of a tool: the example of its operation, and the records that its schema names.
pub(in crate::people) fn arguments(document: &Value, tool: &Value, records: &Records) -> Value {
    let name = tool["name"].as_str().unwrap();
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let mut arguments = match example(document, name) {
        Some(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    arguments.retain(|name, _| properties.contains_key(name));
    let named = |property: &&String| property.as_str() != "name" && property.as_str() != "id";
    for property in properties.keys().filter(named) {
        if let Some(record) = records.get(property.as_str()) {
            let value = match property.as_str() {
                "version_number" => json!(1),
                _ => record.as_str().into(),
            };
            arguments.insert(property.clone(), value);
        }
    }
    naming(&arguments.into(), records)
}

/// The text of a tool's result, and true if the call failed.
pub(in crate::people) async fn call_tool(
    client: &Client,
    tool: &Value,
    arguments: Value,
) -> (String, bool) {
    let params = json!({ "name": tool["name"], "arguments": arguments });
    let response = ask(client, "tools/call", params).await.json(200);
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str();
    (
        text.unwrap_or_default().to_owned(),
        result["isError"] == true,
    )
}
