//! Schemas of request bodies as generators of clients and tests understand them.

use serde_json::{Map, Value, json};

/// Regular expression of texts without NUL, the only ones that PostgreSQL can store.
const TEXT_PATTERN: &str = r"^[^\u0000]*$";

/// Number of characters of a UUID with hyphens. Tools do not check `format` everywhere.
const UUID_LENGTH: usize = 36;

/// Adapts a schema and all within it.
pub(super) fn adapt_to_clients(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(adapt_to_clients);
            }
            ("oneOf" | "anyOf" | "allOf", Value::Array(choices)) => {
                choices.iter_mut().for_each(adapt_to_clients);
            }
            ("items" | "additionalProperties", inner) => adapt_to_clients(inner),
            _ => {}
        }
    }
    simplify(schema);
    bound_text(schema);
    open_object(schema);
}

/// Any value has no `type`, rather than a list of all types, and an empty object is no default.
fn simplify(schema: &mut Map<String, Value>) {
    if allows(schema, "array") && allows(schema, "object") {
        schema.remove("type");
    }
    if schema.get("default") == Some(&json!({})) {
        schema.remove("default");
    }
}

/// Bounds texts whose readers state no syntax.
fn bound_text(schema: &mut Map<String, Value>) {
    if !allows(schema, "string") || schema.contains_key("enum") {
        return;
    }
    match schema.get("format").and_then(Value::as_str) {
        None => {
            let pattern = schema.entry("pattern");
            pattern.or_insert_with(|| TEXT_PATTERN.into());
        }
        Some("uuid") => {
            schema.insert("minLength".to_owned(), UUID_LENGTH.into());
            schema.insert("maxLength".to_owned(), UUID_LENGTH.into());
        }
        Some(_) => {}
    }
}

/// Objects without declared fields hold any field. openapi-typescript takes them to be empty
/// otherwise.
fn open_object(schema: &mut Map<String, Value>) {
    let has_fields = schema.get("properties").and_then(Value::as_object);
    if allows(schema, "object") && has_fields.is_none_or(Map::is_empty) {
        let open = schema.entry("additionalProperties");
        open.or_insert(true.into());
    }
}

fn allows(schema: &Map<String, Value>, sought: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == sought,
        Some(Value::Array(types)) => types.iter().any(|one| one == sought),
        _ => false,
    }
}
