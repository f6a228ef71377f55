//! Rules that every operation of the document keeps (contract §12).

use std::collections::BTreeSet;

use labdata_api::routes::openapi;
use serde_json::{Map, Value};

/// Operations that ask for no API key.
const OPEN: [&str; 4] = ["health", "ready", "metrics", "openapi"];

fn document() -> Value {
    openapi()
}

fn object(value: &Value) -> &Map<String, Value> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("an object: {value}"))
}

/// Calls `check` with each operation and its id, and fails with everything that it reports.
fn for_each_operation(check: impl Fn(&str, &Value, &mut Vec<String>)) {
    let document = document();
    let (mut found, mut count) = (Vec::new(), 0);
    for (path, item) in object(&document["paths"]) {
        for (method, operation) in object(item) {
            let name = operation["operationId"].as_str();
            let name = name.map_or_else(|| format!("{method} {path}"), str::to_owned);
            let mut problems = Vec::new();
            check(&name, operation, &mut problems);
            found.extend(
                problems
                    .into_iter()
                    .map(|problem| format!("{name}: {problem}")),
            );
            count += 1;
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(count > 80, "{count}");
}

fn is_snake_case(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[test]
fn every_operation_is_described() {
    let document = document();
    let tags: Vec<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    for_each_operation(|name, operation, problems| {
        let own = operation["tags"].as_array();
        match own.map(Vec::as_slice) {
            Some([tag]) if tags.iter().any(|known| known == tag) => {}
            _ => problems.push(format!("one tag of {tags:?}, not {}", operation["tags"])),
        }
        for field in ["summary", "description"] {
            if operation[field].as_str().is_none_or(str::is_empty) {
                problems.push(format!("has no {field}"));
            }
        }
        if !is_snake_case(name) {
            problems.push("the operationId is not in snake case".to_owned());
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["description"].as_str().is_none_or(str::is_empty) {
                problems.push(format!("{} has no description", parameter["name"]));
            }
        }
    });
}

#[test]
fn every_operation_lists_the_errors_that_it_can_answer() {
    for_each_operation(|name, operation, problems| {
        let mut expected = vec!["500"];
        if !OPEN.contains(&name) {
            expected.extend(["400", "401", "404", "422", "429", "503", "507"]);
            // Any valid key will do.
            if !["get_me", "get_session"].contains(&name) {
                expected.push("403");
            }
        }
        if operation.get("requestBody").is_some() {
            expected.extend(["408", "413", "415"]);
        }
        for status in expected {
            if operation["responses"].get(status).is_none() {
                problems.push(format!("{status} is missing"));
            }
        }
    });
}

#[test]
fn every_response_names_its_headers() {
    for_each_operation(|_, operation, problems| {
        let has = |name: &str| {
            let mut parameters = operation["parameters"].as_array().into_iter().flatten();
            parameters.any(|parameter| parameter["name"] == name)
        };
        for (status, response) in object(&operation["responses"]) {
            let is_success = status.starts_with('2');
            for (header, is_expected) in [
                ("X-Request-Id", true),
                ("Retry-After", matches!(status.as_str(), "429" | "503")),
                ("Link", is_success && has("cursor")),
                ("Idempotent-Replayed", is_success && has("Idempotency-Key")),
            ] {
                let is_there = response["headers"].get(header).is_some();
                if is_there != is_expected {
                    problems.push(format!("{status}: {header} {is_there}"));
                }
            }
        }
    });
}

#[test]
fn responses_of_bytes_are_binary() {
    for_each_operation(|_, operation, problems| {
        for response in object(&operation["responses"]).values() {
            let contents = response["content"].as_object().into_iter().flatten();
            for (media_type, content) in contents {
                let is_text = media_type.starts_with("text/") || media_type.ends_with("json");
                if !is_text && content["schema"]["format"] != "binary" {
                    problems.push(format!("{media_type} is not binary"));
                }
            }
        }
    });
}

/// Adds the names of the schemas that a part of the document refers to, directly or not.
fn reach(part: &Value, document: &Value, names: &mut BTreeSet<String>) {
    match part {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            if let Some(name) = reference.and_then(|it| it.strip_prefix("#/components/schemas/"))
                && names.insert(name.to_owned())
            {
                reach(&document["components"]["schemas"][name], document, names);
            }
            fields
                .values()
                .for_each(|field| reach(field, document, names));
        }
        Value::Array(items) => items.iter().for_each(|item| reach(item, document, names)),
        _ => {}
    }
}

/// The schemas of requests, and those of answers.
fn reached(document: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut requests, mut responses) = (BTreeSet::new(), BTreeSet::new());
    for item in object(&document["paths"]).values() {
        for operation in object(item).values() {
            reach(&operation["requestBody"], document, &mut requests);
            reach(&operation["parameters"], document, &mut requests);
            reach(&operation["responses"], document, &mut responses);
        }
    }
    (requests, responses)
}

#[test]
fn every_schema_is_one_of_requests_or_of_answers() {
    let document = document();
    let (requests, responses) = reached(&document);
    let both: Vec<&String> = requests.intersection(&responses).collect();
    assert!(both.is_empty(), "{both:?}");
    for name in object(&document["components"]["schemas"]).keys() {
        assert!(
            requests.contains(name) || responses.contains(name),
            "{name}"
        );
    }
}

/// Collects the fields of objects that are neither required nor certain not to be null.
fn collect_vague(schema: &Value, path: &str, vague: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let required = fields.get("required").and_then(Value::as_array);
            let properties = fields.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                let is_required = required.into_iter().flatten().any(|one| one == name);
                if !is_required && may_be_null(property) {
                    vague.push(format!("{path}.{name}"));
                }
            }
            for (name, field) in fields {
                collect_vague(field, &format!("{path}.{name}"), vague);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_vague(item, path, vague);
            }
        }
        _ => {}
    }
}

fn may_be_null(schema: &Value) -> bool {
    let keywords = ["type", "oneOf", "anyOf", "allOf", "$ref"];
    let is_free = keywords.iter().all(|keyword| schema.get(keyword).is_none());
    let types = schema["type"].as_array().into_iter().flatten();
    let choices = ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|keyword| schema[keyword].as_array())
        .flatten();
    is_free
        || types
            .chain(choices.map(|it| &it["type"]))
            .any(|it| it == "null")
}

/// A field that serde leaves out is never null, and one that may be null is never left out.
#[test]
fn fields_of_answers_are_required_or_left_out_instead_of_null() {
    let document = document();
    let (_, responses) = reached(&document);
    let mut vague = Vec::new();
    for name in &responses {
        let schema = &document["components"]["schemas"][name];
        collect_vague(schema, name, &mut vague);
    }
    assert!(vague.is_empty(), "{}", vague.join("\n"));
    assert!(responses.len() > 50, "{}", responses.len());
}

/// Fields of a schema, or of the schemas that it combines.
fn properties(schema: &Value) -> Vec<(&String, &Value)> {
    let combined = ["allOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| schema[keyword].as_array())
        .flatten();
    combined
        .chain([schema])
        .filter_map(|schema| schema["properties"].as_object())
        .flatten()
        .collect()
}

#[test]
fn every_field_is_described() {
    let document = document();
    let mut bare = Vec::new();
    for (name, schema) in object(&document["components"]["schemas"]) {
        for (field, property) in properties(schema) {
            let choices = property["oneOf"].as_array().into_iter().flatten();
            let mut described = choices.chain([property]);
            // A reference has the description of its schema.
            let is_described = described.any(|it| {
                it["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty())
                    || it.get("$ref").is_some()
            });
            // The tag of a union says itself what it is.
            let is_tag = field == "type" && property["enum"].as_array().is_some();
            if !is_described && !is_tag {
                bare.push(format!("{name}.{field}"));
            }
        }
    }
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}
