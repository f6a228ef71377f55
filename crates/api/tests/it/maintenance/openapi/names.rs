//! Names and types that clients are generated from.

use labdata_api::routes::openapi;
use serde_json::Value;

fn document() -> Value {
    openapi()
}

#[test]
fn schemas_have_the_names_of_the_specification() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in [
        "TableWrite",
        "SeriesWrite",
        "TableWriteResult",
        "SeriesWriteResult",
        "WriteDataProblem",
        "AgentRunEvent",
        "JobExecution",
        "MlModel",
    ] {
        assert!(schemas.contains_key(name), "{name}");
    }
    for name in schemas.keys() {
        // A saved view is one of the console's; other names that end so are those of Rust structs.
        assert!(name == "SavedView" || !name.ends_with("View"), "{name}");
    }
}

#[test]
fn a_refused_write_is_documented_as_it_is_sent() {
    let document = document();
    for path in ["/api/v1/data/write", "/api/v1/tables/{name}/import"] {
        let refusal = &document["paths"][path]["post"]["responses"]["400"];
        let schema = &refusal["content"]["application/json"]["schema"];
        assert_eq!(
            schema["$ref"], "#/components/schemas/WriteRefusal",
            "{path}"
        );
    }
    let schemas = &document["components"]["schemas"];
    let errors = &schemas["WriteDataError"]["properties"]["errors"];
    assert_eq!(
        errors["items"]["$ref"],
        "#/components/schemas/WriteDataProblem"
    );
}

#[test]
fn the_events_of_streams_are_typed() {
    let document = document();
    let mut streams = 0;
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let events = &operation["responses"]["200"]["content"]["text/event-stream"];
            if !events.is_null() {
                assert!(events["schema"]["$ref"].is_string(), "{operation}");
                streams += 1;
            }
        }
    }
    assert_eq!(streams, 4);
}

/// Fields of answers whose values are of a list of the domain.
#[test]
fn choices_of_answers_are_enumerated() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    for (schema, field, one) in [
        ("JobExecution", "status", "queued"),
        ("MlModel", "status", "training"),
        ("MlModel", "quality_preset", "high_quality"),
        ("FileRecord", "source_type", "instrument_sync"),
        ("TableColumn", "data_type", "datetime"),
        ("Table", "semantic_category", "core"),
        ("JobTrigger", "category", "schedule"),
        ("NotificationResult", "status", "muted"),
        ("Event", "type", "data.written"),
    ] {
        let reference = schemas[schema]["properties"][field]["$ref"].as_str();
        let name = reference.and_then(|it| it.strip_prefix("#/components/schemas/"));
        let choices = name.map(|name| &schemas[name]["enum"]);
        let choices = choices.and_then(Value::as_array);
        assert!(
            choices.is_some_and(|choices| choices.iter().any(|choice| choice == one)),
            "{schema}.{field}"
        );
    }
}

/// Collects what generators of clients do not understand.
fn collect_unreadable(schema: &Value, path: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let types = fields.get("type").and_then(Value::as_array);
            if types.is_some_and(|types| types.iter().any(|one| one == "array"))
                && !fields.contains_key("items")
            {
                found.push(format!("{path}: a list without items"));
            }
            let default = fields.get("default").and_then(Value::as_object);
            if default.is_some_and(|_| fields.contains_key("type")) {
                found.push(format!("{path}: an object as default"));
            }
            for (name, field) in fields {
                collect_unreadable(field, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_unreadable(item, path, found);
            }
        }
        _ => {}
    }
}

#[test]
fn schemas_are_of_the_kinds_that_clients_are_generated_from() {
    let document = document();
    let mut found = Vec::new();
    collect_unreadable(&document["components"]["schemas"], "", &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
    let events = &document["components"]["schemas"]["AgentRunEvent"]["oneOf"];
    for event in events.as_array().unwrap() {
        assert_eq!(event["type"], "object", "{event}");
    }
}
