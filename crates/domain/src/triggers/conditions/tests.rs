//! Conditions of triggers and what matches them.

use serde_json::json;

use super::*;

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => panic!("not an object"),
    }
}

fn files(conditions: Value) -> FileConditions {
    match Conditions::parse(Category::FileUploaded, &map(conditions)) {
        Ok(Conditions::FileUploaded(conditions)) => conditions,
        other => panic!("{other:?}"),
    }
}

fn file(path: &str, source: SourceType, size_kilobytes: u64) -> FileFacts {
    FileFacts {
        path: FilePath::parse(path).unwrap(),
        source,
        size_kilobytes,
        has_reader: false,
    }
}

#[test]
fn without_conditions_every_file_matches() {
    for conditions in [
        json!({}),
        json!({"file_extensions": [], "source_type": null}),
    ] {
        let any = file("a", SourceType::JobArtifact, 0);
        assert!(files(conditions).matches(&any));
    }
}

#[test]
fn every_condition_must_hold() {
    let conditions = files(
        json!({"file_name_pattern": "plate*", "file_extensions": ["csv", ".TXT"],
        "source_type": "manual_upload", "min_size_kb": 2, "max_size_kb": 3.0}),
    );
    let manual = SourceType::ManualUpload;
    for path in ["plate.csv", "runs/plate 7.txt", "plate.CSV"] {
        assert!(conditions.matches(&file(path, manual, 2)), "{path}");
        assert!(conditions.matches(&file(path, manual, 3)), "{path}");
    }
    for other in [
        file("Plate.csv", manual, 2),
        file("plate.tsv", manual, 2),
        file("platecsv", manual, 2),
        file("plate.csv", SourceType::JobArtifact, 2),
        file("plate.csv", manual, 1),
        file("plate.csv", manual, 4),
    ] {
        assert!(!conditions.matches(&other), "{other:?}");
    }
}

#[test]
fn a_finished_execution_matches_by_its_status() {
    let id = "0191d5a4-0000-7000-8000-000000000000";
    for (conditions, matching) in [
        (json!({"source_job_id": id}), vec!["completed"]),
        (
            json!({"source_job_id": id, "statuses": ["failed", "cancelled"]}),
            vec!["failed", "cancelled"],
        ),
    ] {
        let parsed = Conditions::parse(Category::JobCompleted, &map(conditions)).unwrap();
        let Conditions::JobCompleted(parsed) = parsed else {
            panic!("{parsed:?}");
        };
        assert_eq!(parsed.source.to_string(), id);
        for status in ["completed", "failed", "cancelled", "running"] {
            assert_eq!(
                parsed.matches(status),
                matching.contains(&status),
                "{status}"
            );
        }
    }
}

#[test]
fn bad_conditions_are_refused_naming_what_is_wrong() {
    let id = "0191d5a4-0000-7000-8000-000000000000";
    for (category, conditions, word) in [
        (Category::FileUploaded, json!({"pattern": "*"}), "pattern"),
        (
            Category::FileUploaded,
            json!({"file_name_pattern": ""}),
            "file_name_pattern",
        ),
        (
            Category::FileUploaded,
            json!({"file_name_pattern": 5}),
            "file_name_pattern",
        ),
        (
            Category::FileUploaded,
            json!({"file_extensions": "csv"}),
            "file_extensions",
        ),
        (
            Category::FileUploaded,
            json!({"file_extensions": ["."]}),
            "file_extensions",
        ),
        (
            Category::FileUploaded,
            json!({"source_type": "fax"}),
            "source_type",
        ),
        (
            Category::FileUploaded,
            json!({"min_size_kb": -1}),
            "min_size_kb",
        ),
        (
            Category::FileUploaded,
            json!({"max_size_kb": 0.5}),
            "max_size_kb",
        ),
        (
            Category::FileUploaded,
            json!({"min_size_kb": 2, "max_size_kb": 1}),
            "greater",
        ),
        (Category::FileUploaded, json!({"cron": "* * * * *"}), "cron"),
        (Category::JobCompleted, json!({}), "source_job_id"),
        (
            Category::JobCompleted,
            json!({"source_job_id": "x"}),
            "source_job_id",
        ),
        (
            Category::JobCompleted,
            json!({"source_job_id": id, "statuses": []}),
            "statuses",
        ),
        (
            Category::JobCompleted,
            json!({"source_job_id": id, "statuses": ["running"]}),
            "statuses",
        ),
        (Category::Schedule, json!({}), "cron"),
        (Category::Schedule, json!({"cron": "* * * *"}), "cron"),
        (Category::Schedule, json!({"cron": 5}), "cron"),
        (
            Category::Schedule,
            json!({"cron": "* * * * *", "timezone": "Mars/Olympus"}),
            "Mars/Olympus",
        ),
        (
            Category::Schedule,
            json!({"cron": "* * * * *", "timezone": 1}),
            "timezone",
        ),
    ] {
        let error = Conditions::parse(category, &map(conditions.clone())).unwrap_err();
        assert!(error.to_string().contains(word), "{conditions}: {error}");
    }
}

#[test]
fn limits_of_conditions_are_still_accepted() {
    let extensions = |count: usize| {
        let extensions: Vec<String> = (0..count).map(|number| format!("e{number}")).collect();
        let conditions = map(json!({ "file_extensions": extensions }));
        Conditions::parse(Category::FileUploaded, &conditions)
    };
    assert!(extensions(100).is_ok());
    assert!(extensions(101).is_err());
    let exact = files(json!({"min_size_kb": 2, "max_size_kb": 2}));
    assert!(exact.matches(&file("a", SourceType::ManualUpload, 2)));
}
