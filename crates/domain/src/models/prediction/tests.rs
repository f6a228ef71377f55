use serde_json::{Map, Value, json};
use time::macros::datetime;

use super::*;
use crate::{
    data::write::Rows,
    ids::FileId,
    instruments::images::PixelSize,
    models::{Class, FeatureType, ModelFeature, ProblemType},
};

fn feature(name: &str, data_type: FeatureType) -> ModelFeature {
    ModelFeature {
        name: name.to_owned(),
        data_type,
        nullable: false,
        levels: None,
    }
}

fn rows(rows: Value) -> Rows {
    Rows::from_iter(serde_json::from_value::<Vec<Map<String, Value>>>(rows).unwrap())
}

fn signature(problem: ProblemType, classes: Option<Vec<Class>>) -> ModelSignature {
    ModelSignature {
        features: Vec::new(),
        problem,
        classes,
    }
}

fn two_classes() -> ModelSignature {
    let classes = vec![
        Class::Text("bad".to_owned()),
        Class::Text("good".to_owned()),
    ];
    signature(ProblemType::Binary, Some(classes))
}

#[test]
fn rows_become_columns_and_unknown_columns_are_ignored() {
    let file = FileId::new(uuid::Uuid::from_u128(7));
    let features = [
        feature("ph", FeatureType::Float),
        feature("count", FeatureType::Integer),
        feature("clear", FeatureType::Boolean),
        feature("name", FeatureType::String),
        feature("day", FeatureType::Date),
        feature("at", FeatureType::Datetime),
        feature("photo", FeatureType::Image),
    ];
    let given = rows(json!([
        {"ph": 7, "count": 3.0, "clear": true, "name": "a", "day": "2026-03-01",
         "at": "2026-03-01T12:00:00+01:00", "photo": file.to_string(), "remark": []},
        {"ph": null, "count": null, "clear": null, "name": null, "day": null, "at": null,
         "photo": file.to_string()},
    ]));
    let input = check_rows(&features, &given).unwrap();
    assert_eq!(input.rows, 2);
    let names: Vec<&str> = input.columns.iter().map(|column| &*column.name).collect();
    assert_eq!(
        names,
        ["ph", "count", "clear", "name", "day", "at", "photo"]
    );
    let values: Vec<FeatureValues> = input.columns.into_iter().map(|it| it.values).collect();
    let expected = [
        FeatureValues::Numbers(vec![Some(7.0), None]),
        FeatureValues::Numbers(vec![Some(3.0), None]),
        FeatureValues::Booleans(vec![Some(true), None]),
        FeatureValues::Texts(vec![Some("a".to_owned()), None]),
        FeatureValues::Times(vec![Some(datetime!(2026-03-01 00:00 UTC)), None]),
        FeatureValues::Times(vec![Some(datetime!(2026-03-01 11:00 UTC)), None]),
        FeatureValues::Images(vec![file, file]),
    ];
    assert_eq!(values, expected);
}

#[test]
fn every_problem_names_its_row_and_its_column() {
    let features = [
        feature("alcohol", FeatureType::Float),
        feature("clear", FeatureType::Boolean),
        feature("name", FeatureType::String),
        feature("day", FeatureType::Date),
        feature("at", FeatureType::Datetime),
        feature("photo", FeatureType::Image),
    ];
    let given = rows(json!([
        {"alcohol": "12", "clear": 1, "name": true, "day": "1.3.2026", "at": [], "photo": null},
        {"clear": false, "name": "b", "day": "2026-03-01", "at": "2026-03-01", "photo": "p.png"},
    ]));
    let problems = check_rows(&features, &given).unwrap_err();
    let lines: Vec<String> = problems.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "data[0].alcohol: expected a number, not the string \"12\"",
            "data[0].clear: expected true or false, not the number 1",
            "data[0].name: expected a string, not true",
            "data[0].day: expected a date such as \"2026-03-01\", not the string \"1.3.2026\"",
            "data[0].at: expected a datetime with its offset (RFC 3339), such as \
             \"2026-03-01T12:00:00Z\", not a list",
            "data[0].photo: expected the id of an image file, not null",
            "data[1].alcohol: this feature is missing",
            "data[1].at: expected a datetime with its offset (RFC 3339), such as \
             \"2026-03-01T12:00:00Z\", not the string \"2026-03-01\"",
            "data[1].photo: expected the id of an image file, not the string \"p.png\"",
        ]
    );
    assert_eq!(problems.to_string(), lines.join("; "));
}

#[test]
fn past_a_hundred_problems_are_counted_only() {
    let features = [feature("ph", FeatureType::Float)];
    let problems = check_rows(&features, &Rows::from_iter(vec![Map::new(); 1_350])).unwrap_err();
    assert_eq!((problems.problems.len(), problems.left_out), (100, 1_250));
    assert!(
        problems
            .to_string()
            .ends_with("data[99].ph: this feature is missing; and 1,250 more problems"),
        "{problems}"
    );
}

#[test]
fn a_long_value_is_cut_in_messages() {
    let features = [feature("ph", FeatureType::Float)];
    let given = rows(json!([{"ph": "x".repeat(1_000)}]));
    let message = check_rows(&features, &given).unwrap_err().to_string();
    assert!(message.len() < 150, "{message}");
}

#[test]
fn classes_are_those_of_the_model_with_their_probabilities() {
    let raw = RawPredictions {
        values: vec![
            Some(Class::Text("good".to_owned())),
            Some(Class::Text("bad".to_owned())),
        ],
        probabilities: Some(vec![
            vec![Some(0.25), Some(1.000_000_1)],
            vec![Some(0.75), None],
        ]),
        masks: None,
    };
    let predictions = Predictions::check(&two_classes(), 2, raw).unwrap();
    let good = PredictedValue::Class(Class::Text("good".to_owned()));
    assert_eq!(predictions.values[0], Some(good));
    assert_eq!(predictions.probabilities.unwrap().columns.len(), 2);
    // pandas turns a column of integers with nulls into floats.
    let numbers = signature(ProblemType::Multiclass, Some(vec![Class::Integer(3)]));
    let raw = RawPredictions {
        values: vec![Some(Class::Float(3.0))],
        probabilities: Some(vec![vec![Some(1.0)]]),
        masks: None,
    };
    let predictions = Predictions::check(&numbers, 1, raw).unwrap();
    let three = PredictedValue::Class(Class::Integer(3));
    assert_eq!(predictions.values, [Some(three)]);
}

#[test]
fn a_regression_predicts_numbers_without_probabilities() {
    let numbers = signature(ProblemType::Regression, None);
    let raw = RawPredictions {
        values: vec![Some(Class::Float(1.5)), None, Some(Class::Integer(2))],
        probabilities: None,
        masks: None,
    };
    let predictions = Predictions::check(&numbers, 3, raw).unwrap();
    let number = |number| Some(PredictedValue::Number(number));
    assert_eq!(predictions.values, [number(1.5), None, number(2.0)]);
    assert_eq!(predictions.probabilities, None);
}

#[test]
fn an_answer_that_does_not_fit_is_refused() {
    let text = |text: &str| Some(Class::Text(text.to_owned()));
    let halves = Some(vec![vec![Some(0.5)], vec![Some(0.5)]]);
    let response = |values: Vec<Option<Class>>, probabilities| RawPredictions {
        values,
        probabilities,
        masks: None,
    };
    let classes = two_classes();
    let numbers = signature(ProblemType::Regression, None);
    for (signature, raw, refusal) in [
        (
            &classes,
            response(vec![], halves.clone()),
            UnusablePredictions::Rows,
        ),
        (
            &classes,
            response(vec![text("good"); 2], halves.clone()),
            UnusablePredictions::Rows,
        ),
        (
            &classes,
            response(vec![text("ugly")], halves.clone()),
            UnusablePredictions::Value,
        ),
        (
            &classes,
            response(vec![None], halves.clone()),
            UnusablePredictions::Value,
        ),
        (
            &classes,
            response(vec![text("good")], None),
            UnusablePredictions::Probabilities,
        ),
        (
            &classes,
            response(vec![text("good")], Some(vec![vec![Some(1.0)]])),
            UnusablePredictions::Probabilities,
        ),
        (
            &classes,
            response(
                vec![text("good")],
                Some(vec![vec![Some(2.0)], vec![Some(0.0)]]),
            ),
            UnusablePredictions::Probabilities,
        ),
        (
            &classes,
            response(
                vec![text("good")],
                Some(vec![vec![Some(f64::NAN)], vec![Some(0.0)]]),
            ),
            UnusablePredictions::Probabilities,
        ),
        (
            &classes,
            response(vec![text("good")], Some(vec![vec![], vec![]])),
            UnusablePredictions::Probabilities,
        ),
        (
            &numbers,
            response(vec![text("1")], None),
            UnusablePredictions::Value,
        ),
        (
            &numbers,
            response(vec![Some(Class::Float(f64::INFINITY))], None),
            UnusablePredictions::Value,
        ),
        (
            &numbers,
            response(vec![Some(Class::Float(1.0))], halves.clone()),
            UnusablePredictions::Probabilities,
        ),
    ] {
        assert_eq!(Predictions::check(signature, 1, raw), Err(refusal));
    }
}

#[test]
fn a_predictor_names_classes_by_their_text() {
    assert!(Class::Boolean(true).is_named("true") && !Class::Boolean(true).is_named("True"));
    assert!(Class::Integer(3).is_named("3") && Class::Float(3.0).is_named("3.0"));
    assert!(Class::Text("3".to_owned()).is_named("3") && !Class::Integer(3).is_named("three"));
}

#[test]
fn every_delay_says_when_another_try_makes_sense() {
    for delay in [PredictionDelay::Preparing, PredictionDelay::Busy] {
        let wait = format!("try again in {} s", delay.retry_after_seconds());
        assert!(delay.to_string().ends_with(&wait), "{delay}");
    }
}

#[test]
fn the_masks_of_a_segmentation_are_checked() {
    let mask = PredictedMask {
        class: None,
        mask: "iVBO".to_owned(),
        size: PixelSize {
            width: 4,
            height: 2,
        },
        foreground_fraction: 0.5,
        confidence: 0.75,
    };
    let raw = |masks| RawPredictions {
        values: vec![Some(Class::Text("iVBO".to_owned()))],
        probabilities: None,
        masks,
    };
    let segmentation = signature(ProblemType::SemanticSegmentation, None);
    let check = |masks| Predictions::check(&segmentation, 1, raw(masks));
    let found = check(Some(vec![vec![mask.clone()]])).unwrap().masks;
    assert_eq!(found, Some(vec![vec![mask.clone()]]));
    assert_eq!(check(None).unwrap().masks, Some(vec![Vec::new()]));
    let unsure = PredictedMask {
        confidence: 1.5,
        ..mask.clone()
    };
    for masks in [vec![], vec![vec![unsure]]] {
        assert_eq!(check(Some(masks)), Err(UnusablePredictions::Masks));
    }
    let regression = signature(ProblemType::Regression, None);
    let response = RawPredictions {
        values: vec![None],
        probabilities: None,
        masks: Some(vec![vec![mask]]),
    };
    let refused = Predictions::check(&regression, 1, response);
    assert_eq!(refused, Err(UnusablePredictions::Masks));
}
