//! The OpenAPI document.

mod completeness;
mod errors;
mod examples;
mod names;

use std::{env, fs, path::Path};

use labdata_api::routes::openapi;
use serde_json::Value;

#[test]
fn the_document_is_the_one_in_docs() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let fresh = serde_json::to_string_pretty(&openapi()).unwrap() + "\n";
    if env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(&file, &fresh).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored == fresh,
        "the API changed: UPDATE_OPENAPI=1 cargo test -p labdata-api --test it openapi"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    let document = openapi();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            references.extend(
                fields
                    .get("$ref")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            fields.values().for_each(|field| collect(field, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

/// Specification, "Errors".
#[test]
fn every_operation_lists_the_specified_status_codes() {
    let document = openapi();
    let specified = [
        ("/api/v1/files", "get", &[][..]),
        ("/api/v1/files", "post", &["409", "413"]),
        ("/api/v1/files/upload-url", "post", &["409"]),
        ("/api/v1/files/{file_id}/confirm-upload", "post", &[]),
        ("/api/v1/files/{file_id}/content", "get", &[]),
        ("/api/v1/jobs", "get", &[]),
        ("/api/v1/job-executions", "post", &["413", "415"]),
        (
            "/api/v1/job-executions/{execution_id}",
            "patch",
            &["413", "415"],
        ),
        ("/api/v1/job-executions/{execution_id}/revert", "post", &[]),
        ("/api/v1/data/write", "post", &["413", "415", "429"]),
        ("/api/v1/notifications", "post", &["413", "415", "429"]),
        ("/api/v1/instruments", "post", &["409", "413", "415"]),
        ("/api/v1/api-keys", "post", &["413", "415"]),
    ];
    for (path, method, own) in specified {
        let operation = &document["paths"][path][method];
        for status in ["200", "400", "401", "403", "404", "422", "500"]
            .iter()
            .chain(own)
        {
            assert!(
                operation["responses"].get(status).is_some(),
                "{method} {path}: {status}"
            );
        }
    }
}

/// An optional field given as null means the same as leaving it out (contract §3).
#[test]
fn every_optional_field_of_a_body_accepts_null() {
    let document = openapi();
    let mut fields = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        if !name.ends_with("Body") || name.contains("Error") {
            continue;
        }
        let required: Vec<&Value> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        for (field, schema) in schema["properties"].as_object().unwrap() {
            if required.iter().any(|name| *name == field) {
                continue;
            }
            let types = schema["type"].as_array().into_iter().flatten();
            let schemas = schema["oneOf"].as_array().into_iter().flatten();
            let nullable = types
                .chain(schemas.map(|schema| &schema["type"]))
                .any(|one| one == "null");
            let is_any = ["type", "oneOf", "$ref"]
                .iter()
                .all(|keyword| schema.get(keyword).is_none());
            assert!(nullable || is_any, "{name}.{field}: {schema}");
            fields += 1;
        }
    }
    assert!(fields > 40, "{fields}");
}

#[test]
fn operations_are_named_once() {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|item| item.as_object().unwrap().values());
    let mut names: Vec<&str> = operations
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(!names.contains(&"handle"));
}

#[test]
fn the_title_and_version_are_the_specified_ones() {
    let document = openapi();
    assert_eq!(document["info"]["title"], "Lab Data Platform API");
    assert_eq!(document["info"]["version"], "1.0.0");
    assert_eq!(
        document["components"]["securitySchemes"]["bearer"]["scheme"],
        "bearer"
    );
}
