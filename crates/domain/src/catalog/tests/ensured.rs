//! Rules of definitions that only add what is missing.

use super::{
    super::{CatalogChange, DefinitionMode},
    *,
};

fn ensured(definition: TableDefinition) -> TableDefinition {
    TableDefinition {
        mode: DefinitionMode::Ensure,
        ..definition
    }
}

fn plate() -> TableDefinition {
    TableDefinition {
        unique_together: together(&[&["well", "run"]]),
        ..curated(
            "plate",
            vec![
                required(unique(column("barcode", DataType::String))),
                column("well", DataType::String),
                column("run", DataType::Integer),
                reference("experiment", "experiment", DataType::String),
            ],
        )
    }
}

fn change(definition: TableDefinition) -> Result<CatalogChange, String> {
    let definition = ensured(definition);
    CatalogChange::towards(&definition, &catalog([plate()])).map_err(|it| it.to_string())
}

fn refused(definition: TableDefinition, text: &str) {
    let refusal = change(definition).unwrap_err();
    assert!(refusal.contains(text), "{refusal:?} lacks {text:?}");
}

#[test]
fn a_missing_table_is_created() {
    let created = change(curated(
        "rack",
        vec![required(column("slot", DataType::Integer))],
    ));
    assert!(
        matches!(created, Ok(CatalogChange::Create(_))),
        "{created:?}"
    );
}

#[test]
fn a_table_with_more_columns_stricter_rules_and_other_descriptions_is_left_alone() {
    let looser = curated(
        "plate",
        vec![
            column("barcode", DataType::String),
            ColumnDefinition {
                description: Some("Its place.".to_owned()),
                label: Some("Place".to_owned()),
                unit: Some("1".to_owned()),
                ..column("well", DataType::String)
            },
        ],
    );
    let looser = TableDefinition {
        description: Some("Plates.".to_owned()),
        ..looser
    };
    assert_eq!(change(looser), Ok(CatalogChange::Nothing));
}

#[test]
fn missing_nullable_columns_are_added_behind_those_that_exist() {
    let wider = curated(
        "plate",
        vec![
            column("note", DataType::Text),
            column("well", DataType::String),
        ],
    );
    let Ok(CatalogChange::Alter(alteration)) = change(wider) else {
        panic!("an alteration");
    };
    let names: Vec<&str> = alteration
        .after
        .columns
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["id", "barcode", "well", "run", "experiment", "note"]
    );
    assert_eq!(alteration.added.len(), 1);
    assert_eq!(alteration.changed, []);
    assert_eq!(alteration.after.unique_together, plate().unique_together);
    assert_eq!(alteration.before.id, alteration.after.id);
}

#[test]
fn another_type_and_looser_rules_than_asked_are_refused() {
    let asked = |column: ColumnDefinition| curated("plate", vec![column]);
    refused(
        asked(column("run", DataType::Float)),
        "column \"run\" is of type integer, not float",
    );
    refused(
        asked(required(column("run", DataType::Integer))),
        "may be null",
    );
    refused(
        asked(unique(column("run", DataType::Integer))),
        "is not unique",
    );
    refused(
        asked(reference("experiment", "carrier", DataType::String)),
        "column \"experiment\" references \"experiment\"",
    );
    refused(
        asked(reference("well", "carrier", DataType::String)),
        "column \"well\" is no reference",
    );
    refused(
        asked(key("barcode", DataType::String)),
        "is not the primary key",
    );
    refused(
        asked(required(column("note", DataType::Text))),
        "is missing and not nullable",
    );
    let measured = |unit: &str| ColumnDefinition {
        unit: Some(unit.to_owned()),
        ..column("volume", DataType::Float)
    };
    let stored = catalog([curated("plate", vec![measured("mL")])]);
    let towards = |column| CatalogChange::towards(&ensured(asked(column)), &stored);
    let refusal = towards(measured("uL")).unwrap_err().to_string();
    assert!(
        refusal.contains("has the unit \"mL\", not \"uL\""),
        "{refusal}"
    );
    for column in [measured("mL"), column("volume", DataType::Float)] {
        assert!(matches!(towards(column), Ok(CatalogChange::Nothing)));
    }
    let grouped = TableDefinition {
        unique_together: together(&[&["well", "barcode"]]),
        ..curated(
            "plate",
            vec![
                column("well", DataType::String),
                column("barcode", DataType::String),
            ],
        )
    };
    refused(
        grouped,
        "(well, barcode) of \"plate\" are not unique together",
    );
    let raw = raw(
        "plate",
        vec![
            reference("experiment", "experiment", DataType::String),
            column("run", DataType::Integer),
        ],
    );
    refused(raw, "\"plate\" is a curated table, not a raw one");
}

#[test]
fn nothing_is_renamed() {
    let renamed = |name: &str| {
        let column = ColumnDefinition {
            renamed_from: Some("run".to_owned()),
            ..column(name, DataType::Integer)
        };
        curated("plate", vec![column])
    };
    refused(renamed("cycle"), "column \"cycle\" is still called \"run\"");
    let done = ColumnDefinition {
        renamed_from: Some("place".to_owned()),
        ..column("well", DataType::String)
    };
    assert_eq!(
        change(curated("plate", vec![done])),
        Ok(CatalogChange::Nothing)
    );
    let table = TableDefinition {
        renamed_from: Some("plate".to_owned()),
        ..curated("rack", vec![])
    };
    refused(table, "table \"rack\" is still called \"plate\"");
}
