use serde_json::json;

use super::*;
use crate::{
    catalog::{Origin, SemanticCategory},
    models::{FeatureType, ModelFeature},
};

fn column(name: &str, data_type: DataType) -> Column {
    Column {
        id: None,
        name: name.to_owned(),
        description: None,
        label: None,
        unit: None,
        data_type,
        is_primary_key: false,
        is_nullable: true,
        is_unique: false,
        default: None,
        references: None,
    }
}

fn table() -> Table {
    let key = Column {
        is_primary_key: true,
        ..column("id", DataType::String)
    };
    let reference = Column {
        references: Some("plate".to_owned()),
        ..column("plate", DataType::String)
    };
    let others = DataType::ALL.map(|data_type| column(data_type.as_str(), data_type));
    Table {
        id: Some(1),
        name: "sample".to_owned(),
        description: None,
        category: SemanticCategory::Curated,
        origin: Origin::Organization,
        columns: [key, reference, column("ph", DataType::Float)]
            .into_iter()
            .chain(others)
            .collect(),
        unique_together: Vec::new(),
        history: true,
        access: crate::catalog::TableAccess::default(),
    }
}

fn model(problem: ProblemType, classes: Option<Vec<Class>>) -> ModelSignature {
    ModelSignature {
        features: vec![ModelFeature {
            name: "ph".to_owned(),
            data_type: FeatureType::Float,
            nullable: false,
            levels: None,
        }],
        problem,
        classes,
    }
}

/// Types of columns that can hold the predictions.
fn accepted(signature: &ModelSignature) -> Vec<&'static str> {
    let fits = |data_type: &DataType| {
        TablePrediction::plan(&table(), signature, data_type.as_str()).is_ok()
    };
    let all = DataType::ALL.into_iter().filter(fits);
    all.map(DataType::as_str).collect()
}

#[test]
fn the_type_of_the_output_column_fits_the_predictions() {
    let classes = |classes: Vec<Class>| model(ProblemType::Multiclass, Some(classes));
    assert_eq!(accepted(&model(ProblemType::Regression, None)), ["float"]);
    assert_eq!(
        accepted(&classes(vec![Class::Boolean(false), Class::Boolean(true)])),
        ["string", "text", "boolean"]
    );
    assert_eq!(
        accepted(&classes(vec![Class::Integer(1), Class::Integer(2)])),
        ["string", "text", "integer", "float"]
    );
    assert_eq!(
        accepted(&classes(vec![Class::Integer(1), Class::Float(1.5)])),
        ["string", "text", "float"]
    );
    assert_eq!(
        accepted(&classes(vec![
            Class::Text("a".to_owned()),
            Class::Integer(1)
        ])),
        ["string", "text"]
    );
    let masks = model(ProblemType::SemanticSegmentation, None);
    assert_eq!(
        TablePrediction::plan(&table(), &masks, "float"),
        Err(vec![InvalidTablePrediction::Masks])
    );
}

#[test]
fn keys_references_features_and_raw_tables_take_no_predictions() {
    let numbers = model(ProblemType::Regression, None);
    let refusal = |output: &str| TablePrediction::plan(&table(), &numbers, output).unwrap_err();
    for key in ["id", "plate"] {
        let expected = InvalidTablePrediction::OutputIsKey(key.to_owned());
        assert_eq!(refusal(key), [expected]);
    }
    let expected = InvalidTablePrediction::OutputIsFeature("ph".to_owned());
    assert_eq!(refusal("ph"), [expected]);
    let mut raw = table();
    raw.columns = raw.columns.without(&raw.columns[0]);
    let expected = InvalidTablePrediction::RawTable("sample".to_owned());
    assert_eq!(
        TablePrediction::plan(&raw, &numbers, "float"),
        Err(vec![expected])
    );
}

#[test]
fn predictions_become_cells_of_the_column() {
    let cell = |output: &str, class: Class| {
        let classes = model(ProblemType::Multiclass, Some(vec![class.clone()]));
        let plan = TablePrediction::plan(&table(), &classes, output).unwrap();
        plan.cell(Some(PredictedValue::Class(class)))
    };
    assert_eq!(cell("integer", Class::Integer(3)), Cell::Integer(3));
    assert_eq!(cell("text", Class::Integer(3)), Cell::Text("3".to_owned()));
    assert_eq!(cell("boolean", Class::Boolean(true)), Cell::Boolean(true));
    assert_eq!(
        cell("string", Class::Boolean(true)),
        Cell::Text("true".to_owned())
    );
    let numbers = model(ProblemType::Regression, None);
    let plan = TablePrediction::plan(&table(), &numbers, "float").unwrap();
    assert_eq!(
        plan.cell(Some(PredictedValue::Number(1.5))),
        Cell::Float(1.5)
    );
    assert_eq!(plan.cell(None), Cell::Null);
}

#[test]
fn problems_of_rows_name_their_keys() {
    let numbers = model(ProblemType::Regression, None);
    let plan = TablePrediction::plan(&table(), &numbers, "float").unwrap();
    let rows = [
        json!({"id": "s1", "ph": "acid"}),
        json!({"id": "s2", "ph": true}),
    ];
    let rows: Vec<Map<String, Value>> = rows
        .into_iter()
        .map(|row| serde_json::from_value(row).unwrap())
        .collect();
    let keys: Vec<Cell> = rows.iter().map(|row| plan.key_of(row)).collect();
    let problems =
        crate::models::check_rows(&numbers.features, &rows.into_iter().collect()).unwrap_err();
    assert_eq!(
        plan.describe(&problems, &keys),
        "row \"s1\", column \"ph\": expected a number, not the string \"acid\"; \
         row \"s2\", column \"ph\": expected a number, not true"
    );
}
