//! Rules of renames.

use super::{
    super::{Alteration, CatalogChange},
    *,
};

fn renamed(from: &str, column: ColumnDefinition) -> ColumnDefinition {
    ColumnDefinition {
        renamed_from: Some(from.to_owned()),
        ..column
    }
}

fn integer(name: &str) -> ColumnDefinition {
    column(name, DataType::Integer)
}

/// `plate`: integer columns, unique together.
fn plate(columns: Vec<ColumnDefinition>, group: &[&str]) -> TableDefinition {
    TableDefinition {
        unique_together: together(&[group]),
        ..curated("plate", columns)
    }
}

fn change(catalog: &Catalog, definition: &TableDefinition) -> Result<CatalogChange, String> {
    CatalogChange::towards(definition, catalog).map_err(|refusal| refusal.to_string())
}

fn alteration(catalog: &Catalog, definition: &TableDefinition) -> Alteration {
    match change(catalog, definition) {
        Ok(CatalogChange::Alter(alteration)) => *alteration,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(catalog: &Catalog, definition: &TableDefinition, text: &str) {
    let refusal = change(catalog, definition).unwrap_err();
    assert!(refusal.contains(text), "{refusal:?} lacks {text:?}");
}

fn steps(alteration: &Alteration) -> Vec<(&str, &str)> {
    let renamed = alteration.renamed.iter();
    let names = renamed.map(|rename| (rename.before.name.as_str(), rename.after.name.as_str()));
    names.collect()
}

/// The catalog once the table is as defined, and a check that it then is.
fn carried_out(catalog: &Catalog, definition: &TableDefinition) -> Catalog {
    let after = alteration(catalog, definition).after;
    let tables = catalog
        .tables()
        .iter()
        .filter(|table| table.name != after.name);
    let mut tables: Vec<Table> = tables.map(|table| (**table).clone()).collect();
    tables.retain(|table| table.origin == super::super::Origin::Organization);
    tables.push(after);
    let catalog = Catalog::new(CatalogVersion(2), tables);
    let again = change(&catalog, definition);
    assert!(matches!(again, Ok(CatalogChange::Nothing)), "{again:?}");
    catalog
}

#[test]
fn a_renamed_column_keeps_its_id_place_and_groups() {
    let catalog = catalog([plate(vec![integer("a"), integer("b")], &["a", "b"])]);
    let definition = plate(vec![renamed("a", integer("x")), integer("b")], &["x", "b"]);
    let alteration = alteration(&catalog, &definition);
    assert_eq!(steps(&alteration), [("a", "x")]);
    let column = alteration.after.column("x").unwrap();
    let former = catalog.table("plate").unwrap().column("a").unwrap();
    assert_eq!(
        (column.position(), column.id),
        (former.position(), former.id)
    );
    assert_eq!(alteration.after.unique_together, together(&[&["x", "b"]]));
    assert!(alteration.added.is_empty() && alteration.changed.is_empty());
    assert!(alteration.together_added.is_empty() && alteration.together_removed.is_empty());
    carried_out(&catalog, &definition);
}

#[test]
fn a_column_may_be_renamed_and_changed_at_once() {
    let catalog = catalog([plate(vec![integer("a"), integer("b")], &["a", "b"])]);
    let changed = plate(
        vec![
            renamed("a", unique(integer("x"))),
            integer("b"),
            integer("c"),
        ],
        &["b", "c"],
    );
    let alteration = alteration(&catalog, &changed);
    assert_eq!(alteration.changed.len(), 1);
    assert_eq!(alteration.changed[0].before.name, "x");
    assert_eq!(alteration.added[0].name, "c");
    assert_eq!(alteration.together_removed, together(&[&["x", "b"]]));
    carried_out(&catalog, &changed);
    let retyped = plate(
        vec![renamed("a", column("x", DataType::Text)), integer("b")],
        &["x", "b"],
    );
    carried_out(&catalog, &retyped);
    let narrowed = plate(
        vec![renamed("a", column("x", DataType::Date)), integer("b")],
        &["x", "b"],
    );
    refused(
        &catalog,
        &narrowed,
        "\"x\" is of type integer and cannot become date",
    );
}

#[test]
fn keys_and_references_are_renamed_like_other_columns() {
    let catalog = lab();
    let sample = curated(
        "sample",
        vec![
            renamed("number", key("code", DataType::Integer)),
            column("name", DataType::String),
        ],
    );
    let catalog = carried_out(&catalog, &sample);
    let key = catalog.table("sample").unwrap().primary_key().unwrap();
    assert_eq!(key.name, "code");
    let curve = raw(
        "curve",
        vec![
            renamed("sample", reference("specimen", "sample", DataType::Integer)),
            column("od", DataType::Float),
        ],
    );
    let alteration = alteration(&catalog, &curve);
    let rename = &alteration.renamed[0];
    assert_eq!(rename.before.sql_name(), "sample_id");
    assert_eq!(rename.after.sql_name(), "specimen_id");
    carried_out(&catalog, &curve);
}

#[test]
fn the_generated_key_can_be_renamed() {
    let catalog = catalog([curated("rack", vec![integer("slots")])]);
    let definition = curated(
        "rack",
        vec![
            renamed("id", key("code", DataType::String)),
            integer("slots"),
        ],
    );
    assert_eq!(steps(&alteration(&catalog, &definition)), [("id", "code")]);
    carried_out(&catalog, &definition);
}

#[test]
fn names_may_move_on_from_column_to_column() {
    let catalog = catalog([plate(vec![integer("a"), integer("b")], &["a", "b"])]);
    let definition = plate(
        vec![
            renamed("a", integer("b")),
            renamed("b", integer("c")),
            integer("a"),
        ],
        &["b", "c"],
    );
    let alteration = alteration(&catalog, &definition);
    assert_eq!(steps(&alteration), [("b", "c"), ("a", "b")]);
    assert_eq!(alteration.added[0].name, "a");
    carried_out(&catalog, &definition);
}

#[test]
fn a_former_name_that_no_column_has_is_ignored() {
    let renaming = plate(vec![renamed("a", integer("x")), integer("b")], &["x", "b"]);
    let empty = catalog([]);
    assert!(matches!(
        change(&empty, &renaming),
        Ok(CatalogChange::Create(_))
    ));
    let done = catalog([plate(vec![integer("x"), integer("b")], &["x", "b"])]);
    assert_eq!(change(&done, &renaming), Ok(CatalogChange::Nothing));
}

#[test]
fn a_taken_name_is_refused() {
    let definition = plate(vec![renamed("a", integer("b"))], &["b", "id"]);
    let two = catalog([plate(vec![integer("a"), integer("b")], &["a", "b"])]);
    refused(&two, &definition, "\"a\" cannot be renamed to \"b\"");
    let sample = || curated("sample", vec![]);
    let item = |columns| curated("item", columns);
    let link = |name: &str| reference(name, "sample", DataType::String);
    let text = |name: &str| column(name, DataType::String);
    let both = catalog([sample(), item(vec![link("from"), text("sample_id")])]);
    let clash = item(vec![renamed("from", link("sample")), text("sample_id")]);
    refused(&both, &clash, "is called \"sample_id\" in SQL");
    let freed = item(vec![
        renamed("from", link("sample")),
        renamed("sample_id", text("label")),
    ]);
    let order = [("sample_id", "label"), ("from", "sample")];
    assert_eq!(steps(&alteration(&both, &freed)), order);
}

#[test]
fn a_definition_with_contradicting_renames_is_refused() {
    let standing = catalog([plate(vec![integer("a"), integer("b")], &["a", "b"])]);
    let swapped = plate(
        vec![renamed("b", integer("a")), renamed("a", integer("b"))],
        &["a", "b"],
    );
    refused(&standing, &swapped, "in a circle");
    let itself = plate(vec![renamed("a", integer("a")), integer("b")], &["a", "b"]);
    refused(&standing, &itself, "in a circle");
    let twice = plate(
        vec![
            renamed("a", integer("x")),
            renamed("a", integer("y")),
            integer("b"),
        ],
        &["x", "y"],
    );
    refused(
        &standing,
        &twice,
        "\"x\" and \"y\" are both renamed from \"a\"",
    );
    let invalid = plate(vec![renamed("A", integer("a")), integer("b")], &["a", "b"]);
    refused(&standing, &invalid, "\"A\" is no valid name");
}

#[test]
fn the_order_of_points_keeps_its_name() {
    let trace = |columns: Vec<ColumnDefinition>| {
        let mut all = vec![
            reference("sample", "sample", DataType::String),
            column("od", DataType::Float),
        ];
        all.extend(columns);
        raw("trace", all)
    };
    let standing = |column| catalog([curated("sample", vec![]), trace(vec![column])]);
    let away = trace(vec![renamed("order", integer("place"))]);
    refused(
        &standing(integer("order")),
        &away,
        "is the order of its points",
    );
    let towards = trace(vec![renamed("place", integer("order"))]);
    refused(
        &standing(integer("place")),
        &towards,
        "is the order of its points",
    );
    let number = |name| column(name, DataType::Float);
    let values = trace(vec![renamed("place", number("order"))]);
    carried_out(&standing(number("place")), &values);
}

#[test]
fn a_table_is_renamed_with_its_references_to_itself() {
    let step = |name: &str| {
        let columns = vec![
            reference("before", name, DataType::String),
            integer("order_no"),
        ];
        curated(name, columns)
    };
    let catalog = catalog([step("step")]);
    let renamed = TableDefinition {
        renamed_from: Some("step".to_owned()),
        ..step("stage")
    };
    assert_eq!(renamed.former_name(&catalog), Some("step"));
    let alteration = alteration(&catalog, &renamed);
    assert_eq!(alteration.former_name.as_deref(), Some("step"));
    for table in [&alteration.before, &alteration.after] {
        assert_eq!(table.name, "stage");
        assert_eq!(
            table.column("before").unwrap().references.as_deref(),
            Some("stage")
        );
        assert_eq!(table.id, catalog.table("step").unwrap().id);
    }
    assert_eq!((alteration.added, alteration.changed), (vec![], vec![]));
    // Once it is done, the same definition changes nothing, and a new table needs no former one.
    let done = self::catalog([step("stage")]);
    assert_eq!(renamed.former_name(&done), None);
    assert_eq!(change(&done, &renamed), Ok(CatalogChange::Nothing));
    let none = self::catalog([]);
    assert!(matches!(
        change(&none, &renamed),
        Ok(CatalogChange::Create(_))
    ));
}

#[test]
fn a_table_gets_no_name_that_another_has_nor_that_of_a_core_table() {
    let from = |former: &str, name: &str| TableDefinition {
        renamed_from: Some(former.to_owned()),
        ..curated(name, vec![integer("a")])
    };
    let catalog = catalog([
        curated("rack", vec![integer("a")]),
        curated("box", vec![integer("a")]),
    ]);
    refused(
        &catalog,
        &from("rack", "box"),
        "\"rack\" cannot be renamed to \"box\"",
    );
    refused(
        &catalog,
        &from("carrier", "plate"),
        "\"carrier\" is a core table",
    );
    refused(
        &catalog,
        &from("rack", "carrier"),
        "the platform's own tables",
    );
    refused(&catalog, &from("rack", "rack"), "renamed from its own name");
    refused(
        &catalog,
        &from("Rack", "shelf"),
        "\"Rack\" is no valid name",
    );
}
