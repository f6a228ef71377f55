//! Rules of dropped columns.

use super::*;

fn plate() -> TableDefinition {
    TableDefinition {
        unique_together: together(&[&["well", "run"]]),
        ..curated(
            "plate",
            vec![
                column("well", DataType::String),
                column("run", DataType::Integer),
                unique(column("code", DataType::String)),
                reference("sample", "sample", DataType::String),
            ],
        )
    }
}

fn trace(columns: Vec<ColumnDefinition>) -> TableDefinition {
    let mut all = vec![reference("sample", "sample", DataType::String)];
    all.extend(columns);
    raw("trace", all)
}

/// Drops a column of the table with that definition.
fn drop_column(
    definition: TableDefinition,
    name: &str,
    holds_values: bool,
    force: bool,
) -> Result<String, String> {
    let table = definition.name.clone();
    let catalog = catalog([curated("sample", vec![]), definition]);
    let table = catalog.table(&table).unwrap();
    let checked = table.column_to_drop(name).and_then(|found| {
        let column = found.unwrap();
        assert_eq!(table.columns[column.position()], *column);
        table.check_dropped_values(column, holds_values, force)?;
        Ok(column.name.clone())
    });
    checked.map_err(|refusal| refusal.to_string())
}

#[track_caller]
fn always_refused(definition: &TableDefinition, name: &str, why: &str) {
    for (holds_values, force) in [(false, false), (false, true), (true, true)] {
        let refusal = drop_column(definition.clone(), name, holds_values, force).unwrap_err();
        assert!(refusal.contains(why), "{refusal:?} lacks {why:?}");
    }
}

#[test]
fn a_column_with_values_is_dropped_by_force_only() {
    for name in ["code", "sample"] {
        assert_eq!(
            drop_column(plate(), name, false, false),
            Ok(name.to_owned())
        );
        assert_eq!(drop_column(plate(), name, true, true), Ok(name.to_owned()));
    }
    assert_eq!(
        drop_column(plate(), "code", true, false),
        Err("column \"code\" of \"plate\" holds values; set force to drop it with them".to_owned())
    );
}

#[test]
fn keys_are_never_dropped() {
    always_refused(&plate(), "id", "it is the primary key");
    always_refused(
        &plate(),
        "run",
        "unique together with other columns (well, run)",
    );
    let named = curated("rack", vec![key("number", DataType::Integer)]);
    always_refused(&named, "number", "it is the primary key");
}

#[test]
fn a_raw_table_keeps_what_it_needs() {
    let integer = |name| column(name, DataType::Integer);
    let trace_of_one = trace(vec![integer("order"), column("od", DataType::Float)]);
    always_refused(&trace_of_one, "sample", "at least one reference");
    always_refused(&trace_of_one, "order", "the order of the points");
    always_refused(&trace_of_one, "od", "at least one column of values");
    let plate = reference("plate", "sample", DataType::String);
    let wide = trace(vec![plate, column("od", DataType::Float), integer("n")]);
    assert_eq!(
        drop_column(wide.clone(), "n", true, true),
        Ok("n".to_owned())
    );
    assert!(drop_column(wide.clone(), "n", true, false).is_err());
    assert_eq!(
        drop_column(wide.clone(), "plate", false, false),
        Ok("plate".to_owned())
    );
    let owner = drop_column(wide, "plate", true, true).unwrap_err();
    assert!(owner.contains("belong to the rows"), "{owner}");
}

#[test]
fn columns_of_the_platform_are_never_dropped() {
    always_refused(&plate(), "created_at", "belongs to the platform");
    let catalog = catalog([plate_without_references()]);
    let core = catalog.table("experiment").unwrap();
    let refusal = core.column_to_drop("metadata").unwrap_err();
    assert!(refusal.to_string().contains("belongs to the platform"));
    assert_eq!(core.column_to_drop("nothing"), Ok(None));
}

fn plate_without_references() -> TableDefinition {
    curated("plate", vec![column("well", DataType::String)])
}
