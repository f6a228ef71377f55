//! Tables that every organization has, and what a catalog finds.

use super::{
    super::{INSTRUMENT_CURVE, INSTRUMENT_MEASUREMENT, Name, Origin, PlatformTable, core_tables},
    *,
};

#[test]
fn the_core_tables_are_those_of_the_laboratory_and_of_readers() {
    let core = core_tables();
    let names: Vec<&str> = core.iter().map(|table| table.name.as_str()).collect();
    let [laboratory @ .., INSTRUMENT_MEASUREMENT, INSTRUMENT_CURVE] = names.as_slice() else {
        panic!("{names:?}");
    };
    assert_eq!(laboratory, ["experiment", "carrier", "operation"]);
    for table in core.iter().take(3) {
        assert_eq!(table.origin, Origin::Core);
        let id = table.primary_key().unwrap();
        assert_eq!((id.position(), id.name.as_str()), (0, "id"));
        assert!(!id.is_nullable && id.is_unique, "{}", table.name);
        let name = table.column("name").unwrap();
        assert!(!name.is_nullable, "{}", table.name);
        assert_eq!(name.is_unique, table.name != "operation", "{}", table.name);
    }
}

#[test]
fn tables_of_rows_have_system_columns_and_raw_tables_none() {
    let lab = lab();
    let expected = [
        "created_at",
        "updated_at",
        "created_by_execution_id",
        "updated_by_execution_id",
    ];
    for name in ["sample", "experiment"] {
        let system = lab.table(name).unwrap().system_columns().iter();
        assert_eq!(system.map(|it| it.name).collect::<Vec<_>>(), expected);
    }
    let of_points = lab.table("curve").unwrap().system_columns().iter();
    let of_points: Vec<_> = of_points.map(|column| column.name).collect();
    assert_eq!(of_points, ["created_by_execution_id"]);
    for name in expected {
        assert_eq!(SystemColumn::from_name(name).unwrap().name, name);
    }
    assert_eq!(SystemColumn::from_name("name"), None);
}

#[test]
fn an_operation_references_its_experiment_and_its_carrier() {
    let lab = lab();
    let operation = lab.table("operation").unwrap();
    let targets: Vec<&str> = operation.references().map(|(_, target)| target).collect();
    assert_eq!(targets, ["experiment", "carrier"]);
    let referencing: Vec<&str> = lab
        .referencing("experiment")
        .map(|(table, _)| table.name.as_str())
        .collect();
    assert_eq!(referencing, ["operation"]);
}

#[test]
fn a_catalog_finds_the_tables_of_the_organization_and_then_the_core_tables() {
    let lab = lab();
    let names: Vec<&str> = lab
        .tables()
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "sample",
            "curve",
            "experiment",
            "carrier",
            "operation",
            INSTRUMENT_MEASUREMENT,
            INSTRUMENT_CURVE,
        ]
    );
    for name in names {
        assert_eq!(lab.table(name).unwrap().name, name);
    }
    assert!(lab.table("nowhere").is_none());
    let referencing: Vec<(&str, &str)> = lab
        .referencing("sample")
        .map(|(table, column)| (table.name.as_str(), column.name.as_str()))
        .collect();
    assert_eq!(referencing, [("curve", "sample")]);
}

#[test]
fn only_an_integer_of_a_raw_table_is_an_order_column() {
    let owner = || reference("sample", "sample", DataType::Integer);
    let value = || column("od", DataType::Float);
    let order = |definition: TableDefinition| {
        let table = definition.resolve(&lab()).unwrap();
        table
            .order_column()
            .map(crate::catalog::ColumnRef::position)
    };
    let integer = || column("order", DataType::Integer);
    assert_eq!(
        order(raw("trace", vec![owner(), value(), integer()])),
        Some(2)
    );
    assert_eq!(order(raw("trace", vec![owner(), value()])), None);
    let float = column("order", DataType::Float);
    assert_eq!(order(raw("trace", vec![owner(), value(), float])), None);
    let referencing = reference("order", "sample", DataType::Integer);
    assert_eq!(order(raw("trace", vec![value(), referencing])), None);
    assert_eq!(order(curated("plate", vec![integer()])), None);
}

#[test]
fn categories_have_names_that_read_back() {
    for (category, name) in [
        (SemanticCategory::Curated, "curated"),
        (SemanticCategory::Raw, "raw"),
    ] {
        assert_eq!(category.as_str(), name);
        assert_eq!(SemanticCategory::from_name(name), Some(category));
    }
    assert_eq!(SemanticCategory::from_name("core"), None);
}

#[test]
fn platform_tables_have_names_that_read_back_and_the_key_id() {
    for table in PlatformTable::ALL {
        assert_eq!(PlatformTable::from_name(table.as_str()), Some(table));
        assert_eq!(table.columns()[0].name, "id");
    }
    assert_eq!(PlatformTable::from_name("sample"), None);
}

#[test]
fn a_name_is_shown_as_it_was_given() {
    let name = Name::parse("od_600").unwrap();
    assert_eq!(
        (name.as_str(), name.to_string()),
        ("od_600", "od_600".to_owned())
    );
}

#[test]
fn a_catalog_is_defined_table_by_table() {
    let sample = curated("sample", vec![column("name", DataType::String)]);
    let curve = raw(
        "curve",
        vec![
            reference("sample", "sample", DataType::String),
            column("od", DataType::Float),
        ],
    );
    let catalog = Catalog::define([&sample, &curve]).unwrap();
    assert!(catalog.table("curve").unwrap().is_raw());
    assert_eq!(
        Catalog::define([&curve, &sample]).unwrap_err(),
        ["reference \"sample\": there is no table \"sample\""]
    );
    assert_eq!(
        Catalog::define([&sample, &sample]).unwrap_err(),
        ["table \"sample\" is defined twice"]
    );
}

#[test]
fn a_table_that_was_there_before_a_core_table_of_its_name_takes_its_place() {
    let own = |name: &str| Table {
        origin: Origin::Organization,
        ..core_tables()
            .into_iter()
            .find(|table| table.name == "experiment")
            .map(|table| Table {
                name: name.to_owned(),
                ..table
            })
            .unwrap()
    };
    let names = |catalog: &Catalog| -> Vec<(String, bool)> {
        let tables = catalog.tables().iter();
        let tables = tables.filter(|table| table.name.starts_with("instrument"));
        tables
            .map(|table| (table.name.clone(), table.origin == Origin::Core))
            .collect()
    };
    // The curves of the platform would refer to a table of the organization.
    let catalog = Catalog::new(CatalogVersion(1), vec![own(INSTRUMENT_MEASUREMENT)]);
    assert_eq!(
        names(&catalog),
        [(INSTRUMENT_MEASUREMENT.to_owned(), false)]
    );
    let catalog = Catalog::new(CatalogVersion(1), vec![own(INSTRUMENT_CURVE)]);
    assert_eq!(
        names(&catalog),
        [
            (INSTRUMENT_CURVE.to_owned(), false),
            (INSTRUMENT_MEASUREMENT.to_owned(), true)
        ]
    );
}
