use serde_json::json;

use super::*;

fn reported() -> Value {
    json!({
        "training_id": "x", "attempt": 1, "task_type": "tabular",
        "problem_type": "multiclass", "target_column": "cultivar",
        "classes": [0, 1.5, "zwei", true],
        "metrics": {"accuracy": {"value": 0.97, "higher_is_better": true}},
        "primary_metric": "accuracy",
        "leaderboard": [
            {"model": "LightGBM", "score": 0.97, "validation_score": null, "fit_seconds": 1.5, "predict_seconds": 0.01},
        ],
        "feature_importance": [{"feature": "alcohol", "importance": 0.2, "stddev": null}],
        "confusion_matrix": {"labels": [0, 1], "counts": [[10, 1], [0, 9]]},
        "residuals": null,
        "rows": {"train": 142, "test": 36},
        "features": [
            {"name": "alcohol", "data_type": "float", "nullable": false, "levels": null},
            {"name": "region", "data_type": "string", "nullable": true, "levels": ["Süd", "Nord"]},
        ],
        "versions": {"python": "3.12.1"},
        "artifact": {"file": "artifact.tar.zst", "sha256": "ab".repeat(32), "size": 12_345},
    })
}

pub(crate) fn result() -> TrainingResult {
    TrainingResult::from_json(reported()).unwrap()
}

/// The refusal of the result with another value in one field.
fn refusal(field: &str, value: Value) -> String {
    let mut json = reported();
    json[field] = value;
    TrainingResult::from_json(json).unwrap_err().to_string()
}

#[test]
fn a_result_is_read_with_every_type_of_class() {
    let result = result();
    let classes = [
        Class::Integer(0),
        Class::Float(1.5),
        Class::Text("zwei".to_owned()),
        Class::Boolean(true),
    ];
    assert_eq!(result.classes.as_deref(), Some(&classes[..]));
    assert_eq!(result.artifact.sha256, [0xab; 32]);
    assert_eq!(result.features[0].data_type, FeatureType::Float);
    assert_eq!(result.leaderboard[0].validation_score, None);
}

#[test]
fn a_result_reads_back_as_it_was_written() {
    let written = serde_json::to_value(result()).unwrap();
    assert_eq!(TrainingResult::from_json(written), Ok(result()));
}

#[test]
fn a_result_that_contradicts_itself_is_refused() {
    for (field, value, expected) in [
        ("classes", Value::Null, "classification"),
        ("problem_type", json!("regression"), "classification"),
        ("primary_metric", json!("iou"), "primary metric"),
        (
            "confusion_matrix",
            json!({"labels": [0, 1], "counts": [[1, 2]]}),
            "not square",
        ),
        ("problem_type", json!("quantile"), "unknown variant"),
        ("artifact", json!({"sha256": "xy", "size": 1}), "SHA-256"),
        (
            "artifact",
            json!({"sha256": "+1".repeat(32), "size": 1}),
            "SHA-256",
        ),
        ("rows", json!({"train": -1, "test": 0}), "invalid value"),
    ] {
        let refusal = refusal(field, value);
        assert!(refusal.contains(expected), "{field}: {refusal}");
    }
}

#[test]
fn a_result_without_bounds_is_refused() {
    let residual = json!({"actual": 1, "predicted": 2});
    let model = json!({"model": "x"});
    let labels: Vec<u32> = (0..101).collect();
    let counts = vec![vec![0; 101]; 101];
    for (field, value) in [
        ("residuals", json!(vec![residual; MAX_RESIDUALS + 1])),
        ("leaderboard", json!(vec![model; MAX_MODELS + 1])),
        ("classes", json!(["a\0b"])),
        ("versions", json!({"python": "x".repeat(MAX_TEXT + 1)})),
        (
            "confusion_matrix",
            json!({"labels": labels, "counts": counts}),
        ),
    ] {
        let refusal = refusal(field, value);
        assert!(refusal.contains("too l"), "{field}: {refusal}");
    }
}
