//! Units of columns, from wherever the file names them.

use std::io::Cursor;

use serde_json::{Value, json};

use super::{Read, options, read, read_with};
use crate::read::{ImportTarget, head::Extent, table::open_extent};

fn units(found: &Read) -> Vec<Option<&str>> {
    let columns = found.table.columns().iter();
    columns.map(|column| column.unit.as_deref()).collect()
}

#[test]
fn a_line_of_units_above_the_header_gives_the_units() {
    for above in [
        ";mg/mL;",
        "\"\";\"mg/mL\";\"\"",
        ";[mg/mL];",
        "Units;mg/mL;",
        "Unit:;mg/mL;",
        ";mg/mL;cells",
    ] {
        for title in ["", "Report\n"] {
            let file = format!("{title}{above}\nname;v;n\nA;5;1\nB;6;2\n");
            let header = file.lines().count() - 2;
            let options = json!({"header_row": header});
            let found = read_with(&file, options);
            assert_eq!(units(&found)[1], Some("mg/mL"), "{file}");
            assert_eq!(found.headers(), ["name", "v", "n"]);
            let line = u64::try_from(header - 1).unwrap();
            assert_eq!(found.table.reading().units_row, Some(line), "{file}");
            assert_eq!(found.cells().len(), 2);
        }
    }
}

#[test]
fn an_import_finds_the_line_of_units_above_its_header() {
    for (above, unit) in [
        (";mg/mL;", Some("mg/mL")),
        ("\n;mg/mL;\n", Some("mg/mL")),
        (";Min.;", Some("Min.")),
        (";10\u{b3} \u{b5}l;", Some("10\u{b3} \u{b5}l")),
        (";;", None),
        ("Report;;", None),
        (";control;", None),
        ("Wavelength;600 nm;", None),
        ("Report;mg/mL;", None),
    ] {
        let file = format!("{above}\nname;v;n\nA;5;1\nB;6;2\n");
        let target = ImportTarget::new(["name", "v", "n"].map(str::to_owned).to_vec());
        let source = Box::new(Cursor::new(file.clone().into_bytes()));
        let none = options(&json!({}));
        let table = open_extent(source, &none, 1_000, Extent::Whole, Some(&target)).unwrap();
        let headers: Vec<&str> = table
            .columns()
            .iter()
            .map(|it| it.header.as_str())
            .collect();
        assert_eq!(headers, ["name", "v", "n"], "{file}");
        assert_eq!(table.columns()[1].unit.as_deref(), unit, "{file}");
    }
}

#[test]
fn a_preview_shows_the_line_of_units_above_the_header_or_doubts_the_header() {
    let body = "name;v;n\nA;5;1\nB;6;2\n";
    for above in [";mg/mL;", "Units;mg/mL;"] {
        let found = read(format!("{above}\n{body}"));
        assert_eq!(found.codes(), []);
        assert_eq!(units(&found), [None, Some("mg/mL"), None]);
        // Sent back, the reading gives the same unit.
        let again = found.table.reading().to_json();
        let again = read_with(format!("{above}\n{body}"), Value::Object(again));
        assert_eq!(units(&again), units(&found));
    }
    for above in ["\"\";\"mg/mL\";\"\"", "h;mg/mL;cells"] {
        let found = read(format!("{above}\n{body}"));
        assert_eq!(found.codes(), [("header_row", "header_row")], "{above}");
    }
}

#[test]
fn a_line_of_units_does_not_give_way_to_brackets_that_say_something_else() {
    for (header, unit) in [
        ("v (raw)", "mg/mL"),
        ("v [mg/mL]", "mg/mL"),
        ("v [ug/mL]", "ug/mL or mg/mL"),
    ] {
        let found = read(format!("name,{header},n\n,mg/mL,\nA,5,1\nB,6,2\n"));
        assert_eq!(units(&found)[1], Some(unit), "{header}");
    }
}
