//! Rules of definitions.

use serde_json::{Value, json};

use super::*;

fn resolve(definition: &TableDefinition) -> Table {
    definition.resolve(&lab()).unwrap()
}

/// Fails unless the definition has one problem, which contains the text.
fn refused(definition: &TableDefinition, text: &str) {
    let problems = definition.resolve(&lab()).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains(text), "{problems:?} lack {text:?}");
}

fn refused_column(column: ColumnDefinition, text: &str) {
    refused(&curated("plate", vec![column]), text);
}

fn with_default(column: ColumnDefinition, default: Value) -> ColumnDefinition {
    ColumnDefinition {
        default: Some(default),
        ..column
    }
}

#[test]
fn names_of_tables_and_columns_must_be_valid() {
    refused(&curated("Plate", vec![]), "\"Plate\" is no valid name");
    refused_column(
        column("Well", DataType::String),
        "\"Well\" is no valid name",
    );
}

#[test]
fn names_of_core_and_platform_tables_are_taken() {
    for name in ["experiment", "carrier", "job", "file"] {
        refused(&curated(name, vec![]), "the platform's own tables");
    }
    resolve(&curated("experiments", vec![]));
}

#[test]
fn a_description_has_at_most_10000_characters_and_no_nul() {
    let described = |description: &str| TableDefinition {
        description: Some(description.to_owned()),
        ..curated("plate", vec![])
    };
    resolve(&described(&"ü".repeat(10_000)));
    refused(&described(&"ü".repeat(10_001)), "the description has");
    refused(&described("a\0b"), "the description has");
    let column = ColumnDefinition {
        description: Some("a\0b".to_owned()),
        ..column("well", DataType::String)
    };
    refused_column(column, "the description of column \"well\" has");
}

#[test]
fn a_column_has_a_label_of_one_line_and_a_unit_of_ucum() {
    let shown = |label: &str, unit: &str| ColumnDefinition {
        label: Some(label.to_owned()),
        unit: Some(unit.to_owned()),
        ..column("conc", DataType::Float)
    };
    let table = resolve(&curated(
        "plate",
        vec![shown("Konzentration (µg/ml)", "ug/mL")],
    ));
    let column = table.column("conc").unwrap();
    assert_eq!(column.label.as_deref(), Some("Konzentration (µg/ml)"));
    assert_eq!(column.unit.as_deref(), Some("ug/mL"));
    refused_column(
        shown("Concentration", "µg/ml"),
        "the unit \"µg/ml\" is no UCUM code",
    );
    for label in ["", "two\nlines", &"x".repeat(201)] {
        refused_column(shown(label, "ug/mL"), "a label has 1 to 200 characters");
    }
}

#[test]
fn names_of_system_columns_are_taken_in_every_table() {
    for name in [
        "created_at",
        "updated_at",
        "created_by_execution_id",
        "updated_by_execution_id",
    ] {
        refused_column(column(name, DataType::String), "maintained by the server");
        let of_points = raw(
            "trace",
            vec![
                reference("sample", "sample", DataType::Integer),
                column(name, DataType::Float),
            ],
        );
        refused(&of_points, "maintained by the server");
    }
}

#[test]
fn names_of_postgresqls_own_columns_are_taken() {
    refused_column(column("ctid", DataType::String), "PostgreSQL's own");
}

#[test]
fn a_table_has_at_most_500_columns_with_its_key() {
    let columns = |count: usize| {
        let columns = (0..count).map(|at| column(&format!("c{at}"), DataType::Float));
        curated("wide", columns.collect())
    };
    assert_eq!(resolve(&columns(499)).columns.len(), 500);
    refused(&columns(500), "at most 500 columns");
}

#[test]
fn a_table_without_a_key_gets_a_generated_one_in_front() {
    let table = resolve(&curated("plate", vec![column("well", DataType::String)]));
    let id = table.primary_key().unwrap();
    assert_eq!((id.position(), id.name.as_str()), (0, "id"));
    assert_eq!(id.data_type, DataType::String);
    assert!(!id.is_nullable && id.is_unique);
    let well = &table.columns[1];
    assert!(well.is_nullable && !well.is_unique && !well.is_primary_key);
}

#[test]
fn the_generated_key_may_be_spelled_out() {
    for data_type in [DataType::String, DataType::Text] {
        let spelled = vec![column("well", DataType::String), column("id", data_type)];
        let table = resolve(&curated("plate", spelled));
        let id = table.primary_key().unwrap();
        assert_eq!((id.position(), id.data_type), (0, data_type));
        assert!(!id.is_nullable && id.is_unique);
        assert_eq!(table.columns.len(), 2);
    }
    let others = [
        column("id", DataType::Integer),
        reference("id", "experiment", DataType::String),
        with_default(column("id", DataType::String), json!("x")),
    ];
    for other in others {
        refused_column(other, "column \"id\" is the generated primary key");
    }
}

#[test]
fn a_key_comes_first_is_unique_and_never_null() {
    for data_type in [
        DataType::String,
        DataType::Text,
        DataType::Integer,
        DataType::Uuid,
    ] {
        let columns = vec![column("well", DataType::String), key("code", data_type)];
        let table = resolve(&curated("plate", columns));
        let code = table.primary_key().unwrap();
        assert_eq!((code.position(), code.name.as_str()), (0, "code"));
        assert!(!code.is_nullable && code.is_unique);
        assert_eq!(table.columns.len(), 2);
    }
}

#[test]
fn a_key_is_one_column_of_a_type_that_keys_may_have_and_no_reference() {
    refused_column(key("code", DataType::Float), "cannot be the primary key");
    let referencing = ColumnDefinition {
        is_primary_key: true,
        ..reference("sample", "sample", DataType::Integer)
    };
    refused_column(referencing, "cannot be the primary key");
    let two = vec![key("a", DataType::String), key("b", DataType::String)];
    refused(&curated("plate", two), "only one column");
}

#[test]
fn a_unique_column_is_unique_and_may_be_null() {
    let table = resolve(&curated(
        "plate",
        vec![unique(column("code", DataType::String))],
    ));
    let code = table.column("code").unwrap();
    assert!(code.is_unique && code.is_nullable);
    refused_column(
        unique(column("tags", DataType::Json)),
        "a json column cannot be unique",
    );
}

#[test]
fn a_default_is_a_value_of_the_columns_type() {
    let fine = [
        with_default(column("state", DataType::String), json!("new")),
        with_default(column("state", DataType::String), json!(null)),
        with_default(required(column("count", DataType::Integer)), json!(0)),
    ];
    for column in fine {
        let default = column.default.clone();
        let table = resolve(&curated("plate", vec![column]));
        assert_eq!(table.columns[1].default, default);
    }
    refused_column(
        with_default(column("count", DataType::Integer), json!("0")),
        "the default must be a whole number",
    );
    refused_column(
        with_default(required(column("count", DataType::Integer)), json!(null)),
        "the default is null",
    );
    refused_column(
        with_default(reference("sample", "sample", DataType::Integer), json!(1)),
        "a reference cannot have a default",
    );
}

#[test]
fn a_reference_has_the_type_of_the_key_that_it_points_at() {
    for (target, data_type) in [
        ("sample", DataType::Integer),
        ("experiment", DataType::String),
    ] {
        let table = resolve(&curated(
            "plate",
            vec![reference(target, target, data_type)],
        ));
        let (column, _) = table.references().next().unwrap();
        assert_eq!(column.sql_name(), format!("{target}_id"));
    }
    refused_column(
        reference("sample", "sample", DataType::String),
        "is of type integer",
    );
}

#[test]
fn a_reference_needs_a_table_that_has_rows() {
    refused_column(
        reference("nowhere", "nowhere", DataType::String),
        "there is no table \"nowhere\"",
    );
    refused_column(
        reference("curve", "curve", DataType::String),
        "\"curve\" is a raw table",
    );
}

#[test]
fn a_reference_has_at_most_60_characters() {
    let named = |length: usize| reference(&"r".repeat(length), "sample", DataType::Integer);
    resolve(&curated("plate", vec![named(60)]));
    refused_column(named(61), "60 characters at most");
}

#[test]
fn a_table_may_reference_itself_by_the_key_that_it_will_have() {
    resolve(&curated(
        "part",
        vec![reference("part", "part", DataType::String)],
    ));
    let by_number = |data_type| {
        curated(
            "part",
            vec![
                key("number", DataType::Integer),
                reference("whole", "part", data_type),
            ],
        )
    };
    resolve(&by_number(DataType::Integer));
    refused(&by_number(DataType::String), "is of type integer");
    let points = raw(
        "trace",
        vec![
            reference("trace", "trace", DataType::String),
            column("od", DataType::Float),
        ],
    );
    refused(&points, "a raw table cannot be referenced");
}

#[test]
fn a_raw_table_has_a_reference_and_values_and_no_key() {
    let owner = || reference("sample", "sample", DataType::Integer);
    let order = || column("order", DataType::Integer);
    let value = || column("od", DataType::Float);
    let table = resolve(&raw("trace", vec![owner(), order(), value()]));
    assert!(table.is_raw());
    assert!(table.primary_key().is_none());
    assert_eq!(
        table
            .order_column()
            .map(crate::catalog::ColumnRef::position),
        Some(1)
    );
    refused(&raw("trace", vec![value()]), "at least one reference");
    refused(
        &raw("trace", vec![owner(), order()]),
        "at least one column of values",
    );
    refused(
        &raw("trace", vec![owner(), key("code", DataType::String)]),
        "have no primary key",
    );
    refused(
        &raw("trace", vec![owner(), unique(value())]),
        "a column of a raw table cannot be unique",
    );
    let grouped = TableDefinition {
        unique_together: together(&[&["sample", "od"]]),
        ..raw("trace", vec![owner(), value()])
    };
    refused(&grouped, "cannot have unique_together");
}

#[test]
fn columns_that_are_unique_together_are_two_or_more_that_exist_and_can_be_compared() {
    let grouped = |groups: &[&[&str]]| TableDefinition {
        unique_together: together(groups),
        ..curated(
            "plate",
            vec![
                column("well", DataType::String),
                column("run", DataType::Integer),
                column("tags", DataType::Json),
            ],
        )
    };
    let table = resolve(&grouped(&[&["well", "run"]]));
    assert_eq!(table.unique_together, together(&[&["well", "run"]]));
    refused(&grouped(&[&["well"]]), "two or more different columns");
    refused(
        &grouped(&[&["well", "well"]]),
        "two or more different columns",
    );
    refused(
        &grouped(&[&["well", "run"], &["run", "well"]]),
        "given twice",
    );
    refused(&grouped(&[&["well", "row"]]), "there is no column \"row\"");
    refused(&grouped(&[&["well", "tags"]]), "\"tags\" is json");
}

#[test]
fn no_two_columns_have_one_name_nor_one_name_in_sql() {
    let twice = vec![
        column("well", DataType::String),
        column("well", DataType::Float),
    ];
    refused(&curated("plate", twice), "column \"well\" is defined twice");
    let alike = vec![
        reference("sample", "sample", DataType::Integer),
        column("sample_id", DataType::String),
    ];
    refused(
        &curated("plate", alike),
        "which another column is called too",
    );
    // The reference "created_by_execution" would be called as a system column is.
    let system = || reference("created_by_execution", "sample", DataType::Integer);
    refused(
        &curated("plate", vec![system()]),
        "which another column is called too",
    );
    refused(
        &raw("trace", vec![system(), column("od", DataType::Float)]),
        "which another column is called too",
    );
}

#[test]
fn every_problem_of_a_definition_is_reported() {
    let wrong = TableDefinition {
        unique_together: together(&[&["a"]]),
        ..curated(
            "job",
            vec![
                column("created_at", DataType::String),
                unique(column("tags", DataType::Json)),
            ],
        )
    };
    assert_eq!(wrong.resolve(&lab()).unwrap_err().len(), 5);
}
