//! Tests of linked tables.

use std::collections::BTreeMap;

use super::{
    ImportColumns, ImportField, ImportMode, ImportRows, ImportWrite, LinkedColumns, LinkedTable,
};
use crate::{
    catalog::{Catalog, CatalogVersion, ColumnDefinition, KeyedTable, Table, TableDefinition},
    data::write::{FileCell, Mode, OnMatch, RowNames, WriteRequest, cell::Cell},
    scalar::DataType,
};

/// Plates, wells of plates, and readings of wells.
fn catalog() -> Catalog {
    let column = |name: &str| ColumnDefinition::new(name, DataType::String);
    let unique = |name: &str| {
        let mut column = column(name);
        column.is_unique = true;
        column
    };
    let reference = |name: &str, target: &str| {
        let mut column = column(name);
        column.references = Some(target.to_owned());
        column
    };
    let definitions = [
        TableDefinition::new("plate", vec![unique("barcode"), column("kind")]),
        TableDefinition::new(
            "well",
            vec![reference("plate", "plate"), column("position")],
        ),
        TableDefinition::new(
            "reading",
            vec![
                reference("well", "well"),
                ColumnDefinition::new("od", DataType::Float),
            ],
        ),
        TableDefinition::new("remark", vec![column("text")]),
    ];
    let mut tables: Vec<Table> = Vec::new();
    for definition in definitions {
        let known = Catalog::new(CatalogVersion(1), tables.clone());
        tables.push(definition.resolve(&known).unwrap());
    }
    Catalog::new(CatalogVersion(1), tables)
}

fn reading(catalog: &Catalog) -> KeyedTable {
    ImportColumns::table(catalog, "reading").unwrap().unwrap()
}

fn link(table: &str, columns: &[(&str, &str)]) -> LinkedTable {
    let columns = columns.iter();
    LinkedTable {
        table: table.to_owned(),
        columns: columns
            .map(|(field, column)| ((*field).to_owned(), (*column).to_owned()))
            .collect(),
        ..LinkedTable::default()
    }
}

/// The plates and wells of a sheet.
fn plates_and_wells() -> Vec<LinkedTable> {
    vec![
        LinkedTable {
            of: Some("well".to_owned()),
            ..link("plate", &[("Plate", "barcode"), ("Type", "kind")])
        },
        LinkedTable {
            key: Some(vec!["plate".to_owned(), "position".to_owned()]),
            ..link("well", &[("Well", "position")])
        },
    ]
}

const HEADER: [&str; 4] = ["Plate", "Type", "Well", "OD"];

fn fields() -> Vec<ImportField> {
    let fields = HEADER.iter().map(|text| ImportField {
        text: (*text).to_owned(),
        key: text.to_lowercase(),
        unit: None,
        holds_times: false,
    });
    fields.collect()
}

fn choose(linked: &[LinkedTable]) -> Result<Vec<LinkedColumns>, Vec<(String, String)>> {
    let catalog = catalog();
    let chosen = LinkedColumns::choose(linked, &fields(), &reading(&catalog), &catalog);
    chosen.map_err(|problems| {
        let problems = problems.into_iter();
        problems
            .map(|problem| (problem.path.unwrap(), problem.message))
            .collect()
    })
}

/// The first problem's path.
fn refused(linked: &[LinkedTable]) -> String {
    choose(linked).unwrap_err().remove(0).0
}

/// A line: plate, type, well and OD; an empty text is a blank cell.
type Line = (u64, [&'static str; 4]);

fn import(lines: &[Line]) -> Result<WriteRequest, Vec<(String, String)>> {
    import_into(&plates_and_wells(), lines)
}

fn import_into(
    linked: &[LinkedTable],
    lines: &[Line],
) -> Result<WriteRequest, Vec<(String, String)>> {
    let catalog = catalog();
    let linked = choose(linked).unwrap();
    let mut chosen = BTreeMap::new();
    LinkedColumns::claim_fields(&linked, &mut chosen);
    let columns = ImportColumns::choose(&fields(), &chosen, &reading(&catalog)).unwrap();
    let mut types = columns.types();
    LinkedColumns::add_types(&linked, &columns, &mut types).unwrap();
    let text = Some(DataType::String);
    assert_eq!(types, [text, text, text, Some(DataType::Float)]);
    let write = ImportWrite {
        table: "reading".to_owned(),
        mode: ImportMode::Insert,
        key: None,
        on_match: OnMatch::default(),
        blank: None,
        dry_run: false,
    };
    let mut rows = ImportRows::new(columns, write).with_linked(linked);
    for (line, cells) in lines {
        let mut cells: Vec<Option<FileCell>> = cells
            .iter()
            .map(|text| (!text.is_empty()).then(|| FileCell::Text((*text).to_owned())))
            .collect();
        rows.add(*line, &mut cells).unwrap();
    }
    let request = rows.into_request().map_err(|problems| {
        let problems = problems.into_iter();
        problems
            .map(|problem| (problem.path.unwrap(), problem.message))
            .collect::<Vec<_>>()
    });
    request.map(|(request, _)| request)
}

/// The cells of a column, one per row.
fn cells(request: &WriteRequest, table: usize, column: &str) -> Vec<Cell> {
    let column = request.tables[table].rows.column(column).unwrap();
    column.cells().cloned().collect()
}

fn file(text: &str) -> Cell {
    Cell::File(FileCell::Text(text.to_owned()))
}

fn label(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

#[test]
fn lines_of_one_key_are_one_row_to_which_the_others_refer() {
    let request = import(&[
        (3, ["P1", "", "A1", "0.1"]),
        (4, ["P1", "96", "A2", "0.2"]),
        (6, ["P2", "96", "A1", "0.3"]),
        (7, ["P1", "", "A1", "0.4"]),
    ])
    .unwrap();
    let tables = request.tables.iter();
    let tables: Vec<(&str, Mode, usize)> = tables
        .map(|write| (write.table.as_str(), write.mode, write.rows.len()))
        .collect();
    let upsert = Mode::Upsert;
    let expected = [
        ("plate", upsert, 2),
        ("well", upsert, 3),
        ("reading", Mode::Insert, 4),
    ];
    assert_eq!(tables, expected);
    assert_eq!(request.tables[0].key, Some(vec!["barcode".to_owned()]));
    assert_eq!(cells(&request, 0, "barcode"), [file("P1"), file("P2")]);
    // The type that a later line gives.
    assert_eq!(cells(&request, 0, "kind"), [file("96"), file("96")]);
    assert_eq!(cells(&request, 0, "_ref"), [label("0.0"), label("0.1")]);
    assert_eq!(
        cells(&request, 1, "plate"),
        ["@0.0", "@0.0", "@0.1"].map(label)
    );
    assert_eq!(cells(&request, 1, "position"), ["A1", "A2", "A1"].map(file));
    let wells = ["@1.0", "@1.1", "@1.2", "@1.0"].map(label);
    assert_eq!(cells(&request, 2, "well"), wells);
    assert!(request.tables[2].rows.column("Plate").is_none());
    // Read by the column's type, one per line.
    let od = request.tables[2].rows.column("od").unwrap().file();
    assert_eq!(od.unwrap().values().len(), 4);
    let RowNames::Lines(lines) = &request.row_names else {
        panic!("rows of a file have its lines");
    };
    assert_eq!(*lines[2].lines, [3, 4, 6, 7]);
}

#[test]
fn lines_that_contradict_each_other_are_a_problem_that_names_both() {
    let problems = import(&[
        (3, ["P1", "96", "A1", "0.1"]),
        (5, ["P1", "384", "A2", "0.2"]),
    ])
    .unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].0, "rows[5].plate.kind");
    let message = "is \"384\" here, but \"96\" on line 3, which gives the same row of \"plate\"";
    assert_eq!(problems[0].1, message);
}

#[test]
fn lines_of_one_row_refer_to_one_row_or_to_none() {
    let mut linked = plates_and_wells();
    linked[1].key = Some(vec!["position".to_owned()]);
    let first = (3, ["P1", "", "A1", "0.1"]);
    for (plate, is_refused) in [("P1", false), ("", false), ("P2", true)] {
        let found = import_into(&linked, &[first, (5, [plate, "", "A1", "0.2"])]);
        let paths = found.map(|request| cells(&request, 1, "plate"));
        let problem =
            "is \"another\" here, but \"a row\" on line 3, which gives the same row of \"well\"";
        let expected = if is_refused {
            Err(vec![("rows[5].well.plate".to_owned(), problem.to_owned())])
        } else {
            Ok(vec![label("@0.0")])
        };
        assert_eq!(paths, expected, "{plate}");
    }
    // The line that names the plate may come later.
    let lines = [(3, ["", "", "A1", "0.1"]), (5, ["P1", "", "A1", "0.2"])];
    let found = import_into(&linked, &lines).unwrap();
    assert_eq!(cells(&found, 1, "plate"), [label("@0.0")]);
}

#[test]
fn a_reference_holds_a_key_or_the_only_unique_text_unless_a_lookup_is_chosen() {
    let catalog = catalog();
    let wells = ImportColumns::table(&catalog, "well").unwrap().unwrap();
    let look_up = |chosen: &[(&str, &str)]| {
        let fields = BTreeMap::from([
            ("Plate".to_owned(), Some("plate".to_owned())),
            ("Well".to_owned(), Some("position".to_owned())),
            ("Type".to_owned(), None),
            ("OD".to_owned(), None),
        ]);
        let columns = ImportColumns::choose(&self::fields(), &fields, &wells).unwrap();
        let chosen = chosen.iter();
        let chosen = chosen.map(|(name, column)| ((*name).to_owned(), (*column).to_owned()));
        let found = columns.with_lookups(&chosen.collect(), &wells, &catalog);
        let found = found.map(|columns| {
            let lookup = columns.lookups.get("plate");
            lookup.map(|lookup| (lookup.column.clone(), lookup.takes_key))
        });
        found.map_err(|problems| problems[0].path.clone().unwrap())
    };
    let by_barcode = |takes_key| Ok(Some(("barcode".to_owned(), takes_key)));
    assert_eq!(look_up(&[]), by_barcode(true));
    assert_eq!(look_up(&[("plate", "barcode")]), by_barcode(false));
    assert_eq!(look_up(&[("plate", "id")]), Ok(None));
    for (name, column) in [
        ("plate", "kind"),
        ("plate", "nothing"),
        ("position", "barcode"),
        ("nothing", "barcode"),
    ] {
        let path = format!("lookups.{name}");
        assert_eq!(look_up(&[(name, column)]), Err(path), "{name} {column}");
    }
}

#[test]
fn a_blank_line_of_linked_tables_refers_to_nothing_but_half_a_key_is_a_problem() {
    let request = import(&[(3, ["", "", "", "0.1"]), (4, ["P1", "", "A1", "0.2"])]).unwrap();
    let wells = cells(&request, 2, "well");
    assert_eq!(wells, [Cell::Null, label("@1.0")]);
    let problems = import(&[(3, ["P1", "", "", "0.1"]), (4, ["", "96", "A1", "0.1"])]).unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
    let expected = [
        "rows[3].well.position",
        "rows[4].plate.barcode",
        "rows[4].well.plate",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn linked_tables_are_checked_against_the_header_and_the_catalog() {
    let plates = || plates_and_wells().remove(0);
    let wells = || plates_and_wells().remove(1);
    assert!(choose(&plates_and_wells()).is_ok());
    let reference = |mut link: LinkedTable, name: &str| {
        link.reference = Some(name.to_owned());
        link
    };
    let key = |mut link: LinkedTable, names: &[&str]| {
        link.key = Some(names.iter().map(|name| (*name).to_owned()).collect());
        link
    };
    let of = |mut link: LinkedTable, name: &str| {
        link.of = Some(name.to_owned());
        link
    };
    let cases = [
        (vec![of(wells(), "nothing")], "linked[0].of"),
        (vec![plates(), of(wells(), "plate")], "linked[1].of"),
        (
            vec![of(plates(), "nothing"), link("nothing", &[])],
            "linked[0].of",
        ),
        (
            vec![link("nothing", &[("Plate", "barcode")])],
            "linked[0].table",
        ),
        (vec![link("reading", &[("OD", "od")])], "linked[0].table"),
        (vec![plates(), wells(), wells()], "linked[2].table"),
        (vec![link("plate", &[])], "linked[0].columns"),
        (
            vec![link("well", &[("Place", "position")])],
            "linked[0].columns.Place",
        ),
        (
            vec![link("well", &[("Well", "place")])],
            "linked[0].columns.Well",
        ),
        // A linked table gives the column already.
        (
            vec![
                plates(),
                key_of_wells(link("well", &[("Well", "position"), ("Type", "plate")])),
            ],
            "linked[1].columns.Type",
        ),
        // What it is linked to comes after it.
        (vec![wells(), plates()], "linked[0].key[0]"),
        (
            vec![link("plate", &[("Plate", "barcode")])],
            "linked[0].reference",
        ),
        (
            vec![link("remark", &[("Type", "text")])],
            "linked[0].reference",
        ),
        (vec![reference(wells(), "od")], "linked[0].reference"),
        (
            vec![key(wells(), &["position", "place"])],
            "linked[0].key[1]",
        ),
        (vec![key(wells(), &[])], "linked[0].key"),
        // No unique text.
        (vec![link("well", &[("Well", "position")])], "linked[0].key"),
        // The only unique text has no field.
        (
            vec![of(link("plate", &[("Type", "kind")]), "well"), wells()],
            "linked[0].key",
        ),
        (
            vec![link("plate", &[("Type", "kind")])],
            "linked[0].reference",
        ),
    ];
    for (linked, path) in cases {
        assert_eq!(refused(&linked), path, "{linked:?}");
    }
}

#[test]
fn a_field_is_read_as_values_of_one_type_and_a_reference_is_given_once() {
    let catalog = catalog();
    let linked = choose(&[key_of_wells(link("well", &[("OD", "position")]))]).unwrap();
    let columns = |chosen: &[(&str, &str)]| {
        let chosen = chosen.iter();
        let chosen =
            chosen.map(|(field, column)| ((*field).to_owned(), Some((*column).to_owned())));
        let mut chosen: BTreeMap<_, _> = chosen.collect();
        for field in HEADER {
            chosen.entry(field.to_owned()).or_insert(None);
        }
        ImportColumns::choose(&fields(), &chosen, &reading(&catalog)).unwrap()
    };
    let refused = |chosen: &[(&str, &str)]| {
        let own = columns(chosen);
        let mut types = own.types();
        let refused = LinkedColumns::add_types(&linked, &own, &mut types).unwrap_err();
        refused.path.unwrap()
    };
    assert_eq!(refused(&[("OD", "od")]), "linked[0].columns.OD");
    assert_eq!(refused(&[("Well", "well")]), "linked[0].reference");
}

fn key_of_wells(link: LinkedTable) -> LinkedTable {
    LinkedTable {
        key: Some(vec!["position".to_owned()]),
        ..link
    }
}

#[test]
fn a_linked_field_of_another_unit_is_a_problem_although_its_column_is_named() {
    let tables = catalog();
    let tables = tables.tables().iter().map(|table| Table::clone(table));
    let mut tables: Vec<Table> = tables.collect();
    for table in &mut tables {
        table
            .columns
            .update(|column| column.unit = (column.name == "kind").then(|| "mg".to_owned()));
    }
    let catalog = Catalog::new(CatalogVersion(1), tables);
    let choose = |unit: &str| {
        let mut fields = fields();
        fields[1].unit = Some(unit.to_owned());
        LinkedColumns::choose(&plates_and_wells(), &fields, &reading(&catalog), &catalog)
    };
    for unit in ["mg", "milligrams", "blank corrected"] {
        assert!(choose(unit).is_ok(), "{unit}");
    }
    for unit in ["g", "\u{b5}g", "10\u{b3} mg", "Torr", "mg/foo"] {
        let problem = choose(unit).unwrap_err().remove(0);
        let path = Some("linked[0].columns.Type");
        assert_eq!(problem.path.as_deref(), path, "{unit}");
        assert!(problem.message.ends_with("or correct the header"));
    }
}

#[test]
fn a_field_of_two_tables_has_one_unit_in_both() {
    let catalog = catalog();
    let problems = |own: Option<&str>, linked: Option<&str>, header: Option<&str>| {
        let tables = catalog.tables().iter().map(|table| Table::clone(table));
        let mut tables: Vec<Table> = tables.collect();
        for table in &mut tables {
            let unit = if table.name == "reading" { own } else { linked };
            table.columns.update(|column| {
                if matches!(column.name.as_str(), "od" | "kind" | "position") {
                    column.data_type = DataType::Float;
                    column.unit = unit.map(str::to_owned);
                }
            });
        }
        let catalog = Catalog::new(CatalogVersion(1), tables);
        let mut fields = fields();
        fields[3].unit = header.map(str::to_owned);
        let links = [
            LinkedTable {
                of: Some("well".to_owned()),
                ..link("plate", &[("Plate", "barcode"), ("OD", "kind")])
            },
            LinkedTable {
                key: Some(vec!["plate".to_owned()]),
                ..link("well", &[("OD", "position")])
            },
        ];
        let table = reading(&catalog);
        let links = LinkedColumns::choose(&links, &fields, &table, &catalog).unwrap();
        let mut chosen = BTreeMap::from([("OD".to_owned(), Some("od".to_owned()))]);
        chosen.extend(["Type", "Well"].map(|field| (field.to_owned(), None)));
        LinkedColumns::claim_fields(&links, &mut chosen);
        let own = ImportColumns::choose(&fields, &chosen, &table).unwrap();
        let types = LinkedColumns::add_types(&links, &own, &mut own.types());
        assert_eq!(types, Ok(()), "one type may be read several times");
        let found = LinkedColumns::check_units(&links, &own, &fields).err();
        let found = found.unwrap_or_default().into_iter();
        found.map(|it| it.path.unwrap()).collect::<Vec<_>>()
    };
    for (own, linked, header) in [
        (None, None, None),
        (Some("mL"), Some("mL"), None),
        (Some("L"), Some("l"), None),
        (Some("mL"), None, None),
        (None, Some("mL"), None),
        (Some("%"), None, Some("%")),
    ] {
        let found = problems(own, linked, header);
        assert!(found.is_empty(), "{own:?} {linked:?} {found:?}");
    }
    for (own, linked) in [
        (Some("mL"), Some("uL")),
        (Some("uL"), Some("mL")),
        (Some("{cells}"), Some("{counts}")),
        (Some("%"), None),
        (None, Some("%")),
    ] {
        assert_eq!(
            problems(own, linked, None),
            ["linked[0].columns.OD", "linked[1].columns.OD"],
            "{own:?} {linked:?}"
        );
    }
}
