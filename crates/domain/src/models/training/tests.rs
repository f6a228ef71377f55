//! The checks of trainings, each as a sentence.

use std::collections::BTreeSet;

use time::OffsetDateTime;
use uuid::Uuid;

use super::*;
use crate::{
    files::ObjectKey,
    ids::{DatasetId, UserId},
    models::{ColumnProfile, DatasetSource},
};

fn column(name: &str, data_type: DataType, distinct: Option<u64>) -> DatasetColumn {
    DatasetColumn {
        name: name.to_owned(),
        data_type,
        profile: ColumnProfile { nulls: 0, distinct },
    }
}

fn dataset() -> Dataset {
    Dataset {
        id: DatasetId::new(Uuid::from_u128(1)),
        name: "wines".to_owned(),
        description: None,
        columns: vec![
            column("alcohol", DataType::Float, None),
            column("cultivar", DataType::Integer, Some(3)),
            column("serial", DataType::Integer, Some(178)),
            column("is_red", DataType::Boolean, Some(2)),
            column("region", DataType::String, Some(2)),
            column("maker", DataType::Text, None),
            column("label", DataType::Uuid, None),
            column("bottled", DataType::Date, Some(9)),
            column("notes", DataType::Json, None),
        ],
        row_count: 178,
        source: DatasetSource::Query("SELECT * FROM wine".to_owned()),
        tables: BTreeSet::new(),
        object: ObjectKey::new(Uuid::from_u128(2)),
        size: 9_000,
        created_by: UserId::new(Uuid::from_u128(3)),
        created_at: OffsetDateTime::UNIX_EPOCH,
    }
}

fn request(target: &str) -> TrainingRequest {
    TrainingRequest {
        target: target.to_owned(),
        ..TrainingRequest::default()
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn problem(target: &str) -> Option<ProblemType> {
    request(target)
        .plan(&dataset())
        .ok()
        .map(|plan| plan.problem)
}

fn refusals(request: TrainingRequest) -> Vec<String> {
    let problems = request.plan(&dataset()).expect_err("a refusal");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn the_problem_type_follows_from_the_target() {
    assert_eq!(problem("is_red"), Some(ProblemType::Binary));
    assert_eq!(problem("region"), Some(ProblemType::Binary));
    assert_eq!(problem("cultivar"), Some(ProblemType::Multiclass));
    assert_eq!(problem("maker"), Some(ProblemType::Multiclass));
    assert_eq!(problem("serial"), Some(ProblemType::Regression));
    assert_eq!(problem("alcohol"), Some(ProblemType::Regression));
}

#[test]
fn times_and_json_are_not_predicted() {
    for problem in [None, Some(ProblemType::Multiclass)] {
        for (target, data_type) in [("bottled", "date"), ("notes", "json")] {
            let asked = TrainingRequest {
                problem,
                ..request(target)
            };
            let expected = format!(
                "target_column \"{target}\": a model cannot use a column of type {data_type}"
            );
            assert_eq!(refusals(asked), [expected]);
        }
    }
}

#[test]
fn a_given_problem_type_must_fit_the_target() {
    let asked = |target, problem| TrainingRequest {
        problem: Some(problem),
        ..request(target)
    };
    assert_eq!(
        refusals(asked("cultivar", ProblemType::Binary)),
        ["problem_type \"binary\" needs a target with two values; \"cultivar\" has 3"]
    );
    assert_eq!(
        refusals(asked("maker", ProblemType::Binary)),
        ["problem_type \"binary\" needs a target with two values; \"maker\" has more than 1,000"]
    );
    assert_eq!(
        refusals(asked("region", ProblemType::Regression)),
        ["problem_type \"regression\" needs a numeric target; \"region\" has type string"]
    );
    let pixels = refusals(asked("region", ProblemType::SemanticSegmentation));
    assert_eq!(pixels, [InvalidTraining::SegmentationElsewhere.to_string()]);
    for (target, problem) in [
        ("cultivar", ProblemType::Regression),
        ("is_red", ProblemType::Binary),
        ("is_red", ProblemType::Multiclass),
    ] {
        let plan = asked(target, problem).plan(&dataset()).expect("it fits");
        assert_eq!(plan.problem, problem);
    }
}

#[test]
fn all_columns_that_can_be_used_are_features_unless_some_are_named() {
    let plan = request("cultivar").plan(&dataset()).expect("a plan");
    assert_eq!(
        plan.features,
        names(&[
            "alcohol", "serial", "is_red", "region", "maker", "label", "bottled"
        ])
    );
    let chosen = TrainingRequest {
        features: Some(names(&["region", "alcohol"])),
        ..request("cultivar")
    };
    let plan = chosen.plan(&dataset()).expect("a plan");
    assert_eq!(plan.features, names(&["alcohol", "region"]));
    assert_eq!(plan.task, TaskType::Tabular);
}

#[test]
fn every_problem_of_the_columns_is_reported() {
    let asked = TrainingRequest {
        features: Some(names(&["alcohol", "acid", "notes", "alcohol", "cultivar"])),
        ..request("cultivar")
    };
    assert_eq!(
        refusals(asked),
        [
            "feature_columns \"acid\": the dataset has no such column",
            "feature_columns \"notes\": a model cannot use a column of type json",
            "column \"alcohol\" is named more than once in target, features and images",
            "column \"cultivar\" is named more than once in target, features and images",
        ]
    );
    assert_eq!(
        refusals(request("price")),
        ["target_column \"price\": the dataset has no such column"]
    );
}

#[test]
fn a_model_learns_from_something() {
    let none = TrainingRequest {
        features: Some(Vec::new()),
        ..request("cultivar")
    };
    assert_eq!(
        refusals(none),
        [InvalidTraining::NoFeaturesNamed.to_string()]
    );
    let lonely = Dataset {
        columns: vec![column("cultivar", DataType::Integer, Some(3))],
        row_count: 0,
        ..dataset()
    };
    let problems = request("cultivar").plan(&lonely).expect_err("a refusal");
    assert_eq!(
        problems,
        [InvalidTraining::NoRows, InvalidTraining::NoFeatures]
    );
}

#[test]
fn a_target_has_enough_rows_and_two_values() {
    let of = |rows, nulls, distinct, data_type| Dataset {
        row_count: rows,
        columns: vec![
            column("x", DataType::Float, None),
            DatasetColumn {
                profile: ColumnProfile { nulls, distinct },
                ..column("y", data_type, distinct)
            },
        ],
        ..dataset()
    };
    let refused = |dataset: Dataset| {
        let plan = request("y").plan(&dataset);
        plan.err().map(|problems| problems[0].to_string())
    };
    let (float, text) = (DataType::Float, DataType::Text);
    assert_eq!(refused(of(12, 2, Some(2), float)), None);
    assert_eq!(refused(of(2_000, 0, None, float)), None);
    assert_eq!(
        refused(of(12, 3, Some(2), float)).unwrap(),
        "target_column \"y\": the column has a value in 9 rows; training needs at least 10"
    );
    assert_eq!(
        refused(of(12, 12, Some(0), text)).unwrap(),
        "target_column \"y\": the column has no value in any row"
    );
    for data_type in [float, text, DataType::Boolean] {
        assert_eq!(
            refused(of(12, 0, Some(1), data_type)).unwrap(),
            "target_column \"y\": every row has the same value; a model needs at least two different values"
        );
    }
    assert_eq!(
        refused(of(0, 0, Some(0), float)).unwrap(),
        "the dataset has no rows"
    );
}

#[test]
fn masks_may_be_of_several_images() {
    let masks = Dataset {
        columns: vec![
            column("image", DataType::Text, Some(12)),
            column("mask", DataType::Text, Some(1)),
        ],
        row_count: 12,
        ..dataset()
    };
    let asked = TrainingRequest {
        task: Some(TaskType::Segmentation),
        images: names(&["image"]),
        ..request("mask")
    };
    assert!(asked.plan(&masks).is_ok());
}

#[test]
fn images_make_a_training_multimodal() {
    let asked = TrainingRequest {
        images: names(&["label"]),
        ..request("cultivar")
    };
    let plan = asked.clone().plan(&dataset()).expect("a plan");
    assert_eq!(plan.task, TaskType::Multimodal);
    assert!(!plan.features.contains(&"label".to_owned()));
    let tabular = TrainingRequest {
        task: Some(TaskType::Tabular),
        ..asked.clone()
    };
    assert_eq!(
        refusals(tabular),
        [InvalidTraining::ImagesOfTabular.to_string()]
    );
    let numbers = TrainingRequest {
        images: names(&["alcohol"]),
        ..asked
    };
    assert_eq!(
        refusals(numbers),
        ["image_columns \"alcohol\": ids of files are texts or UUIDs, not float"]
    );
}

#[test]
fn segmentation_learns_from_one_image_and_predicts_masks() {
    let asked = TrainingRequest {
        task: Some(TaskType::Segmentation),
        images: names(&["label"]),
        ..request("maker")
    };
    let plan = asked.clone().plan(&dataset()).expect("a plan");
    assert_eq!(plan.problem, ProblemType::SemanticSegmentation);
    assert_eq!(plan.features, names(&[]));
    let without = TrainingRequest {
        images: Vec::new(),
        ..asked.clone()
    };
    assert_eq!(
        refusals(without),
        [InvalidTraining::InputOfSegmentation.to_string()]
    );
    let with_features = TrainingRequest {
        features: Some(names(&["alcohol"])),
        ..asked.clone()
    };
    assert_eq!(
        refusals(with_features),
        [InvalidTraining::InputOfSegmentation.to_string()]
    );
    let other = TrainingRequest {
        problem: Some(ProblemType::Binary),
        target: "alcohol".to_owned(),
        ..asked
    };
    assert_eq!(
        refusals(other),
        [
            InvalidTraining::SegmentationElsewhere.to_string(),
            "target_column \"alcohol\": a model cannot use a column of type float".to_owned(),
        ]
    );
}
