//! Rules of changes.

use serde_json::json;

use super::{
    super::{Alteration, CatalogChange},
    *,
};

fn plate() -> TableDefinition {
    TableDefinition {
        unique_together: together(&[&["well", "run"]]),
        ..curated(
            "plate",
            vec![
                column("well", DataType::String),
                column("run", DataType::Integer),
                reference("sample", "sample", DataType::Integer),
            ],
        )
    }
}

fn trace() -> TableDefinition {
    raw(
        "trace",
        vec![
            reference("sample", "sample", DataType::Integer),
            column("od", DataType::Float),
        ],
    )
}

fn standing() -> Catalog {
    let sample = curated("sample", vec![key("number", DataType::Integer)]);
    catalog([sample, plate(), trace()])
}

fn change(definition: &TableDefinition) -> Result<CatalogChange, String> {
    CatalogChange::towards(definition, &standing()).map_err(|refusal| refusal.to_string())
}

fn alteration(definition: &TableDefinition) -> Alteration {
    match change(definition) {
        Ok(CatalogChange::Alter(alteration)) => *alteration,
        other => panic!("{other:?}"),
    }
}

fn refused(definition: &TableDefinition, text: &str) {
    let refusal = change(definition).unwrap_err();
    assert!(refusal.contains(text), "{refusal:?} lacks {text:?}");
}

/// The definition with its column of that name changed.
fn with_column(
    mut definition: TableDefinition,
    name: &str,
    edit: impl FnOnce(&mut ColumnDefinition),
) -> TableDefinition {
    let column = definition
        .columns
        .iter_mut()
        .find(|column| column.name == name);
    edit(column.unwrap());
    definition
}

fn names(table: &Table) -> Vec<&str> {
    table
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect()
}

#[test]
fn a_new_table_is_created() {
    let definition = curated("rack", vec![column("slot", DataType::Integer)]);
    let created = definition.resolve(&standing()).unwrap();
    assert_eq!(change(&definition), Ok(CatalogChange::Create(created)));
}

#[test]
fn the_same_definition_changes_nothing() {
    assert_eq!(change(&plate()), Ok(CatalogChange::Nothing));
    assert_eq!(change(&trace()), Ok(CatalogChange::Nothing));
    let reordered = TableDefinition {
        columns: plate().columns.into_iter().rev().collect(),
        unique_together: together(&[&["run", "well"]]),
        ..plate()
    };
    assert_eq!(change(&reordered), Ok(CatalogChange::Nothing));
}

#[test]
fn another_description_is_a_change_by_itself() {
    let described = TableDefinition {
        description: Some("Plates.".to_owned()),
        ..plate()
    };
    let alteration = alteration(&described);
    assert_eq!(alteration.before.description, None);
    assert_eq!(alteration.after.description.as_deref(), Some("Plates."));
    assert_eq!(alteration.before.id, alteration.after.id);
    assert_eq!((alteration.added, alteration.changed), (vec![], vec![]));
}

#[test]
fn new_columns_come_behind_those_that_stand_which_keep_their_ids() {
    let mut definition = plate();
    definition.columns.insert(0, column("note", DataType::Text));
    let alteration = alteration(&definition);
    assert_eq!(
        names(&alteration.after),
        ["id", "well", "run", "sample", "note"]
    );
    let ids: Vec<Option<i64>> = alteration
        .after
        .columns
        .iter()
        .map(|column| column.id)
        .collect();
    assert_eq!(ids, [Some(0), Some(1), Some(2), Some(3), None]);
    assert_eq!(alteration.added.len(), 1);
    assert_eq!(alteration.added[0].name, "note");
    assert_eq!(alteration.changed, []);
    assert_eq!(alteration.after.id, Some(1));
}

#[test]
fn a_column_may_change_all_but_what_it_is() {
    let definition = with_column(plate(), "well", |well| {
        well.is_nullable = false;
        well.is_unique = true;
        well.default = Some(json!("A1"));
        well.description = Some("The well.".to_owned());
    });
    let alteration = alteration(&definition);
    let [changed] = alteration.changed.as_slice() else {
        panic!("{:?}", alteration.changed);
    };
    assert_eq!(changed.before.id, changed.after.id);
    assert!(changed.before.is_nullable && !changed.after.is_nullable);
    assert!(!changed.before.is_unique && changed.after.is_unique);
    assert_eq!(changed.after.default, Some(json!("A1")));
    assert_eq!(alteration.added, []);
    assert_eq!(names(&alteration.after), names(&alteration.before));
}

#[test]
fn groups_of_unique_columns_are_added_and_removed() {
    let definition = TableDefinition {
        unique_together: together(&[&["sample", "well"], &["run", "well"]]),
        ..plate()
    };
    let added = alteration(&definition);
    assert_eq!(added.together_added, together(&[&["sample", "well"]]));
    assert!(added.together_removed.is_empty());
    let without = TableDefinition {
        unique_together: Vec::new(),
        ..plate()
    };
    let removed = alteration(&without);
    assert!(removed.together_added.is_empty());
    assert_eq!(removed.together_removed, together(&[&["well", "run"]]));
}

#[test]
fn nothing_that_holds_data_is_lost_or_becomes_another() {
    let mut shorter = plate();
    shorter.columns.remove(2);
    refused(&shorter, "column \"sample\" is missing");
    let retyped = with_column(plate(), "run", |run| run.data_type = DataType::Date);
    refused(&retyped, "is of type integer and cannot become date");
    let redirected = with_column(plate(), "sample", |sample| {
        sample.references = Some("experiment".to_owned());
        sample.data_type = DataType::String;
    });
    refused(&redirected, "cannot change what it references");
    let rekeyed = with_column(plate(), "well", |well| well.is_primary_key = true);
    refused(&rekeyed, "the primary key cannot change");
    let other_kind = raw(
        "plate",
        vec![
            reference("sample", "sample", DataType::Integer),
            column("well", DataType::String),
            column("run", DataType::Integer),
        ],
    );
    refused(&other_kind, "is a curated table and cannot become raw");
}

#[test]
fn columns_of_points_stay_nullable() {
    let tighter = with_column(trace(), "od", |od| od.is_nullable = false);
    refused(&tighter, "cannot become non-nullable");
    let mut longer = trace();
    longer.columns.push(required(column("t", DataType::Float)));
    refused(&longer, "new column \"t\" must be nullable");
    let mut wider = trace();
    wider.columns.push(column("t", DataType::Float));
    assert_eq!(alteration(&wider).added.len(), 1);
    let described = with_column(trace(), "od", |od| {
        od.description = Some("Optical density.".to_owned());
    });
    assert_eq!(alteration(&described).changed.len(), 1);
    let mut required_in_rows = plate();
    required_in_rows
        .columns
        .push(required(column("note", DataType::Text)));
    assert_eq!(alteration(&required_in_rows).added.len(), 1);
}

#[test]
fn a_column_of_points_that_is_required_stays_so_or_is_loosened() {
    let required_trace = || {
        raw(
            "trace",
            vec![
                reference("sample", "sample", DataType::Integer),
                required(column("od", DataType::Float)),
            ],
        )
    };
    let sample = curated("sample", vec![key("number", DataType::Integer)]);
    let catalog = catalog([sample, required_trace()]);
    let same = CatalogChange::towards(&required_trace(), &catalog);
    assert!(matches!(same, Ok(CatalogChange::Nothing)), "{same:?}");
    let looser = CatalogChange::towards(&trace(), &catalog);
    assert!(matches!(looser, Ok(CatalogChange::Alter(_))), "{looser:?}");
}

#[test]
fn a_wrong_definition_is_refused_with_every_reason() {
    let mut wrong = plate();
    wrong.columns.push(column("Note", DataType::Text));
    wrong.columns.push(unique(column("tags", DataType::Json)));
    let refusal = change(&wrong).unwrap_err();
    assert!(refusal.contains("\"Note\"") && refusal.contains("\"tags\""));
    assert!(refusal.contains("; "), "{refusal}");
}

#[test]
fn a_column_may_get_a_type_that_its_values_convert_to() {
    let retyped = with_column(plate(), "run", |run| run.data_type = DataType::Float);
    let alteration = alteration(&retyped);
    let [changed] = alteration.changed.as_slice() else {
        panic!("{:?}", alteration.changed);
    };
    assert!(changed.is_retyped());
    assert_eq!(
        (changed.before.data_type, changed.after.data_type),
        (DataType::Integer, DataType::Float)
    );
    let refusal = changed.inexact(&alteration.after, vec!["9007199254740993".to_owned()]);
    assert_eq!(
        refusal.to_string(),
        "column \"run\" of \"plate\" cannot become float, which cannot store these values of its rows or of their \
         earlier versions exactly: 9007199254740993"
    );
    let described = with_column(plate(), "run", |run| run.unit = Some("h".to_owned()));
    assert!(!self::alteration(&described).changed[0].is_retyped());
}

#[test]
fn keys_that_are_referenced_references_and_the_order_of_points_keep_their_type() {
    let sample = curated("sample", vec![key("number", DataType::Text)]);
    refused(
        &sample,
        "the type of column \"number\" cannot change: rows are referenced by it",
    );
    let reference = with_column(plate(), "sample", |it| {
        it.references = None;
        it.data_type = DataType::Text;
    });
    refused(&reference, "cannot change what it references");
    let points = |order: DataType| {
        let mut points = trace();
        points.columns.push(column("order", order));
        points
    };
    let sample = curated("sample", vec![key("number", DataType::Integer)]);
    let catalog = catalog([sample.clone(), points(DataType::Integer)]);
    let refusal = CatalogChange::towards(&points(DataType::Float), &catalog).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("it is the order of the points"),
        "{refusal}"
    );
    // Without references, a key may become a text.
    let alone = self::catalog([sample]);
    let texts = curated("sample", vec![key("number", DataType::Text)]);
    assert!(matches!(
        CatalogChange::towards(&texts, &alone),
        Ok(CatalogChange::Alter(_))
    ));
}
