//! The tools of tables in files, datasets and models.

use labdata_application::{
    agent::tools::{RunWrites, ToolContext},
    files::upload_file::UploadFile,
    models::{
        create_dataset::{CreateDataset, create_dataset},
        take_snapshot::{SnapshotSource, take_snapshot},
    },
};
use labdata_domain::{
    agent::{ToolCall, ToolInput, ToolOutput},
    files::{FilePath, ObjectKey},
    ids::OrganizationId,
    instruments::Instrument,
    models::{Artifact, TrainingBackend, TrainingEnd, TrainingResult},
    people::{
        actor::Actor,
        scope::Scope::{Read, Write},
    },
    work::{FreeSlots, WorkEnd, WorkKind},
};
use labdata_memory::ScriptedModel;
use labdata_ports::work::ClaimTerms;
use serde_json::{Value, json};
use time::Duration;

use super::harness::agent;
use crate::{files::upload_file, lab::Lab};

const WINES: &str = "alcohol,hue,cultivar\n13.2,1.05,0\n12.4,0.9,1\n14.1,,0\n";

/// Calls a tool with the rights of an actor.
async fn call_tool(lab: &Lab, actor: &Actor, name: &str, input: Value) -> ToolOutput {
    let Value::Object(input) = input else {
        panic!("{input}");
    };
    let call = ToolCall {
        id: "call".to_owned(),
        name: name.to_owned(),
        input: ToolInput::Object(input),
        provider_data: None,
    };
    let agent = agent(lab, &ScriptedModel::new(Vec::new()));
    let context = ToolContext {
        services: &lab.services,
        actor,
        agent: &agent,
        writes: &RunWrites::default(),
    };
    agent.tools.call(&context, &call).await
}

/// Stores a file; returns its id.
async fn file(lab: &Lab, actor: &Actor, name: &str, text: &str) -> String {
    let instrument = Instrument {
        id: lab.services.ids.next_id().into(),
        name: name.to_owned(),
        description: None,
        instrument_type: None,
        reader: None,
        timezone: None,
        last_reader: None,
        created_at: lab.services.clock.now(),
    };
    let instruments = &lab.services.instruments;
    let added = instruments.add(actor.organization, &instrument).await;
    added.unwrap();
    let command = UploadFile {
        path: FilePath::parse(name).unwrap(),
        content_type: None,
        execution: None,
        instrument: Some(instrument.id),
        source: None,
        bytes: text.to_owned().into(),
    };
    let file = upload_file(&lab.services, actor, command).await.unwrap();
    file.id.to_string()
}

/// Makes a dataset of the wines; returns its id.
async fn dataset(lab: &Lab, actor: &Actor) -> String {
    // Enough rows for a training.
    let more = "11.5,0.8,1\n12.5,0.8,1\n".repeat(5);
    let file = file(lab, actor, "wines.csv", &format!("{WINES}{more}")).await;
    let source = SnapshotSource::File(file.parse().unwrap(), Box::default());
    let snapshot = take_snapshot(&lab.services, actor, source).await.unwrap();
    let command = CreateDataset {
        name: "wines".to_owned(),
        description: None,
        snapshot,
    };
    let created = create_dataset(&lab.services, actor, command).await.unwrap();
    created.dataset.id.to_string()
}

/// Lets trainings be queued.
async fn worker(lab: &Lab) {
    let backend = TrainingBackend {
        worker: lab.services.ids.next_id(),
        checked_at: lab.services.clock.now(),
        missing: None,
    };
    lab.services
        .trainings
        .record_backend(&backend)
        .await
        .unwrap();
}

/// Ends the training in the queue as ready.
async fn finish_training(lab: &Lab) {
    let result = TrainingResult::from_json(json!({
        "problem_type": "regression",
        "classes": null,
        "metrics": { "r2": { "value": 0.9, "higher_is_better": true } },
        "primary_metric": "r2",
        "leaderboard": [],
        "feature_importance": [],
        "confusion_matrix": null,
        "residuals": [],
        "rows": { "train": 2, "test": 1 },
        "features": [
            { "name": "alcohol", "data_type": "float", "nullable": false, "levels": null },
            { "name": "hue", "data_type": "float", "nullable": true, "levels": null },
        ],
        "versions": {},
        "artifact": { "sha256": "0b".repeat(32), "size": 10 },
    }));
    let result = result.unwrap();
    let (work, now) = (&lab.services.work, lab.services.clock.now());
    let terms = ClaimTerms {
        now,
        lease: Duration::MINUTE,
        timeout: Duration::HOUR,
    };
    let claimed = work.claim(WorkKind::Training, FreeSlots::for_any(1), terms);
    let claim = claimed.await.unwrap().remove(0).claim;
    let artifact = Artifact {
        object: ObjectKey::new(lab.services.ids.next_id()),
        sha256: result.artifact.sha256,
        size: result.artifact.size,
    };
    let end = WorkEnd::Training(TrainingEnd::Ready(Box::new(result), artifact));
    work.finish(claim, &end, now).await.unwrap().unwrap();
}

fn json_of(output: &ToolOutput) -> Value {
    assert!(!output.is_error, "{}", output.text);
    serde_json::from_str(&output.text).unwrap()
}

#[tokio::test]
async fn the_table_of_a_file_has_typed_columns_and_first_rows() {
    let lab = Lab::new().await;
    let writer = lab.actor(&[Read, Write]);
    let id = file(&lab, &writer, "wines.csv", WINES).await;
    let reader = lab.actor(&[Read]);
    let output = call_tool(
        &lab,
        &reader,
        "parse_table",
        json!({ "file_id": id, "rows": 1 }),
    )
    .await;
    let expected = json!({
        "original_path": "wines.csv",
        "columns": [
            { "name": "alcohol", "data_type": "float", "unit": null },
            { "name": "hue", "data_type": "float", "unit": null },
            { "name": "cultivar", "data_type": "integer", "unit": null },
        ],
        "row_count": 3,
        "rows_shown": 1,
        "data": [[13.2, 1.05, 0]],
    });
    let mut found = json_of(&output);
    let reading = found["reading"].take();
    assert_eq!(reading["delimiter"], ",");
    assert_eq!(found["doubts"].take(), json!([]));
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(found[name], *value, "{name}");
    }
    let all = call_tool(&lab, &reader, "parse_table", json!({ "file_id": id })).await;
    assert_eq!(json_of(&all)["data"][2], json!([14.1, null, 0]));
}

#[tokio::test]
async fn files_that_are_no_tables_are_refused() {
    let lab = Lab::new().await;
    let writer = lab.actor(&[Write]);
    let reader = lab.actor(&[Read]);
    let empty = file(&lab, &writer, "empty.csv", "\n\n").await;
    let text = file(&lab, &writer, "notes.txt", "a,b\n1,2\n").await;
    let read = call_tool(&lab, &reader, "parse_table", json!({ "file_id": text })).await;
    assert_eq!(json_of(&read)["data"], json!([[1, 2]]));
    let elsewhere = Actor {
        organization: OrganizationId::new(lab.services.ids.next_id()),
        ..lab.actor(&[Read])
    };
    for (actor, id, refusal) in [
        (&reader, empty.as_str(), "the file is empty"),
        (&reader, "none", "file not found"),
        (&elsewhere, text.as_str(), "file not found"),
        (&writer, text.as_str(), "this API key lacks the read scope"),
    ] {
        let output = call_tool(&lab, actor, "parse_table", json!({ "file_id": id })).await;
        assert!(output.is_error);
        assert!(output.text.starts_with(refusal), "{}", output.text);
    }
}

#[tokio::test]
async fn a_model_is_trained_and_predicts() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Read, Write]);
    let dataset = dataset(&lab, &actor).await;
    let listed = json_of(&call_tool(&lab, &actor, "list_datasets", json!({})).await);
    assert_eq!(listed["items"][0]["id"], dataset);
    assert_eq!(listed["items"][0]["columns"][2]["name"], "cultivar");

    let training = json!({ "name": "cultivar", "dataset_id": dataset, "target_column": "cultivar",
        "problem_type": "regression" });
    let idle = call_tool(&lab, &actor, "train_model", training.clone()).await;
    assert!(
        idle.is_error && idle.text.contains("no worker"),
        "{}",
        idle.text
    );
    worker(&lab).await;
    let trained = json_of(&call_tool(&lab, &actor, "train_model", training.clone()).await);
    assert_eq!(trained["status"], "pending");
    assert_eq!(trained["effects"], json!([]));
    let taken = call_tool(&lab, &actor, "train_model", training).await;
    assert!(taken.is_error, "{}", taken.text);
    finish_training(&lab).await;

    let models = json_of(&call_tool(&lab, &actor, "list_ml_models", json!({})).await);
    assert_eq!(models["items"][0]["status"], "ready");
    assert_eq!(models["items"][0]["evaluation_metrics"]["r2"], 0.9);
    let rows = json!([{ "alcohol": 13.0, "hue": 1.0 }, { "alcohol": 1.0, "hue": null }]);
    let input = json!({ "ml_model_name": "cultivar", "data": rows });
    let predicted = json_of(&call_tool(&lab, &actor, "predict", input).await);
    assert_eq!(predicted["predictions"], json!([14.0, 1.0]));
    assert_eq!(predicted["probabilities"], Value::Null);
    let missing = json!({ "ml_model_name": "cultivar", "data": [{ "alcohol": 13.0 }] });
    let missing = call_tool(&lab, &actor, "predict", missing).await;
    assert!(
        missing.is_error && missing.text.contains("hue"),
        "{}",
        missing.text
    );
}

#[tokio::test]
async fn another_version_and_a_cancellation_name_their_effects() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Read, Write]);
    let dataset = dataset(&lab, &actor).await;
    worker(&lab).await;
    let training = json!({ "name": "c", "dataset_id": dataset, "target_column": "alcohol" });
    let trained = json_of(&call_tool(&lab, &actor, "train_model", training).await);
    let id = trained["id"].clone();
    let again = json!({ "ml_model_id": id, "dataset_id": dataset, "target_column": "alcohol" });
    let again = json_of(&call_tool(&lab, &actor, "train_model", again).await);
    assert_eq!(again["version_number"], 2);
    assert!(
        again["effects"][0]
            .as_str()
            .unwrap()
            .contains("predicts with this version")
    );
    let cancel = json!({ "ml_model_id": id });
    let cancelled = json_of(&call_tool(&lab, &actor, "cancel_training", cancel.clone()).await);
    assert_eq!(cancelled["status"], "cancelled");
    assert!(
        cancelled["effects"][0]
            .as_str()
            .unwrap()
            .contains("stopped")
    );
    let idle = call_tool(&lab, &actor, "cancel_training", cancel.clone()).await;
    assert!(idle.is_error);
    let reader = lab.actor(&[Read]);
    for tool in ["train_model", "cancel_training"] {
        let refused = call_tool(&lab, &reader, tool, cancel.clone()).await;
        assert!(
            refused.text.contains("lacks the write scope"),
            "{}",
            refused.text
        );
    }
}

#[tokio::test]
async fn an_input_of_another_shape_is_explained() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Read, Write]);
    let output = call_tool(&lab, &actor, "predict", json!({ "data": [] })).await;
    assert!(output.is_error);
    assert!(output.text.contains("arguments.data"), "{}", output.text);
}
