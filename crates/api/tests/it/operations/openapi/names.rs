//! Names and types that clients are generated from.

use labdata_api::routes::openapi;
use serde_json::Value;

fn document() -> Value {
    serde_json::to_value(openapi()).unwrap()
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
        assert!(!name.ends_with("View"), "{name}");
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
